#include "tests/unit/message/unit.h"
#include "proto/message/run.h"

enum { EVENTS = STK_EV_REPEAT + 1 };
#define NO STK_RUN_NONE
#define Q  STK_RUN_QUEUED
#define A  STK_RUN_ASSIGNED
#define R  STK_RUN_RUNNING
#define F  STK_RUN_FINISHED

static void every_state_takes_exactly_the_events_of_the_diagram(void **state)
{
    static const stk_run_state want[STK_RUN_STATES][EVENTS] = {
        /*                     queue assign start finish requeue repeat */
        [STK_RUN_NONE] = {NO, NO, NO, NO, NO, NO},  [STK_RUN_SUBMITTED] = {Q, NO, NO, F, NO, NO},
        [STK_RUN_QUEUED] = {NO, A, NO, F, NO, NO},  [STK_RUN_ASSIGNED] = {NO, NO, R, F, Q, NO},
        [STK_RUN_RUNNING] = {NO, NO, NO, F, NO, Q}, [STK_RUN_FINISHED] = {NO, NO, NO, NO, NO, NO},
    };
    for (int s = 0; s < STK_RUN_STATES; s++)
        for (int e = 0; e < EVENTS; e++)
            assert_int_equal(stk_run_next((stk_run_state)s, (stk_run_event)e), want[s][e]);
}

static void what_is_outside_the_table_moves_nothing(void **state)
{
    assert_int_equal(stk_run_next(STK_RUN_STATES, STK_EV_QUEUE), NO);
    assert_int_equal(stk_run_next((stk_run_state)-1, STK_EV_QUEUE), NO);
    assert_int_equal(stk_run_next(STK_RUN_QUEUED, (stk_run_event)EVENTS), NO);
    assert_int_equal(stk_run_next(STK_RUN_QUEUED, (stk_run_event)-1), NO);
}

static void the_headers_diagram_is_the_table(void **state)
{
    char diagram[2048], line[256], path[512];
    static char header[65536];
    int n = stk_run_diagram(diagram, sizeof(diagram));
    assert_true(n > 0 && (size_t)n == strlen(diagram));
    snprintf(path, sizeof(path), "%s/proto/message/run.h", STK_SOURCE_DIR);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    header[fread(header, 1, sizeof(header) - 1, f)] = '\0';
    fclose(f);
    static char expected[4096];
    expected[0] = '\0';
    for (const char *at = diagram; *at; at = strchr(at, '\n') + 1) {
        snprintf(line, sizeof(line), " *   %.*s\n", (int)strcspn(at, "\n"), at);
        memcpy(expected + strlen(expected), line, strlen(line) + 1);
    }
    if (!strstr(header, expected))
        fail_msg("run.h should hold\n%s", expected);
}

static void a_diagram_that_does_not_fit_is_an_error(void **state)
{
    char small[32];
    assert_int_equal(stk_run_diagram(small, sizeof(small)), -STK_E_LIMIT);
}

static void texts_of_states_and_reasons_read_back(void **state)
{
    for (int s = STK_RUN_SUBMITTED; s < STK_RUN_STATES; s++)
        assert_int_equal(stk_run_state_parse(stk_run_state_text((stk_run_state)s)), s);
    for (int r = STK_REASON_NONE + 1; r < STK_REASONS; r++)
        assert_int_equal(stk_reason_parse(stk_reason_text((stk_reason)r)), r);
    static const char *const others[] = {"", "Queued", "queued ", "exit", "none", NULL};
    for (size_t i = 0; i < STK_COUNT(others); i++) {
        assert_int_equal(stk_run_state_parse(others[i]), STK_RUN_NONE);
        assert_int_equal(stk_reason_parse(others[i]), STK_REASON_NONE);
    }
    assert_string_equal(stk_run_state_text(STK_RUN_STATES), "");
    assert_string_equal(stk_reason_text(STK_REASONS), "");
}

static void each_reason_has_its_exit_status(void **state)
{
    static const struct {
        stk_reason reason;
        int exit_code, signal, want;
        bool retried;
    } rows[] = {{STK_REASON_EXITED, 0, 0, 0, false},
                {STK_REASON_EXITED, 77, 0, 77, false},
                {STK_REASON_SIGNALED, 0, 11, 139, false},
                {STK_REASON_TIMEOUT, 3, 9, 124, false},
                {STK_REASON_OOM, 0, 9, 137, false},
                {STK_REASON_CANCELLED, 0, 15, 125, false},
                {STK_REASON_EXPIRED, 0, 0, 125, false},
                {STK_REASON_REFUSED, 0, 0, 125, false},
                {STK_REASON_WORKER_LOST, 0, 0, 125, false},
                {STK_REASON_SANDBOX_FAILED, 0, 0, 125, true},
                {STK_REASONS, 0, 0, 125, false}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        assert_int_equal(stk_reason_exit(rows[i].reason, rows[i].exit_code, rows[i].signal), rows[i].want);
        assert_int_equal(stk_reason_retried(rows[i].reason), rows[i].retried);
        assert_int_equal(stk_reason_http(rows[i].reason), 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_takes_exactly_the_events_of_the_diagram),
        cmocka_unit_test(what_is_outside_the_table_moves_nothing),
        cmocka_unit_test(the_headers_diagram_is_the_table),
        cmocka_unit_test(a_diagram_that_does_not_fit_is_an_error),
        cmocka_unit_test(texts_of_states_and_reasons_read_back),
        cmocka_unit_test(each_reason_has_its_exit_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
