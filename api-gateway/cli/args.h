/* Command lines of the client verbs: one table per verb yields parsing, --help and completion. */
#ifndef STK_CLI_ARGS_H
#define STK_CLI_ARGS_H

#include "proto/base/buf.h"

#define STK_CLI_OPTS   16
#define STK_CLI_VALUES 512

typedef struct stk_cli_opt {
    const char *name;  /* without "--" */
    const char *value; /* what follows, for --help; NULL = a switch; "X..." = may be given again */
    const char *help;
    char letter; /* short form, or 0 */
} stk_cli_opt;

typedef struct stk_cli_verb {
    const char *name;               /* "run" */
    const char *arguments;          /* "AGENT -- COMMAND [ARG...]" */
    const char *about;              /* a sentence or two */
    stk_cli_opt opts[STK_CLI_OPTS]; /* ends with name NULL; --url, --token-file, --json, --help are added */
    int least, most;                /* positional arguments; most -1 = any */
    bool local;                     /* asks no gateway: of the common options, --help alone */
} stk_cli_verb;

extern const stk_cli_verb *const stk_cli_verbs[]; /* all of them, NULL-terminated, for completion */

typedef struct stk_cli_args {
    const stk_cli_verb *verb;
    const char *url, *token;
    bool json;
    const char *given[STK_CLI_OPTS]; /* by index in opts; a switch is "1"; NULL = not given */
    struct {
        size_t opt;
        const char *value;
    } values[STK_CLI_VALUES]; /* of options that may be given again, in order */
    size_t nvalues;
    char **v; /* positional arguments */
    int n;
    char token_buf[512];
} stk_cli_args;

/* Returns -1 to go on, else the exit status (0 after --help, 2 after an error was printed). Options may stand
 * among the arguments up to "--". */
int stk_cli_parse(const stk_cli_verb *verb, int argc, char **argv, stk_cli_args *ret);
/* Value of --name, or NULL. */
const char *stk_cli_opt_get(const stk_cli_args *args, const char *name);
/* The next value of an option that may be given again; *at begins as 0. NULL at the end. */
const char *stk_cli_opt_next(const stk_cli_args *args, const char *name, size_t *at);
/* "stockade VERB: text" on stderr; returns status. */
int stk_cli_fail(const stk_cli_args *args, int status, const char *fmt, ...) STK_PRINTF(3, 4);

#endif
