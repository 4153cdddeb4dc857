#include "workers/runtime/runtime.h"
#include <stdio.h>

static int say(int status, const char *what, const stk_err *err)
{
    fprintf(stderr, "stockade-runtime: %s%s\n", what, err->detail);
    return status;
}

int main(int argc, char **argv)
{
    stk_rt_options opt;
    stk_err err = {0};
    if (stk_rt_options_parse(argc, argv, &opt, &err) < 0)
        return say(2, "", &err);
    if (opt.help) {
        fputs(stk_rt_usage(), stdout);
        return 0;
    }
    if (opt.version) {
        puts("stockade-runtime " STK_VERSION);
        return 0;
    }
    stk_runtime *rt;
    if (stk_runtime_new(&opt, &rt, &err) < 0)
        return say(1, "cannot start: ", &err);
    int status = 0;
    if (stk_runtime_open(rt, &err) < 0)
        status = say(1, "cannot serve: ", &err);
    else
        stk_runtime_run(rt);
    stk_runtime_free(rt);
    return status;
}
