/* The table of calls. A call is a set of functions on an exchange; its own state hangs on `state`. */
#ifndef STK_RUNTIME_ROUTES_H
#define STK_RUNTIME_ROUTES_H

#include "workers/runtime/runtime.h"

typedef struct stk_call stk_call;

/* One exchange while it lasts. */
typedef struct stk_exchange {
    stk_runtime *rt;
    stk_http_x *x;
    const stk_call *call;
    void *state;
} stk_exchange;

#define STK_BODY_UPLOAD UINT64_MAX /* --max-upload */

/* All may be NULL but end. */
struct stk_call {
    uint64_t body; /* most bytes of a body; 0 = none is wanted, and it is dropped; or STK_BODY_UPLOAD */
    void (*data)(stk_exchange *ex, stk_str data); /* of the body */
    void (*end)(stk_exchange *ex);                /* the request is whole: answer */
    void (*writable)(stk_exchange *ex);
    void (*done)(stk_exchange *ex, bool gone); /* ex is freed after it */
};

extern const stk_call stk_call_status;   /* GET /                */
extern const stk_call stk_call_execute;  /* POST /execute        */
extern const stk_call stk_call_upload;   /* POST /upload         */
extern const stk_call stk_call_download; /* GET /download/{path} */
extern const stk_call stk_call_list;     /* GET /list/{path}     */
extern const stk_call stk_call_exists;   /* GET /exists/{path}   */
extern const stk_call stk_call_remove;   /* DELETE /files/{path} */

/* For stk_http_server_new; arg is a stk_rt_side. */
extern const stk_http_ops stk_rt_http_ops;

#endif
