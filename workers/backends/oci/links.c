#include "proto/base/crypto.h"
#include "proto/base/fd.h"
#include "proto/message/link.h"
#include "workers/backends/oci/oci.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define PENDING_MAX 72 /* connections that have not said hello: links plus a few */

/* One connection that has not said who it is yet. */
typedef struct caller {
    stk_oci_links *links;
    int fd;
    struct event *readable;
    size_t n;
    char line[STK_HELLO_MAX];
} caller;

struct stk_oci_links {
    stk_loop *loop;
    stk_sandbox *sbx;
    char path[256];
    int listener;
    struct event *acceptable;
    caller *callers[PENDING_MAX];
    int commands; /* expected */
    void (*complete)(void *arg);
    void *arg;
};

static void caller_free(caller *c, bool keep_fd)
{
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (c->links->callers[i] == c)
            c->links->callers[i] = NULL;
    event_free(c->readable);
    if (!keep_fd)
        close(c->fd);
    free(c);
}

/* Where the descriptor of that kind belongs; NULL when there is no place left. */
static int *place_of(stk_oci_links *links, const char *kind)
{
    stk_sandbox *sbx = links->sbx;
    if (strcmp(kind, "control") == 0)
        return sbx->link_control < 0 ? &sbx->link_control : NULL;
    if (strcmp(kind, "health") == 0)
        return sbx->link_health < 0 ? &sbx->link_health : NULL;
    return sbx->nlinks < links->commands ? &sbx->link_commands[sbx->nlinks++] : NULL;
}

static bool hello_ok(const stk_oci_links *links, const stk_hello *hello)
{
    return stk_equal_ct(hello->id, links->sbx->id, sizeof(hello->id)) &&
           stk_equal_ct(hello->nonce, links->sbx->nonce, sizeof(hello->nonce));
}

static bool all_there(const stk_oci_links *links)
{
    const stk_sandbox *sbx = links->sbx;
    return sbx->link_control >= 0 && sbx->link_health >= 0 && sbx->nlinks == links->commands;
}

static void stop_listening(stk_oci_links *links)
{
    if (links->acceptable)
        event_free(links->acceptable);
    links->acceptable = NULL;
    if (links->listener >= 0) {
        close(links->listener);
        unlink(links->path);
    }
    links->listener = -1;
}

static void judge(caller *c, size_t line_length)
{
    stk_oci_links *links = c->links;
    stk_hello hello = {0};
    stk_err ignored;
    int *place = NULL;
    if (stk_hello_decode(stk_str_n(c->line, line_length), &hello, &ignored) == 0 && hello_ok(links, &hello))
        place = place_of(links, hello.kind);
    if (!place) {
        caller_free(c, false);
        return;
    }
    *place = c->fd;
    caller_free(c, true);
    if (all_there(links)) {
        stop_listening(links);
        links->complete(links->arg);
    }
}

/* Up to the newline and no further: what follows belongs to HTTP. */
static ssize_t take_line(caller *c, bool *ret_whole)
{
    char *to = c->line + c->n;
    ssize_t seen = recv(c->fd, to, sizeof(c->line) - c->n, MSG_PEEK);
    if (seen <= 0)
        return seen;
    const char *end = memchr(to, '\n', (size_t)seen);
    *ret_whole = end != NULL;
    return recv(c->fd, to, end ? (size_t)(end + 1 - to) : (size_t)seen, 0);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    caller *c = arg;
    bool whole = false;
    ssize_t n = take_line(c, &whole);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        c->n += (size_t)n;
    if (n > 0 && whole)
        judge(c, c->n - 1);
    else if (n <= 0 || c->n == sizeof(c->line))
        caller_free(c, false);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
    stk_oci_links *links = arg;
    int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (conn < 0)
        return;
    for (size_t i = 0; i < PENDING_MAX; i++) {
        if (links->callers[i])
            continue;
        caller *c = stk_xcalloc(1, sizeof(*c));
        c->links = links;
        c->fd = conn;
        c->readable = event_new(stk_loop_base(links->loop), conn, EV_READ | EV_PERSIST, on_readable, c);
        links->callers[i] = c;
        event_add(c->readable, NULL);
        return;
    }
    close(conn);
}

int stk_oci_links_new(stk_loop *loop, const char *path, stk_sandbox *sbx, int commands,
                      void (*complete)(void *arg), void *arg, stk_oci_links **ret, stk_err *err)
{
    char addr[300];
    stk_oci_links *links = stk_xcalloc(1, sizeof(*links));
    *links = (stk_oci_links){
        .loop = loop, .sbx = sbx, .listener = -1, .commands = commands, .complete = complete, .arg = arg};
    snprintf(links->path, sizeof(links->path), "%s", path);
    snprintf(addr, sizeof(addr), "unix:%s", path);
    int rc = stk_listen(addr, 64, &links->listener, err);
    if (rc == 0 && chmod(path, 0666) < 0)
        rc = stk_err_errno(err, errno, "chmod %s", path);
    if (rc < 0) {
        stk_oci_links_free(links);
        return rc;
    }
    links->acceptable =
        event_new(stk_loop_base(loop), links->listener, EV_READ | EV_PERSIST, on_acceptable, links);
    event_add(links->acceptable, NULL);
    *ret = links;
    return 0;
}

void stk_oci_links_free(stk_oci_links *links)
{
    for (size_t i = 0; i < PENDING_MAX; i++)
        if (links->callers[i])
            caller_free(links->callers[i], false);
    stop_listening(links);
    free(links);
}
