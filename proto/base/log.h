/* Log lines on stderr, JSON or text, that carry identity by construction. Only programs log; library code
 * returns errors. Never a secret, never a payload: callers pass names, ids and numbers. One write(2) a line;
 * control bytes are escaped, so that no value can forge a line. */
#ifndef STK_BASE_LOG_H
#define STK_BASE_LOG_H

#include "proto/base/err.h"

typedef enum stk_level { STK_LOG_DEBUG, STK_LOG_INFO, STK_LOG_WARN, STK_LOG_ERROR } stk_level;

/* Whose line it is. Fields may be NULL. Embed one in whatever has an identity (run, lane, sandbox). */
typedef struct stk_who {
    const char *run;
    const char *tenant;
    const char *assignment;
    const char *sandbox;
} stk_who;

/* program: shown on each line; json: false = text. Call once, before threads. Default: text, INFO. */
void stk_log_setup(const char *program, bool json, stk_level least);
void stk_log(stk_level level, const stk_who *who, const char *fmt, ...) STK_PRINTF(3, 4);
/* Adds code and detail of err. */
void stk_log_err(stk_level level, const stk_who *who, const stk_err *err, const char *fmt, ...)
    STK_PRINTF(4, 5);
int stk_level_parse(const char *s, stk_level *ret);

#define stk_log_info(who, ...)  stk_log(STK_LOG_INFO, who, __VA_ARGS__)
#define stk_log_warn(who, ...)  stk_log(STK_LOG_WARN, who, __VA_ARGS__)
#define stk_log_debug(who, ...) stk_log(STK_LOG_DEBUG, who, __VA_ARGS__)

#endif
