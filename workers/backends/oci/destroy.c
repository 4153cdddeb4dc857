#include "proto/base/fd.h"
#include "workers/backends/oci/oci.h"
#include "workers/backends/oci/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#define REMOVE_POLL  stk_ms(2)
#define REMOVE_STUCK stk_ms(100)
#define REMOVE_LIMIT stk_sec(10)

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Descriptors that nobody took over: links, control, journal. Closing them is also the lifeline's end. */
static void close_all(stk_sandbox *base)
{
    close_fd(&base->link_control);
    close_fd(&base->link_health);
    for (int i = 0; i < base->nlinks; i++)
        close_fd(&base->link_commands[i]);
    close_fd(&base->proxy_control);
    close_fd(&base->journal);
}

static void sandbox_free(stk_oci_sandbox *sbx)
{
    if (sbx->links)
        stk_oci_links_free(sbx->links);
    if (sbx->death)
        event_free(sbx->death);
    if (sbx->pidfd >= 0)
        close(sbx->pidfd);
    if (sbx->runtime)
        stk_proc_free(sbx->runtime);
    if (sbx->proxy)
        stk_proc_free(sbx->proxy);
    stk_timer_free(sbx->deadline);
    if (sbx->removal)
        stk_timer_free(sbx->removal);
    close_all(&sbx->base);
    free(sbx);
}

static int remove_files(const stk_oci *oci, const char *id, stk_err *err)
{
    char path[512];
    int rc = stk_path(path, sizeof(path), err, "%s/rt/%s", oci->env.run_dir, id);
    if (rc == 0)
        rc = stk_rmtree(AT_FDCWD, path, err);
    if (rc == 0)
        rc = stk_path(path, sizeof(path), err, "%s/%s", oci->env.run_dir, id);
    return rc == 0 ? stk_rmtree(AT_FDCWD, path, err) : rc;
}

static void removed(stk_oci_sandbox *sbx, const stk_err *err)
{
    if (sbx->uid && !err) /* a range whose processes may still live is not used again */
        stk_uids_give(sbx->oci->uids, sbx->uid);
    stk_destroy_done done = sbx->destroy_done;
    stk_create_done create_done = sbx->create_done;
    void *arg = sbx->arg, *destroy_arg = sbx->destroy_arg;
    stk_err failure = sbx->failure;
    if (!sbx->created)
        unlink(sbx->base.journal_path);
    bool was_created = sbx->created;
    sandbox_free(sbx);
    if (was_created)
        done(err, destroy_arg);
    else
        create_done(&failure, NULL, arg);
}

void stk_oci_remove_step(stk_oci_sandbox *sbx)
{
    stk_err err;
    bool ended = !sbx->runtime && !sbx->proxy && !sbx->death;
    bool stuck =
        stk_mono_before(sbx->removal_stuck, stk_mono_now()); /* frozen, perhaps: by its cgroup, then */
    bool gone = (ended || stuck) && stk_cgroups_remove(&sbx->oci->cg, sbx->paths.cgroup);
    if (ended && gone) {
        int rc = remove_files(sbx->oci, sbx->base.id, &err);
        removed(sbx, rc < 0 ? &err : NULL);
    } else if (stk_mono_before(sbx->removal_until, stk_mono_now())) {
        stk_err_set(&err, STK_E_SANDBOX,
                    "%s could not be removed in time; the next start of the worker tries again",
                    sbx->base.id);
        removed(sbx, &err);
    } else {
        stk_timer_set(sbx->removal, REMOVE_POLL);
    }
}

static void on_removal(void *arg)
{
    stk_oci_remove_step(arg);
}

static void begin_removal(stk_oci_sandbox *sbx)
{
    sbx->destroying = true;
    stk_timer_clear(sbx->deadline);
    sbx->removal = stk_timer_new(sbx->oci->env.loop, on_removal, sbx);
    sbx->removal_stuck = stk_mono_add(stk_mono_now(), REMOVE_STUCK);
    sbx->removal_until = stk_mono_add(stk_mono_now(), REMOVE_LIMIT);
    close_all(&sbx->base);
    if (sbx->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, sbx->pidfd, SIGKILL, NULL, 0);
    if (sbx->proxy)
        stk_proc_kill(sbx->proxy, SIGKILL);
    if (sbx->runtime)
        stk_proc_kill(sbx->runtime, SIGKILL);
    stk_timer_set(sbx->removal, stk_us(1)); /* never completes from inside the call */
}

void stk_oci_broken(stk_oci_sandbox *sbx, const stk_err *why)
{
    if (sbx->destroying)
        return;
    if (!sbx->created) {
        sbx->failure = *why;
        begin_removal(sbx);
        return;
    }
    stk_lost_fn lost = sbx->lost;
    sbx->lost = NULL;
    if (lost)
        lost(&sbx->base, stk_cgroups_oom_kills(&sbx->oci->cg, sbx->paths.cgroup) > 0, why->detail, sbx->arg);
}

void stk_oci_destroy(stk_sandbox *base, stk_destroy_done done, void *arg)
{
    stk_oci_sandbox *sbx = STK_CONTAINER(base, stk_oci_sandbox, base);
    sbx->destroy_done = done;
    sbx->destroy_arg = arg;
    begin_removal(sbx);
}
