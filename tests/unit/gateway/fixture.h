/* A real gateway over loopback, with the real embedded bus, state and store in a folder of its own, and a
 * small fleet (fleet.c) that reads stk.requests and ends runs through state. Everything is on one loop. */
#ifndef TEST_GATEWAY_FIXTURE_H
#define TEST_GATEWAY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include <sys/socket.h>
#include "api-gateway/gateway.h"
#include "api-gateway/tokens.h"
#include "proto/base/fd.h"
#include "proto/bus/bus_sqlite.h"
#include "proto/message/audit.h"
#include "proto/message/event.h"
#include "proto/message/request.h"
#include "proto/state/state_sqlite.h"
#include "proto/store/store_sqlite.h"

typedef struct fx fx;

typedef struct fleet {
    fx *f;
    stk_consumer *consumer;
    bool hold;             /* runs stay queued                                  */
    bool stay_running;     /* they start and do not end                         */
    const char *refuse;    /* detail of a refusal instead of a result           */
    const char *plan;      /* JSON that answers plans                           */
    const char *out, *err; /* output of runs                                    */
    bool cut_result;       /* state gets the result without its output          */
    int64_t exit_code;
    int requests, plans;
    int flying; /* calls not answered yet */
    char last_run[STK_ID_SIZE];
    stk_request last;      /* newest that was read */
    stk_run_secret secret; /* opened */
    char worker[STK_ID_SIZE], incarnation[STK_ID_SIZE];
    char assignment[STK_ID_SIZE];
} fleet;

struct fx {
    char dir[64], path[128];
    stk_loop *loop;
    stk_bus_file *bus_file;
    stk_bus *bus;
    stk_state_file *state_file;
    stk_state *state;
    stk_store_file *store_file;
    stk_store *store;
    stk_keyring *ring;
    stk_gateway *gw;
    char address[128];
    int port;
    stk_gateway_spec spec;
    char token[STK_TOKEN_TEXT]; /* of every scope, when the gateway has tokens */
    fleet fleet;
};

typedef struct reply {
    int status; /* 0: the connection ended without an answer */
    stk_buf all;
    stk_str head, body;
    stk_json *doc; /* of a JSON body */
} reply;

/* tokens: a bootstrap token of all scopes; else auth none. */
fx *fx_new(bool tokens);
void fx_free(fx *f);
void fx_start(fx *f); /* the gateway, with f->spec */
void fx_stop(fx *f);
void fx_turn(fx *f);
#define fx_until(f, condition)                                                                               \
    do {                                                                                                     \
        stk_mono fx__end = stk_mono_add(stk_mono_now(), stk_sec(20));                                        \
        while (!(condition)) {                                                                               \
            if (!stk_mono_before(stk_mono_now(), fx__end))                                                   \
                fail_msg("still waiting for: %s", #condition);                                               \
            fx_turn(f);                                                                                      \
        }                                                                                                    \
    } while (0)

int fx_dial(fx *f);
void fx_send(fx *f, int fd, stk_str data);
/* Appends what has come; false at the end. */
bool fx_recv(int fd, stk_buf *in);

/* One request on a connection of its own; headers are whole lines; body NULL = none. The reply stays until
 * fx_free or the next 200 calls. */
reply *fx_call(fx *f, const char *method, const char *target, const char *headers, const char *body);
/* Fails unless it has that status; returns it. */
reply *fx_expect(fx *f, int status, const char *method, const char *target, const char *headers,
                 const char *body);
/* A member of the JSON answer: "a.b.0". */
stk_jv reply_at(const reply *r, const char *path);
const char *reply_text(const reply *r, const char *path); /* "" when it is no string */
int64_t reply_int(const reply *r, const char *path);
bool reply_has_header(const reply *r, const char *line);
/* Turns sandboxing on with the agent "helper" and its allow-list, e.g. "[]". */
void fx_enable(fx *f);
/* How many rows of that action are on stk.audit. */
int fx_audit_count(fx *f, const char *action);

void fleet_start(fx *f);
void fleet_stop(fx *f);
/* Ends the run that stays (stay_running) as exited. */
void fleet_end(fx *f);
/* One piece of live output of that run. */
void fleet_output(fx *f, int64_t offset, bool is_stderr, const char *text);

#endif
