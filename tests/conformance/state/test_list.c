#include "tests/conformance/state/rig.h"

typedef struct query {
    const char *tenant, *agent, *key, *value, *cursor;
    stk_run_state state;
    int64_t limit;
} query;
#define LIST(r, ...) list(r, (query){__VA_ARGS__})

static stk_op_run_list *list(rig *r, query q)
{
    OP(run_list, RUN_LIST);
    TEXT(op->in.tenant, q.tenant ? q.tenant : "");
    TEXT(op->in.agent, q.agent ? q.agent : "");
    TEXT(op->in.label_key, q.key ? q.key : "");
    TEXT(op->in.label_value, q.value ? q.value : "");
    TEXT(op->in.cursor, q.cursor ? q.cursor : "");
    op->in.state = q.state;
    op->in.limit = q.limit ? q.limit : 100;
    return CALL_OK(r, op);
}

static void add(rig *r, int n, const char *tenant, const char *agent, const char *team)
{
    OP(submit, SUBMIT);
    char name[16];
    snprintf(name, sizeof(name), "run-%d", n);
    TEXT(op->in.run, ID(name));
    TEXT(op->in.tenant, tenant);
    TEXT(op->in.agent, agent);
    if (team)
        stk_map_add(&op->in.labels, STK_STR("team"), stk_str_of(team));
    CALL_OK(r, op);
}

static void a_cursor_walks_all_runs_newest_first(void **state)
{
    rig *r = *state;
    for (int i = 0; i < 25; i++)
        add(r, i, i % 5 ? "acme" : "zeta", "coder", NULL);
    char cursor[STK_ID_SIZE] = "", name[16];
    int seen = 24;
    for (bool more = true; more;) {
        stk_op_run_list *page = LIST(r, .tenant = "acme", .cursor = cursor, .limit = 6);
        for (size_t i = 0; i < page->n; i++, seen--) {
            seen -= seen % 5 == 0;
            snprintf(name, sizeof(name), "run-%d", seen);
            assert_string_equal(page->rows[i].id, ID(name));
        }
        more = page->more;
        assert_int_equal(page->n, more ? 6 : 2);
        TEXT(cursor, page->rows[page->n - 1].id);
        add(r, 1000 + seen, "acme", "coder", NULL); /* newer ones do not disturb it */
    }
    assert_int_equal(seen, 0);
}

static void filters_narrow_the_list(void **state)
{
    rig *r = *state;
    add(r, 1, "acme", "coder", "red");
    add(r, 2, "acme", "judge", "blue");
    add(r, 3, "zeta", "coder", "red");
    do_queue(r, "run-1", "acme", 1);
    assert_int_equal(list(r, (query){0})->n, 3);
    assert_int_equal(LIST(r, .tenant = "acme")->n, 2);
    assert_int_equal(LIST(r, .agent = "coder")->n, 2);
    assert_int_equal(LIST(r, .tenant = "acme", .agent = "coder")->n, 1);
    assert_int_equal(LIST(r, .state = STK_RUN_QUEUED)->n, 1);
    assert_int_equal(LIST(r, .tenant = "acme", .state = STK_RUN_SUBMITTED)->n, 1);
    assert_int_equal(LIST(r, .key = "team", .value = "red")->n, 2);
    assert_int_equal(LIST(r, .key = "team", .value = "green")->n, 0);
    assert_int_equal(LIST(r, .key = "crew", .value = "red")->n, 0);
    assert_int_equal(LIST(r, .tenant = "nobody")->n, 0);
    stk_op_run_list *exact = LIST(r, .tenant = "acme", .limit = 2);
    assert_int_equal(exact->n, 2);
    assert_false(exact->more);
}

static void limits_are_checked_and_a_dead_cursor_ends_the_list(void **state)
{
    rig *r = *state;
    add(r, 1, "acme", "coder", NULL);
    static const int64_t limits[] = {-1, 1001};
    for (size_t i = 0; i < STK_COUNT(limits); i++) {
        OP(run_list, RUN_LIST);
        op->in.limit = limits[i];
        assert_int_equal(CALL(r, op)->op.rc, -STK_E_FIELD);
    }
    assert_int_equal(LIST(r, .cursor = ID("run-gone"))->n, 0);
}

static void a_run_is_hidden_from_other_tenants(void **state)
{
    rig *r = *state;
    add(r, 1, "acme", "coder", NULL);
    OP(run_get, RUN_GET);
    TEXT(op->in.run, ID("run-1"));
    TEXT(op->in.tenant, "zeta");
    assert_false(CALL_OK(r, op)->found);
}

SUITE(list, CASE(a_cursor_walks_all_runs_newest_first), CASE(filters_narrow_the_list),
      CASE(limits_are_checked_and_a_dead_cursor_ends_the_list), CASE(a_run_is_hidden_from_other_tenants));
