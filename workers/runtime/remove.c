/* DELETE /files/{path}: a link is removed itself. A tree is removed by a process of its own: it may be large,
 * and a command may be filling it at the same time. */
#include "proto/base/fd.h"
#include "proto/base/time.h"
#include "workers/runtime/problem.h"
#include "workers/runtime/target.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define TREE_LIMIT stk_sec(60)

typedef struct removal {
    stk_exchange *ex; /* NULL once the client is gone */
    int report;       /* one stk_err, when it failed */
    pid_t pid;
    struct event *limit;
} removal;

static void answer(stk_exchange *ex, int rc, const stk_err *err)
{
    if (rc < 0)
        stk_rt_refuse(ex->x, err);
    else
        stk_http_answer(ex->x, 204, NULL, "", STK_STR(""));
}

/* What the runtime holds open, links above all, must not live on here. */
static _Noreturn void remove_tree(int dir, const char *name, int report)
{
    stk_err err = {.code = STK_OK};
    if (dup3(dir, 3, O_CLOEXEC) < 0 || dup3(report, 4, O_CLOEXEC) < 0 ||
        (syscall(SYS_close_range, 5, ~0U, 0) < 0 && errno != ENOSYS))
        _exit(1);
    if (stk_rmtree(3, name, &err) < 0)
        err.code = STK_E_CONFLICT;
    ssize_t n = write(4, &err, sizeof(err));
    _exit(n == (ssize_t)sizeof(err) ? 0 : 1);
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    removal *r = arg;
    kill(r->pid, SIGKILL);
}

static void on_removed(void *arg)
{
    removal *r = arg;
    stk_err err;
    if (read(r->report, &err, sizeof(err)) != (ssize_t)sizeof(err))
        stk_err_set(&err, STK_E_CONFLICT, "the directory could not be removed whole");
    if (r->ex) {
        r->ex->state = NULL;
        answer(r->ex, -(int)err.code, &err);
    }
    event_free(r->limit);
    close(r->report);
    free(r);
}

static int start(stk_exchange *ex, int dir, const char *name, stk_err *err)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
        return stk_target_errno(errno, err);
    int high = fcntl(dir, F_DUPFD_CLOEXEC, 16), report = fcntl(pipes[1], F_DUPFD_CLOEXEC, 16);
    pid_t pid = high < 0 || report < 0 ? -1 : fork();
    if (pid == 0)
        remove_tree(high, name, report);
    stk_closep(&high);
    stk_closep(&report);
    close(pipes[1]);
    if (pid < 0) {
        close(pipes[0]);
        return stk_err_set(err, STK_E_UNAVAILABLE, "no process could be started");
    }
    removal *r = stk_xcalloc(1, sizeof(*r));
    *r = (removal){.ex = ex, .report = pipes[0], .pid = pid};
    struct timeval most = stk_span_timeval(TREE_LIMIT);
    r->limit = evtimer_new(ex->rt->base, on_limit, r);
    evtimer_add(r->limit, &most);
    ex->state = r;
    stk_reaper_mind(ex->rt->reaper, pid, on_removed, r);
    return 0;
}

static bool is_recursive(stk_http_x *x)
{
    stk_buf value STK_AUTO(stk_buf_done) = STK_BUF(16);
    return stk_query_get(stk_http_query(x), "recursive", &value) &&
           (stk_str_eq(stk_buf_view(&value), STK_STR("true")) ||
            stk_str_eq(stk_buf_view(&value), STK_STR("1")));
}

/* 1 = a process is at it. */
static int remove_path(stk_exchange *ex, stk_err *err)
{
    char path[PATH_MAX], name[NAME_MAX + 1];
    int dir STK_AUTO(stk_closep) = -1;
    struct stat st;
    int rc = stk_target_of(ex, "/files/", path, err);
    if (rc == 0)
        rc = stk_target_parent(ex->rt->root, path, false, name, &dir, err);
    if (rc < 0)
        return rc;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return stk_target_errno(errno, err);
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dir, name, 0) < 0 ? stk_target_errno(errno, err) : 0;
    if (!is_recursive(ex->x))
        return stk_err_set(err, STK_E_CONFLICT, "a directory; ?recursive=true removes it");
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;
    rc = start(ex, dir, name, err);
    return rc < 0 ? rc : 1;
}

static void on_end(stk_exchange *ex)
{
    stk_err err;
    int rc = remove_path(ex, &err);
    if (rc <= 0)
        answer(ex, rc, &err);
}

static void on_done(stk_exchange *ex, bool gone)
{
    removal *r = ex->state;
    if (!r)
        return;
    r->ex = NULL;
    kill(r->pid, SIGKILL);
}

const stk_call stk_call_remove = {.end = on_end, .done = on_done};
