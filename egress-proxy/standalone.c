#include "egress-proxy/standalone.h"
#include "egress-proxy/privileges.h"
#include "egress-proxy/yaml.h"
#include "proto/base/fd.h"
#include <errno.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define POLICY_MOST ((size_t)16 << 20)

static void complain(const stk_err *err, const char *path, const char *after)
{
    fprintf(stderr, "stockade-egress-proxy: %s: %s%s%s%s\n", path, err->pointer, err->pointer[0] ? ": " : "",
            err->detail, after);
}

int stk_standalone_policy(const char *path, stk_buf *ret_json, stk_policy **ret, stk_err *err)
{
    int rc = stk_read_document(path, ret_json, err);
    return rc < 0 ? rc : stk_policy_parse_text(stk_buf_view(ret_json), ret, err);
}

/* --- the parent
 * ------------------------------------------------------------------------------------------------- */

static int send_descriptor(int to, int fd)
{
    char byte = 'p';
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.space = {0}};
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.space,
                         .msg_controllen = sizeof(control.space)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    return sendmsg(to, &msg, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static void reread(const char *path, int to)
{
    stk_buf json STK_AUTO(stk_buf_done) = STK_BUF(POLICY_MOST);
    stk_policy *policy STK_AUTO(stk_policy_freep) = NULL;
    stk_err err = {0};
    if (stk_standalone_policy(path, &json, &policy, &err) < 0) {
        complain(&err, path, "; the old policy stays");
        return;
    }
    int fd STK_AUTO(stk_closep) = memfd_create("policy", MFD_CLOEXEC);
    if (fd < 0 || stk_fd_write_all(fd, json.p, json.n, &err) < 0 || send_descriptor(to, fd) < 0)
        fprintf(stderr, "stockade-egress-proxy: cannot pass the policy on: %s; the old policy stays\n",
                strerror(errno));
}

static int parent(const char *path, pid_t child, int to, const sigset_t *signals)
{
    for (;;) {
        int status, sig = sigwaitinfo(signals, NULL);
        if (sig == SIGHUP)
            reread(path, to);
        else if (sig == SIGTERM || sig == SIGINT)
            kill(child, SIGTERM);
        else if (sig == SIGCHLD && waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/* --- the child
 * -------------------------------------------------------------------------------------------------- */

typedef struct reload {
    stk_proxy *px;
    struct event event;
} reload;

/* -1: the parent is gone; -2: nothing came. */
static int receive_descriptor(int from)
{
    char byte;
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.space,
                         .msg_controllen = sizeof(control.space)};
    ssize_t n = recvmsg(from, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? -2 : -1;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    int fd = -2;
    if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    return fd;
}

static bool read_all(int fd, stk_buf *out)
{
    for (;;) {
        char *to = stk_buf_room(out, 65536);
        ssize_t n = to ? pread(fd, to, 65536, (off_t)out->n) : -1;
        if (n <= 0)
            return n == 0;
        out->n += (size_t)n;
    }
}

static void on_reload(evutil_socket_t from, short what, void *arg)
{
    stk_proxy *px = ((reload *)arg)->px;
    int fd STK_AUTO(stk_closep) = receive_descriptor(from);
    if (fd == -1)
        stk_proxy_end(px, 0);
    if (fd < 0)
        return;
    stk_buf json STK_AUTO(stk_buf_done) = STK_BUF(POLICY_MOST);
    stk_policy *policy = NULL;
    stk_err err = {0};
    if (read_all(fd, &json) && stk_policy_parse_text(stk_buf_view(&json), &policy, &err) == 0)
        stk_proxy_policy(px, policy, stk_policy_version(policy));
}

static void on_stop(evutil_socket_t sig, short what, void *arg)
{
    stk_proxy_end(arg, 0);
}

static int open_listener(const char *listen, int *ret, stk_err *err)
{
    int one = 1;
    *ret = stk_px_listen_fd(listen);
    if (*ret < 0) {
        int rc = stk_listen(listen, 1024, ret, err);
        if (rc < 0)
            return rc;
    }
    setsockopt(*ret, IPPROTO_TCP, TCP_NODELAY, &one,
               sizeof(one)); /* accepted sockets have it then; Unix sockets have no need */
    return 0;
}

static int open_records(const char *path, int *ret, stk_err *err)
{
    *ret = -1;
    if (!path)
        return 0;
    *ret = strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                  : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    return *ret < 0 ? stk_err_errno(err, errno, "open %s", path) : 0;
}

static int child(const stk_px_options *opt, stk_policy *policy, int listener, int records, int from,
                 stk_err *err)
{
    stk_proxy_spec spec = {.listener = listener, .control = -1, .journal = records, .servers = opt->servers};
    stk_proxy *px;
    int rc = stk_proxy_new(&spec, &px, err);
    if (rc < 0)
        return rc;
    reload link = {.px = px};
    struct event term, interrupt;
    event_assign(&link.event, px->base, from, EV_READ | EV_PERSIST, on_reload, &link);
    event_add(&link.event, NULL);
    evsignal_assign(&term, px->base, SIGTERM, on_stop, px);
    evsignal_add(&term, NULL);
    evsignal_assign(&interrupt, px->base, SIGINT, on_stop, px);
    evsignal_add(&interrupt, NULL);
    stk_proxy_policy(px, policy, stk_policy_version(policy));
    rc = stk_privileges_drop(err);
    if (rc < 0)
        return rc;
    char bound[128], line[160];
    stk_listen_text(listener, bound);
    int n = snprintf(line, sizeof(line), "ready %s\n", bound);
    if (write(STDOUT_FILENO, line, (size_t)n) < 0)
        return stk_err_errno(err, errno, "say that it is ready");
    int status = stk_proxy_run(px);
    event_del(&link.event);
    event_del(&term);
    event_del(&interrupt);
    stk_proxy_free(px);
    return status;
}

static void block_signals(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGHUP);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGCHLD);
    sigprocmask(SIG_BLOCK, ret, NULL);
}

int stk_standalone_run(const stk_px_options *opt, stk_err *err)
{
    stk_buf json STK_AUTO(stk_buf_done) = STK_BUF(POLICY_MOST);
    stk_policy *policy = NULL;
    int listener, records, pair[2];
    sigset_t signals;
    int rc = stk_standalone_policy(opt->policy, &json, &policy, err);
    if (rc < 0)
        return stk_err_wrap(err, "%s%s%s", opt->policy, err->pointer[0] ? ": " : "", err->pointer);
    if ((rc = open_listener(opt->listen, &listener, err)) < 0 ||
        (rc = open_records(opt->records, &records, err)) < 0)
        return rc;
    block_signals(&signals);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return stk_err_errno(err, errno, "socketpair");
    pid_t pid = fork();
    if (pid < 0)
        return stk_err_errno(err, errno, "fork");
    if (pid > 0) {
        close(pair[1]);
        close(listener);
        stk_policy_free(policy);
        return parent(opt->policy, pid, pair[0], &signals);
    }
    close(pair[0]);
    signal(SIGHUP, SIG_IGN);
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    return child(opt, policy, listener, records, pair[1], err);
}
