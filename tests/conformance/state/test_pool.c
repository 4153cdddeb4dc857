#include "tests/conformance/state/rig.h"

static void the_oldest_of_the_template_is_taken_once(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    assert_true(do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1")->taken_in);
    do_put(r, "sbx-2", "tpl-b", "wrk-1", "inc-1");
    do_put(r, "sbx-3", "tpl-a", "wrk-1", "inc-1");
    stk_op_pool_take *take = do_take(r, "", "tpl-a");
    assert_true(take->found);
    assert_string_equal(take->row.sandbox, ID("sbx-1"));
    assert_string_equal(take->row.worker, ID("wrk-1"));
    assert_string_equal(take->row.incarnation, ID("inc-1"));
    assert_string_equal(take->row.pool, "warm");
    assert_string_equal(take->row.backend, "oci");
    assert_string_equal(do_take(r, "", "tpl-a")->row.sandbox, ID("sbx-3"));
    assert_false(do_take(r, "", "tpl-a")->found);
    assert_false(do_take(r, "sbx-1", "")->found);
    assert_true(do_take(r, "sbx-2", "")->found);
    assert_false(do_take(r, "sbx-2", "")->found);
}

static void a_sandbox_that_was_taken_cannot_be_put_again(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1");
    do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1");
    assert_true(do_take(r, "", "tpl-a")->found);
    do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1");
    assert_false(do_take(r, "", "tpl-a")->found);
}

static void only_live_workers_put_and_only_theirs_are_taken(void **state)
{
    rig *r = *state;
    assert_false(do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1")->taken_in);
    do_join(r, "wrk-1", "inc-1", 4, 8);
    assert_false(do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-2")->taken_in);
    assert_true(do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1")->taken_in);
    rig_advance(r, LEASE);
    assert_false(do_put(r, "sbx-2", "tpl-a", "wrk-1", "inc-1")->taken_in);
    assert_false(do_take(r, "", "tpl-a")->found);
    do_heartbeat(r, "wrk-1", "inc-1");
    assert_true(do_take(r, "", "tpl-a")->found);
}

static void the_pool_of_an_ended_incarnation_is_empty(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1");
    do_join(r, "wrk-1", "inc-2", 4, 8);
    assert_false(do_take(r, "", "tpl-a")->found);
    assert_false(do_take(r, "sbx-1", "")->found);
}

static size_t pooled(rig *r)
{
    OP(pool_list, POOL_LIST);
    return CALL_OK(r, op)->n;
}

static void drop(rig *r, const char *sandbox, const char *worker)
{
    OP(pool_drop, POOL_DROP);
    TEXT(op->in.sandbox, ID(sandbox));
    TEXT(op->in.worker, ID(worker));
    CALL_OK(r, op);
}

static void a_dropped_one_is_forgotten_by_its_worker_only(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1");
    drop(r, "sbx-1", "wrk-2");
    assert_int_equal(pooled(r), 1);
    drop(r, "sbx-1", "wrk-1");
    drop(r, "sbx-1", "wrk-1");
    assert_int_equal(pooled(r), 0);
    assert_false(do_take(r, "", "tpl-a")->found);
}

SUITE(pool, CASE(the_oldest_of_the_template_is_taken_once),
      CASE(a_sandbox_that_was_taken_cannot_be_put_again),
      CASE(only_live_workers_put_and_only_theirs_are_taken), CASE(the_pool_of_an_ended_incarnation_is_empty),
      CASE(a_dropped_one_is_forgotten_by_its_worker_only));
