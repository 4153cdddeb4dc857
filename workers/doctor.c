#include "workers/doctor.h"
#include "proto/base/fd.h"
#include "workers/ctx.h"
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <sys/stat.h>

#define PROBE_LIMIT stk_sec(30)

/* Backends of the design that this version does not contain. */
static const struct absent {
    const char *name, *why;
} absent[] = {{"docker", "this version has no docker backend"},
              {"k8s", "this version has no k8s backend"},
              {"firecracker", "this version has no firecracker backend"}};

typedef struct doctor {
    stk_ctx ctx;
    bool json;
} doctor;

static void on_probe(const stk_probe *probe, void *arg)
{
    doctor *d = arg;
    d->ctx.backends[0].probe = *probe;
    stk_loop_stop(d->ctx.loop);
}

static void print_json(doctor *d)
{
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_ctx_backends_write(&d->ctx, &out);
    out.p[--out.n] = '\0'; /* the list goes on */
    for (size_t i = 0; i < STK_COUNT(absent); i++)
        stk_buf_fmt(&out, ",{\"name\":\"%s\",\"ok\":false,\"isolation\":\"none\",\"reason\":\"%s\"}",
                    absent[i].name, absent[i].why);
    printf("%s]\n", out.p);
}

static void print_text(const doctor *d)
{
    const stk_probe *probe = &d->ctx.backends[0].probe;
    if (probe->ok)
        printf("oci          ok       %s, %s (canary ran in %lld ms)\n", probe->runtime,
               stk_strength_text(probe->strength), (long long)stk_span_ms(probe->took));
    else
        printf("oci          missing  %s\n             to get it: %s\n", probe->reason, probe->remedy);
    if (probe->ok && *probe->notes)
        printf("             note: %s\n", probe->notes);
    for (size_t i = 0; i < STK_COUNT(absent); i++)
        printf("%-12s missing  %s\n", absent[i].name, absent[i].why);
}

static int examine(doctor *d, const char *dir, stk_err *err)
{
    stk_backend_env env = {
        .loop = d->ctx.loop, .worker = "wrk-00000000000000000000000000", .cgroup = "stockade"};
    int rc = stk_path(env.run_dir, sizeof(env.run_dir), err, "%s/run", dir);
    if (rc == 0)
        rc = stk_path(env.state_dir, sizeof(env.state_dir), err, "%s/state", dir);
    if (rc == 0)
        rc = stk_backend_oci_new(&env, &d->ctx.backends[0].be, err);
    if (rc < 0)
        return rc;
    d->ctx.nbackends = 1;
    stk_backend *be = d->ctx.backends[0].be;
    be->ops->probe(be, PROBE_LIMIT, on_probe, d);
    stk_loop_run(d->ctx.loop);
    return 0;
}

static int run(bool json)
{
    doctor d = {.json = json};
    stk_err err;
    char dir[] = "/tmp/stockade-doctor-XXXXXX";
    stk_loop *loop STK_AUTO(stk_loop_freep) = NULL;
    if (stk_loop_new(&loop, &err) < 0 || !mkdtemp(dir)) {
        fprintf(stderr, "stockade doctor: no temporary directory or event loop\n");
        return 1;
    }
    chmod(dir, 0711); /* a sandbox's root is another user */
    d.ctx.loop = loop;
    int rc = examine(&d, dir, &err);
    stk_err removal;
    if (stk_rmtree(AT_FDCWD, dir, &removal) < 0)
        fprintf(stderr, "stockade doctor: %s\n", removal.detail);
    if (rc < 0) {
        fprintf(stderr, "stockade doctor: %s\n", err.detail);
        return 1;
    }
    if (json)
        print_json(&d);
    else
        print_text(&d);
    d.ctx.backends[0].be->ops->close(d.ctx.backends[0].be);
    return d.ctx.backends[0].probe.ok ? 0 : 1;
}

int stk_verb_doctor(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    bool json = false;
    optind = 1;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 'j') {
            json = true;
            continue;
        }
        if (c != 'h') {
            fprintf(stderr, "stockade doctor: no option %s; see stockade doctor --help\n", argv[optind - 1]);
            return 2;
        }
        fputs("usage: stockade doctor [--json]\n\nRuns a canary sandbox with every backend of this host. "
              "Exit status 0 when one works.\n",
              stdout);
        return 0;
    }
    if (optind < argc) {
        fputs("stockade doctor: takes no arguments; see stockade doctor --help\n", stderr);
        return 2;
    }
    return run(json);
}
