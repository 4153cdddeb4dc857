/* Sandboxes that do not come about: OCI runtimes and proxies that are scripts of the test's own and fail in
 * every way. The reason is told, and nothing is left. */
#include "proto/base/fd.h"
#include "proto/base/id.h"
#include "tests/unit/workers/unit.h"
#include "workers/backends/oci/oci.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

typedef struct host {
    char dir[64], run[96], state[96];
    stk_loop *loop;
    stk_backend *be;
    stk_err err;
    bool told;
    stk_sandbox *sbx;
} host;

static void write_script(const host *h, const char *name, const char *body)
{
    char path[192], text[1024];
    stk_err err;
    snprintf(path, sizeof(path), "%s/%s", h->dir, name);
    snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", body);
    if (stk_file_replace(path, 0755, stk_str_of(text), &err) < 0)
        fail_msg("%s", err.detail);
}

static host *host_new(const char *runtime, const char *proxy)
{
    host *h = stk_xcalloc(1, sizeof(*h));
    stk_err err;
    char libexec[256];
    if (geteuid() != 0)
        skip();
    snprintf(h->dir, sizeof(h->dir), "/tmp/stk-oci-XXXXXX");
    assert_non_null(mkdtemp(h->dir));
    snprintf(libexec, sizeof(libexec), "%s:" STK_BINARY_DIR "/proto", h->dir);
    write_script(h, "stockade-runtime", "exit 0");
    write_script(h, "stockade-egress-proxy", proxy);
    write_script(h, "runc", runtime);
    stk_backend_env env = {.cgroup = "stk-test"};
    assert_int_equal(stk_loop_new(&h->loop, &err), 0);
    env.loop = h->loop;
    stk_id_new("wrk", stk_wall_now(), env.worker);
    snprintf(h->run, sizeof(h->run), "%s/run", h->dir);
    snprintf(h->state, sizeof(h->state), "%s/state", h->dir);
    memcpy(env.run_dir, h->run, sizeof(h->run));
    memcpy(env.state_dir, h->state, sizeof(h->state));
    setenv("STOCKADE_LIBEXEC", libexec, 1);
    if (stk_backend_oci_new(&env, &h->be, &err) < 0)
        fail_msg("%s", err.detail);
    stk_oci *oci = STK_CONTAINER(h->be, stk_oci, be);
    oci->have_runtime = true;
    oci->kind = STK_OCI_RUNC;
    snprintf(oci->program, sizeof(oci->program), "%s/runc", h->dir);
    snprintf(oci->executed, sizeof(oci->executed), "%s/runc", h->dir);
    snprintf(oci->version, sizeof(oci->version), "runc of the test");
    assert_int_equal(stk_uids_new(&oci->uids, &err), 0);
    return h;
}

static size_t entries(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        n += entry->d_name[0] != '.' && strcmp(entry->d_name, "rt") != 0;
    if (dir)
        closedir(dir);
    return n;
}

static void host_free(host *h)
{
    char path[192];
    stk_err err;
    assert_int_equal(entries(h->run), 0);
    snprintf(path, sizeof(path), "%s/rt", h->run);
    assert_int_equal(entries(path), 0);
    snprintf(path, sizeof(path), "%s/journal", h->state);
    assert_int_equal(entries(path), 0);
    h->be->ops->close(h->be);
    stk_loop_free(h->loop);
    assert_int_equal(stk_rmtree(AT_FDCWD, h->dir, &err), 0);
    free(h);
}

static void on_created(const stk_err *err, stk_sandbox *sbx, void *arg)
{
    host *h = arg;
    assert_false(h->told);
    h->told = true;
    h->sbx = sbx;
    if (err)
        h->err = *err;
    stk_loop_stop(h->loop);
}

static void create(host *h, const char *image, bool gvisor, stk_span limit)
{
    stk_sandbox_spec spec = {
        .tenant = "t", .agent = "a", .max_concurrent = 1, .require_runtime_class = gvisor};
    stk_agent_limits_default(&spec.limits);
    snprintf(spec.image, sizeof(spec.image), "%s", image);
    stk_id_new("sbx", stk_wall_now(), spec.id);
    h->be->ops->create(h->be, &spec, limit, on_created, NULL, h);
    assert_false(h->told); /* never from inside the call */
    stk_loop_run(h->loop);
    assert_true(h->told);
    assert_null(h->sbx);
}

static void a_failed_start_has_its_reason_and_leaves_nothing(void **state)
{
    static const struct {
        const char *runtime, *proxy, *reason;
        int64_t limit_ms;
    } rows[] = {
        {"for a in \"$@\"; do case $a in --log=*) echo first > ${a#--log=}; echo 'no such thing' >> "
         "${a#--log=};; esac; done; exit 1",
         "exec sleep 1000", "no such thing", 10000},
        {"exit 1", "exec sleep 1000", "no reason given", 10000},
        {"kill -9 $$", "exec sleep 1000", "could not start", 10000},
        {"exit 0", "exec sleep 1000", "without naming", 10000},
        {"for a in \"$@\"; do case $a in --pid-file=*) printf 1 > ${a#--pid-file=};; esac; done",
         "exec sleep 1000", "no process id", 10000},
        {"for a in \"$@\"; do case $a in --pid-file=*) echo x > ${a#--pid-file=};; esac; done",
         "exec sleep 1000", "no process id", 10000},
        {"for a in \"$@\"; do case $a in --pid-file=*) printf 2147483647 > ${a#--pid-file=};; esac; done",
         "exec sleep 1000", "is gone", 10000},
        {"exec sleep 1000", "exec sleep 1000", "the OCI runtime did not finish", 300},
        {"exec sleep 1000", "exit 3", "the egress proxy ended", 10000},
        {"exec sleep 1000", "kill -9 $$", "the egress proxy ended", 10000},
        /* It ends well and leaves a sandbox that never dials: that one has to go as well. */
        {"sleep 1000 & for a in \"$@\"; do case $a in --pid-file=*) printf $! > ${a#--pid-file=};; esac; "
         "done",
         "exec sleep 1000", "did not dial its links", 3000},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        host *h = host_new(rows[i].runtime, rows[i].proxy);
        create(h, "", false, stk_ms(rows[i].limit_ms));
        if (!strstr(h->err.detail, rows[i].reason))
            fail_msg("row %zu: %s", i, h->err.detail);
        host_free(h);
    }
}

static void what_cannot_be_made_here_is_refused_before_anything_starts(void **state)
{
    static const struct {
        const char *image;
        bool gvisor;
        const char *reason;
    } rows[] = {{"stockade-python", false, "is not on this host"}, {"", true, "asks for gVisor"}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        host *h = host_new("touch $0.started", "touch $0.started");
        char path[192];
        create(h, rows[i].image, rows[i].gvisor, stk_sec(5));
        assert_int_equal(h->err.code, STK_E_BACKEND);
        assert_non_null(strstr(h->err.detail, rows[i].reason));
        snprintf(path, sizeof(path), "%s/runc.started", h->dir);
        assert_int_equal(access(path, F_OK), -1);
        host_free(h);
    }
}

static void a_run_directory_that_is_too_long_is_said_at_once(void **state)
{
    stk_backend_env env = {.cgroup = "stk-test"};
    stk_backend *be = NULL;
    stk_err err;
    memset(env.run_dir, 'x', 100);
    env.run_dir[0] = '/';
    assert_int_equal(stk_backend_oci_new(&env, &be, &err), -STK_E_CONFIG);
    assert_null(be);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_start_has_its_reason_and_leaves_nothing),
        cmocka_unit_test(what_cannot_be_made_here_is_refused_before_anything_starts),
        cmocka_unit_test(a_run_directory_that_is_too_long_is_said_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
