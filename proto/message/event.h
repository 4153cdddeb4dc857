/* stk.events: `result` is the worker's evidence, `finished` is the verdict of the one winner. Also the answer
 * to a plan request (`plan`), which travels back over state, not over this topic. */
#ifndef STK_MESSAGE_EVENT_H
#define STK_MESSAGE_EVENT_H

#include "proto/base/crypto.h"
#include "proto/message/egress.h"
#include "proto/message/run.h"

/* What is sealed in a result. */
typedef struct stk_result_secret {
    stk_bytes stdout_data; /* head + tail, at most STK_OUTPUT_MAX */
    stk_bytes stderr_data;
    stk_bytes files; /* JSON array of collected files, or unset */
} stk_result_secret;

typedef struct stk_event {
    int64_t v;
    char kind[10]; /* "result" | "finished" */
    char run[STK_ID_SIZE];
    char tenant[STK_TENANT_MAX];
    char agent[STK_AGENT_MAX];
    char assignment[STK_ID_SIZE]; /* "" when it never had one */
    char worker[STK_WORKER_MAX];
    char sandbox[STK_ID_SIZE];
    int64_t attempt;
    char reason[16];  /* stk_reason text */
    char detail[512]; /* for people: why refused, what failed */
    int64_t exit_code;
    int64_t signal;
    bool timed_out, oom_killed, truncated, late;
    int64_t stdout_bytes, stderr_bytes; /* produced, before cutting */
    int64_t files;                      /* how many the sealed part lists */
    char backend[STK_BACKEND_MAX];
    char isolation[16]; /* microvm | gvisor | container */
    bool warm;
    stk_wall submitted, started, finished; /* started.ns == 0: never */
    stk_span duration;                     /* of the command; written as duration_ms */
    stk_bytes egress;                      /* JSON array of records, at most STK_EGRESS_MAX */
    int64_t egress_dropped;                /* records beyond those listed */
    int64_t egress_allowed, egress_denied, egress_last_seq; /* exact counts */
    stk_map labels;
    char traceparent[STK_TRACE_MAX];
    stk_bytes secret; /* sealed stk_result_secret; unset when nothing ran */
} stk_event;

void stk_event_done(stk_event *ev);
void stk_result_secret_done(stk_result_secret *secret);
STK_DEFINE_FREEP(stk_event, stk_event_donep, stk_event_done)
int stk_event_encode(const stk_event *ev, stk_buf *out, stk_err *err) STK_MUST_USE;
int stk_event_decode(stk_str json, stk_event *ret, stk_err *err) STK_MUST_USE;
/* Additional data of the seal: run id, assignment id, tenant. Open: -STK_E_NOT_FOUND when there is no result
 * in it or its key is unknown, -STK_E_CORRUPT when it does not open. */
int stk_event_seal(stk_event *ev, const stk_result_secret *secret, const stk_keyring *ring,
                   stk_err *err) STK_MUST_USE;
int stk_event_open(const stk_event *ev, const stk_keyring *ring, stk_result_secret *ret,
                   stk_err *err) STK_MUST_USE;
/* The object that the API answers with (run_id, reason, exit_code, … egress, stdout_tail, stderr_tail when
 * secret is given; tails are cut to STK_TAIL_MAX at a character boundary). exit_code is 128 + signal, 124 or
 * 137 where the reason says so, and null where the command did not end by itself. egress has each decision
 * once, with the bytes of its close. */
void stk_event_write_api(stk_jw *w, const stk_event *ev, const stk_result_secret *secret);

#endif
