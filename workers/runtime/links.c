#include "workers/runtime/links.h"
#include "proto/base/fd.h"
#include "workers/runtime/address.h"
#include <errno.h>

int stk_rt_token_read(int fd, stk_hello *ret, stk_err *err)
{
    char line[2 * STK_ID_SIZE + 2];
    size_t n = 0;
    while (n < sizeof(line) && !memchr(line, '\n', n)) {
        ssize_t got = read(fd, line + n, sizeof(line) - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return stk_err_errno(err, errno, "read the token");
        if (got == 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    const char *end = memchr(line, '\n', n);
    const char *space = end ? memchr(line, ' ', (size_t)(end - line)) : NULL;
    bool ok = space && stk_str_copy(stk_str_n(line, (size_t)(space - line)), ret->id, sizeof(ret->id)) &&
              stk_str_copy(stk_str_n(space + 1, (size_t)(end - space - 1)), ret->nonce, sizeof(ret->nonce)) &&
              ret->id[0] && ret->nonce[0];
    explicit_bzero(line, sizeof(line));
    return ok ? 0 : stk_err_set(err, STK_E_CONFIG, "the token is not one line \"ID NONCE\"");
}

static void on_control_closed(void *arg)
{
    stk_runtime *rt = arg;
    event_base_loopbreak(rt->base);
}

static void on_link_closed(void *arg)
{
    stk_runtime *rt = arg;
    if (--rt->nlinks == 0)
        event_base_loopbreak(rt->base);
}

static int dial_one(stk_runtime *rt, const stk_rt_address *to, const char *kind, stk_err *err)
{
    stk_hello hello = rt->who;
    stk_buf line STK_AUTO(stk_buf_done) = STK_BUF(STK_HELLO_MAX);
    stk_str_copy(stk_str_of(kind), hello.kind, sizeof(hello.kind));
    if (stk_hello_encode(&hello, &line) < 0)
        return stk_err_set(err, STK_E_CONFIG, "the token's id or nonce is not well-formed");
    int fd;
    if (stk_rt_connect(to, &fd, err) < 0)
        return stk_err_wrap(err, "dial the %s link", kind);
    bool control = strcmp(kind, "control") == 0;
    if (stk_fd_write_all(fd, line.p, line.n, err) < 0 ||
        stk_http_server_adopt(rt->links, fd, control ? on_control_closed : on_link_closed, rt, err) < 0) {
        close(fd);
        return stk_err_wrap(err, "open the %s link", kind);
    }
    return 0;
}

int stk_rt_links_dial(stk_runtime *rt, stk_err *err)
{
    stk_rt_address to;
    int rc = stk_rt_address_parse(rt->opt->dial, &to, err);
    if (rc == 0)
        rc = dial_one(rt, &to, "control", err);
    rt->nlinks = 1 + rt->opt->max_concurrent;
    if (rc == 0)
        rc = dial_one(rt, &to, "health", err);
    for (size_t i = 0; rc == 0 && i < rt->opt->max_concurrent; i++)
        rc = dial_one(rt, &to, "command", err);
    return rc;
}

int stk_rt_listeners_open(stk_runtime *rt, stk_err *err)
{
    for (size_t i = 0; i < rt->opt->nlisten; i++) {
        int fd;
        int rc = stk_rt_listen(rt->opt->listen[i], &fd, err);
        if (rc < 0)
            return rc;
        rc = stk_http_server_listen(rt->listeners, fd, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
