/* After kill -9: the launch file says whose the journal is; its rows are published, then both are gone. */
#include "proto/base/fd.h"
#include "tests/unit/workers/rig.h"
#include "workers/launch_file.h"
#include <signal.h>
#include <sys/resource.h>

#define SANDBOX "sbx-00000000000000000000000000"
#define RECORD(seq, verdict, more)                                                                           \
    "{\"seq\":" seq                                                                                          \
    ",\"kind\":\"decision\",\"time\":\"2026-01-01T00:00:00.000Z\",\"run\":\"\",\"host\":\"api.vendor.com\"," \
    "\"port\":443,\"verdict\":\"" verdict                                                                    \
    "\",\"reason\":\"x\",\"rule\":\"\",\"policy_version\":1,\"address\":\"\","                               \
    "\"method\":\"CONNECT\",\"bytes_in\":0,\"bytes_out\":0,\"duration_ms\":0" more "}\n"

static void path_to(const rig *r, const char *ending, char out[256])
{
    snprintf(out, 256, "%s/" SANDBOX ".%s", r->ctx.spool, ending);
}

static void put(const rig *r, const char *ending, const char *text)
{
    char path[256];
    stk_err err;
    path_to(r, ending, path);
    assert_int_equal(stk_file_replace(path, 0600, stk_str_of(text), &err), 0);
}

static void launch_row(const rig *r, stk_audit_row *ret)
{
    stk_row_subject subject = {.tenant = "t",
                               .agent = "helper",
                               .actor = "test",
                               .sandbox = SANDBOX,
                               .backend = "oci",
                               .isolation = "container"};
    stk_id_new("run", stk_wall_now(), subject.run);
    stk_id_new("asg", stk_wall_now(), subject.assignment);
    memcpy(subject.worker, r->ctx.worker, sizeof(subject.worker));
    stk_row_make(&subject, STK_AUDIT_LAUNCH, 0, STK_STR("{}"), ret);
}

static void put_launch(const rig *r)
{
    stk_audit_row row;
    stk_err err;
    launch_row(r, &row);
    if (stk_launch_file_write(&r->ctx, &row, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
    stk_audit_row_done(&row);
}

static void on_emitted(void *arg)
{
    *(bool *)arg = true;
}

static bool is_set(rig *r, void *arg)
{
    return *(bool *)arg;
}

static void emit(rig *r)
{
    char journal[256], launch[256];
    bool done = false;
    path_to(r, "jsonl", journal);
    path_to(r, "launch", launch);
    stk_launch_file_emit(&r->ctx, journal, SANDBOX, on_emitted, &done);
    rig_until(r, is_set, &done);
    assert_int_equal(access(journal, F_OK), -1);
    assert_int_equal(access(launch, F_OK), -1);
}

static void all_its_rows_are_published_in_order(void **state)
{
    rig *r = rig_new();
    put_launch(r);
    put(r, "jsonl", RECORD("1", "deny", "") RECORD("2", "allow", ",\"first\":true") RECORD("3", "allow", ""));
    emit(r);
    assert_int_equal(rig_noted(r, "deny"), 1);
    assert_int_equal(rig_noted(r, "allow"), 1);
    assert_true(rig_before(r, "launch", "teardown"));
    assert_int_equal(r->nnotes, 4);
    rig_free(r);
}

static void damaged_lines_cost_themselves_alone(void **state)
{
    rig *r = rig_new();
    put_launch(r);
    put(r, "jsonl", "nonsense\n\n{}\n" RECORD("4", "deny", "") "{\"seq\":5,\"kind\":\"deci");
    emit(r);
    assert_int_equal(rig_noted(r, "deny"), 1);
    assert_int_equal(rig_noted(r, "teardown"), 1);
    rig_free(r);
}

static void a_missing_journal_is_an_empty_one(void **state)
{
    rig *r = rig_new();
    put_launch(r);
    emit(r);
    assert_int_equal(rig_noted(r, "launch") + rig_noted(r, "teardown"), 2);
    rig_free(r);
}

static void a_launch_file_that_was_being_written_launched_nothing(void **state)
{
    static const char *const texts[] = {"", "{\"v\":1,\"id\":\"aud-", "{}", "nonsense"};
    for (size_t i = 0; i < STK_COUNT(texts); i++) {
        rig *r = rig_new();
        put(r, "launch", texts[i]);
        put(r, "jsonl", RECORD("1", "deny", ""));
        emit(r);
        assert_int_equal(r->nnotes, 0);
        rig_free(r);
    }
}

static void a_bus_that_refuses_for_a_while_loses_nothing(void **state)
{
    rig *r = rig_new();
    put_launch(r);
    snprintf(r->refuse, sizeof(r->refuse), "teardown");
    r->refusals = 2;
    emit(r);
    assert_int_equal(rig_noted(r, "refused"), 2);
    assert_int_equal(rig_noted(r, "teardown"), 1);
    rig_free(r);
}

static void on_name(const char *sandbox, void *arg)
{
    assert_string_equal(sandbox, SANDBOX);
    ++*(int *)arg;
}

static void only_launch_files_are_listed(void **state)
{
    rig *r = rig_new();
    int n = 0;
    put_launch(r);
    put(r, "jsonl", "");
    put(r, "launch.new", "");
    stk_launch_file_each(&r->ctx, on_name, &n);
    assert_int_equal(n, 1);
    stk_launch_file_remove(&r->ctx, SANDBOX);
    stk_launch_file_remove(&r->ctx, SANDBOX); /* twice is fine */
    rig_free(r);
}

static void one_that_could_not_be_written_whole_is_not_left(void **state)
{
    rig *r = rig_new();
    char path[256];
    stk_err err;
    stk_audit_row row;
    struct rlimit old, none;
    launch_row(r, &row);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    none = (struct rlimit){0, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    int rc = stk_launch_file_write(&r->ctx, &row, &err);
    stk_audit_row_done(&row);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(rc < 0);
    path_to(r, "launch", path);
    assert_int_equal(access(path, F_OK), -1);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_its_rows_are_published_in_order),
        cmocka_unit_test(damaged_lines_cost_themselves_alone),
        cmocka_unit_test(a_missing_journal_is_an_empty_one),
        cmocka_unit_test(a_launch_file_that_was_being_written_launched_nothing),
        cmocka_unit_test(a_bus_that_refuses_for_a_while_loses_nothing),
        cmocka_unit_test(only_launch_files_are_listed),
        cmocka_unit_test(one_that_could_not_be_written_whole_is_not_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
