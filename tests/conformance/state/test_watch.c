#include "tests/conformance/state/rig.h"

typedef struct seen {
    int n;
    char what[64];
} seen;

static void on_note(const char *what, void *arg)
{
    seen *s = arg;
    s->n++;
    TEXT(s->what, what);
}

static bool noted(void *arg)
{
    return ((seen *)arg)->n > 0;
}

static const char *watch_name(const char *kind, const char *id)
{
    static char name[64];
    snprintf(name, sizeof(name), "%s/%s", kind, ID(id));
    return name;
}

/* Whatever was noted up to now has arrived once an operation that came later is answered and the loop is
 * empty. */
static void settle(rig *r)
{
    do_counts(r);
    event_base_loop(stk_loop_base(r->loop), EVLOOP_NONBLOCK);
}

static void every_change_of_a_run_is_noted(void **state)
{
    rig *r = *state;
    seen mine = {0}, other = {0};
    do_join(r, "wrk-1", "inc-1", 4, 8);
    stk_state_watch(r->st, watch_name("run", "run-1"), on_note, &mine);
    stk_state_watch(r->st, watch_name("run", "run-2"), on_note, &other);
    static const char *const steps[] = {"submit", "queue", "assign", "start", "cancel", "finish"};
    for (size_t i = 0; i < STK_COUNT(steps); i++) {
        mine.n = 0;
        switch (i) {
        case 0:
            do_submit(r, "run-1", "acme", NULL, NULL, 0);
            break;
        case 1:
            do_queue(r, "run-1", "acme", 1);
            break;
        case 2:
            do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
            break;
        case 3:
            do_start(r, "run-1", "asg-1", "wrk-1", "inc-1");
            break;
        case 4:
            do_cancel(r, "run-1", "acme");
            break;
        default:
            do_finish(r, "run-1", "asg-1", "exited");
        }
        rig_until(r, noted, &mine);
        assert_string_equal(mine.what, watch_name("run", "run-1"));
    }
    settle(r);
    mine.n = 0;
    do_finish(r, "run-1", "asg-1", "exited");
    do_get(r, "run-1");
    settle(r);
    assert_int_equal(mine.n, 0);
    assert_int_equal(other.n, 0);
}

static void capacity_is_noted_when_some_may_be_free(void **state)
{
    rig *r = *state;
    seen s = {0};
    stk_state_watch(r->st, "capacity", on_note, &s);
    do_join(r, "wrk-1", "inc-1", 4, 8);
    rig_until(r, noted, &s);
    s.n = 0;
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    settle(r);
    assert_int_equal(s.n, 0);
    do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1");
    rig_until(r, noted, &s);
    s.n = 0;
    do_finish(r, "run-1", "asg-1", "exited");
    rig_until(r, noted, &s);
}

static void set_config(rig *r)
{
    OP(config_set, CONFIG_SET);
    TEXT(op->in.tenant, "acme");
    TEXT(op->in.name, "pools");
    stk_bytes_set(&op->in.record, STK_STR("x"));
    stk_bytes_set(&op->in.audit, STK_STR("y"));
    CALL_OK(r, op);
}

static void output_and_configuration_are_noted(void **state)
{
    rig *r = *state;
    seen out = {0}, conf = {0};
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    do_start(r, "run-1", "asg-1", "wrk-1", "inc-1");
    stk_state_watch(r->st, watch_name("output", "run-1"), on_note, &out);
    stk_state_watch(r->st, "config", on_note, &conf);
    OP(output_add, OUTPUT_ADD);
    TEXT(op->in.run, ID("run-1"));
    TEXT(op->in.assignment, ID("asg-1"));
    op->in.length = 4;
    stk_bytes_set(&op->in.sealed, STK_STR("data"));
    assert_true(CALL_OK(r, op)->kept);
    rig_until(r, noted, &out);
    assert_int_equal(conf.n, 0);
    set_config(r);
    rig_until(r, noted, &conf);
}

static void every_handle_that_watches_is_told(void **state)
{
    rig *r = *state;
    seen here = {0}, there = {0}, twice = {0};
    stk_state *second = r->factory->handle(r->self, r->loop);
    stk_state_watch(r->st, watch_name("run", "run-1"), on_note, &here);
    stk_state_watch(r->st, watch_name("run", "run-1"), on_note, &twice);
    stk_state_watch(second, watch_name("run", "run-1"), on_note, &there);
    do_submit(r, "run-1", "acme", NULL, NULL, 0);
    rig_until(r, noted, &here);
    rig_until(r, noted, &there);
    rig_until(r, noted, &twice);
    stk_state_close(second);
}

static void an_unwatched_name_is_silent(void **state)
{
    rig *r = *state;
    seen a = {0}, b = {0};
    int64_t id = stk_state_watch(r->st, watch_name("run", "run-1"), on_note, &a);
    stk_state_watch(r->st, watch_name("run", "run-1"), on_note, &b);
    stk_state_unwatch(r->st, id);
    stk_state_unwatch(r->st, id);
    stk_state_unwatch(r->st, 0);
    do_submit(r, "run-1", "acme", NULL, NULL, 0);
    rig_until(r, noted, &b);
    settle(r);
    assert_int_equal(a.n, 0);
}

typedef struct pair {
    rig *r;
    int64_t ids[2];
    int calls;
} pair;

static void unwatch_both(const char *what, void *arg)
{
    pair *p = arg;
    p->calls++;
    stk_state_unwatch(p->r->st, p->ids[0]);
    stk_state_unwatch(p->r->st, p->ids[1]);
}

static void a_note_may_unwatch_itself_and_others(void **state)
{
    rig *r = *state;
    pair p = {.r = r};
    for (int i = 0; i < 2; i++)
        p.ids[i] = stk_state_watch(r->st, watch_name("run", "run-1"), unwatch_both, &p);
    do_submit(r, "run-1", "acme", NULL, NULL, 0);
    do_queue(r, "run-1", "acme", 1);
    settle(r);
    assert_int_equal(p.calls, 1);
}

static bool drained(void *arg)
{
    return *(int *)arg == 0;
}

static void on_drained(stk_op *op, void *arg)
{
    assert_int_equal(op->rc, 0);
    --*(int *)arg;
}

static void a_burst_is_noted_at_least_once_and_not_once_each(void **state)
{
    rig *r = *state;
    seen s = {0};
    int left = 2000;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    settle(r);
    stk_state_watch(r->st, "capacity", on_note, &s);
    for (int i = 0; i < 2000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "sbx-%d", i);
        OP(pool_put, POOL_PUT);
        TEXT(op->in.sandbox, ID(name));
        TEXT(op->in.worker, ID("wrk-1"));
        TEXT(op->in.incarnation, ID("inc-1"));
        op->op.done = on_drained;
        op->op.arg = &left;
        stk_state_call(r->st, op);
    }
    rig_until(r, drained, &left);
    settle(r);
    assert_true(s.n >= 1 && s.n < 1000);
}

SUITE(watch, CASE(every_change_of_a_run_is_noted), CASE(capacity_is_noted_when_some_may_be_free),
      CASE(output_and_configuration_are_noted), CASE(every_handle_that_watches_is_told),
      CASE(an_unwatched_name_is_silent), CASE(a_note_may_unwatch_itself_and_others),
      CASE(a_burst_is_noted_at_least_once_and_not_once_each));
