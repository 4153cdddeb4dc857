#include "workers/runtime/runtime.h"
#include "proto/base/fd.h"
#include "workers/runtime/links.h"
#include "workers/runtime/routes.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

static int open_std_descriptors(stk_err *err)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd < 0)
            return stk_err_errno(err, errno, "open /dev/null");
    } while (fd < 3);
    return fd;
}

/* What we ignore our children would ignore too. */
static void reset_signals(void)
{
    sigset_t none;
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* an upload over RLIMIT_FSIZE is an error, not our end */
}

/* Opened before we become undumpable: afterwards the file is root's. */
static void open_score(stk_command_env *env)
{
    env->score = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    ssize_t n = env->score < 0 ? -1 : pread(env->score, env->own_score, sizeof(env->own_score) - 1, 0);
    env->own_score[n > 0 ? n : 0] = '\0';
}

/* As PID 1 of a namespace we obey only who stands outside it (seen as pid 0), not the commands. */
static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    stk_runtime *rt = arg;
    struct signalfd_siginfo info;
    bool init = getpid() == 1;
    while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (!init || info.ssi_pid == 0)
            event_base_loopbreak(rt->base);
}

static int watch_signals(stk_runtime *rt, stk_err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    rt->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (rt->signals < 0)
        return stk_err_errno(err, errno, "signalfd");
    rt->on_signal = event_new(rt->base, rt->signals, EV_READ | EV_PERSIST, on_signal, rt);
    event_add(rt->on_signal, NULL);
    return 0;
}

static int make_base(stk_runtime *rt, stk_err *err)
{
    struct event_config *config = event_config_new();
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
        rt->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    return rt->base ? 0 : stk_err_set(err, STK_E_SYSTEM, "no event loop could be made");
}

static int make_servers(stk_runtime *rt, stk_err *err)
{
    rt->listener_side = (stk_rt_side){rt, true};
    rt->link_side = (stk_rt_side){rt, false};
    stk_http_limits listener = {.connections = 64 + 2 * rt->opt->max_concurrent};
    stk_http_limits link = {.idle_time = STK_SPAN_NEVER, .connections = 2 + rt->opt->max_concurrent};
    int rc =
        stk_http_server_new(rt->base, &listener, &stk_rt_http_ops, &rt->listener_side, &rt->listeners, err);
    return rc < 0 ? rc
                  : stk_http_server_new(rt->base, &link, &stk_rt_http_ops, &rt->link_side, &rt->links, err);
}

static int open_root(stk_runtime *rt, stk_err *err)
{
    rt->root = open(rt->opt->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return rt->root < 0 ? stk_err_errno(err, errno, "open the root %s", rt->opt->root) : 0;
}

static void describe(stk_runtime *rt)
{
    const stk_rt_options *opt = rt->opt;
    if (opt->relay_to)
        snprintf(rt->proxy, sizeof(rt->proxy), "http://%s", opt->relay_from);
    rt->defaults = (stk_exec_defaults){
        .root = rt->root,
        .root_path = opt->root,
        .proxy = opt->relay_to ? rt->proxy : NULL,
        .max_output = opt->max_output,
        .ignore_unknown = opt->compat_upstream,
    };
    rt->commands.base = rt->base;
    rt->commands.reaper = rt->reaper;
    rt->commands.oom = &rt->oom;
    rt->commands.negative_signals = opt->compat_upstream;
}

static int prepare(stk_runtime *rt, stk_err *err)
{
    const stk_rt_options *opt = rt->opt;
    reset_signals();
    clearenv();
    mallopt(M_MMAP_THRESHOLD, 65536);
    mallopt(M_TRIM_THRESHOLD, 65536);
    umask(022);
    open_score(&rt->commands);
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return stk_err_errno(err, errno, "become undumpable");
    if (opt->token_fd >= 0 && stk_rt_token_read(opt->token_fd, &rt->who, err) < 0)
        return -(int)err->code;
    rt->commands.null = open_std_descriptors(err);
    if (rt->commands.null < 0)
        return rt->commands.null;
    stk_oom_init(&rt->oom);
    int rc = make_base(rt, err);
    if (rc == 0)
        rc = watch_signals(rt, err);
    if (rc == 0)
        rc = stk_reaper_new(rt->base, &rt->reaper, err);
    if (rc == 0)
        rc = open_root(rt, err);
    describe(rt);
    return rc < 0 ? rc : make_servers(rt, err);
}

int stk_runtime_new(const stk_rt_options *opt, stk_runtime **ret, stk_err *err)
{
    stk_runtime *rt = stk_xcalloc(1, sizeof(*rt));
    *rt = (stk_runtime){
        .opt = opt, .root = -1, .signals = -1, .oom = {-1}, .commands = {.score = -1, .null = -1}};
    int rc = prepare(rt, err);
    if (rc < 0) {
        stk_runtime_free(rt);
        return rc;
    }
    *ret = rt;
    return 0;
}

/* A connection costs two descriptors; commands and links need some too. */
static size_t relay_most(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur > 4 * STK_RELAY_MOST)
        return STK_RELAY_MOST;
    return files.rlim_cur > 128 ? stk_min((files.rlim_cur - 96) / 2, STK_RELAY_MOST) : 16;
}

int stk_runtime_open(stk_runtime *rt, stk_err *err)
{
    const stk_rt_options *opt = rt->opt;
    int rc = 0;
    if (opt->relay_to)
        rc = stk_relay_new(rt->base, opt->relay_from, opt->relay_to, relay_most(), &rt->relay, err);
    if (rc == 0 && opt->dial)
        rc = stk_rt_links_dial(rt, err);
    if (!opt->nlisten)
        explicit_bzero(rt->who.nonce, sizeof(rt->who.nonce)); /* said on every link: not needed again */
    return rc < 0 ? rc : stk_rt_listeners_open(rt, err);
}

/* Cutting the connections cancels their commands. */
static void close_servers(stk_runtime *rt)
{
    if (rt->listeners)
        stk_http_server_free(STK_TAKE(rt->listeners));
    if (rt->links)
        stk_http_server_free(STK_TAKE(rt->links));
}

void stk_runtime_run(stk_runtime *rt)
{
    event_base_dispatch(rt->base);
    close_servers(rt);
    stk_mono until = stk_mono_add(stk_mono_now(), stk_sec(2));
    while (rt->running > 0 && stk_mono_before(stk_mono_now(), until))
        event_base_loop(rt->base, EVLOOP_ONCE);
    stk_reaper_end_all(rt->reaper);
}

void stk_runtime_free(stk_runtime *rt)
{
    close_servers(rt);
    if (rt->relay)
        stk_relay_free(rt->relay);
    if (rt->reaper)
        stk_reaper_free(rt->reaper);
    if (rt->on_signal)
        event_free(rt->on_signal);
    stk_closep(&rt->signals);
    stk_closep(&rt->root);
    stk_closep(&rt->commands.score);
    stk_closep(&rt->commands.null);
    stk_oom_done(&rt->oom);
    if (rt->base)
        event_base_free(rt->base);
    free(rt);
}
