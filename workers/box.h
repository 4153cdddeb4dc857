/* A box: one sandbox with its links in use. It speaks to the runtime inside (health, execute) and to the
 * egress proxy beside it (policy, records). Serves one run, then it is destroyed; never cleaned and reused.
 */
#ifndef STK_WORKERS_BOX_H
#define STK_WORKERS_BOX_H

#include "proto/base/loop.h"
#include "proto/http/client.h"
#include "proto/message/link.h"
#include "proto/message/request.h"
#include "workers/output.h"
#include "workers/proxy_link.h"
#include "workers/sandbox.h"

typedef struct stk_box stk_box;

/* on_policy, on_record and on_drained may be NULL for an owner that sends no policy; the last five for one
 * that sends no command. */
typedef struct stk_box_ops {
    /* Created, and the runtime answered GET / on its health link; or it could not be created (err): then the
     * box is gone. Once for stk_box_new, once for each stk_box_probe; a sandbox that does not answer is
     * on_lost. */
    void (*on_ready)(stk_box *box, const stk_err *err, void *arg);
    void (*on_policy)(stk_box *box, bool ok, const char *detail, void *arg);
    void (*on_record)(stk_box *box, const stk_egress_record *rec, stk_str json, void *arg);
    /* Every record is here, or the proxy is gone and no more will come. */
    void (*on_drained)(stk_box *box, void *arg);
    /* Output as it comes; stderr_: which stream. */
    void (*on_output)(stk_box *box, bool stderr_, stk_str data, void *arg);
    void (*on_gap)(stk_box *box, bool stderr_, int64_t bytes, void *arg);
    /* The command ended. */
    void (*on_exit)(stk_box *box, const stk_exec_end *end, void *arg);
    /* The runtime refused the command (4xx): it was never started. */
    void (*on_refused)(stk_box *box, const char *detail, void *arg);
    /* Sandbox, runtime or proxy is lost: the outcome of a running command is not known. oom: the memory limit
     * did it. Once. */
    void (*on_lost)(stk_box *box, bool oom, const char *why, void *arg);
} stk_box_ops;

/* Starts to create it. */
int stk_box_new(stk_loop *loop, stk_syncer *syncer, stk_backend *be, const stk_sandbox_spec *spec,
                stk_span limit, const stk_box_ops *ops, void *arg, stk_box **ret, stk_err *err) STK_MUST_USE;
/* Another owner from now on (the pool hands it to a run). */
void stk_box_own(stk_box *box, const stk_box_ops *ops, void *arg);
const char *stk_box_id(const stk_box *box);
const stk_sandbox *stk_box_sandbox(const stk_box *box);
const stk_sandbox_spec *stk_box_spec(const stk_box *box);
/* Asks GET / again; on_ready or on_lost tells. */
void stk_box_probe(stk_box *box);
int stk_box_policy(stk_box *box, int64_t version, const char *run, stk_str policy, stk_err *err) STK_MUST_USE;
/* Starts the command: body of POST /execute (JSON). limit: hard limit of our own for the whole call. */
int stk_box_execute(stk_box *box, stk_str body, stk_span limit, stk_err *err) STK_MUST_USE;
/* One call on the control link, for files; one at a time. `done` as in stk_http_call, unless the box gets
 * another owner or is destroyed before. A runtime that breaks the protocol is told to `done` only. */
int stk_box_call(stk_box *box, const char *method, const char *target, const char *headers, stk_str body,
                 uint64_t most, stk_span limit, stk_http_done done, void *arg, stk_err *err) STK_MUST_USE;
/* False: the proxy is gone already; on_drained will not come. */
bool stk_box_drain(stk_box *box);
int64_t stk_box_oom_kills(const stk_box *box);
/* Removes every trace; `done` once; no other callback afterwards. The journal file stays for the caller to
 * remove: its path is copied to `journal` (256 bytes). */
void stk_box_destroy(stk_box *box, char *journal, stk_destroy_done done, void *arg);

#endif
