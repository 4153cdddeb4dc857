/* The client verbs of `stockade`: each speaks to a gateway over HTTP (libcurl) and prints for people, or JSON
 * with --json. argv[0] is the verb.
 *
 * Address: --url, else $STOCKADE_URL, else http://127.0.0.1:8700 (unix:/path works too). Token: --token-file,
 * else $STOCKADE_TOKEN. Exit status: 0, the command's own for `run` (124 timeout, 137 oom, 125 ours), 2 wrong
 * usage, 1 the server said no. Errors are one line on stderr that says what to do next. */
#ifndef STK_CLI_H
#define STK_CLI_H

#include <stdio.h>

int stk_verb_run(int argc, char **argv);
int stk_verb_submit(int argc, char **argv);
int stk_verb_plan(int argc, char **argv);
int stk_verb_config(int argc, char **argv);
int stk_verb_runs(int argc, char **argv);
int stk_verb_logs(int argc, char **argv);
int stk_verb_cancel(int argc, char **argv);
int stk_verb_audit_tail(int argc, char **argv);
int stk_verb_pools(int argc, char **argv);
int stk_verb_workers(int argc, char **argv);
/* Works on the state directory (before a first start) or through the API. */
int stk_verb_token(int argc, char **argv);
/* `stockade completion bash`: the script, made from the same tables as --help. */
int stk_verb_completion(int argc, char **argv);

#endif
