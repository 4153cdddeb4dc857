/* Cold runs of the oci backend beside bare runs of the same bundle by the same OCI runtime, in turn.
 *
 *   bench_oci RUNS PARALLEL crun|runc -- COMMAND [ARG...]
 *
 * Prints two JSON lines: p50 and p99 of a whole run (create, execute, destroy) and runs per second, with the
 * bare figures as floor. */
#include "proto/base/fd.h"
#include "proto/base/id.h"
#include "proto/base/proc.h"
#include "workers/box.h"
#include "workers/ctx.h"
#include "workers/backends/oci/oci.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define RUNS_MAX 10000

typedef struct bench {
    stk_loop *loop;
    stk_syncer *syncer;
    stk_backend *be;
    stk_oci *oci;
    char dir[64];
    const char *command; /* JSON body of POST /execute */
    char **argv;
    int runs, parallel, begun, ended, failed;
    bool bare; /* which kind runs now */
    double times[2][RUNS_MAX];
    double seconds[2];
    stk_mono since;
} bench;

typedef struct one {
    bench *b;
    stk_mono begun;
    stk_box *box;
    stk_proc *proc;
    char journal[256], name[STK_ID_SIZE];
} one;

static void start(bench *b);
static void start_bare(bench *b);

static void done(one *o)
{
    bench *b = o->b;
    b->times[b->bare][b->ended++] = stk_span_sec(stk_mono_sub(stk_mono_now(), o->begun)) * 1e3;
    free(o);
    if (b->begun < b->runs)
        b->bare ? start_bare(b) : start(b);
    if (b->ended == b->runs)
        stk_loop_stop(b->loop);
}

static void on_destroyed(const stk_err *err, void *arg)
{
    one *o = arg;
    unlink(o->journal);
    done(o);
}

static void destroy(void *arg)
{
    one *o = arg;
    stk_box_destroy(o->box, o->journal, on_destroyed, o);
}

static void on_ready(stk_box *box, const stk_err *err, void *arg)
{
    one *o = arg;
    stk_err own;
    if (err || stk_box_execute(box, stk_str_of(o->b->command), stk_sec(30), &own) < 0) {
        fprintf(stderr, "bench_oci: %s\n", err ? err->detail : own.detail);
        exit(1);
    }
}

static void on_exit_frame(stk_box *box, const stk_exec_end *end, void *arg)
{
    one *o = arg;
    o->b->failed += end->exit_code != 0;
    stk_loop_post(o->b->loop, destroy, o);
}

static void on_lost(stk_box *box, bool oom, const char *why, void *arg)
{
    fprintf(stderr, "bench_oci: lost: %s\n", why);
    exit(1);
}

static void on_output(stk_box *box, bool stderr_, stk_str data, void *arg)
{
}

static const stk_box_ops ops = {
    .on_ready = on_ready, .on_exit = on_exit_frame, .on_lost = on_lost, .on_output = on_output};

static one *one_new(bench *b)
{
    one *o = stk_xcalloc(1, sizeof(*o));
    o->b = b;
    o->begun = stk_mono_now();
    b->begun++;
    stk_id_new("sbx", stk_wall_now(), o->name);
    return o;
}

static void spec_of(const one *o, stk_sandbox_spec *ret)
{
    *ret = (stk_sandbox_spec){.max_concurrent = 1, .tenant = "bench", .agent = "bench"};
    memcpy(ret->id, o->name, sizeof(ret->id));
    stk_agent_limits_default(&ret->limits);
}

static void start(bench *b)
{
    stk_err err;
    stk_sandbox_spec spec;
    one *o = one_new(b);
    spec_of(o, &spec);
    if (stk_box_new(b->loop, b->syncer, b->be, &spec, stk_sec(30), &ops, o, &o->box, &err) < 0) {
        fprintf(stderr, "bench_oci: %s\n", err.detail);
        exit(1);
    }
}

/* --- bare: the same config.json but for the program, run in the foreground
 * ------------------------------------------- */

static void write_bundle(const one *o, const stk_oci_paths *paths)
{
    char path[512];
    stk_err err;
    stk_sandbox_spec spec;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1 << 18);
    spec_of(o, &spec);
    const char *const dirs[] = {"/l", "/p"};
    for (size_t i = 0; i < STK_COUNT(dirs); i++) {
        snprintf(path, sizeof(path), "%s%s", paths->dir, dirs[i]);
        if (stk_mkdirs(path, 0755, &err) < 0)
            exit(1);
    }
    cJSON *config = stk_oci_config(&spec, paths, &o->b->oci->cg, o->b->oci->kind, 1u << 30, 1u << 30);
    cJSON *process = cJSON_GetObjectItem(config, "process");
    cJSON *args = cJSON_CreateArray();
    for (char **v = o->b->argv; *v; v++)
        cJSON_AddItemToArray(args, cJSON_CreateString(*v));
    cJSON_ReplaceItemInObject(process, "args", args);
    snprintf(path, sizeof(path), "%s/config.json", paths->dir);
    if (stk_tree_text(&text, config, false, &err) < 0 ||
        stk_file_replace(path, 0600, stk_buf_view(&text), &err) < 0)
        exit(1);
    cJSON_Delete(config);
}

static void on_bare_end(stk_proc *proc, const stk_proc_end *end, void *arg)
{
    one *o = arg;
    char path[512];
    stk_err err;
    o->b->failed += !end->exited || end->status != 0;
    stk_proc_free(proc);
    snprintf(path, sizeof(path), "%s/%s", o->b->oci->env.run_dir, o->name);
    if (stk_rmtree(AT_FDCWD, path, &err) < 0)
        exit(1);
    done(o);
}

static void start_bare(bench *b)
{
    one *o = one_new(b);
    stk_oci_paths paths;
    stk_sandbox_spec sandbox;
    stk_err err;
    char root[200], bundle[256];
    spec_of(o, &sandbox);
    stk_oci_paths_fill(b->oci, &sandbox, &paths);
    write_bundle(o, &paths);
    o->begun = stk_mono_now(); /* the bundle is given */
    snprintf(root, sizeof(root), "--root=%s/rt", b->oci->env.run_dir);
    snprintf(bundle, sizeof(bundle), "--bundle=%s", paths.dir);
    const char *argv[] = {b->oci->program, root, "run", bundle, o->name, NULL};
    static const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    stk_proc_spec spec = {.path = b->oci->program, .argv = argv, .envp = env};
    if (b->oci->kind == STK_OCI_CRUN && b->oci->cg.layout == STK_CGROUP_HYBRID) {
        spec.unshare_flags = CLONE_NEWNS;
        spec.umount = "/sys/fs/cgroup/unified";
    }
    if (stk_proc_start(b->loop, &spec, on_bare_end, o, &o->proc, &err) < 0) {
        fprintf(stderr, "bench_oci: %s\n", err.detail);
        exit(1);
    }
}

/* --- figures
 * -----------------------------------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void round_of(bench *b, bool bare)
{
    b->bare = bare;
    b->begun = b->ended = 0;
    b->since = stk_mono_now();
    for (int i = 0; i < b->parallel && b->begun < b->runs; i++)
        bare ? start_bare(b) : start(b);
    stk_loop_run(b->loop);
    b->seconds[bare] = stk_span_sec(stk_mono_sub(stk_mono_now(), b->since));
    qsort(b->times[bare], (size_t)b->runs, sizeof(double), by_value);
}

static void print(const bench *b)
{
    int mid = b->runs / 2, high = b->runs * 99 / 100;
    const double *ours = b->times[0], *bare = b->times[1];
    printf("{\"name\":\"cold_run_ms\",\"runtime\":\"%s\",\"parallel\":%d,\"n\":%d,\"p50\":%.2f,\"p99\":%.2f,"
           "\"floor_p50\":%.2f,"
           "\"floor\":\"bare run of the same bundle\",\"over_ms\":%.2f,\"ratio\":%.2f,\"failed\":%d}\n",
           b->oci->version, b->parallel, b->runs, ours[mid], ours[high], bare[mid], ours[mid] - bare[mid],
           ours[mid] / bare[mid], b->failed);
    printf("{\"name\":\"sandboxes_per_second\",\"runtime\":\"%s\",\"parallel\":%d,\"n\":%d,\"value\":%.1f,"
           "\"floor\":\"bare runs\","
           "\"floor_value\":%.1f,\"ratio\":%.2f}\n",
           b->oci->version, b->parallel, b->runs, b->runs / b->seconds[0], b->runs / b->seconds[1],
           b->seconds[1] / b->seconds[0]);
}

static void on_probe(const stk_probe *probe, void *arg)
{
    bench *b = arg;
    if (!probe->ok) {
        fprintf(stderr, "bench_oci: %s\n", probe->reason);
        exit(1);
    }
    stk_loop_stop(b->loop);
}

static void write_body(char **argv, stk_buf *out)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_key(&w, "command");
    stk_jw_array(&w);
    for (; *argv; argv++)
        stk_jw_text(&w, *argv);
    stk_jw_close(&w, ']');
    stk_jw_kint(&w, "timeout_seconds", 20);
    stk_jw_close(&w, '}');
}

int main(int argc, char **argv)
{
    static bench b;
    stk_err err;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(65536);
    if (argc < 6) {
        fputs("usage: bench_oci RUNS PARALLEL RUNTIME -- COMMAND [ARG...]\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    const char *tmp = getenv("TMPDIR");
    snprintf(b.dir, sizeof(b.dir), "%s/stk-bench-XXXXXX", tmp ? tmp : "/tmp");
    b.runs = (int)strtol(argv[1], NULL, 10);
    b.parallel = (int)strtol(argv[2], NULL, 10);
    b.argv = argv + 5;
    if (b.runs < 1 || b.runs > RUNS_MAX || !mkdtemp(b.dir) || stk_loop_new(&b.loop, &err) < 0 ||
        stk_syncer_new(b.loop, &b.syncer, &err) < 0)
        return 1;
    chmod(b.dir, 0711);
    write_body(b.argv, &body);
    b.command = body.p;
    stk_backend_env env = {
        .loop = b.loop, .worker = "wrk-00000000000000000000000000", .cgroup = "stockade-bench"};
    snprintf(env.run_dir, sizeof(env.run_dir), "%s/run", b.dir);
    snprintf(env.state_dir, sizeof(env.state_dir), "%s/state", b.dir);
    snprintf(env.runtime, sizeof(env.runtime), "%s", argv[3]);
    if (stk_backend_oci_new(&env, &b.be, &err) < 0) {
        fprintf(stderr, "bench_oci: %s\n", err.detail);
        return 1;
    }
    b.oci = STK_CONTAINER(b.be, stk_oci, be);
    b.be->ops->probe(b.be, stk_sec(30), on_probe, &b);
    stk_loop_run(b.loop);
    round_of(&b, true); /* warms the page cache for both */
    round_of(&b, false);
    round_of(&b, true);
    print(&b);
    b.be->ops->close(b.be);
    stk_syncer_free(b.syncer);
    return stk_rmtree(AT_FDCWD, b.dir, &err) < 0 || b.failed;
}
