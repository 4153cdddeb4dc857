#include "api-gateway/cli/call.h"
#include "api-gateway/cli/cli.h"
#include "api-gateway/cli/run_files.h"
#include "api-gateway/cli/table.h"
#include "proto/message/run.h"
#include <stdio.h>
#include <time.h>

#define ASK_AGAIN_NS 200000000L

const stk_cli_verb stk_cli_run = {
    .name = "run",
    .arguments = "AGENT -- COMMAND [ARG...]",
    .about = "Runs one command in a sandbox of its own and waits. Output goes to stdout and stderr; the exit "
             "status is the\n"
             "command's, 124 after a timeout, 137 when memory ran out, 125 when Stockade failed.",
    .opts = {{"timeout", "SECONDS", "of the command; default 300", 0},
             {"env", "NAME=VALUE...", "one environment variable", 0},
             {"file", "LOCAL[:PATH]...", "put a file into the working directory first", 0},
             {"collect", "PATH...", "bring a file back, 256 KiB in all; exit 125 when one is not there", 0},
             {"out", "DIR", "where to; default the present directory", 0},
             {"cwd", "DIR", "working directory; default /workspace", 0},
             {"stdin", "FILE", "what the command reads; - is this program's stdin", 0},
             {"backend", "NAME", "auto, oci, docker, k8s or firecracker", 0},
             {"egress", NULL, "print every egress decision on stderr", 0}},
    .least = 2,
    .most = -1};

const stk_cli_verb stk_cli_plan = {
    .name = "plan",
    .arguments = "AGENT -- COMMAND [ARG...]",
    .about = "Says what would be done for this command, without doing it: backend and why not the others, "
             "limits, the effective\n"
             "allow-list, what would be refused, and with --json the exact objects.",
    .opts = {{"backend", "NAME", "auto, oci, docker, k8s or firecracker", 0},
             {"image", "NAME", "another image", 0}},
    .least = 2,
    .most = -1};

static int read_all(const stk_cli_args *args, const char *file, stk_buf *out)
{
    FILE *in = strcmp(file, "-") == 0 ? stdin : fopen(file, "re");
    char chunk[65536];
    if (!in)
        return stk_cli_fail(args, 2, "%s can't be read", file);
    int rc = 0;
    for (size_t n; rc == 0 && (n = fread(chunk, 1, sizeof(chunk), in)) > 0;)
        rc = stk_buf_add(out, chunk, n);
    if (in != stdin)
        fclose(in);
    return rc < 0 ? stk_cli_fail(args, 2, "%s is larger than a request may be", file) : 0;
}

static int write_stdin(const stk_cli_args *args, stk_jw *w)
{
    const char *file = stk_cli_opt_get(args, "stdin");
    if (!file)
        return 0;
    stk_buf data STK_AUTO(stk_buf_done) = STK_BUF((size_t)768 << 10);
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF((size_t)2 << 20);
    int status = read_all(args, file, &data);
    if (status == 0 && stk_base64_encode(&text, stk_buf_view(&data)) == 0)
        stk_jw_kstr(w, "stdin_base64", stk_buf_view(&text));
    return status;
}

static int write_env(const stk_cli_args *args, stk_jw *w)
{
    size_t at = 0;
    if (!stk_cli_opt_get(args, "env"))
        return 0;
    stk_jw_key(w, "env");
    stk_jw_object(w);
    for (const char *pair; (pair = stk_cli_opt_next(args, "env", &at));) {
        const char *equals = strchr(pair, '=');
        if (!equals)
            return stk_cli_fail(args, 2, "--env needs NAME=VALUE");
        stk_jw_key_str(w, stk_str_n(pair, (size_t)(equals - pair)));
        stk_jw_text(w, equals + 1);
    }
    stk_jw_close(w, '}');
    return 0;
}

static void write_option(const stk_cli_args *args, stk_jw *w, const char *option, const char *member)
{
    const char *value = stk_cli_opt_get(args, option);
    if (value)
        stk_jw_ktext(w, member, value);
}

static void write_command(const stk_cli_args *args, stk_jw *w)
{
    stk_jw_ktext(w, "agent", args->v[0]);
    stk_jw_key(w, "command");
    stk_jw_array(w);
    for (int i = 1; i < args->n; i++)
        stk_jw_text(w, args->v[i]);
    stk_jw_close(w, ']');
}

static int write_run(const stk_cli_args *args, stk_buf *body)
{
    stk_jw w;
    stk_jw_init(&w, body);
    stk_jw_object(&w);
    write_command(args, &w);
    const char *timeout = stk_cli_opt_get(args, "timeout");
    char *end = NULL;
    if (timeout) {
        double seconds = strtod(timeout, &end);
        if (!*timeout || *end)
            return stk_cli_fail(args, 2, "--timeout needs a number of seconds");
        stk_jw_kdouble(&w, "timeout_seconds", seconds);
    }
    write_option(args, &w, "cwd", "cwd");
    write_option(args, &w, "backend", "backend");
    int status = write_env(args, &w);
    if (status == 0)
        status = write_stdin(args, &w);
    if (status == 0)
        status = stk_cli_files_write(args, &w);
    stk_jw_close(&w, '}');
    return status;
}

static void print_egress(stk_jv result)
{
    for (stk_jv rec = stk_jv_first(stk_jv_get(result, "egress")); !stk_jv_is(rec, STK_J_NONE);
         rec = stk_jv_next(rec)) {
        char verdict[16], host[300], port[16], reason[64], rule[300];
        fprintf(stderr, "egress: %-5s %s:%s  %s%s%s\n",
                stk_cli_text(rec, "verdict", verdict, sizeof(verdict)),
                stk_cli_text(rec, "host", host, sizeof(host)), stk_cli_text(rec, "port", port, sizeof(port)),
                stk_cli_text(rec, "reason", reason, sizeof(reason)),
                stk_jv_str(stk_jv_get(rec, "rule")).n ? " by " : "",
                stk_jv_str(stk_jv_get(rec, "rule")).n ? stk_cli_text(rec, "rule", rule, sizeof(rule)) : "");
    }
}

int stk_cli_result_exit(stk_jv result)
{
    int64_t code = 0, signal = 0;
    char reason[32];
    stk_jv_int(stk_jv_get(result, "exit_code"), &code);
    stk_jv_int(stk_jv_get(result, "signal"), &signal);
    return stk_reason_exit(stk_reason_parse(stk_cli_text(result, "reason", reason, sizeof(reason))),
                           (int)code, (int)signal);
}

/* Who goes on with a file after exit status 0 must have it. */
static int exit_of(stk_jv result, bool have_files)
{
    int status = stk_cli_result_exit(result);
    return status == 0 && !have_files ? 125 : status;
}

static int print_result(const stk_cli_args *args, stk_jv result)
{
    stk_str out = stk_jv_str(stk_jv_get(result, "stdout_tail")),
            err = stk_jv_str(stk_jv_get(result, "stderr_tail"));
    char reason[32], detail[600];
    if (args->json) {
        stk_cli_print_json(result);
        return exit_of(result, !stk_cli_opt_get(args, "out") || stk_cli_files_save(args, result));
    }
    fwrite(out.p, 1, out.n, stdout);
    fflush(stdout);
    fwrite(err.p, 1, err.n, stderr);
    if (stk_cli_opt_get(args, "egress"))
        print_egress(result);
    stk_cli_text(result, "reason", reason, sizeof(reason));
    bool has_detail = stk_jv_str(stk_jv_get(result, "detail")).n > 0;
    if (strcmp(reason, "exited") != 0)
        stk_cli_fail(args, 0, "the run ended as %s%s%s", reason, has_detail ? ": " : "",
                     has_detail ? stk_cli_text(result, "detail", detail, sizeof(detail)) : "");
    return exit_of(result, stk_cli_files_save(args, result));
}

/* A run that outlasts the server's patience is asked for again until it has ended. */
static int wait_for(const stk_cli_args *args, stk_cli_answer *answer)
{
    char id[64], path[128];
    if (answer->status != 202)
        return 0;
    snprintf(path, sizeof(path), "/v1/runs/%s",
             stk_cli_text(stk_json_root(answer->doc), "id", id, sizeof(id)));
    for (;;) {
        stk_cli_answer_done(answer);
        *answer = (stk_cli_answer){0};
        if (stk_cli_call(args, "GET", path, (stk_str){0}, NULL, answer) < 0)
            return stk_cli_fail(args, -1, "the run itself is kept: stockade runs %s", id);
        if (answer->status != 200 || stk_jv_is(stk_cli_result(stk_json_root(answer->doc)), STK_J_OBJECT))
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = ASK_AGAIN_NS}, NULL);
    }
}

/* Of a waiting call the answer itself, of GET /v1/runs/{id} its member. */
stk_jv stk_cli_result(stk_jv answer)
{
    return stk_jv_is(stk_jv_get(answer, "run_id"), STK_J_STRING) ? answer : stk_jv_get(answer, "result");
}

int stk_verb_run(int argc, char **argv)
{
    stk_cli_args args;
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF((size_t)4 << 20);
    int status = stk_cli_parse(&stk_cli_run, argc, argv, &args);
    if (status >= 0 || (status = write_run(&args, &body)) != 0)
        return status;
    if (stk_cli_call(&args, "POST", "/api/admin/platform/agent-sandbox/run", stk_buf_view(&body), NULL,
                     &answer) < 0 ||
        wait_for(&args, &answer) < 0)
        return 125;
    if (answer.status != 200) {
        stk_cli_problem(&args, &answer);
        return 125;
    }
    return print_result(&args, stk_cli_result(stk_json_root(answer.doc)));
}

/* --- plan
 * -------------------------------------------------------------------------------------------------------------
 */

static void print_list(stk_jv list, const char *title, const char *member, const char *more)
{
    for (stk_jv v = stk_jv_first(list); !stk_jv_is(v, STK_J_NONE); v = stk_jv_next(v)) {
        char a[400] = "", b[400] = "";
        if (stk_jv_is(v, STK_J_STRING))
            snprintf(a, sizeof(a), "%.*s", (int)stk_min(stk_jv_str(v).n, 399), stk_jv_str(v).p);
        else
            stk_cli_text(v, member, a, sizeof(a));
        if (more && stk_jv_str(stk_jv_get(v, more)).n)
            stk_cli_text(v, more, b, sizeof(b));
        printf("%-14s %s%s%s\n", title, a, *b ? ": " : "", b);
    }
}

static void print_allow(stk_jv list)
{
    for (stk_jv v = stk_jv_first(list); !stk_jv_is(v, STK_J_NONE); v = stk_jv_next(v)) {
        char entry[400], by[400];
        bool narrowed = stk_jv_str(stk_jv_get(v, "narrowed_by")).n > 0;
        bool effective = stk_jv_bool(stk_jv_get(v, "effective"));
        printf("%-14s %s%s%s\n", effective ? "allow" : "not allowed",
               stk_cli_text(v, "entry", entry, sizeof(entry)), narrowed ? ", narrowed by " : "",
               narrowed ? stk_cli_text(v, "narrowed_by", by, sizeof(by)) : "");
    }
}

static int print_plan(const stk_cli_args *args, stk_jv plan)
{
    static const char *const lines[] = {"agent", "backend", "isolation", "runtime", "image", "worker"};
    char text[600];
    if (args->json) {
        stk_cli_print_json(plan);
        return 0;
    }
    for (size_t i = 0; i < STK_COUNT(lines); i++)
        printf("%-14s %s\n", lines[i], stk_cli_text(plan, lines[i], text, sizeof(text)));
    print_allow(stk_jv_get(plan, "allow"));
    print_list(stk_jv_get(plan, "would_refuse"), "would refuse", "what", NULL);
    print_list(stk_jv_get(plan, "warnings"), "warning", "what", NULL);
    print_list(stk_jv_get(plan, "other_backends"), "not chosen", "backend", "why_not");
    return 0;
}

int stk_verb_plan(int argc, char **argv)
{
    stk_cli_args args;
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF((size_t)2 << 20);
    int status = stk_cli_parse(&stk_cli_plan, argc, argv, &args);
    if (status >= 0)
        return status;
    stk_jw w;
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    write_command(&args, &w);
    write_option(&args, &w, "backend", "backend");
    write_option(&args, &w, "image", "image");
    stk_jw_close(&w, '}');
    if (stk_cli_call(&args, "POST", "/api/admin/platform/agent-sandbox/plan", stk_buf_view(&body), NULL,
                     &answer) < 0)
        return 1;
    return answer.status == 200 ? print_plan(&args, stk_json_root(answer.doc))
                                : stk_cli_problem(&args, &answer);
}
