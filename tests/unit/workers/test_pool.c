/* Warm sandboxes: as many as asked for, each used by one run, replaced when stale, gone at the drain; and
 * nothing breaks when they die in any of their states. */
#include "tests/unit/workers/rig.h"

#define POOL(target, max, more) "{\"p\":{\"agent\":\"helper\",\"target\":" target ",\"max\":" max more "}}"

typedef struct pond {
    rig *r;
    stk_pool *pool;
    bool drained;
} pond;

static void on_drained(void *arg)
{
    ((pond *)arg)->drained = true;
}

static pond pond_new(const char *pools)
{
    pond p = {.r = rig_new()};
    stk_err err;
    if (pools)
        rig_config(p.r, STK_CONF_POOLS, pools);
    p.r->nnotes = 0;
    assert_int_equal(stk_pool_new(&p.r->ctx, &p.pool, &err), 0);
    stk_pool_tend(p.pool);
    return p;
}

static bool is_drained(rig *r, void *arg)
{
    return ((pond *)arg)->drained;
}

static size_t registered(rig *r)
{
    stk_op_pool_list *op = rig_call(r, stk_op_new(STK_OP_POOL_LIST, NULL, NULL));
    size_t n = op->n;
    stk_op_free(&op->op);
    return n;
}

/* Everything is removed again, whatever was going on. */
static void pond_free(pond *p)
{
    stk_pool_drain(p->pool, on_drained, p);
    int64_t deadline = stk_mono_now().ns + stk_sec(5).ns;
    while (!p->drained && stk_mono_now().ns < deadline) {
        stk_pool_tend(p->pool); /* as the worker's heartbeat does */
        rig_turn(p->r, stk_ms(2));
    }
    assert_true(p->drained);
    assert_int_equal(registered(p->r), 0);
    assert_int_equal(p->r->be.made, p->r->be.destroyed);
    stk_pool_free(p->pool);
    rig_free(p->r);
}

typedef struct wish {
    pond *p;
    int64_t ready;
} wish;

static bool has_ready(rig *r, void *arg)
{
    const wish *w = arg;
    stk_pool_counts counts = stk_pool_counts_get(w->p->pool);
    return counts.ready == w->ready && counts.creating == 0 && counts.removing == 0 && r->flying == 0;
}

static void until_ready(pond *p, int64_t n)
{
    wish w = {p, n};
    rig_until(p->r, has_ready, &w);
}

/* What a scheduler does: takes the oldest from state. */
static bool take(pond *p, char out[STK_ID_SIZE])
{
    stk_agent_limits limits;
    stk_op_pool_take *op = stk_op_new(STK_OP_POOL_TAKE, NULL, NULL);
    stk_agent_limits_default(&limits);
    stk_template_key("t", "oci", "", &limits, op->in.template_key);
    op = rig_call(p->r, op);
    bool found = op->found;
    memcpy(out, op->row.sandbox, STK_ID_SIZE);
    stk_op_free(&op->op);
    return found;
}

static void on_gone(const stk_err *err, void *arg)
{
    *(bool *)arg = true;
}

static bool is_set(rig *r, void *arg)
{
    return *(bool *)arg;
}

static void use_up(pond *p, stk_box *box)
{
    char journal[256];
    bool gone = false;
    stk_box_destroy(box, journal, on_gone, &gone);
    rig_until(p->r, is_set, &gone);
    unlink(journal);
}

static void nothing_is_made_when_nothing_is_asked_for(void **state)
{
    pond p = pond_new(NULL);
    rig_turn(p.r, stk_ms(20));
    assert_int_equal(p.r->be.made, 0);
    pond_free(&p);
}

static void as_many_as_the_target_are_made_and_registered(void **state)
{
    pond p = pond_new(POOL("6", "8", ""));
    until_ready(&p, 6);
    assert_int_equal(p.r->be.made, 6);
    assert_int_equal(registered(p.r), 6);
    assert_true(rig_before(p.r, "health", "pool_put")); /* only what answered */
    pond_free(&p);
}

static void one_that_is_taken_is_used_once_and_replaced(void **state)
{
    pond p = pond_new(POOL("1", "1", ""));
    char id[STK_ID_SIZE], other[STK_ID_SIZE];
    until_ready(&p, 1);
    assert_true(take(&p, id));
    assert_false(take(&p, other));
    stk_box *box = stk_pool_claim(p.pool, id);
    assert_non_null(box);
    assert_null(stk_pool_claim(p.pool, id));
    stk_pool_tend(p.pool);
    until_ready(&p, 1);
    assert_int_equal(p.r->be.made, 2);
    use_up(&p, box);
    pond_free(&p);
}

static void what_is_not_here_cannot_be_claimed(void **state)
{
    pond p = pond_new(POOL("1", "1", ""));
    assert_null(stk_pool_claim(p.pool, p.r->be.last.id)); /* not made yet */
    until_ready(&p, 1);
    assert_null(stk_pool_claim(p.pool, "sbx-00000000000000000000000000"));
    pond_free(&p);
}

static void a_claim_before_the_registration_is_answered_is_good(void **state)
{
    pond p = pond_new(NULL);
    p.r->hold = STK_OP_POOL_PUT;
    p.r->holding = true;
    rig_config(p.r, STK_CONF_POOLS, POOL("1", "1", ""));
    stk_pool_tend(p.pool);
    rig_until_noted(p.r, "health");
    rig_turn(p.r, stk_ms(10));
    stk_box *box = stk_pool_claim(p.pool, p.r->be.last.id);
    assert_non_null(box);
    rig_config(p.r, STK_CONF_POOLS, "{}");
    rig_release(p.r);
    use_up(&p, box);
    stk_op_pool_drop *drop = stk_op_new(STK_OP_POOL_DROP, NULL, NULL); /* the run's end does this */
    snprintf(drop->in.sandbox, sizeof(drop->in.sandbox), "%s", p.r->be.last.id);
    memcpy(drop->in.worker, p.r->ctx.worker, sizeof(drop->in.worker));
    stk_state_call(p.r->ctx.state, drop);
    pond_free(&p);
}

static void stale_ones_go_after_their_replacements_are_there(void **state)
{
    pond p = pond_new(POOL("2", "2", ""));
    until_ready(&p, 2);
    p.r->nnotes = 0;
    rig_config(p.r, STK_CONF_AGENT_SANDBOX,
               "{\"enabled\":true,\"agents\":{\"helper\":{\"limits\":{\"pids\":9}}}}");
    stk_pool_tend(p.pool);
    rig_until_noted(p.r, "destroy");
    assert_int_equal(rig_noted(p.r, "create"), 2);
    assert_true(rig_before(p.r, "pool_put", "destroy"));
    until_ready(&p, 2);
    assert_int_equal(p.r->be.last.limits.pids, 9);
    pond_free(&p);
}

static void a_pool_that_is_not_asked_for_any_more_is_emptied(void **state)
{
    static const struct {
        const char *name, *doc;
    } rows[] = {{STK_CONF_POOLS, "{}"},
                {STK_CONF_POOLS, POOL("0", "0", "")},
                {STK_CONF_POOLS, "{\"p\":{\"agent\":\"nobody\",\"target\":2,\"max\":2}}"},
                {STK_CONF_AGENT_SANDBOX, "{\"enabled\":false,\"agents\":{\"helper\":{}}}"},
                {STK_CONF_AGENT_SANDBOX, "{\"enabled\":true,\"agents\":{}}"},
                {STK_CONF_AGENT_SANDBOX,
                 "{\"enabled\":true,\"require_runtime_class\":true,\"agents\":{\"helper\":{}}}"}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        pond p = pond_new(POOL("2", "2", ""));
        until_ready(&p, 2);
        rig_config(p.r, rows[i].name, rows[i].doc);
        stk_pool_tend(p.pool);
        until_ready(&p, 0);
        assert_int_equal(registered(p.r), 0);
        pond_free(&p);
    }
}

static void old_ones_are_replaced_at_their_time(void **state)
{
    pond p = pond_new(POOL("1", "1", ",\"ttl_seconds\":1"));
    until_ready(&p, 1);
    int64_t deadline = stk_mono_now().ns + stk_sec(5).ns;
    while (!rig_noted(p.r, "destroy") && stk_mono_now().ns < deadline) {
        stk_pool_tend(p.pool);
        rig_turn(p.r, stk_ms(20));
    }
    assert_true(rig_before(p.r, "pool_put", "destroy"));
    assert_int_equal(p.r->be.made, 2);
    pond_free(&p);
}

static void failures_are_followed_by_longer_and_longer_pauses(void **state)
{
    pond p = pond_new(NULL);
    p.r->be.create = FAKE_BAD;
    rig_config(p.r, STK_CONF_POOLS, POOL("1", "1", ""));
    int64_t until = stk_mono_now().ns + stk_ms(1300).ns;
    while (stk_mono_now().ns < until) {
        stk_pool_tend(p.pool);
        rig_turn(p.r, stk_ms(5));
    }
    assert_in_range(p.r->be.failed, 1, 2); /* at 0 and 0.5 s; the next at 1.5 s */
    assert_int_equal(stk_pool_counts_get(p.pool).failures, p.r->be.failed);
    pond_free(&p);
}

static void one_that_does_not_answer_is_removed_and_counts_as_a_failure(void **state)
{
    pond p = pond_new(NULL);
    p.r->be.health = FAKE_DIE;
    rig_config(p.r, STK_CONF_POOLS, POOL("1", "1", ""));
    stk_pool_tend(p.pool);
    rig_until_noted(p.r, "destroy");
    assert_int_equal(stk_pool_counts_get(p.pool).failures, 1);
    assert_int_equal(registered(p.r), 0);
    pond_free(&p);
}

static void a_registration_that_is_refused_is_not_tried_at_once_again(void **state)
{
    pond p = pond_new(NULL);
    p.r->fail = STK_OP_POOL_PUT;
    p.r->failures = 1;
    rig_config(p.r, STK_CONF_POOLS, POOL("1", "1", ""));
    stk_pool_tend(p.pool);
    rig_until_noted(p.r, "destroy");
    for (int i = 0; i < 20; i++) {
        stk_pool_tend(p.pool);
        rig_turn(p.r, stk_ms(2));
    }
    assert_int_equal(p.r->be.made, 1);
    pond_free(&p);
}

/* Dies while an operation of state that names it is in flight, or is not. */
static void one_that_dies_in_any_state_is_removed_once(void **state)
{
    static const stk_op_kind holds[] = {STK_OP_POOL_PUT, STK_OP_POOL_TAKE, STK_OP_COUNTS};
    for (size_t i = 0; i < STK_COUNT(holds); i++) {
        pond p = pond_new(NULL);
        p.r->hold = holds[i];
        p.r->holding = true;
        rig_config(p.r, STK_CONF_POOLS, POOL("1", "1", ""));
        stk_pool_tend(p.pool);
        rig_until_noted(p.r, "health");
        rig_turn(p.r, stk_ms(10));
        rig_config(p.r, STK_CONF_POOLS, "{}");
        if (holds[i] == STK_OP_POOL_TAKE) {
            until_ready(&p, 1);
            stk_pool_tend(p.pool);
        }
        assert_int_equal(fake_alive(&p.r->be), 1);
        fake_lose(p.r->be.first, false);
        rig_until_noted(p.r, "destroy");
        rig_turn(p.r, stk_ms(10)); /* destroyed, and the operation still out */
        rig_release(p.r);
        until_ready(&p, 0);
        pond_free(&p);
    }
}

static void one_that_state_has_given_away_waits_for_its_run(void **state)
{
    pond p = pond_new(POOL("1", "1", ""));
    char id[STK_ID_SIZE];
    until_ready(&p, 1);
    assert_true(take(&p, id)); /* the assignment is on its way … */
    rig_config(p.r, STK_CONF_POOLS, "{}");
    stk_pool_tend(p.pool);
    rig_until_noted(p.r, "pool_take");
    rig_turn(p.r, stk_ms(5));
    assert_int_equal(p.r->be.destroyed, 0);
    stk_box *box = stk_pool_claim(p.pool, id); /* … and here */
    assert_non_null(box);
    use_up(&p, box);
    pond_free(&p);
}

static void an_ended_incarnations_sandboxes_are_nobodys(void **state)
{
    pond p = pond_new(POOL("2", "2", ""));
    until_ready(&p, 2);
    stk_pool_renounce(p.pool);
    rig_until_noted(p.r, "destroy");
    rig_config(p.r, STK_CONF_POOLS, "{}");
    until_ready(&p, 0);
    assert_int_equal(p.r->be.destroyed, 2);
    for (fake_sandbox *sbx = p.r->be.first; sbx; sbx = sbx->next)
        fail_msg("%s is left", sbx->base.id);
    stk_op_pool_list *op = rig_call(p.r, stk_op_new(STK_OP_POOL_LIST, NULL, NULL));
    for (size_t i = 0; i < op->n; i++) { /* as the next join does */
        stk_op_pool_drop *drop = stk_op_new(STK_OP_POOL_DROP, NULL, NULL);
        memcpy(drop->in.sandbox, op->rows[i].sandbox, sizeof(drop->in.sandbox));
        memcpy(drop->in.worker, p.r->ctx.worker, sizeof(drop->in.worker));
        stk_state_call(p.r->ctx.state, drop);
    }
    stk_op_free(&op->op);
    pond_free(&p);
}

static void a_drain_waits_for_what_is_being_made(void **state)
{
    pond p = pond_new(NULL);
    p.r->be.create = FAKE_HOLD;
    rig_config(p.r, STK_CONF_POOLS, POOL("1", "1", ""));
    stk_pool_tend(p.pool);
    rig_until_noted(p.r, "create");
    stk_pool_drain(p.pool, on_drained, &p);
    rig_turn(p.r, stk_ms(10));
    assert_false(p.drained);
    p.r->be.create = FAKE_OK;
    fake_create_now(&p.r->be);
    rig_until(p.r, is_drained, &p);
    pond_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_made_when_nothing_is_asked_for),
        cmocka_unit_test(as_many_as_the_target_are_made_and_registered),
        cmocka_unit_test(one_that_is_taken_is_used_once_and_replaced),
        cmocka_unit_test(what_is_not_here_cannot_be_claimed),
        cmocka_unit_test(a_claim_before_the_registration_is_answered_is_good),
        cmocka_unit_test(stale_ones_go_after_their_replacements_are_there),
        cmocka_unit_test(a_pool_that_is_not_asked_for_any_more_is_emptied),
        cmocka_unit_test(old_ones_are_replaced_at_their_time),
        cmocka_unit_test(failures_are_followed_by_longer_and_longer_pauses),
        cmocka_unit_test(one_that_does_not_answer_is_removed_and_counts_as_a_failure),
        cmocka_unit_test(a_registration_that_is_refused_is_not_tried_at_once_again),
        cmocka_unit_test(one_that_dies_in_any_state_is_removed_once),
        cmocka_unit_test(one_that_state_has_given_away_waits_for_its_run),
        cmocka_unit_test(an_ended_incarnations_sandboxes_are_nobodys),
        cmocka_unit_test(a_drain_waits_for_what_is_being_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
