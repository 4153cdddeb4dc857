#include "api-gateway/cli/cli.h"
#include "api-gateway/cli/table.h"
#include <stdio.h>

const stk_cli_verb stk_cli_workers = {
    .name = "workers", .arguments = "", .about = "Workers, their load and what their hosts have."};

const stk_cli_verb stk_cli_pools = {
    .name = "pools",
    .arguments = "[NAME]",
    .about = "Shows warm pools, or sets one (with --agent and --target).",
    .opts = {{"agent", "NAME", "whose limits and image the sandboxes are made for", 0},
             {"target", "N", "warm sandboxes to keep ready; 0 ends the pool", 0},
             {"max", "N", "at most; default = target", 0},
             {"ttl", "SECONDS", "a warm sandbox is replaced after this time; default 600", 0}},
    .most = 1};

const stk_cli_verb stk_cli_audit_tail = {
    .name = "audit tail",
    .arguments = "",
    .about = "The newest audit rows, oldest of them first.",
    .opts = {{"limit", "N", "how many; default 20", 0},
             {"run", "ID", "only of this run", 0},
             {"agent", "NAME", "only of this agent", 0},
             {"action", "NAME", "only this action; agent_sandbox.egress.* for a family", 0}}};

static int fetch(const stk_cli_args *args, const char *path, stk_cli_answer *answer)
{
    if (stk_cli_call(args, "GET", path, (stk_str){0}, NULL, answer) < 0)
        return 1;
    return answer->status == 200 ? 0 : stk_cli_problem(args, answer);
}

static void print_worker(stk_jv worker)
{
    char id[64], host[80], slots[24], used[24];
    printf("%-31s %-16s %-8s %s of %s slots in use\n", stk_cli_text(worker, "id", id, sizeof(id)),
           stk_cli_text(worker, "host", host, sizeof(host)),
           !stk_jv_bool(stk_jv_get(worker, "live"))      ? "lost"
           : stk_jv_bool(stk_jv_get(worker, "draining")) ? "draining"
                                                         : "live",
           stk_cli_text(worker, "used", used, sizeof(used)),
           stk_cli_text(worker, "slots", slots, sizeof(slots)));
    for (stk_jv be = stk_jv_first(stk_jv_get(worker, "backends")); !stk_jv_is(be, STK_J_NONE);
         be = stk_jv_next(be)) {
        char name[32], isolation[32], runtime[64], reason[300];
        bool ok = stk_jv_bool(stk_jv_get(be, "ok"));
        printf("  %-12s %-8s %s\n", stk_cli_text(be, "name", name, sizeof(name)),
               ok ? stk_cli_text(be, "isolation", isolation, sizeof(isolation)) : "missing",
               ok ? stk_cli_text(be, "runtime", runtime, sizeof(runtime))
                  : stk_cli_text(be, "reason", reason, sizeof(reason)));
    }
}

int stk_verb_workers(int argc, char **argv)
{
    stk_cli_args args;
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    int status = stk_cli_parse(&stk_cli_workers, argc, argv, &args);
    if (status >= 0 || (status = fetch(&args, "/v1/workers", &answer)) != 0)
        return status;
    stk_jv root = stk_json_root(answer.doc);
    if (args.json)
        stk_cli_print_json(root);
    for (stk_jv v = stk_jv_first(stk_jv_get(root, "workers")); !args.json && !stk_jv_is(v, STK_J_NONE);
         v = stk_jv_next(v))
        print_worker(v);
    return 0;
}

static void print_pool(stk_jv pool)
{
    char name[80], agent[140], warm[24], target[24], max[24], ttl[24];
    stk_jv spec = stk_jv_get(pool, "spec");
    printf("%-20s %-20s %s warm of %s (at most %s), each for %s s\n",
           stk_cli_text(pool, "name", name, sizeof(name)), stk_cli_text(spec, "agent", agent, sizeof(agent)),
           stk_cli_text(pool, "warm", warm, sizeof(warm)),
           stk_cli_text(spec, "target", target, sizeof(target)), stk_cli_text(spec, "max", max, sizeof(max)),
           stk_cli_text(spec, "ttl_seconds", ttl, sizeof(ttl)));
}

/* What the gateway answered: all pools, one, or a change. */
static void print_pools(const char *name, stk_jv root)
{
    char version[24];
    if (!stk_jv_is(stk_jv_get(root, "after"), STK_J_NONE))
        printf("pool %s: version %s is in force\n", name,
               stk_cli_text(root, "version", version, sizeof(version)));
    else if (!stk_jv_is(stk_jv_get(root, "spec"), STK_J_NONE))
        print_pool(root);
    for (stk_jv v = stk_jv_first(stk_jv_get(root, "pools")); !stk_jv_is(v, STK_J_NONE); v = stk_jv_next(v))
        print_pool(v);
}

static int write_pool(const stk_cli_args *args, stk_buf *body)
{
    static const struct {
        const char *option, *member;
    } numbers[] = {{"target", "target"}, {"max", "max"}, {"ttl", "ttl_seconds"}};
    const char *agent = stk_cli_opt_get(args, "agent");
    stk_jw w;
    stk_jw_init(&w, body);
    stk_jw_object(&w);
    if (agent)
        stk_jw_ktext(&w, "agent", agent);
    for (size_t i = 0; i < STK_COUNT(numbers); i++) {
        const char *text = stk_cli_opt_get(args, numbers[i].option);
        uint64_t n;
        if (!text)
            continue;
        if (!stk_str_u64(stk_str_of(text), 1000000, &n))
            return stk_cli_fail(args, 2, "--%s needs a whole number", numbers[i].option);
        stk_jw_kint(&w, numbers[i].member, (int64_t)n);
    }
    stk_jw_close(&w, '}');
    return 0;
}

int stk_verb_pools(int argc, char **argv)
{
    stk_cli_args args;
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    stk_buf path STK_AUTO(stk_buf_done) = STK_BUF(1024);
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(4096);
    int status = stk_cli_parse(&stk_cli_pools, argc, argv, &args);
    if (status >= 0)
        return status;
    stk_buf_text(&path, "/v1/pools");
    if (args.n) {
        stk_buf_byte(&path, '/');
        stk_cli_encode(&path, args.v[0]);
    }
    bool put = args.n && (stk_cli_opt_get(&args, "agent") || stk_cli_opt_get(&args, "target"));
    if (put && (status = write_pool(&args, &body)) != 0)
        return status;
    if (stk_cli_call(&args, put ? "PUT" : "GET", path.p, put ? stk_buf_view(&body) : (stk_str){0}, NULL,
                     &answer) < 0)
        return 1;
    if (answer.status != 200)
        return stk_cli_problem(&args, &answer);
    if (args.json)
        stk_cli_print_json(stk_json_root(answer.doc));
    else
        print_pools(args.v[0], stk_json_root(answer.doc));
    return 0;
}

static void print_row(stk_jv row)
{
    char time[40], action[48], agent[140], run[64], actor[100];
    printf("%s %-28s %-14s %-31s %s", stk_cli_text(row, "time", time, sizeof(time)),
           stk_cli_text(row, "action", action, sizeof(action)),
           stk_cli_text(row, "agent", agent, sizeof(agent)), stk_cli_text(row, "run", run, sizeof(run)),
           stk_cli_text(row, "actor", actor, sizeof(actor)));
    stk_jv details = stk_jv_get(row, "details");
    static const char *const shown[] = {"document", "version", "executable", "reason", "host", "exit_code"};
    for (size_t i = 0; i < STK_COUNT(shown); i++) {
        char text[300];
        if (!stk_jv_is(stk_jv_get(details, shown[i]), STK_J_NONE) &&
            *stk_cli_text(details, shown[i], text, sizeof(text)))
            printf(" %s=%s", shown[i], text);
    }
    putchar('\n');
}

int stk_verb_audit_tail(int argc, char **argv)
{
    static const char *const queries[] = {"run", "agent", "action"};
    stk_cli_args args;
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    stk_buf path STK_AUTO(stk_buf_done) = STK_BUF(4096);
    int status = stk_cli_parse(&stk_cli_audit_tail, argc, argv, &args);
    if (status >= 0)
        return status;
    const char *limit = stk_cli_opt_get(&args, "limit");
    stk_buf_text(&path, "/v1/audit?limit=");
    stk_cli_encode(&path, limit ? limit : "20");
    for (size_t i = 0; i < STK_COUNT(queries); i++)
        if (stk_cli_opt_get(&args, queries[i])) {
            stk_buf_fmt(&path, "&%s=", queries[i]);
            stk_cli_encode(&path, stk_cli_opt_get(&args, queries[i]));
        }
    if ((status = fetch(&args, path.p, &answer)) != 0)
        return status;
    stk_jv rows = stk_jv_get(stk_json_root(answer.doc), "rows");
    if (args.json) {
        stk_cli_print_json(stk_json_root(answer.doc));
        return 0;
    }
    size_t n = stk_jv_count(rows), i = 0;
    stk_jv *list STK_AUTO(stk_freep) = stk_xcalloc(n + 1, sizeof(*list));
    for (stk_jv v = stk_jv_first(rows); !stk_jv_is(v, STK_J_NONE); v = stk_jv_next(v))
        list[i++] = v;
    while (i > 0)
        print_row(list[--i]);
    return 0;
}
