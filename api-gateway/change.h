/* One road for every configuration change (api.md, PUT agent-sandbox):
 *
 *   read the newest decided version (state) -> If-Match -> build the next document against that very version
 * -> what loosens? then scope governance.weaken and a reason -> compare-and-set to the next version, pending,
 * with audit row and document in the outbox -> audit row on the bus -> document on stk.config -> no longer
 * pending -> wait until our own view shows it -> answer.
 *
 * Somebody else was first: build again on his version (with If-Match: 412). */
#ifndef STK_GATEWAY_CHANGE_H
#define STK_GATEWAY_CHANGE_H

#include "api-gateway/exchange.h"
#include "proto/policy/weaken.h"

typedef struct stk_gw_change_kind {
    const char *name;   /* STK_CONF_… */
    const char *action; /* of the audit row */
    /* Fills stored, before (empty = never set), after, weak. `rec` is the version that is replaced, NULL =
     * never set. May be called again with another one. Errors answer the request. */
    int (*build)(stk_gw_change *change, const stk_config_record *rec, stk_err *err);
    /* Answers; NULL = {version, before, after, weakening} with the ETag. */
    void (*answer)(stk_gw_change *change);
} stk_gw_change_kind;

struct stk_gw_change {
    stk_gw_exchange *ex;
    const stk_gw_change_kind *kind;
    void *arg;                     /* the handler's own */
    stk_str reason;                /* borrowed from arg; empty = none */
    stk_bytes if_match;            /* a copy: it counts also when the client has gone */
    stk_buf stored, before, after; /* JSON */
    stk_weakenings weak;
    int64_t version; /* that is replaced; after success the new one */
    int64_t outbox_audit, outbox_config;
    int tries;
    bool waiting, published;
    stk_timer *timer;
    stk_gw_change *prev, *next; /* of those that wait for the view */
};

/* arg and reason are borrowed and must live as long as ex (its `work`). Holds ex. */
void stk_gw_change_start(stk_gw_exchange *ex, const stk_gw_change_kind *kind, void *arg, stk_str reason);
/* The view has changed. */
void stk_gw_changes_check(stk_gateway *gw);
/* The gateway ends. */
void stk_gw_changes_drop(stk_gateway *gw);

/* Private to the change: its audit row, the recorded refusal of a loosening, its end. */
int stk_gw_change_row(const stk_gw_change *change, const char *action, int64_t version, stk_buf *out,
                      stk_err *err) STK_MUST_USE;
void stk_gw_change_forbid(stk_gw_change *change);
void stk_gw_change_end(stk_gw_change *change);

/* ETag of a version: `"3"`. */
void stk_gw_etag(int64_t version, char out[32]);
/* An If-Match header against a version: 0, or -STK_E_PRECONDITION. Absent (p NULL) is fine. */
int stk_gw_if_match(stk_str header, int64_t version, stk_err *err) STK_MUST_USE;

#endif
