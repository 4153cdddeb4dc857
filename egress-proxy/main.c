#include "egress-proxy/explain.h"
#include "egress-proxy/privileges.h"
#include "egress-proxy/proxy.h"
#include "egress-proxy/standalone.h"
#include <signal.h>
#include <stdio.h>

static int say(int status, const stk_err *err)
{
    fprintf(stderr, "stockade-egress-proxy: %s\n", err->detail);
    return status;
}

static int under_worker(const stk_px_options *opt, stk_err *err)
{
    stk_proxy_spec spec = {.listener = stk_px_listen_fd(opt->listen),
                           .control = opt->control_fd,
                           .journal = opt->journal_fd,
                           .servers = opt->servers};
    stk_proxy *px;
    if (spec.listener < 0)
        return stk_err_set(err, STK_E_USAGE, "under --control-fd the listener is --listen fd:N");
    int rc = stk_proxy_new(&spec, &px, err);
    if (rc < 0)
        return rc;
    rc = stk_privileges_drop(err);
    if (rc == 0)
        rc = stk_proxy_run(px);
    stk_proxy_free(px);
    return rc;
}

int main(int argc, char **argv)
{
    static stk_px_options opt; /* texts of a configuration file hang on it until the end */
    stk_err err = {0};
    if (stk_px_options_parse(argc, argv, &opt, &err) < 0)
        return say(2, &err);
    if (opt.help) {
        fputs(stk_px_usage(), stdout);
        return 0;
    }
    if (opt.version) {
        puts("stockade-egress-proxy " STK_VERSION);
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    int rc = opt.explain           ? stk_explain(&opt, stdout, &err)
             : opt.control_fd >= 0 ? under_worker(&opt, &err)
                                   : stk_standalone_run(&opt, &err);
    return rc < 0 ? say(stk_code_exit(err.code) == 2 ? 2 : 1, &err) : rc;
}
