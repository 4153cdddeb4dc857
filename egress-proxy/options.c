#include "egress-proxy/options.h"
#include "egress-proxy/config_file.h"
#include <arpa/inet.h>

static const char usage[] =
    "Usage: stockade-egress-proxy --listen ADDRESS --policy FILE --resolver IP:PORT [options]\n"
    "       stockade-egress-proxy --listen fd:N --control-fd N --journal-fd N --resolver IP:PORT\n"
    "       stockade-egress-proxy --explain HOST:PORT --policy FILE [--resolver IP:PORT]\n"
    "\n"
    "A default-deny HTTP and CONNECT proxy.\n"
    "\n"
    "  --listen ADDRESS    127.0.0.1:3128, [::1]:3128, unix:PATH, or fd:N for an inherited listening socket\n"
    "  --policy FILE       JSON or YAML; SIGHUP reads it again, a bad file leaves the old policy in force\n"
    "  --resolver IP:PORT  a name server; up to three times, asked in this order\n"
    "  --records FILE|-    append one JSON line for each decision and each end of a connection\n"
    "  --config FILE       JSON or YAML with listen, policy, resolver, records; flags come first\n"
    "  --control-fd N      a worker's control stream: it sets the policy and reads the records\n"
    "  --journal-fd N      the descriptor to which records are appended under a worker\n"
    "  --explain HOST:PORT print how a connection to it would be decided, and end; 0 = allowed, 1 = refused\n"
    "  --help, --version\n";

typedef struct flag {
    const char *name;
    int (*take)(stk_px_options *opt, const char *value, stk_err *err); /* NULL: text at offset */
    size_t offset;
} flag;

static int take_fd(const char *name, const char *value, int *ret, stk_err *err)
{
    uint64_t n;
    if (!stk_str_u64(stk_str_of(value), 1023, &n))
        return stk_err_set(err, STK_E_USAGE, "%s takes a descriptor's number, not '%.40s'", name, value);
    *ret = (int)n;
    return 0;
}

static int take_control(stk_px_options *opt, const char *value, stk_err *err)
{
    return take_fd("--control-fd", value, &opt->control_fd, err);
}

static int take_journal(stk_px_options *opt, const char *value, stk_err *err)
{
    return take_fd("--journal-fd", value, &opt->journal_fd, err);
}

int stk_px_parse_server(const char *text, stk_sock *ret, stk_err *err)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    uint64_t port;
    memset(ret, 0, sizeof(*ret));
    stk_str name = {text, colon ? (size_t)(colon - text) : 0};
    bool v6 = name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']';
    if (v6)
        name = stk_str_n(name.p + 1, name.n - 2);
    ret->any.sa_family = v6 ? AF_INET6 : AF_INET;
    void *at = v6 ? (void *)&ret->v6.sin6_addr : (void *)&ret->v4.sin_addr;
    if (!colon || !stk_str_copy(name, host, sizeof(host)) || inet_pton(ret->any.sa_family, host, at) != 1 ||
        !stk_str_u64(stk_str_of(colon + 1), 65535, &port) || port == 0)
        return stk_err_set(err, STK_E_USAGE, "a resolver is IP:PORT, not '%.80s'", text);
    stk_sock_port(ret, (uint16_t)port);
    return 0;
}

static int take_resolver(stk_px_options *opt, const char *value, stk_err *err)
{
    if (opt->servers.n == STK_RESOLVERS_MAX)
        return stk_err_set(err, STK_E_USAGE, "--resolver at most %d times", STK_RESOLVERS_MAX);
    int rc = stk_px_parse_server(value, &opt->servers.v[opt->servers.n], err);
    opt->servers.n += rc == 0;
    return rc;
}

static const flag flags[] = {
    {"--listen", NULL, offsetof(stk_px_options, listen)},
    {"--policy", NULL, offsetof(stk_px_options, policy)},
    {"--records", NULL, offsetof(stk_px_options, records)},
    {"--config", NULL, offsetof(stk_px_options, config)},
    {"--explain", NULL, offsetof(stk_px_options, explain)},
    {"--resolver", take_resolver, 0},
    {"--control-fd", take_control, 0},
    {"--journal-fd", take_journal, 0},
};

static int take_flag(stk_px_options *opt, const flag *f, const char *value, stk_err *err)
{
    if (!value[0])
        return stk_err_set(err, STK_E_USAGE, "%s is empty", f->name);
    if (f->take)
        return f->take(opt, value, err);
    const char **place = (const char **)(void *)((char *)opt + f->offset);
    if (*place)
        return stk_err_set(err, STK_E_USAGE, "%s is given twice", f->name);
    *place = value;
    return 0;
}

/* One argument, or two; moves *at on. */
static int take_argument(stk_px_options *opt, int argc, char **argv, int *at, stk_err *err)
{
    const char *arg = argv[(*at)++];
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "--version") == 0) {
        *(arg[2] == 'h' ? &opt->help : &opt->version) = true;
        return 0;
    }
    for (size_t i = 0; i < STK_COUNT(flags); i++) {
        size_t n = strlen(flags[i].name);
        if (strncmp(arg, flags[i].name, n) != 0 || (arg[n] && arg[n] != '='))
            continue;
        if (arg[n] == '=')
            return take_flag(opt, &flags[i], arg + n + 1, err);
        if (*at == argc)
            return stk_err_set(err, STK_E_USAGE, "%s needs a value", arg);
        return take_flag(opt, &flags[i], argv[(*at)++], err);
    }
    return stk_err_set(err, STK_E_USAGE, "unknown argument '%.80s'; --help lists them", arg);
}

static int check(const stk_px_options *opt, stk_err *err)
{
    if (opt->explain) {
        if (!opt->policy)
            return stk_err_set(err, STK_E_USAGE, "--explain needs --policy");
        return 0;
    }
    if (!opt->listen)
        return stk_err_set(err, STK_E_USAGE, "--listen is missing");
    if (opt->control_fd >= 0 && (opt->policy || opt->records))
        return stk_err_set(err, STK_E_USAGE,
                           "under --control-fd the worker gives the policy and takes the records");
    if (opt->control_fd < 0 && !opt->policy)
        return stk_err_set(err, STK_E_USAGE, "--policy is missing");
    if (opt->control_fd < 0 && opt->journal_fd >= 0)
        return stk_err_set(err, STK_E_USAGE, "--journal-fd goes with --control-fd");
    if (stk_str_starts(stk_str_of(opt->listen), STK_STR("fd:")) && stk_px_listen_fd(opt->listen) < 0)
        return stk_err_set(err, STK_E_USAGE, "--listen fd:N takes a descriptor's number");
    return 0;
}

int stk_px_options_parse(int argc, char **argv, stk_px_options *ret, stk_err *err)
{
    *ret = (stk_px_options){.control_fd = -1, .journal_fd = -1};
    for (int at = 1; at < argc;) {
        int rc = take_argument(ret, argc, argv, &at, err);
        if (rc < 0)
            return rc;
    }
    if (ret->help || ret->version)
        return 0;
    int rc = ret->config ? stk_px_config_read(ret->config, ret, err) : 0;
    if (rc < 0)
        return rc;
    return check(ret, err);
}

const char *stk_px_usage(void)
{
    return usage;
}

int stk_px_listen_fd(const char *listen)
{
    uint64_t n;
    if (strncmp(listen, "fd:", 3) != 0 || !stk_str_u64(stk_str_of(listen + 3), 1023, &n))
        return -1;
    return (int)n;
}
