#include "tests/conformance/state/rig.h"

static void running(rig *r)
{
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    do_start(r, "run-1", "asg-1", "wrk-1", "inc-1");
}

static bool add(rig *r, const char *assignment, int64_t offset, int64_t length)
{
    OP(output_add, OUTPUT_ADD);
    char text[64];
    TEXT(op->in.run, ID("run-1"));
    TEXT(op->in.assignment, ID(assignment));
    op->in.offset = offset;
    op->in.length = length;
    snprintf(text, sizeof(text), "piece at %lld", (long long)offset);
    stk_bytes_set(&op->in.sealed, stk_str_of(text));
    return CALL_OK(r, op)->kept;
}

static stk_op_output_read *from(rig *r, int64_t at)
{
    OP(output_read, OUTPUT_READ);
    TEXT(op->in.run, ID("run-1"));
    op->in.from = at;
    return CALL_OK(r, op);
}

static void pieces_are_read_from_any_byte(void **state)
{
    rig *r = *state;
    running(r);
    assert_true(add(r, "asg-1", 0, 10));
    assert_true(add(r, "asg-1", 10, 5));
    assert_true(add(r, "asg-1", 15, 1));
    static const struct {
        int64_t from;
        size_t n;
        int64_t first;
    } rows[] = {{0, 3, 0}, {9, 3, 0}, {10, 2, 10}, {14, 2, 10}, {15, 1, 15}, {16, 0, 0}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_op_output_read *op = from(r, rows[i].from);
        assert_int_equal(op->n, rows[i].n);
        if (op->n)
            assert_int_equal(op->pieces[0].offset, rows[i].first);
    }
    assert_string_equal(from(r, 10)->pieces[0].sealed.p, "piece at 10");
    assert_int_equal(from(r, 10)->pieces[0].length, 5);
}

static void a_piece_sent_twice_is_one_piece(void **state)
{
    rig *r = *state;
    running(r);
    assert_true(add(r, "asg-1", 0, 10));
    assert_true(add(r, "asg-1", 0, 10));
    assert_int_equal(from(r, 0)->n, 1);
}

static void only_the_runs_own_assignment_adds_and_only_while_it_runs(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    assert_false(add(r, "asg-1", 0, 10));
    do_start(r, "run-1", "asg-1", "wrk-1", "inc-1");
    assert_false(add(r, "asg-2", 0, 10));
    assert_true(add(r, "asg-1", 0, 10));
    do_finish(r, "run-1", "asg-1", "exited");
    assert_false(add(r, "asg-1", 10, 10));
    assert_int_equal(from(r, 0)->n, 1);
}

static void a_run_keeps_256_kib(void **state)
{
    rig *r = *state;
    running(r);
    assert_true(add(r, "asg-1", 0, 262143));
    assert_false(add(r, "asg-1", 262143, 2));
    assert_true(add(r, "asg-1", 262143, 1));
    assert_false(add(r, "asg-1", 262144, 1));
    assert_false(add(r, "asg-1", INT64_MAX, INT64_MAX));
    OP(output_add, OUTPUT_ADD);
    TEXT(op->in.run, ID("run-1"));
    op->in.offset = -1;
    op->in.length = 1;
    stk_bytes_set(&op->in.sealed, STK_STR("x"));
    assert_int_equal(CALL(r, op)->op.rc, -STK_E_FIELD);
}

static void output_is_gone_after_ten_minutes(void **state)
{
    rig *r = *state;
    running(r);
    add(r, "asg-1", 0, 10);
    rig_advance(r, stk_sec(300));
    add(r, "asg-1", 10, 10);
    rig_advance(r, stk_sec(301));
    do_heartbeat(r, "wrk-1", "inc-1");
    do_reap(r);
    assert_int_equal(from(r, 0)->n, 1);
    rig_advance(r, stk_sec(300));
    do_reap(r);
    assert_int_equal(from(r, 0)->n, 0);
}

static void a_repeated_run_starts_with_no_output(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    ASSIGN(r, .run = "run-1", .assignment = "asg-1", .worker = "wrk-1", .incarnation = "inc-1",
           .retry = "always");
    do_start(r, "run-1", "asg-1", "wrk-1", "inc-1");
    add(r, "asg-1", 0, 10);
    do_requeue(r, "run-1", "asg-1", true, true);
    assert_int_equal(from(r, 0)->n, 0);
}

SUITE(output, CASE(pieces_are_read_from_any_byte), CASE(a_piece_sent_twice_is_one_piece),
      CASE(only_the_runs_own_assignment_adds_and_only_while_it_runs), CASE(a_run_keeps_256_kib),
      CASE(output_is_gone_after_ten_minutes), CASE(a_repeated_run_starts_with_no_output));
