#include "tests/unit/message/unit.h"
#include "proto/message/audit.h"

static const stk_wall at = {1767323045678000000};
#define RUN "run-01hf7yat00k3v5w6x7y8z9a1b2"
#define ASG "asg-01hf7yat10k3v5w6x7y8z9a1b2"

static void the_same_cause_has_the_same_id(void **state)
{
    char a[STK_ID_SIZE], b[STK_ID_SIZE];
    stk_audit_id(at, RUN, ASG, STK_AUDIT_LAUNCH, 0, a);
    stk_wall same_ms = {at.ns + 999999};
    stk_audit_id(same_ms, RUN, ASG, STK_AUDIT_LAUNCH, 0, b);
    assert_string_equal(a, b);
    assert_true(stk_id_valid("aud", stk_str_of(a)));
    assert_int_equal(stk_id_time(stk_str_of(a)).ns / 1000000, at.ns / 1000000);
}

static void another_cause_has_another_id(void **state)
{
    static const struct {
        int64_t ns;
        const char *subject, *assignment, *action;
        uint64_t n;
    } rows[] = {{0, RUN, ASG, STK_AUDIT_LAUNCH, 0},
                {1000000, RUN, ASG, STK_AUDIT_LAUNCH, 0},
                {0, "run-01hf7yat00k3v5w6x7y8z9a1b3", ASG, STK_AUDIT_LAUNCH, 0},
                {0, RUN, "", STK_AUDIT_LAUNCH, 0},
                {0, RUN, ASG, STK_AUDIT_TEARDOWN, 0},
                {0, RUN, ASG, STK_AUDIT_EGRESS_DENY, 1},
                {0, RUN, ASG, STK_AUDIT_EGRESS_DENY, 2},
                {0, RUN, ASG, STK_AUDIT_EGRESS_DENY, UINT64_MAX},
                /* A border between two parts that moves is another cause. */
                {0, RUN "a", "sg", STK_AUDIT_LAUNCH, 0},
                {0, RUN "as", "g", STK_AUDIT_LAUNCH, 0},
                {0, NULL, NULL, STK_AUDIT_LAUNCH, 0}};
    char ids[STK_COUNT(rows)][STK_ID_SIZE];
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_audit_id((stk_wall){at.ns + rows[i].ns}, rows[i].subject, rows[i].assignment, rows[i].action,
                     rows[i].n, ids[i]);
        assert_true(stk_id_valid("aud", stk_str_of(ids[i])));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(ids[i], ids[j]);
    }
}

static void the_id_is_the_documented_function(void **state)
{
    /* Computed apart from this code: SHA-256 over each part behind its 8-byte length. */
    char id[STK_ID_SIZE];
    stk_audit_id(at, RUN, ASG, STK_AUDIT_EGRESS_DENY, 17, id);
    assert_string_equal(id, "aud-01kdyak3se8wpfz8rzw5hnkmd2");
}

static void an_id_of_no_time_is_an_id(void **state)
{
    char id[STK_ID_SIZE];
    stk_audit_id((stk_wall){-5}, RUN, ASG, STK_AUDIT_LAUNCH, 0, id);
    assert_true(stk_id_valid("aud", stk_str_of(id)));
    assert_int_equal(stk_id_time(stk_str_of(id)).ns, 0);
}

static stk_audit_row row_of(const char *action)
{
    stk_audit_row row = {.v = 1, .time = at, .actor = "worker", .tenant = "acme"};
    stk_audit_id(at, RUN, ASG, action, 0, row.id);
    stk_str_copy(stk_str_of(action), row.action, sizeof(row.action));
    return row;
}

static void only_actions_of_the_list_are_rows(void **state)
{
    static const char *const actions[] = {
        STK_AUDIT_LAUNCH,        STK_AUDIT_REFUSAL,       STK_AUDIT_FAILURE,
        STK_AUDIT_TEARDOWN,      STK_AUDIT_EGRESS_DENY,   STK_AUDIT_EGRESS_ALLOW,
        STK_AUDIT_CONFIG_UPDATE, STK_AUDIT_POLICY_UPDATE, STK_AUDIT_TOKEN_CREATE};
    static const char *const others[] = {"", "launch", "agent_sandbox.", "agent_sandbox.launch ",
                                         "agent_sandbox.launch|agent_sandbox.ref"};
    for (size_t i = 0; i < STK_COUNT(actions); i++) {
        stk_audit_row row = row_of(actions[i]), back;
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
        assert_int_equal(stk_audit_encode(&row, &out, NULL), 0);
        assert_int_equal(stk_audit_decode(stk_buf_view(&out), &back, NULL), 0);
        assert_string_equal(back.action, actions[i]);
        stk_audit_row_done(&back);
    }
    for (size_t i = 0; i < STK_COUNT(others); i++) {
        stk_audit_row row = row_of(others[i]);
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
        stk_err err = {0};
        assert_error(stk_audit_encode(&row, &out, &err), &err, STK_E_FIELD, "/action", others[i]);
    }
}

static void a_row_that_could_not_be_read_back_is_not_written(void **state)
{
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_err err = {0};
    stk_audit_row row = row_of(STK_AUDIT_LAUNCH);
    row.actor[0] = '\0';
    assert_error(stk_audit_encode(&row, &out, &err), &err, STK_E_FIELD, "/actor", "no actor");
    row = row_of(STK_AUDIT_LAUNCH);
    stk_bytes_set(&row.details, STK_STR("[]"));
    assert_error(stk_audit_encode(&row, &out, &err), &err, STK_E_FIELD, "/details", "details not an object");
    stk_audit_row_done(&row);
    row = row_of(STK_AUDIT_LAUNCH);
    memcpy(row.run, "run-x", 6);
    assert_error(stk_audit_encode(&row, &out, &err), &err, STK_E_FIELD, "/run", "a bad run id");
    row = row_of(STK_AUDIT_LAUNCH);
    memcpy(row.agent, "a\n", 3);
    assert_error(stk_audit_encode(&row, &out, &err), &err, STK_E_FIELD, "/agent", "a bad agent");
    assert_int_equal(out.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_cause_has_the_same_id),
        cmocka_unit_test(another_cause_has_another_id),
        cmocka_unit_test(the_id_is_the_documented_function),
        cmocka_unit_test(an_id_of_no_time_is_an_id),
        cmocka_unit_test(only_actions_of_the_list_are_rows),
        cmocka_unit_test(a_row_that_could_not_be_read_back_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
