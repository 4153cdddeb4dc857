#include "api-gateway/cli/cli.h"
#include "api-gateway/cli/table.h"
#include <stdio.h>

const stk_cli_verb stk_cli_runs = {
    .name = "runs",
    .arguments = "[ID]",
    .about = "Lists runs, newest first, or shows one.",
    .opts = {{"agent", "NAME", "only of this agent", 0},
             {"state", "STATE", "submitted, queued, assigned, running or finished", 0},
             {"label", "KEY=VALUE", "only with this label", 0},
             {"limit", "N", "at most; default 20", 0},
             {"cursor", "ID", "continue behind this run", 0}},
    .most = 1};

const stk_cli_verb stk_cli_cancel = {.name = "cancel",
                                     .arguments = "ID",
                                     .about = "Cancels a run; one that has ended stays as it is.",
                                     .least = 1,
                                     .most = 1};

const stk_cli_verb stk_cli_logs = {.name = "logs",
                                   .arguments = "ID",
                                   .about =
                                       "Prints what a run wrote, stdout to stdout and stderr to stderr. With "
                                       "--json: its events, one a line;\n"
                                       "of a run that has ended, its result.",
                                   .opts = {{"follow", NULL, "go on until the run has ended", 'f'}},
                                   .least = 1,
                                   .most = 1};

static void add_query(stk_buf *path, const stk_cli_args *args, const char *option, const char *fallback)
{
    const char *value = stk_cli_opt_get(args, option);
    if (!value)
        value = fallback;
    if (!value)
        return;
    stk_buf_text(path, memchr(path->p, '?', path->n) ? "&" : "?");
    stk_buf_text(path, option);
    stk_buf_byte(path, '=');
    stk_cli_encode(path, value);
}

static void print_run(stk_jv run)
{
    char id[64], state[32], reason[32], agent[140], submitted[40];
    const char *key = stk_jv_is(stk_jv_get(run, "id"), STK_J_STRING) ? "id" : "run_id";
    printf("%-31s %-10s %-14s %-20s %s\n", stk_cli_text(run, key, id, sizeof(id)),
           stk_cli_text(run, "state", state, sizeof(state)),
           stk_cli_text(run, "reason", reason, sizeof(reason)),
           stk_cli_text(run, "agent", agent, sizeof(agent)),
           stk_cli_text(run, "submitted", submitted, sizeof(submitted)));
}

int stk_verb_runs(int argc, char **argv)
{
    stk_cli_args args;
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    stk_buf path STK_AUTO(stk_buf_done) = STK_BUF(4096);
    int status = stk_cli_parse(&stk_cli_runs, argc, argv, &args);
    if (status >= 0)
        return status;
    stk_buf_text(&path, "/v1/runs");
    if (args.n) {
        stk_buf_byte(&path, '/');
        stk_cli_encode(&path, args.v[0]);
    } else {
        add_query(&path, &args, "agent", NULL);
        add_query(&path, &args, "state", NULL);
        add_query(&path, &args, "label", NULL);
        add_query(&path, &args, "limit", "20");
        add_query(&path, &args, "cursor", NULL);
    }
    if (stk_cli_call(&args, "GET", path.p, (stk_str){0}, NULL, &answer) < 0)
        return 1;
    if (answer.status != 200)
        return stk_cli_problem(&args, &answer);
    stk_jv root = stk_json_root(answer.doc);
    if (args.json || args.n) {
        stk_cli_print_json(root);
        return 0;
    }
    printf("%-31s %-10s %-14s %-20s %s\n", "RUN", "STATE", "REASON", "AGENT", "SUBMITTED");
    for (stk_jv v = stk_jv_first(stk_jv_get(root, "runs")); !stk_jv_is(v, STK_J_NONE); v = stk_jv_next(v))
        print_run(v);
    return 0;
}

static void print_cancelled(const char *id, stk_jv root)
{
    char state[32], reason[40];
    stk_cli_text(root, "state", state, sizeof(state));
    stk_cli_text(root, "reason", reason, sizeof(reason));
    if (strcmp(state, "finished") == 0)
        printf("%s: finished (%s)\n", id, reason);
    else
        printf("%s: %s, is being cancelled\n", id, state);
}

int stk_verb_cancel(int argc, char **argv)
{
    stk_cli_args args;
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    stk_buf path STK_AUTO(stk_buf_done) = STK_BUF(4096);
    int status = stk_cli_parse(&stk_cli_cancel, argc, argv, &args);
    if (status >= 0)
        return status;
    stk_buf_text(&path, "/v1/runs/");
    stk_cli_encode(&path, args.v[0]);
    stk_buf_text(&path, "/cancel");
    if (stk_cli_call(&args, "POST", path.p, (stk_str){0}, NULL, &answer) < 0)
        return 1;
    if (answer.status >= 300)
        return stk_cli_problem(&args, &answer);
    if (args.json)
        stk_cli_print_json(stk_json_root(answer.doc));
    else
        print_cancelled(args.v[0], stk_json_root(answer.doc));
    return 0;
}

/* --- logs: the events stream
 * ------------------------------------------------------------------------------------------ */

typedef struct follower {
    const stk_cli_args *args;
    stk_buf line, event, data;
    bool follow, ended;
} follower;

static void print_output(const follower *f, stk_jv root)
{
    stk_buf bytes STK_AUTO(stk_buf_done) = STK_BUF((size_t)2 << 20);
    bool to_stderr = stk_str_eq(stk_jv_str(stk_jv_get(root, "stream")), STK_STR("stderr"));
    stk_str text = stk_jv_str(stk_jv_get(root, "data"));
    if (stk_jv_is(stk_jv_get(root, "data_base64"), STK_J_STRING) &&
        stk_base64_decode(&bytes, stk_jv_str(stk_jv_get(root, "data_base64"))) == 0)
        text = stk_buf_view(&bytes);
    fwrite(text.p, 1, text.n, to_stderr ? stderr : stdout);
    fflush(stdout);
}

static void dispatch(follower *f)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_err ignored;
    if (!f->data.n || stk_json_parse(stk_buf_view(&f->data), NULL, &doc, &ignored) < 0)
        return;
    stk_jv root = stk_json_root(doc);
    stk_str state = stk_jv_str(stk_jv_get(root, "state"));
    if (f->args->json) {
        printf("%.*s\n", (int)f->data.n, f->data.p);
        fflush(stdout);
    } else if (stk_str_eq(stk_buf_view(&f->event), STK_STR("output")))
        print_output(f, root);
    if (stk_str_eq(stk_buf_view(&f->event), STK_STR("state")))
        f->ended = !f->follow || stk_str_eq(state, STK_STR("finished"));
}

static void take_line(follower *f)
{
    stk_str line = stk_buf_view(&f->line);
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (!line.n) {
        dispatch(f);
        stk_buf_reset(&f->event);
        stk_buf_reset(&f->data);
    } else if (stk_str_starts(line, STK_STR("event: "))) {
        stk_buf_add(&f->event, line.p + 7, line.n - 7);
    } else if (stk_str_starts(line, STK_STR("data: "))) {
        stk_buf_add(&f->data, line.p + 6, line.n - 6);
    }
    stk_buf_reset(&f->line);
}

static bool on_events(stk_str data, void *arg)
{
    follower *f = arg;
    while (data.n && !f->ended) {
        const char *end = memchr(data.p, '\n', data.n);
        size_t n = end ? (size_t)(end - data.p) : data.n;
        if (stk_buf_add(&f->line, data.p, n) < 0)
            return false;
        if (end)
            take_line(f);
        n += end != NULL;
        data = stk_str_n(data.p + n, data.n - n);
    }
    return !f->ended;
}

/* A run that has ended: what its result holds. */
static int print_finished(const stk_cli_args *args, stk_jv run)
{
    stk_jv result = stk_cli_result(run);
    if (args->json) {
        stk_cli_print_json(result);
        return 0;
    }
    stk_str out = stk_jv_str(stk_jv_get(result, "stdout_tail")),
            err = stk_jv_str(stk_jv_get(result, "stderr_tail"));
    fwrite(out.p, 1, out.n, stdout);
    fflush(stdout);
    fwrite(err.p, 1, err.n, stderr);
    return 0;
}

int stk_verb_logs(int argc, char **argv)
{
    stk_cli_args args;
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    stk_buf path STK_AUTO(stk_buf_done) = STK_BUF(4096);
    int status = stk_cli_parse(&stk_cli_logs, argc, argv, &args);
    if (status >= 0)
        return status;
    stk_buf_text(&path, "/v1/runs/");
    stk_cli_encode(&path, args.v[0]);
    if (stk_cli_call(&args, "GET", path.p, (stk_str){0}, NULL, &answer) < 0)
        return 1;
    if (answer.status != 200)
        return stk_cli_problem(&args, &answer);
    if (stk_str_eq(stk_jv_str(stk_jv_get(stk_json_root(answer.doc), "state")), STK_STR("finished")))
        return print_finished(&args, stk_json_root(answer.doc));
    stk_buf_text(&path, "/events");
    follower f = {.args = &args,
                  .line = STK_BUF((size_t)4 << 20),
                  .event = STK_BUF(64),
                  .data = STK_BUF((size_t)4 << 20),
                  .follow = stk_cli_opt_get(&args, "follow") != NULL};
    int rc = stk_cli_stream(&args, path.p, on_events, &f);
    stk_buf_done(&f.line);
    stk_buf_done(&f.event);
    stk_buf_done(&f.data);
    return rc == 200 ? 0 : 1;
}
