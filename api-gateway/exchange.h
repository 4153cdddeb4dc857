/* One request and its answer.
 *
 * State, bus and store call back when they like, also after the client has gone: an exchange lives until the
 * last of them has (references), answers at most once, and an answer to a client that has gone does nothing.
 * Whatever a handler keeps is its `work`, freed with the exchange. */
#ifndef STK_GATEWAY_EXCHANGE_H
#define STK_GATEWAY_EXCHANGE_H

#include "api-gateway/impl.h"
#include "api-gateway/problem.h"
#include "api-gateway/routes.h"

typedef struct stk_gw_caller {
    char tenant[STK_TENANT_MAX]; /* whose things are meant */
    char actor[STK_ACTOR_MAX];
    unsigned scopes;
} stk_gw_caller;

#define STK_GW_QUERY_MAX 16
typedef struct stk_gw_pair {
    char name[32];
    stk_buf value;
} stk_gw_pair;

struct stk_gw_exchange {
    stk_gateway *gw;
    stk_http_x *x; /* NULL: the client is gone, or its answer is out */
    stk_gw_exchange *prev, *next;
    size_t refs;
    const stk_gw_route *route; /* NULL: none matched */
    char request_id[STK_ID_SIZE];
    char trace[STK_TRACE_MAX];
    char param[STK_AGENT_MAX]; /* the {part} of the path */
    stk_gw_caller caller;
    stk_gw_pair query[STK_GW_QUERY_MAX];
    size_t nquery;
    stk_buf body;
    stk_json *doc; /* the body, when the route takes JSON */
    bool answered;
    int status;
    void *work;
    void (*work_free)(void *work);
    void *waiting; /* of whoever set `interrupt` */
    /* The client is gone (`gone`), or the gateway ends soon and wants an answer now. May be NULL. */
    void (*interrupt)(stk_gw_exchange *ex, bool gone);
    /* A streamed answer can be written on. May be NULL. */
    void (*writable)(stk_gw_exchange *ex);
};

extern const stk_http_ops stk_gw_http_ops;

stk_gw_exchange *stk_gw_ref(stk_gw_exchange *ex);
void stk_gw_unref_exchange(stk_gw_exchange *ex);
STK_DEFINE_FREEP(stk_gw_exchange, stk_gw_leave, stk_gw_unref_exchange)
/* First line of each callback, after `stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = …`: go no further when
 * true. */
bool stk_gw_over(const stk_gw_exchange *ex);

/* An operation whose `done` gets ex (with a reference it must leave). */
void *stk_gw_op(stk_gw_exchange *ex, stk_op_kind kind, stk_op_done done);

/* Takes the query apart: -STK_E_HTTP for a name that is not among `known` ("a|b"), one given twice, a
 * malformed escape. */
int stk_gw_query_parse(stk_gw_exchange *ex, stk_str query, const char *known, stk_err *err) STK_MUST_USE;
/* Value of a query parameter or NULL; NUL-terminated, without NUL bytes inside. */
const char *stk_gw_query(const stk_gw_exchange *ex, const char *name);
bool stk_gw_has_scope(const stk_gw_exchange *ex, unsigned scope);
stk_str stk_gw_header(const stk_gw_exchange *ex, const char *name); /* p NULL when absent */
/* `limit` of a list: 1..1000, default 100. */
int stk_gw_query_limit(const stk_gw_exchange *ex, int64_t *ret, stk_err *err) STK_MUST_USE;
/* "30s", "500ms", "2m" or seconds: at most `most`. */
int stk_gw_query_span(const stk_gw_exchange *ex, const char *name, stk_span most, stk_span *ret,
                      stk_err *err) STK_MUST_USE;

/* headers: "Name: value\r\n" lines or "". */
void stk_gw_answer(stk_gw_exchange *ex, int status, const char *type, const char *headers, stk_str body);
void stk_gw_answer_json(stk_gw_exchange *ex, int status, const char *headers, const stk_buf *body);
void stk_gw_answer_err(stk_gw_exchange *ex, const stk_err *err);
void stk_gw_answer_problem(stk_gw_exchange *ex, const stk_err *err, const char *headers,
                           const stk_gw_more *more);
/* Counts a streamed answer that a handler starts itself. */
void stk_gw_begin_stream(stk_gw_exchange *ex, int status, const char *type);

#endif
