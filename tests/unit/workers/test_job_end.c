/* The way out of a job: each of its steps is entered once, however many rows of the run become durable while
 * it is under way. */
#include "tests/unit/workers/rig.h"
#include "workers/job_impl.h"

/* A row of the run becomes durable at this very moment. */
static void a_row_returns(void *arg)
{
    rig *r = arg;
    r->job->rows++;
    r->job->rows--;
    stk_job_end_step(r->job);
}

static void rows_that_return_while_the_proxy_drains_do_not_repeat_a_step(void **state)
{
    rig *r = rig_new();
    r->be.drain = FAKE_HOLD;
    rig_job(r, "", "never");
    rig_until_noted(r, "drain");
    a_row_returns(r);
    stk_job_on_drained(NULL, r->job);         /* before the loop turns */
    stk_loop_post(r->loop, a_row_returns, r); /* right after the result was sent */
    rig_until_done(r);
    assert_int_equal(rig_noted(r, "result:exited"), 1);
    assert_int_equal(rig_noted(r, "finish"), 1);
    assert_int_equal(rig_noted(r, "destroy"), 1);
    assert_int_equal(rig_noted(r, "teardown"), 1);
    assert_int_equal(r->be.made, r->be.destroyed);
    rig_free(r);
}

static void a_proxy_that_does_not_answer_to_its_policy_is_given_up(void **state)
{
    rig *r = rig_new();
    r->be.policy = FAKE_HOLD;
    rig_job(r, "", "never");
    rig_until_done(r);
    assert_int_equal(rig_noted(r, "launch"), 0);
    assert_int_equal(r->be.made, r->be.destroyed);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_return_while_the_proxy_drains_do_not_repeat_a_step),
        cmocka_unit_test(a_proxy_that_does_not_answer_to_its_policy_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
