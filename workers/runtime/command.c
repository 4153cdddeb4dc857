#include "workers/runtime/command.h"
#include "workers/runtime/pipes.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

typedef enum phase { STARTING, RUNNING, DRAINING, SWEEPING, DONE } phase;

struct stk_command {
    const stk_command_env *env;
    const stk_command_spec *spec;
    const stk_command_events *events;
    void *arg;
    phase at;
    stk_minded *minded;
    struct event *on_report;
    struct event *timer; /* deadline, then end of the drain */
    struct event *finish;
    int report;
    stk_pipe pipes[2];
    stk_feed feed;
    stk_mono began, ended, drain_until;
    int64_t oom_before;
    int start_errno;
    stk_start_stage start_stage;
    bool left; /* the leader's status is known */
    int status;
    stk_exec_end end;
};

/* After the leader: how long a survivor that still holds a pipe may stay quiet, and write at most. */
static const stk_span drain_quiet = {50000000};
static const stk_span drain_most = {250000000};

static void arm(struct event *timer, stk_span after)
{
    struct timeval tv = stk_span_timeval(after);
    evtimer_add(timer, &tv);
}

static void describe_end(stk_command *cmd)
{
    stk_exec_end *end = &cmd->end;
    bool killed = !cmd->left || WIFSIGNALED(cmd->status);
    int sig = !killed ? 0 : cmd->left ? WTERMSIG(cmd->status) : SIGKILL;
    end->signal = sig;
    if (end->timed_out)
        end->exit_code = 124;
    else if (killed)
        end->exit_code = cmd->env->negative_signals ? -sig : 128 + sig;
    else
        end->exit_code = WEXITSTATUS(cmd->status);
    end->oom_killed = stk_oom_kills(cmd->env->oom) > cmd->oom_before;
    int64_t took = stk_span_ms(stk_mono_sub(cmd->ended, cmd->began));
    end->duration_ms = took > 0 ? took : 0;
    end->stdout_bytes = (int64_t)cmd->pipes[0].out.total;
    end->stderr_bytes = (int64_t)cmd->pipes[1].out.total;
}

/* As a shell has it: 127 what is not there, 126 what is there and cannot be run. */
static void describe_exec_failure(stk_command *cmd)
{
    int errnum = cmd->start_errno;
    const char *what = strerrordesc_np(errnum);
    bool interpreter = cmd->start_stage == STK_STAGE_INTERPRETER;
    char text[256];
    snprintf(text, sizeof(text), "%.160s: %s%s", cmd->spec->argv[0], interpreter ? "bad interpreter: " : "",
             what ? what : "unknown error");
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    text[strlen(text) - stk_utf8_unfinished(stk_str_of(text))] = '\0';
    stk_output_put(&cmd->pipes[1].out, stk_str_of(text));
    stk_output_put(&cmd->pipes[1].out, STK_STR("\n"));
    snprintf(cmd->end.detail, sizeof(cmd->end.detail), "%s", text);
    cmd->end.exit_code = errnum == ENOENT && !interpreter ? 127 : 126;
    cmd->end.stderr_bytes = (int64_t)cmd->pipes[1].out.total;
}

static void finish(stk_command *cmd)
{
    if (cmd->at == DONE)
        return;
    cmd->at = DONE;
    for (int i = 0; i < 2; i++) {
        stk_pipe_read(&cmd->pipes[i]);
        stk_pipe_close(&cmd->pipes[i]);
    }
    stk_feed_close(&cmd->feed);
    event_del(cmd->on_report);
    evtimer_del(cmd->timer);
    if (cmd->minded)
        stk_reaper_forget(STK_TAKE(cmd->minded));
    bool exec_failed = cmd->start_stage == STK_STAGE_EXEC || cmd->start_stage == STK_STAGE_INTERPRETER;
    if (cmd->start_errno && exec_failed && cmd->start_errno != E2BIG) {
        describe_exec_failure(cmd);
        cmd->start_errno = 0;
    } else if (!cmd->start_errno) {
        describe_end(cmd);
    }
    event_active(cmd->finish, EV_TIMEOUT, 0);
}

static void on_finish(evutil_socket_t fd, short what, void *arg)
{
    stk_command *cmd = arg;
    cmd->events->done(cmd, cmd->arg);
}

static void on_swept(bool gone, void *arg)
{
    stk_command *cmd = arg;
    if (!gone)
        snprintf(cmd->end.detail, sizeof(cmd->end.detail), "a process of it could not be ended");
    finish(cmd);
}

static void condemn(stk_command *cmd)
{
    if (cmd->at >= SWEEPING)
        return;
    if (cmd->ended.ns == 0)
        cmd->ended = stk_mono_now();
    if (cmd->began.ns == 0)
        cmd->began = cmd->ended;
    cmd->at = SWEEPING;
    evtimer_del(cmd->timer);
    stk_reaper_condemn(cmd->env->reaper, STK_TAKE(cmd->minded), on_swept, cmd);
}

static void drain(stk_command *cmd)
{
    stk_mono now = stk_mono_now();
    stk_span rest = stk_mono_sub(cmd->drain_until, now);
    arm(cmd->timer, rest.ns < drain_quiet.ns ? rest : drain_quiet);
}

static bool pipes_ended(const stk_command *cmd)
{
    return cmd->pipes[0].fd < 0 && cmd->pipes[1].fd < 0;
}

static void on_left(stk_command *cmd, const stk_report *r)
{
    cmd->left = true;
    cmd->status = r->value;
    cmd->ended = (stk_mono){r->at};
    cmd->at = DRAINING;
    for (int i = 0; i < 2; i++)
        stk_pipe_read(&cmd->pipes[i]);
    if (!r->survivors) {
        finish(cmd);
    } else if (pipes_ended(cmd)) {
        condemn(cmd);
    } else {
        cmd->drain_until = stk_mono_add(stk_mono_now(), drain_most);
        drain(cmd);
    }
}

static void on_started(stk_command *cmd, const stk_report *r)
{
    cmd->began = (stk_mono){r->at};
    cmd->at = RUNNING;
    stk_span gone = stk_mono_sub(stk_mono_now(), cmd->began);
    arm(cmd->timer, stk_ns(cmd->spec->timeout.ns - gone.ns));
    if (cmd->events->started)
        cmd->events->started(cmd, cmd->arg);
}

static void take_report(stk_command *cmd, const stk_report *r)
{
    if (cmd->at >= SWEEPING)
        return;
    switch (r->kind) {
    case STK_REPORT_STARTED:
        on_started(cmd, r);
        break;
    case STK_REPORT_FAILED:
        cmd->start_errno = r->value;
        cmd->start_stage = r->stage;
        finish(cmd);
        break;
    case STK_REPORT_LEFT:
        on_left(cmd, r);
        break;
    }
}

static void read_reports(stk_command *cmd)
{
    stk_report r;
    while (cmd->at < SWEEPING && read(cmd->report, &r, sizeof(r)) == (ssize_t)sizeof(r))
        take_report(cmd, &r);
}

static void on_report(evutil_socket_t fd, short what, void *arg)
{
    stk_command *cmd = arg;
    stk_report r;
    ssize_t n;
    while (cmd->at < SWEEPING && (n = read(cmd->report, &r, sizeof(r))) != -1) {
        if (n != (ssize_t)sizeof(r)) {
            event_del(cmd->on_report); /* the minder is gone: on_minder_ended says what it means */
            return;
        }
        take_report(cmd, &r);
    }
}

static void on_minder_ended(void *arg)
{
    stk_command *cmd = arg;
    cmd->minded = NULL;
    read_reports(cmd);
    if (cmd->at >= SWEEPING)
        return;
    if (!cmd->left)
        snprintf(cmd->end.detail, sizeof(cmd->end.detail), "its minder was killed");
    condemn(cmd);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    stk_command *cmd = arg;
    read_reports(cmd);
    if (cmd->at >= SWEEPING || evtimer_pending(cmd->timer, NULL))
        return;
    cmd->end.timed_out = !cmd->left;
    condemn(cmd);
}

static void on_output(stk_pipe *pipe, void *arg)
{
    stk_command *cmd = arg;
    if (cmd->at == DRAINING && pipes_ended(cmd))
        condemn(cmd);
    else if (cmd->at == DRAINING)
        drain(cmd);
    if (cmd->events->output && cmd->at < DONE)
        cmd->events->output(cmd, cmd->arg);
}

/* The score is inherited, so it is ours for the moment of the fork. Not being able to take it back leaves us
 * as likely a victim as the command: worse, but not wrong. */
static void set_score(const stk_command_env *env, const char *score)
{
    ssize_t ignored = env->score >= 0 ? pwrite(env->score, score, strlen(score), 0) : 0;
    (void)ignored;
}

static int fork_minder(stk_command *cmd, int input, const int outputs[2], int report_end, stk_err *err)
{
    const stk_command_spec *spec = cmd->spec;
    stk_minder_spec minder = {spec->argv, spec->envp, spec->path, spec->cwd, {input, outputs[0], outputs[1]},
                              report_end};
    pid_t self = getpid();
    set_score(cmd->env, "1000");
    pid_t pid = fork();
    if (pid == 0)
        stk_minder_main(&minder, self);
    int errnum = errno;
    set_score(cmd->env, cmd->env->own_score);
    if (pid < 0)
        return stk_err_set(err, STK_E_UNAVAILABLE, "no process could be started: %s",
                           strerrordesc_np(errnum));
    cmd->minded = stk_reaper_mind(cmd->env->reaper, pid, on_minder_ended, cmd);
    return 0;
}

static int no_pipe(stk_err *err)
{
    return stk_err_set(err, STK_E_UNAVAILABLE, "no pipe could be made: %s", strerrordesc_np(errno));
}

static int launch(stk_command *cmd, stk_err *err)
{
    int input STK_AUTO(stk_closep) = -1, out STK_AUTO(stk_closep) = -1, errout STK_AUTO(stk_closep) = -1;
    int report_end STK_AUTO(stk_closep) = -1;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return no_pipe(err);
    cmd->report = ends[0];
    report_end = ends[1];
    fcntl(cmd->report, F_SETFL, O_NONBLOCK);
    if (stk_pipe_open(&cmd->pipes[0], cmd->env->base, &out) < 0 ||
        stk_pipe_open(&cmd->pipes[1], cmd->env->base, &errout) < 0)
        return no_pipe(err);
    if (cmd->spec->input.p && stk_feed_open(&cmd->feed, cmd->env->base, cmd->spec->input, &input) < 0)
        return no_pipe(err);
    return fork_minder(cmd, input >= 0 ? input : cmd->env->null, (int[2]){out, errout}, report_end, err);
}

int stk_command_start(const stk_command_env *env, const stk_command_spec *spec,
                      const stk_command_events *events, void *arg, stk_command **ret, stk_err *err)
{
    stk_command *cmd = stk_xcalloc(1, sizeof(*cmd));
    *cmd = (stk_command){.env = env, .spec = spec, .events = events, .arg = arg, .report = -1};
    cmd->feed.fd = -1;
    cmd->oom_before = stk_oom_kills(env->oom);
    for (int i = 0; i < 2; i++)
        stk_pipe_init(&cmd->pipes[i], spec->cap, on_output, cmd);
    if (launch(cmd, err) < 0) {
        stk_command_free(cmd);
        return -STK_E_UNAVAILABLE;
    }
    cmd->on_report = event_new(env->base, cmd->report, EV_READ | EV_PERSIST, on_report, cmd);
    cmd->timer = evtimer_new(env->base, on_timer, cmd);
    cmd->finish = evtimer_new(env->base, on_finish, cmd);
    event_add(cmd->on_report, NULL);
    arm(cmd->timer, spec->timeout);
    *ret = cmd;
    return 0;
}

void stk_command_cancel(stk_command *cmd)
{
    condemn(cmd);
}

void stk_command_free(stk_command *cmd)
{
    for (int i = 0; i < 2; i++)
        stk_pipe_done(&cmd->pipes[i]);
    stk_feed_close(&cmd->feed);
    if (cmd->on_report)
        event_free(cmd->on_report);
    if (cmd->timer)
        event_free(cmd->timer);
    if (cmd->finish)
        event_free(cmd->finish);
    stk_closep(&cmd->report);
    free(cmd);
}

stk_output *stk_command_output(stk_command *cmd, int which)
{
    return &cmd->pipes[which].out;
}

int stk_command_not_started(const stk_command *cmd, stk_start_stage *ret_stage)
{
    *ret_stage = cmd->start_stage;
    return cmd->start_errno;
}

const stk_exec_end *stk_command_end(const stk_command *cmd)
{
    return &cmd->end;
}
