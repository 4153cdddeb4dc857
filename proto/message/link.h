/* What a worker and the runtime in a sandbox say to each other on a link, before and above HTTP.
 *
 * The runtime dials the worker's Unix socket (vsock on firecracker) as PID 1, before any command exists: 1
 * control link, 1 health link, max_concurrent command links. On each it first sends one hello line, then
 * serves HTTP/1.1 on it. The worker checks id and nonce before it sends anything. Id and nonce reach the
 * runtime on --token-fd as one line "ID NONCE\n".
 *
 * POST /execute?stream=1 answers 200 application/x-ndjson, one JSON object a line:
 *   {"stdout":"<base64>"} {"stderr":"<base64>"}     as it is produced, until the head part of the cap is full
 *   {"gap":"stdout","bytes":N}                      N bytes were left out here; the tail follows
 *   {"exit":{"exit_code","signal","timed_out","oom_killed","truncated","duration_ms","stdout_bytes","stderr_bytes","detail"}}
 * always last The connection ending without an exit line means: outcome unknown, never an exit code. */
#ifndef STK_MESSAGE_LINK_H
#define STK_MESSAGE_LINK_H

#include "proto/base/json.h"
#include "proto/message/limits.h"

#define STK_HELLO_MAX 256 /* bytes of a hello line with '\n' */

typedef struct stk_hello {
    char kind[12]; /* "control" | "health" | "command" */
    char id[STK_ID_SIZE];
    char nonce[STK_ID_SIZE];
} stk_hello;
/* Appends the JSON object {"kind","id","nonce"} and '\n'. */
int stk_hello_encode(const stk_hello *hello, stk_buf *out);
/* One line without '\n'. Checks shapes (id and nonce: 1 to 39 of A-Z a-z 0-9 . _ -); whether they are the
 * right ones is the worker's to compare. */
int stk_hello_decode(stk_str line, stk_hello *ret, stk_err *err) STK_MUST_USE;

/* The body of POST /execute, both forms. */
typedef struct stk_exec_end {
    int64_t exit_code, signal;
    bool timed_out, oom_killed, truncated;
    int64_t duration_ms, stdout_bytes, stderr_bytes;
    char detail[256];
} stk_exec_end;
void stk_exec_end_write(stk_jw *w, const stk_exec_end *end); /* one object */
/* Its members only, into an object that is open (the form without ?stream=1, after stdout and stderr). */
void stk_exec_end_write_members(stk_jw *w, const stk_exec_end *end);
int stk_exec_end_decode(stk_jv v, stk_exec_end *ret, stk_err *err) STK_MUST_USE;

#endif
