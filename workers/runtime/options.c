#include "workers/runtime/options.h"
#include "proto/base/buf.h"

typedef struct flag {
    const char *name;
    int (*take)(stk_rt_options *opt, const char *value, stk_err *err); /* NULL: a switch, see below */
    size_t offset;                                                     /* of the switch's bool      */
} flag;

static int take_number(const char *name, const char *value, uint64_t least, uint64_t most, size_t *ret_n,
                       stk_err *err)
{
    uint64_t n;
    if (!stk_str_u64(stk_str_of(value), most, &n) || n < least)
        return stk_err_set(err, STK_E_USAGE, "%s takes a number from %llu to %llu, not '%.40s'", name,
                           (unsigned long long)least, (unsigned long long)most, value);
    *ret_n = (size_t)n;
    return 0;
}

static int take_listen(stk_rt_options *opt, const char *value, stk_err *err)
{
    if (opt->nlisten == STK_RT_LISTEN_MAX)
        return stk_err_set(err, STK_E_USAGE, "--listen at most %d times", STK_RT_LISTEN_MAX);
    opt->listen[opt->nlisten++] = value;
    return 0;
}

static bool is_dialled(const char *value)
{
    stk_str s = stk_str_of(value);
    return stk_str_starts(s, STK_STR("unix:/")) || stk_str_starts(s, STK_STR("vsock:"));
}

static int take_dial(stk_rt_options *opt, const char *value, stk_err *err)
{
    if (!is_dialled(value))
        return stk_err_set(err, STK_E_USAGE, "--dial takes unix:PATH or vsock:PORT, not '%.80s'", value);
    opt->dial = value;
    return 0;
}

static int take_token_fd(stk_rt_options *opt, const char *value, stk_err *err)
{
    size_t fd = 0;
    if (take_number("--token-fd", value, 0, 1023, &fd, err) < 0)
        return -STK_E_USAGE;
    opt->token_fd = (int)fd;
    return 0;
}

static int take_root(stk_rt_options *opt, const char *value, stk_err *err)
{
    if (value[0] != '/')
        return stk_err_set(err, STK_E_USAGE, "--root takes an absolute path, not '%.80s'", value);
    opt->root = value;
    return 0;
}

static int take_relay(stk_rt_options *opt, const char *value, stk_err *err)
{
    const char *eq = strchr(value, '=');
    if (!eq ||
        !stk_str_copy(stk_str_n(value, (size_t)(eq - value)), opt->relay_from, sizeof(opt->relay_from)) ||
        !is_dialled(eq + 1) || is_dialled(value) || eq == value)
        return stk_err_set(err, STK_E_USAGE, "--relay takes ADDRESS:PORT=unix:PATH, not '%.80s'", value);
    opt->relay_to = eq + 1;
    return 0;
}

static int take_max_output(stk_rt_options *opt, const char *value, stk_err *err)
{
    return take_number("--max-output", value, 1024, 64u << 20, &opt->max_output, err);
}

static int take_max_concurrent(stk_rt_options *opt, const char *value, stk_err *err)
{
    return take_number("--max-concurrent", value, 1, STK_RT_CONCURRENT_MAX, &opt->max_concurrent, err);
}

static int take_max_upload(stk_rt_options *opt, const char *value, stk_err *err)
{
    return take_number("--max-upload", value, 1, UINT64_C(1) << 40, &opt->max_upload, err);
}

static int take_compat(stk_rt_options *opt, const char *value, stk_err *err)
{
    if (strcmp(value, "upstream") != 0)
        return stk_err_set(err, STK_E_USAGE, "--compat takes 'upstream', not '%.40s'", value);
    opt->compat_upstream = true;
    return 0;
}

static const flag flags[] = {
    {"--listen", take_listen, 0},
    {"--dial", take_dial, 0},
    {"--token-fd", take_token_fd, 0},
    {"--root", take_root, 0},
    {"--relay", take_relay, 0},
    {"--max-output", take_max_output, 0},
    {"--max-concurrent", take_max_concurrent, 0},
    {"--max-upload", take_max_upload, 0},
    {"--compat", take_compat, 0},
    {"--help", NULL, offsetof(stk_rt_options, help)},
    {"--version", NULL, offsetof(stk_rt_options, version)},
};

/* Both "--flag value" and "--flag=value". */
static const flag *find(const char *arg, const char **ret_value)
{
    const char *eq = strchr(arg, '=');
    stk_str name = stk_str_n(arg, eq ? (size_t)(eq - arg) : strlen(arg));
    *ret_value = eq ? eq + 1 : NULL;
    for (size_t i = 0; i < STK_COUNT(flags); i++)
        if (stk_str_eq(name, stk_str_of(flags[i].name)))
            return &flags[i];
    return NULL;
}

static int take(int argc, char *const *argv, int *i, stk_rt_options *opt, stk_err *err)
{
    const char *value, *arg = argv[*i];
    const flag *f = find(arg, &value);
    if (!f || (!f->take && value))
        return stk_err_set(err, STK_E_USAGE, "unknown argument '%.80s'", arg);
    if (!f->take) {
        *(bool *)((char *)opt + f->offset) = true;
        return 0;
    }
    if (!value && *i + 1 < argc)
        value = argv[++*i];
    if (!value)
        return stk_err_set(err, STK_E_USAGE, "%s needs a value", f->name);
    return f->take(opt, value, err);
}

int stk_rt_options_parse(int argc, char *const *argv, stk_rt_options *ret, stk_err *err)
{
    stk_rt_options opt = {.root = "/workspace",
                          .token_fd = -1,
                          .max_output = 1u << 20,
                          .max_concurrent = 8,
                          .max_upload = UINT64_C(4) << 30};
    for (int i = 1; i < argc; i++) {
        int rc = take(argc, argv, &i, &opt, err);
        if (rc < 0)
            return rc;
    }
    if (!opt.help && !opt.version) {
        if (!opt.nlisten && !opt.dial)
            return stk_err_set(err, STK_E_USAGE, "one of --listen and --dial is needed");
        if (opt.dial && opt.token_fd < 0)
            return stk_err_set(err, STK_E_USAGE, "--dial needs --token-fd");
    }
    *ret = opt;
    return 0;
}

const char *stk_rt_usage(void)
{
    return "usage: stockade-runtime [--listen ADDR]... [--dial ADDR --token-fd N] [options]\n"
           "\n"
           "Runs commands in a sandbox on behalf of whoever holds its links.\n"
           "\n"
           "  --listen ADDR          serve on 0.0.0.0:8888, unix:PATH or vsock:PORT; up to 4 times\n"
           "  --dial ADDR            dial unix:PATH or vsock:PORT: 1 control, 1 health and\n"
           "                         --max-concurrent command links; their end is our end\n"
           "  --token-fd N           read one line \"ID NONCE\" from descriptor N; with --listen every\n"
           "                         TCP request then needs \"Authorization: Bearer NONCE\"\n"
           "  --root DIR             working directory of commands (default /workspace)\n"
           "  --relay FROM=TO        relay connections, 127.0.0.1:3128=unix:PATH; sets the proxy\n"
           "                         variables of commands\n"
           "  --max-output BYTES     kept of each of stdout and stderr (default 1048576)\n"
           "  --max-concurrent N     commands at once, then 429 (default 8, at most 64)\n"
           "  --max-upload BYTES     of one upload (default 4 GiB), then 413\n"
           "  --compat upstream      exit code -N for signal N; unknown request fields are ignored\n"
           "  --version, --help\n";
}
