#include "workers/runtime/address.h"
#include "proto/base/fd.h"
#include <errno.h>
#include <sys/un.h>
#include <linux/vm_sockets.h>

#define BACKLOG 128

static bool parse_vsock(stk_str port, unsigned cid, stk_rt_address *ret)
{
    uint64_t n;
    if (!stk_str_u64(port, UINT32_MAX - 1, &n))
        return false;
    struct sockaddr_vm vm = {.svm_family = AF_VSOCK, .svm_cid = cid, .svm_port = (unsigned)n};
    memcpy(&ret->sa, &vm, sizeof(vm));
    ret->n = sizeof(vm);
    return true;
}

static bool parse_unix(stk_str path, stk_rt_address *ret)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    if (path.n < 2 || path.p[0] != '/' || !stk_str_copy(path, un.sun_path, sizeof(un.sun_path)))
        return false;
    memcpy(&ret->sa, &un, sizeof(un));
    ret->n = sizeof(un);
    return true;
}

int stk_rt_address_parse(const char *text, stk_rt_address *ret, stk_err *err)
{
    stk_str s = stk_str_of(text);
    *ret = (stk_rt_address){.n = 0};
    bool ok = stk_str_starts(s, STK_STR("unix:")) ? parse_unix(stk_str_n(s.p + 5, s.n - 5), ret)
              : stk_str_starts(s, STK_STR("vsock:"))
                  ? parse_vsock(stk_str_n(s.p + 6, s.n - 6), VMADDR_CID_HOST, ret)
                  : false;
    return ok ? 0 : stk_err_set(err, STK_E_CONFIG, "'%.100s' is not unix:/PATH or vsock:PORT", text);
}

int stk_rt_connect(const stk_rt_address *to, int *ret_fd, stk_err *err)
{
    int fd STK_AUTO(stk_closep) = socket(to->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return stk_err_errno(err, errno, "make a socket");
    if (connect(fd, (const struct sockaddr *)&to->sa, to->n) < 0)
        return stk_err_errno(err, errno, "connect");
    if (stk_fd_nonblock(fd, err) < 0)
        return -STK_E_SYSTEM;
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static int listen_vsock(const stk_rt_address *at, int *ret_fd, stk_err *err)
{
    int fd STK_AUTO(stk_closep) = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return stk_err_errno(err, errno, "make a vsock socket");
    if (bind(fd, (const struct sockaddr *)&at->sa, at->n) < 0 || listen(fd, BACKLOG) < 0)
        return stk_err_errno(err, errno, "listen on vsock");
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int stk_rt_listen(const char *text, int *ret_fd, stk_err *err)
{
    stk_str s = stk_str_of(text);
    if (!stk_str_starts(s, STK_STR("vsock:")))
        return stk_listen(text, BACKLOG, ret_fd, err);
    stk_rt_address at = {.n = 0};
    if (!parse_vsock(stk_str_n(s.p + 6, s.n - 6), VMADDR_CID_ANY, &at))
        return stk_err_set(err, STK_E_CONFIG, "'%.100s' is not vsock:PORT", text);
    return listen_vsock(&at, ret_fd, err);
}
