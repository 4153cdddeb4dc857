#include "proto/base/fd.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

typedef struct address {
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
    socklen_t n;
} address;

static bool parse_unix(stk_str path, address *out)
{
    out->un.sun_family = AF_UNIX;
    out->n = sizeof(out->un);
    return path.n > 1 && path.p[0] == '/' && stk_str_copy(path, out->un.sun_path, sizeof(out->un.sun_path));
}

static bool parse_inet(stk_str s, address *out)
{
    const char *colon = memrchr(s.p, ':', s.n);
    if (!colon)
        return false;
    stk_str host = {s.p, (size_t)(colon - s.p)};
    uint64_t port;
    char text[INET6_ADDRSTRLEN];
    if (!stk_str_u64(stk_str_n(colon + 1, s.n - host.n - 1), 65535, &port))
        return false;
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons((uint16_t)port);
        out->n = sizeof(out->v6);
        return stk_str_copy(stk_str_n(host.p + 1, host.n - 2), text, sizeof(text)) &&
               inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1;
    }
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons((uint16_t)port);
    out->n = sizeof(out->v4);
    return stk_str_copy(host, text, sizeof(text)) && inet_pton(AF_INET, text, &out->v4.sin_addr) == 1;
}

static bool parse(const char *addr, address *out)
{
    *out = (address){.n = 0};
    stk_str s = stk_str_of(addr);
    if (stk_str_starts(s, STK_STR("unix:")))
        return parse_unix(stk_str_n(s.p + 5, s.n - 5), out);
    return s.n > 0 && parse_inet(s, out);
}

static int malformed(const char *addr, stk_err *err)
{
    return stk_err_set(err, STK_E_CONFIG, "'%s' is not an address: unix:/path, 127.0.0.1:8080 or [::1]:8080",
                       addr);
}

static int open_socket(const address *a, stk_err *err)
{
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? stk_err_errno(err, errno, "make a socket") : fd;
}

/* A socket file nobody listens on is what a killed process left. */
static bool is_stale(const address *a)
{
    struct stat st;
    if (lstat(a->un.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    int fd STK_AUTO(stk_closep) = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && connect(fd, &a->any, a->n) < 0 && errno == ECONNREFUSED;
}

static int bind_to(int fd, const address *a, const char *addr, stk_err *err)
{
    int rc = bind(fd, &a->any, a->n);
    if (rc < 0 && errno == EADDRINUSE && a->any.sa_family == AF_UNIX) {
        if (is_stale(a))
            unlink(a->un.sun_path);
        rc = bind(fd, &a->any, a->n);
    }
    if (rc < 0 && errno == EADDRINUSE)
        return stk_err_set(err, STK_E_CONFLICT, "%s is in use", addr);
    return rc < 0 ? stk_err_errno(err, errno, "bind %s", addr) : 0;
}

int stk_listen(const char *addr, int backlog, int *ret_fd, stk_err *err)
{
    address a;
    if (!parse(addr, &a))
        return malformed(addr, err);
    int fd STK_AUTO(stk_closep) = open_socket(&a, err);
    if (fd < 0)
        return fd;
    int on = 1;
    if (a.any.sa_family != AF_UNIX && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
        return stk_err_errno(err, errno, "listen on %s", addr);
    if (a.any.sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
        return stk_err_errno(err, errno, "listen on %s", addr);
    int rc = bind_to(fd, &a, addr, err);
    if (rc < 0)
        return rc;
    if (listen(fd, backlog) < 0)
        return errno == EADDRINUSE ? stk_err_set(err, STK_E_CONFLICT, "%s is in use", addr)
                                   : stk_err_errno(err, errno, "listen on %s", addr);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int stk_dial(const char *addr, int *ret_fd, stk_err *err)
{
    address a;
    if (!parse(addr, &a))
        return malformed(addr, err);
    int fd STK_AUTO(stk_closep) = open_socket(&a, err);
    if (fd < 0)
        return fd;
    int on = 1;
    if (a.any.sa_family != AF_UNIX && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
        return stk_err_errno(err, errno, "connect to %s", addr);
    if (connect(fd, &a.any, a.n) < 0 && errno != EINPROGRESS) {
        int why = errno;
        stk_err_errno(err, why, "connect to %s", addr);
        if (err)
            err->code = STK_E_UNAVAILABLE;
        return -STK_E_UNAVAILABLE;
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}

void stk_listen_text(int fd, char out[128])
{
    address a = {.n = sizeof(struct sockaddr_un)};
    char text[INET6_ADDRSTRLEN] = "";
    out[0] = '\0';
    if (getsockname(fd, &a.any, &a.n) < 0)
        return;
    if (a.any.sa_family == AF_UNIX) {
        snprintf(out, 128, "unix:%.*s", (int)sizeof(a.un.sun_path), a.un.sun_path);
    } else if (a.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a.v6.sin6_addr, text, sizeof(text));
        snprintf(out, 128, "[%s]:%u", text, ntohs(a.v6.sin6_port));
    } else if (a.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof(text));
        snprintf(out, 128, "%s:%u", text, ntohs(a.v4.sin_port));
    }
}

bool stk_addr_is_loopback(const char *addr)
{
    address a;
    if (!parse(addr, &a))
        return false;
    if (a.any.sa_family == AF_UNIX)
        return true;
    if (a.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
    return ntohl(a.v4.sin_addr.s_addr) >> 24 == 127;
}
