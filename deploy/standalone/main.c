#include "api-gateway/cli/cli.h"
#include "audit-consumer/audit_consumer.h"
#include "deploy/standalone/up.h"
#include "proto/base/base.h"
#include "workers/doctor.h"

/* The binary only dispatches: a verb lives with the program that owns what it touches. */
static int audit(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "verify") == 0)
        return stk_verb_audit_verify(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "tail") == 0)
        return stk_verb_audit_tail(argc - 1, argv + 1);
    bool help = argc > 1 && strcmp(argv[1], "--help") == 0;
    fputs("usage: stockade audit tail|verify [options]; see stockade audit tail --help\n",
          help ? stdout : stderr);
    return help ? 0 : 2;
}

static const struct verb {
    const char *name;
    int (*fn)(int argc, char **argv);
    const char *help;
} verbs[] = {
    {"up", stk_verb_up, "run everything in one process"},
    {"run", stk_verb_run, "run a command in a sandbox and wait for it"},
    {"submit", stk_verb_submit, "send many runs from a JSON-lines file"},
    {"plan", stk_verb_plan, "what would be done, without doing it"},
    {"config", stk_verb_config, "get, set or diff the agent-sandbox document"},
    {"runs", stk_verb_runs, "list runs, or show one"},
    {"logs", stk_verb_logs, "output of a run; -f follows it"},
    {"cancel", stk_verb_cancel, "cancel a run"},
    {"audit", audit, "tail or verify the audit trail"},
    {"pools", stk_verb_pools, "show or set warm pools"},
    {"workers", stk_verb_workers, "workers and what their hosts have"},
    {"doctor", stk_verb_doctor, "which backends this host has, and how to get the others"},
    {"token", stk_verb_token, "create an API token"},
    {"completion", stk_verb_completion, "shell completion for bash"},
};

static void usage(FILE *to)
{
    fputs("usage: stockade VERB [options]\n\nRuns untrusted code in sandboxes whose only way out is a "
          "default-deny proxy.\n\n",
          to);
    for (size_t i = 0; i < STK_COUNT(verbs); i++)
        fprintf(to, "  %-11s %s\n", verbs[i].name, verbs[i].help);
    fputs("\nstockade VERB --help tells more. stockade --version prints the version.\n", to);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    for (size_t i = 0; i < STK_COUNT(verbs); i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].fn(argc - 1, argv + 1);
    if (strcmp(argv[1], "--version") == 0) {
        puts("stockade " STK_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return 0;
    }
    fprintf(stderr, "stockade: no verb \"%s\"; stockade --help lists them\n", argv[1]);
    return 2;
}
