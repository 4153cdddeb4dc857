/* Addresses of links and relay: unix:PATH and vsock:PORT (beside proto/base/fd.h's, for which vsock is
 * foreign). */
#ifndef STK_RUNTIME_ADDRESS_H
#define STK_RUNTIME_ADDRESS_H

#include "proto/base/err.h"
#include <sys/socket.h>

typedef struct stk_rt_address {
    struct sockaddr_storage sa;
    socklen_t n;
} stk_rt_address;

/* A peer to dial: vsock means the host (CID 2). -STK_E_CONFIG when malformed or too long. */
int stk_rt_address_parse(const char *text, stk_rt_address *ret, stk_err *err) STK_MUST_USE;
/* Blocking connect; the descriptor is nonblocking afterwards. */
int stk_rt_connect(const stk_rt_address *to, int *ret_fd, stk_err *err) STK_MUST_USE;
/* unix:PATH, IP:PORT, vsock:PORT; a nonblocking listener. */
int stk_rt_listen(const char *text, int *ret_fd, stk_err *err) STK_MUST_USE;

#endif
