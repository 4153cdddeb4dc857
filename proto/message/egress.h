/* One egress record (egress-proxy -> records file, journal, worker, result, audit) and the control stream
 * between a worker and its proxy: JSON lines, each at most STK_CONTROL_LINE_MAX bytes. */
#ifndef STK_MESSAGE_EGRESS_H
#define STK_MESSAGE_EGRESS_H

#include "proto/base/field.h"
#include "proto/message/limits.h"

#define STK_CONTROL_LINE_MAX 1048576
#define STK_HOST_MAX         256

typedef struct stk_egress_record {
    int64_t seq;      /* gap-free from 1                                     */
    char kind[10];    /* "decision" | "close" | "summary"                    */
    int64_t open_seq; /* close: seq of its decision                          */
    stk_wall time;
    char run[STK_ID_SIZE];
    char host[STK_HOST_MAX]; /* canonical; "" when none could be read               */
    int64_t port;
    char verdict[8];         /* "allow" | "deny"                                    */
    char reason[32];         /* stable code: "allowed", "host_not_allowed", …       */
    char rule[STK_HOST_MAX]; /* the entry that decided, or ""                       */
    int64_t policy_version;
    char address[64];  /* dialled, "203.0.113.7:443", or ""                   */
    char method[12];   /* CONNECT, GET, …                                     */
    int64_t bytes_in;  /* origin -> client */
    int64_t bytes_out; /* client -> origin */
    stk_span duration; /* written as duration_ms */
    int64_t count;     /* summary: how many refusals it stands for            */
    bool first;        /* first allow of that host: must be durable before the 200 */
} stk_egress_record;

/* Appends the object without '\n'. Encode and decode check the same things: kinds, verdicts, ids, bounds
 * (-STK_E_FIELD, -STK_E_UNKNOWN_FIELD, -STK_E_MISSING_FIELD with pointers; decode also -STK_E_JSON). Control
 * bytes and bad UTF-8 in host, rule, address and method are written as '?': what a sandbox sent never costs a
 * record. */
int stk_egress_encode(const stk_egress_record *rec, stk_buf *out, stk_err *err) STK_MUST_USE;
int stk_egress_decode(stk_str json, stk_egress_record *ret, stk_err *err) STK_MUST_USE;
int stk_egress_decode_jv(stk_jv v, stk_egress_record *ret, stk_err *err) STK_MUST_USE;
/* The object unchecked, into a larger text. */
void stk_egress_write(stk_jw *w, const stk_egress_record *rec);

/* Control lines, worker -> proxy: policy (version, run, policy document), ack (seq: every record up to it is
 * durable), drain, stop. proxy -> worker: ready (listen), policy_ok / policy_bad (version, detail), record,
 * drained. */
typedef enum stk_control_kind {
    STK_CTL_POLICY,
    STK_CTL_ACK,
    STK_CTL_DRAIN,
    STK_CTL_STOP,
    STK_CTL_READY,
    STK_CTL_POLICY_OK,
    STK_CTL_POLICY_BAD,
    STK_CTL_RECORD,
    STK_CTL_DRAINED
} stk_control_kind;

typedef struct stk_control {
    char kind[12];         /* "policy", "ack", "drain", "stop", "ready", "policy_ok", "policy_bad", "record",
                              "drained" */
    int64_t version;       /* of a policy */
    char run[STK_ID_SIZE]; /* policy: the run whose records follow (a warm proxy has none yet) */
    int64_t seq;           /* ack */
    char detail[512];      /* policy_bad, ready (address) */
    stk_bytes body;        /* policy document or record, JSON */
} stk_control;
void stk_control_done(stk_control *ctl);
/* Its stk_control_kind, or -1: never for one that was decoded. */
int stk_control_kind_of(const stk_control *ctl);
/* Appends the line with its '\n'. Each kind has its own members: policy {version, run, body}, ack {seq},
 * ready and policy_bad {detail}, policy_ok and policy_bad {version}, record {body}; others are refused. */
int stk_control_encode(const stk_control *ctl, stk_buf *out, stk_err *err) STK_MUST_USE;
int stk_control_decode(stk_str line, stk_control *ret, stk_err *err) STK_MUST_USE;

#endif
