#include "api-gateway/cli/cli.h"
#include "api-gateway/cli/table.h"
#include "api-gateway/tokens.h"
#include "proto/base/fd.h"
#include "proto/base/state_dir.h"
#include "proto/message/request.h"
#include <stdio.h>

const stk_cli_verb stk_cli_token = {
    .name = "token",
    .arguments = "create",
    .about = "Creates a bearer token in a state directory and prints it once; only its hash is kept. A "
             "running gateway sees it\n"
             "when it starts again.",
    .opts = {{"state-dir", "DIR", "default " STK_STATE_DIR_HELP, 0},
             {"tenant", "NAME", "default: default", 0},
             {"scopes", "LIST", "comma-separated, or all; default runs.write,runs.read,plan", 0},
             {"label", "TEXT", "shown as the actor in audit rows", 0},
             {"expires", "SECONDS", "from now; default never", 0}},
    .least = 1,
    .most = 1,
    .local = true};

const stk_cli_verb stk_cli_completion = {
    .name = "completion",
    .arguments = "bash",
    .about = "Prints the completion script: source <(stockade completion bash).",
    .least = 1,
    .most = 1,
    .local = true};

const stk_cli_verb *const stk_cli_verbs[] = {&stk_cli_run,
                                             &stk_cli_submit,
                                             &stk_cli_plan,
                                             &stk_cli_config,
                                             &stk_cli_runs,
                                             &stk_cli_logs,
                                             &stk_cli_cancel,
                                             &stk_cli_audit_tail,
                                             &stk_cli_pools,
                                             &stk_cli_workers,
                                             &stk_cli_token,
                                             &stk_cli_completion,
                                             NULL};

static int parse_scopes(const stk_cli_args *args, const char *text, unsigned *ret)
{
    *ret = 0;
    if (strcmp(text, "all") == 0) {
        *ret = STK_SCOPE_ALL;
        return 0;
    }
    while (*text) {
        size_t n = strcspn(text, ",");
        unsigned one = stk_scope_parse(stk_str_n(text, n));
        if (!one)
            return stk_cli_fail(args, 2,
                                "no scope %.*s; there are runs.write runs.read plan config.read config.write "
                                "governance.weaken audit.read pools.write admin",
                                (int)n, text);
        *ret |= one;
        text += n + (text[n] == ',');
    }
    return 0;
}

static int create(const stk_cli_args *args)
{
    const char *dir = stk_cli_opt_get(args, "state-dir");
    const char *tenant = stk_cli_opt_get(args, "tenant"), *scopes = stk_cli_opt_get(args, "scopes");
    const char *label = stk_cli_opt_get(args, "label"), *expires = stk_cli_opt_get(args, "expires");
    stk_token token;
    char text[STK_TOKEN_TEXT], path[4096], own[4000];
    unsigned bits;
    uint64_t seconds = 0;
    stk_err err;
    int status = parse_scopes(args, scopes ? scopes : "runs.write,runs.read,plan", &bits);
    if (status)
        return status;
    if (tenant && !stk_tenant_ok(stk_str_of(tenant)))
        return stk_cli_fail(args, 2, "--tenant is 1 to 63 of a-z 0-9 -, not starting or ending with -");
    if (label && !stk_token_label_ok(stk_str_of(label)))
        return stk_cli_fail(args, 2, "--label is at most 63 printable ASCII characters");
    if (expires && (!stk_str_u64(stk_str_of(expires), 10ULL * 365 * 86400, &seconds) || seconds == 0))
        return stk_cli_fail(args, 2, "--expires needs a number of seconds, at most ten years");
    stk_wall now = stk_wall_now();
    stk_wall end = seconds ? stk_wall_add(now, stk_sec((int64_t)seconds)) : (stk_wall){0};
    stk_token_make(tenant ? tenant : "default", bits, now, end, label ? label : "", &token, text);
    if (!dir && stk_state_dir_default(own, sizeof(own), &err) < 0)
        return stk_cli_fail(args, 2, "%s", err.detail);
    dir = dir ? dir : own;
    if (stk_mkdirs(dir, 0700, &err) < 0 || stk_path(path, sizeof(path), &err, "%s/tokens.json", dir) < 0 ||
        stk_tokens_append(path, &token, &err) < 0)
        return stk_cli_fail(args, 1, "%s", err.detail);
    puts(text);
    return 0;
}

int stk_verb_token(int argc, char **argv)
{
    stk_cli_args args;
    int status = stk_cli_parse(&stk_cli_token, argc, argv, &args);
    if (status >= 0)
        return status;
    return strcmp(args.v[0], "create") == 0
               ? create(&args)
               : stk_cli_fail(&args, 2, "there is token create, not token %s", args.v[0]);
}

static void print_words(const stk_cli_verb *verb)
{
    printf("    %s) words=\"%s--help", strcmp(verb->name, "audit tail") == 0 ? "audit" : verb->name,
           verb->local ? "" : "--url --token-file --json ");
    for (size_t i = 0; i < STK_CLI_OPTS && verb->opts[i].name; i++)
        printf(" --%s", verb->opts[i].name);
    if (verb == &stk_cli_audit_tail)
        printf(" --state-dir --file tail verify");
    if (verb == &stk_cli_config)
        printf(" get set diff");
    if (verb->local)
        printf(" %s", verb->arguments);
    puts("\" ;;");
}

int stk_verb_completion(int argc, char **argv)
{
    stk_cli_args args;
    int status = stk_cli_parse(&stk_cli_completion, argc, argv, &args);
    if (status >= 0)
        return status;
    if (strcmp(args.v[0], "bash") != 0)
        return stk_cli_fail(&args, 2, "only bash, not %s", args.v[0]);
    puts("_stockade() {\n  local words\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    words=\"up run submit plan config runs logs cancel audit pools workers doctor token "
         "completion\"\n  else\n"
         "    case ${COMP_WORDS[1]} in");
    for (size_t i = 0; stk_cli_verbs[i]; i++)
        print_words(stk_cli_verbs[i]);
    puts("    up) words=\"--config --state-dir --listen --auth --set --help\" ;;\n"
         "    doctor) words=\"--json --help\" ;;\n"
         "    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- "
         "\"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _stockade stockade");
    return 0;
}
