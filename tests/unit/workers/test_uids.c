/* Ranges of host ids: never the same for two sandboxes of one host, given back by whoever dies. */
#include "tests/unit/workers/unit.h"
#include "workers/backends/oci/oci.h"
#include <signal.h>
#include <sys/wait.h>

#define MANY 200

static stk_uids *uids_new(void)
{
    stk_uids *uids;
    stk_err err;
    if (geteuid() != 0)
        skip();
    if (stk_uids_new(&uids, &err) < 0)
        fail_msg("%s", err.detail);
    return uids;
}

static uint32_t take(stk_uids *uids)
{
    uint32_t uid = 0, gid = 0;
    stk_err err;
    if (stk_uids_take(uids, &uid, &gid, &err) < 0)
        fail_msg("%s", err.detail);
    assert_true(uid >= 0x10000000 && uid < 0x80000000 - STK_OCI_UID_COUNT);
    assert_int_equal(uid % STK_OCI_UID_COUNT, 0);
    assert_int_equal(uid, gid);
    return uid;
}

static void two_instances_never_have_the_same_range(void **state)
{
    stk_uids *a = uids_new(), *b = uids_new();
    uint32_t taken[2 * MANY];
    for (size_t i = 0; i < 2 * MANY; i++) {
        taken[i] = take(i % 2 ? a : b);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(taken[i], taken[j]);
    }
    for (size_t i = 0; i < 2 * MANY; i++)
        stk_uids_give(i % 2 ? a : b, taken[i]);
    stk_uids_free(a);
    stk_uids_free(b);
}

/* Tries every range: 24000 of them are there. */
static bool can_be_had(stk_uids *uids, uint32_t wanted)
{
    static uint32_t taken[24000];
    size_t n = 0;
    bool found = false;
    stk_err err;
    uint32_t uid, gid;
    while (!found && n < STK_COUNT(taken) && stk_uids_take(uids, &uid, &gid, &err) == 0) {
        taken[n++] = uid;
        found = uid == wanted;
    }
    while (n > 0)
        stk_uids_give(uids, taken[--n]);
    return found;
}

static void a_range_that_was_given_back_can_be_had_again(void **state)
{
    stk_uids *a = uids_new(), *b = uids_new();
    uint32_t uid = take(a);
    assert_false(can_be_had(b, uid));
    stk_uids_give(a, uid);
    assert_true(can_be_had(b, uid));
    stk_uids_free(a);
    stk_uids_free(b);
}

static void a_killed_worker_gives_its_ranges_back(void **state)
{
    stk_uids *ours = uids_new();
    int fds[2];
    uint32_t uid = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        stk_uids *theirs = uids_new();
        uid = take(theirs);
        if (write(fds[1], &uid, sizeof(uid)) == sizeof(uid))
            pause();
        _exit(1);
    }
    assert_int_equal(read(fds[0], &uid, sizeof(uid)), sizeof(uid));
    assert_false(can_be_had(ours, uid));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(can_be_had(ours, uid));
    close(fds[0]);
    close(fds[1]);
    stk_uids_free(ours);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_instances_never_have_the_same_range),
        cmocka_unit_test(a_range_that_was_given_back_can_be_had_again),
        cmocka_unit_test(a_killed_worker_gives_its_ranges_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
