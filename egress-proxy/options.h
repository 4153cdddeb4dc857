/* The command line. The flags are stable: other people script against them. */
#ifndef STK_EGRESS_PROXY_OPTIONS_H
#define STK_EGRESS_PROXY_OPTIONS_H

#include "egress-proxy/dns_query.h"

typedef struct stk_px_options {
    const char *listen;         /* "127.0.0.1:3128", "unix:PATH", "fd:N" */
    const char *policy;         /* standalone: the policy file           */
    const char *records;        /* standalone: FILE or "-"               */
    const char *config;         /* a file that gives what the flags do not */
    const char *explain;        /* HOST:PORT                             */
    int control_fd, journal_fd; /* under a worker; -1 = not given */
    stk_dns_servers servers;
    bool help, version;
} stk_px_options;

/* Texts are borrowed from argv. "--flag value" and "--flag=value". -STK_E_USAGE, -STK_E_CONFIG. */
int stk_px_options_parse(int argc, char **argv, stk_px_options *ret, stk_err *err) STK_MUST_USE;
const char *stk_px_usage(void);
/* "1.2.3.4:53" or "[2001:db8::1]:53". */
int stk_px_parse_server(const char *text, stk_sock *ret, stk_err *err) STK_MUST_USE;
/* "fd:N" -> N, else -1. */
int stk_px_listen_fd(const char *listen);

#endif
