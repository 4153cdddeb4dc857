#include "proto/base/fd.h"
#include "proto/base/id.h"
#include "workers/backends/oci/oci.h"
#include "workers/backends/oci/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int prepare_dirs(stk_oci_sandbox *sbx, stk_err *err)
{
    char path[512];
    static const struct {
        const char *name;
        mode_t mode;
    } dirs[] = {{"", 0711}, {"/l", 0755}, {"/p", 0755}};
    for (size_t i = 0; i < STK_COUNT(dirs); i++) {
        int rc = stk_path(path, sizeof(path), err, "%s%s", sbx->paths.dir, dirs[i].name);
        if (rc < 0)
            return rc;
        if (mkdir(path, 0700) < 0 || chmod(path, dirs[i].mode) < 0)
            return stk_err_errno(err, errno, "make %s", path);
    }
    return 0;
}

static int open_journal(stk_oci_sandbox *sbx, stk_err *err)
{
    stk_sandbox *base = &sbx->base;
    int rc = stk_path(base->journal_path, sizeof(base->journal_path), err, "%s/journal/%s.jsonl",
                      sbx->oci->env.state_dir, base->id);
    if (rc < 0)
        return rc;
    base->journal = open(base->journal_path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return base->journal < 0 ? stk_err_errno(err, errno, "make %s", base->journal_path) : 0;
}

static void on_proxy_end(stk_proc *proc, const stk_proc_end *end, void *arg)
{
    stk_oci_sandbox *sbx = arg;
    stk_proc_free(STK_TAKE(sbx->proxy));
    if (sbx->destroying) {
        stk_oci_remove_step(sbx);
        return;
    }
    stk_err err;
    stk_err_set(&err, STK_E_SANDBOX, "the egress proxy ended (%s %d)", end->exited ? "exit status" : "signal",
                end->exited ? end->status : end->signal);
    stk_oci_broken(sbx, &err);
}

static int start_proxy(stk_oci_sandbox *sbx, stk_err *err)
{
    char addr[512];
    int listener STK_AUTO(stk_closep) = -1;
    int pair[2];
    int rc = stk_path(addr, sizeof(addr), err, "unix:%s/p/s", sbx->paths.dir);
    if (rc == 0)
        rc = stk_listen(addr, 256, &listener, err);
    if (rc < 0)
        return rc;
    if (chmod(addr + 5, 0666) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return stk_err_errno(err, errno, "set up the proxy's sockets");
    sbx->base.proxy_control = pair[0];
    int theirs STK_AUTO(stk_closep) = pair[1];
    stk_oci_argv argv;
    stk_oci_proxy_argv(sbx->oci, sbx->spec.run, &argv);
    stk_proc_spec spec = {.path = sbx->oci->proxy_program,
                          .argv = argv.v,
                          .fds = {{STK_OCI_PROXY_CONTROL_FD, theirs},
                                  {STK_OCI_PROXY_JOURNAL_FD, sbx->base.journal},
                                  {STK_OCI_PROXY_LISTEN_FD, listener}},
                          .nfds = 3,
                          .nowait = true};
    return stk_proc_start(sbx->oci->env.loop, &spec, on_proxy_end, sbx, &sbx->proxy, err);
}

static int write_config(stk_oci_sandbox *sbx, stk_err *err)
{
    cJSON *config STK_AUTO(stk_tree_freep) =
        stk_oci_config(&sbx->spec, &sbx->paths, &sbx->oci->cg, sbx->oci->kind, sbx->uid, sbx->gid);
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1 << 18);
    char path[512];
    int rc = stk_tree_text(&text, config, false, err);
    if (rc == 0)
        rc = stk_path(path, sizeof(path), err, "%s/config.json", sbx->paths.dir);
    if (rc < 0)
        return rc;
    int fd STK_AUTO(stk_closep) = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? stk_err_errno(err, errno, "make %s", path) : stk_fd_write_all(fd, text.p, text.n, err);
}

/* Last line of the OCI runtime's log: why it refused. */
static void read_log(const stk_oci_sandbox *sbx, char *out, size_t size)
{
    char path[512];
    stk_err ignored;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(65536);
    snprintf(out, size, "no reason given");
    if (stk_path(path, sizeof(path), &ignored, "%s/log", sbx->paths.dir) < 0 ||
        stk_file_read(path, &text, &ignored) < 0)
        return;
    while (text.n && text.p[text.n - 1] == '\n')
        text.p[--text.n] = '\0';
    const char *line = text.n ? strrchr(text.p, '\n') : NULL;
    if (text.n)
        snprintf(out, size, "%s", line ? line + 1 : text.p);
}

static void on_death(evutil_socket_t fd, short what, void *arg)
{
    stk_oci_sandbox *sbx = arg;
    event_free(sbx->death);
    sbx->death = NULL;
    if (sbx->destroying) {
        stk_oci_remove_step(sbx);
        return;
    }
    stk_err err;
    stk_err_set(&err, STK_E_SANDBOX, "the sandbox ended by itself");
    stk_oci_broken(sbx, &err);
}

static int watch_init(stk_oci_sandbox *sbx, stk_err *err)
{
    char path[512];
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(32);
    uint64_t pid = 0;
    int rc = stk_path(path, sizeof(path), err, "%s/pid", sbx->paths.dir);
    if (rc == 0 && stk_file_read(path, &text, err) < 0)
        rc = stk_err_set(err, STK_E_SANDBOX, "%s ended without naming the sandbox's process",
                         sbx->oci->program);
    if (rc < 0)
        return rc;
    if (!stk_str_u64(stk_buf_view(&text), INT32_MAX, &pid) || pid < 2)
        return stk_err_set(err, STK_E_SANDBOX, "%s holds no process id", path);
    sbx->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (sbx->pidfd < 0)
        return stk_err_errno(err, errno, "the sandbox's first process is gone");
    sbx->death = event_new(stk_loop_base(sbx->oci->env.loop), sbx->pidfd, EV_READ, on_death, sbx);
    event_add(sbx->death, NULL);
    return 0;
}

static void maybe_created(stk_oci_sandbox *sbx)
{
    if (!sbx->started || !sbx->links_ready || sbx->created || sbx->destroying)
        return;
    sbx->created = true;
    stk_timer_clear(sbx->deadline);
    sbx->create_done(NULL, &sbx->base, sbx->arg);
}

static void on_links(void *arg)
{
    stk_oci_sandbox *sbx = arg;
    sbx->links_ready = true;
    maybe_created(sbx);
}

static void on_runtime_end(stk_proc *proc, const stk_proc_end *end, void *arg)
{
    stk_oci_sandbox *sbx = arg;
    stk_proc_free(STK_TAKE(sbx->runtime));
    if (sbx->destroying) {
        stk_oci_remove_step(sbx);
        return;
    }
    stk_err err;
    if (!end->exited || end->status != 0) {
        char why[256];
        read_log(sbx, why, sizeof(why));
        stk_err_set(&err, STK_E_SANDBOX, "%s could not start the sandbox: %s", sbx->oci->program, why);
        stk_oci_broken(sbx, &err);
    } else if (watch_init(sbx, &err) < 0) {
        stk_oci_broken(sbx, &err);
    } else {
        sbx->started = true;
        maybe_created(sbx);
    }
}

/* A pipe that already holds "ID NONCE\n" and its end: the runtime's fd 0. */
static int token_pipe(const stk_sandbox *base, int *ret_fd, stk_err *err)
{
    int fds[2];
    char line[2 * STK_ID_SIZE + 2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return stk_err_errno(err, errno, "make a pipe");
    int n = snprintf(line, sizeof(line), "%s %s\n", base->id, base->nonce);
    int rc = stk_fd_write_all(fds[1], line, (size_t)n, err);
    close(fds[1]);
    if (rc < 0)
        close(fds[0]);
    else
        *ret_fd = fds[0];
    return rc;
}

static int start_runtime(stk_oci_sandbox *sbx, stk_err *err)
{
    static const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    int token STK_AUTO(stk_closep) = -1;
    int rc = token_pipe(&sbx->base, &token, err);
    if (rc < 0)
        return rc;
    stk_oci_argv argv;
    stk_oci_runtime_argv(sbx->oci, &sbx->paths, sbx->base.id, &argv);
    stk_proc_spec spec = {.path = sbx->oci->executed,
                          .argv = argv.v,
                          .envp = env,
                          .fds = {{0, token}},
                          .nfds = 1,
                          .nowait = true};
    if (sbx->oci->kind == STK_OCI_CRUN && sbx->oci->cg.layout == STK_CGROUP_HYBRID) {
        spec.unshare_flags =
            CLONE_NEWNS; /* crun refuses hybrid hierarchies: it shall not see the unified one */
        spec.umount = "/sys/fs/cgroup/unified";
    }
    return stk_proc_start(sbx->oci->env.loop, &spec, on_runtime_end, sbx, &sbx->runtime, err);
}

static void on_deadline(void *arg)
{
    stk_oci_sandbox *sbx = arg;
    stk_err err;
    stk_err_set(&err, STK_E_TIMEOUT, "the sandbox was not ready in time (%s)",
                !sbx->started ? "the OCI runtime did not finish"
                              : "the runtime inside did not dial its links");
    stk_oci_broken(sbx, &err);
}

static int create_steps(stk_oci_sandbox *sbx, stk_err *err)
{
    char path[512];
    int rc = stk_uids_take(sbx->oci->uids, &sbx->uid, &sbx->gid, err);
    if (rc == 0)
        rc = prepare_dirs(sbx, err);
    if (rc == 0)
        rc = open_journal(sbx, err);
    if (rc == 0)
        rc = stk_path(path, sizeof(path), err, "%s/l/s", sbx->paths.dir);
    if (rc == 0)
        rc = stk_oci_links_new(sbx->oci->env.loop, path, &sbx->base, sbx->spec.max_concurrent, on_links, sbx,
                               &sbx->links, err);
    if (rc == 0)
        rc = write_config(sbx, err);
    if (rc == 0)
        rc = start_runtime(sbx, err);
    if (rc == 0)
        rc = start_proxy(sbx, err);
    return rc;
}

static void on_early_failure(void *arg)
{
    stk_oci_sandbox *sbx = arg;
    stk_err err = sbx->failure;
    stk_oci_broken(sbx, &err);
}

static stk_oci_sandbox *sandbox_new(stk_oci *oci, const stk_sandbox_spec *spec)
{
    stk_oci_sandbox *sbx = stk_xcalloc(1, sizeof(*sbx));
    sbx->oci = oci;
    sbx->spec = *spec;
    sbx->pidfd = -1;
    stk_oci_paths_fill(oci, spec, &sbx->paths);
    stk_sandbox *base = &sbx->base;
    *base = (stk_sandbox){
        .backend = &oci->be, .link_control = -1, .link_health = -1, .proxy_control = -1, .journal = -1};
    memcpy(base->id, spec->id, sizeof(base->id));
    uint8_t secret[16];
    stk_random(secret, sizeof(secret));
    stk_id_from("non", secret, base->nonce);
    base->strength = oci->kind == STK_OCI_RUNSC ? STK_STRENGTH_GVISOR : STK_STRENGTH_CONTAINER;
    snprintf(base->runtime, sizeof(base->runtime), "%s", oci->version);
    sbx->deadline = stk_timer_new(oci->env.loop, on_deadline, sbx);
    return sbx;
}

void stk_oci_create(stk_backend *be, const stk_sandbox_spec *spec, stk_span limit, stk_create_done done,
                    stk_lost_fn lost, void *arg)
{
    stk_oci *oci = STK_CONTAINER(be, stk_oci, be);
    stk_oci_sandbox *sbx = sandbox_new(oci, spec);
    sbx->create_done = done;
    sbx->lost = lost;
    sbx->arg = arg;
    stk_timer_set(sbx->deadline, limit);
    int rc = stk_oci_can(oci, spec, &sbx->failure);
    if (rc == 0)
        rc = create_steps(sbx, &sbx->failure);
    if (rc < 0)
        stk_loop_post(oci->env.loop, on_early_failure, sbx);
}
