#include "api-gateway/cli/args.h"
#include "proto/base/fd.h"
#include <stdarg.h>
#include <stdio.h>

#define DEFAULT_URL "http://127.0.0.1:8700"

static const stk_cli_opt common[] = {{"url", "URL", "the gateway; default $STOCKADE_URL or " DEFAULT_URL, 0},
                                     {"token-file", "FILE", "bearer token; default $STOCKADE_TOKEN", 0},
                                     {"json", NULL, "JSON instead of text", 0},
                                     {"help", NULL, "this text", 'h'}};

static void help(const stk_cli_verb *verb, FILE *to)
{
    fprintf(to, "usage: stockade %s [options]%s%s\n\n%s\n\n", verb->name, *verb->arguments ? " " : "",
            verb->arguments, verb->about);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < (pass ? STK_COUNT(common) : STK_CLI_OPTS); i++) {
            const stk_cli_opt *opt = pass ? &common[i] : &verb->opts[i];
            char left[64];
            if (!opt->name)
                break;
            if (pass && verb->local && opt->letter != 'h')
                continue;
            snprintf(left, sizeof(left), "%s%.1s%s--%s%s%s", opt->letter ? "-" : "", &opt->letter,
                     opt->letter ? ", " : "", opt->name, opt->value ? " " : "", opt->value ? opt->value : "");
            fprintf(to, "  %-26s %s\n", left, opt->help);
        }
}

int stk_cli_fail(const stk_cli_args *args, int status, const char *fmt, ...)
{
    va_list list;
    fprintf(stderr, "stockade %s: ", args->verb->name);
    va_start(list, fmt);
    vfprintf(stderr, fmt, list);
    va_end(list);
    fputc('\n', stderr);
    return status;
}

const char *stk_cli_opt_get(const stk_cli_args *args, const char *name)
{
    for (size_t i = 0; i < STK_CLI_OPTS && args->verb->opts[i].name; i++)
        if (strcmp(args->verb->opts[i].name, name) == 0)
            return args->given[i];
    return NULL;
}

const char *stk_cli_opt_next(const stk_cli_args *args, const char *name, size_t *at)
{
    while (*at < args->nvalues) {
        size_t i = (*at)++;
        if (strcmp(args->verb->opts[args->values[i].opt].name, name) == 0)
            return args->values[i].value;
    }
    return NULL;
}

static const stk_cli_opt *find(const stk_cli_verb *verb, const char *name, size_t n, size_t *ret_at,
                               bool *ret_common)
{
    for (size_t i = 0; i < STK_CLI_OPTS && verb->opts[i].name; i++)
        if (strlen(verb->opts[i].name) == n && memcmp(verb->opts[i].name, name, n) == 0) {
            *ret_at = i;
            *ret_common = false;
            return &verb->opts[i];
        }
    for (size_t i = 0; i < STK_COUNT(common); i++)
        if ((!verb->local || common[i].letter == 'h') && strlen(common[i].name) == n &&
            memcmp(common[i].name, name, n) == 0) {
            *ret_at = i;
            *ret_common = true;
            return &common[i];
        }
    return NULL;
}

static int give(stk_cli_args *args, const stk_cli_opt *opt, size_t at, const char *value)
{
    args->given[at] = value;
    if (!opt->value || !stk_str_ends(stk_str_of(opt->value), STK_STR("...")))
        return -1;
    if (args->nvalues == STK_CLI_VALUES)
        return stk_cli_fail(args, 2, "--%s is given too often", opt->name);
    args->values[args->nvalues].opt = at;
    args->values[args->nvalues++].value = value;
    return -1;
}

/* -1 = go on. */
static int take_option(stk_cli_args *args, int argc, char **argv, int *i)
{
    const char *text = argv[*i] + 2;
    size_t n = strcspn(text, "="), at;
    bool is_common;
    const stk_cli_opt *opt = find(args->verb, text, n, &at, &is_common);
    if (!opt)
        return stk_cli_fail(args, 2, "no option %s; see stockade %s --help", argv[*i], args->verb->name);
    const char *value = text[n] == '=' ? text + n + 1 : NULL;
    if (opt->value && !value && *i + 1 < argc)
        value = argv[++*i];
    if (opt->value && !value)
        return stk_cli_fail(args, 2, "--%s needs a value: %s", opt->name, opt->value);
    if (!opt->value && value)
        return stk_cli_fail(args, 2, "--%s takes no value", opt->name);
    if (!is_common)
        return give(args, opt, at, value ? value : "1");
    if (at == 0) {
        args->url = value;
    } else if (at == 1) {
        args->token = value; /* a file, read later */
    } else if (at == 2) {
        args->json = true;
    } else {
        help(args->verb, stdout);
        return 0;
    }
    return -1;
}

/* "-f": the switch with that letter. */
static int take_letter(stk_cli_args *args, const char *text)
{
    if (strcmp(text, "-h") == 0) {
        help(args->verb, stdout);
        return 0;
    }
    for (size_t i = 0; i < STK_CLI_OPTS && args->verb->opts[i].name; i++)
        if (args->verb->opts[i].letter == text[1] && !text[2]) {
            args->given[i] = "1";
            return -1;
        }
    return stk_cli_fail(args, 2, "no option %s; see stockade %s --help", text, args->verb->name);
}

static int read_token(stk_cli_args *args, const char *file)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(sizeof(args->token_buf) - 1);
    stk_err err;
    if (stk_file_read(file, &text, &err) < 0)
        return stk_cli_fail(args, 2, "%s", err.detail);
    while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == ' '))
        text.n--;
    if (!stk_str_copy(stk_buf_view(&text), args->token_buf, sizeof(args->token_buf)))
        return stk_cli_fail(args, 2, "%s holds no token", file);
    args->token = args->token_buf;
    return -1;
}

int stk_cli_parse(const stk_cli_verb *verb, int argc, char **argv, stk_cli_args *ret)
{
    *ret = (stk_cli_args){.verb = verb, .v = argv};
    bool only_arguments = false;
    int n = 0;
    for (int i = 1; i < argc; i++) {
        if (!only_arguments && strcmp(argv[i], "--") == 0) {
            only_arguments = true;
        } else if (!only_arguments && strncmp(argv[i], "--", 2) == 0) {
            int status = take_option(ret, argc, argv, &i);
            if (status >= 0)
                return status;
        } else if (!only_arguments && argv[i][0] == '-' && argv[i][1]) {
            int status = take_letter(ret, argv[i]);
            if (status >= 0)
                return status;
        } else {
            argv[n++] = argv[i];
        }
    }
    ret->n = n;
    if (n < verb->least || (verb->most >= 0 && n > verb->most))
        return stk_cli_fail(ret, 2, "usage: stockade %s [options]%s%s", verb->name,
                            *verb->arguments ? " " : "", verb->arguments);
    const char *env = getenv("STOCKADE_URL");
    if (!ret->url)
        ret->url = env && *env ? env : DEFAULT_URL;
    if (ret->token)
        return read_token(ret, ret->token);
    ret->token = getenv("STOCKADE_TOKEN");
    return -1;
}
