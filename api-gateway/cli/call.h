/* One HTTP call to the gateway by libcurl, the answer checked and parsed. */
#ifndef STK_CLI_CALL_H
#define STK_CLI_CALL_H

#include "api-gateway/cli/args.h"
#include "proto/base/json.h"

typedef struct stk_cli_answer {
    int status;
    stk_buf body;
    stk_json *doc; /* NULL when there is no JSON */
    char location[256], etag[64];
} stk_cli_answer;
void stk_cli_answer_done(stk_cli_answer *answer);

/* path begins with '/'. body NULL: none. headers: extra lines, NULL-terminated, or NULL. 0, or -1 after
 * printing that the gateway can't be reached. */
int stk_cli_call(const stk_cli_args *args, const char *method, const char *path, stk_str body,
                 const char *const *headers, stk_cli_answer *ret);
/* Prints problem+json as one line that says what to do next; returns the exit status for it. */
int stk_cli_problem(const stk_cli_args *args, const stk_cli_answer *answer);
/* A streamed answer: fn for each run of bytes; false from it ends the stream. Returns the status, or -1
 * (printed). */
int stk_cli_stream(const stk_cli_args *args, const char *path, bool (*fn)(stk_str data, void *arg),
                   void *arg);
/* Percent-encodes one path or query part into out. */
void stk_cli_encode(stk_buf *out, const char *text);
/* Prints a JSON value to stdout with two-space indent. */
void stk_cli_print_json(stk_jv v);
/* Member as text for people: strings as they are, numbers as written, "-" when absent or null; what a
 * terminal acts on is escaped. out holds size. */
const char *stk_cli_text(stk_jv object, const char *key, char *out, size_t size);

#endif
