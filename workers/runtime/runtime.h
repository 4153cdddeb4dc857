/* The whole program's state: one per process, made by main. */
#ifndef STK_RUNTIME_RUNTIME_H
#define STK_RUNTIME_RUNTIME_H

#include "proto/http/server.h"
#include "proto/message/link.h"
#include "workers/runtime/command.h"
#include "workers/runtime/exec_request.h"
#include "workers/runtime/options.h"
#include "workers/runtime/relay.h"

typedef struct stk_runtime stk_runtime;

/* Where an exchange came from. */
typedef struct stk_rt_side {
    stk_runtime *rt;
    bool listener; /* else a link: it needs no token */
} stk_rt_side;

struct stk_runtime {
    struct event_base *base;
    const stk_rt_options *opt;
    int root;
    int signals;
    struct event *on_signal;
    stk_hello who; /* id and nonce, or empty */
    char proxy[80];
    stk_reaper *reaper;
    stk_oom oom;
    stk_command_env commands;
    stk_exec_defaults defaults;
    size_t running;
    stk_relay *relay;
    stk_rt_side listener_side, link_side;
    stk_http_server *listeners, *links;
    size_t nlinks; /* that are up */
};

/* Everything but serving: signals, privileges of the process, root, reaper. Reads the token. opt is borrowed.
 */
int stk_runtime_new(const stk_rt_options *opt, stk_runtime **ret, stk_err *err) STK_MUST_USE;
/* Relay, listeners, links: from here on we are ready. */
int stk_runtime_open(stk_runtime *rt, stk_err *err) STK_MUST_USE;
/* Until SIGTERM, SIGINT or the end of the links; then everything below us is killed. */
void stk_runtime_run(stk_runtime *rt);
void stk_runtime_free(stk_runtime *rt);

#endif
