#include "api-gateway/cli/cli.h"
#include "api-gateway/cli/table.h"
#include "proto/base/fd.h"
#include "proto/base/tree.h"
#include <stdio.h>

#define PATH_SANDBOX "/api/admin/platform/agent-sandbox"
#define PATH_ORG     "/api/admin/platform/egress-policy"

const stk_cli_verb stk_cli_config = {
    .name = "config",
    .arguments = "get|set|diff [FILE.json]",
    .about = "The agent-sandbox document: get prints it, set replaces it by FILE, diff shows the lines "
             "that set would change.\n"
             "A change that loosens anything needs a reason (in FILE or --reason) and the scope "
             "governance.weaken.",
    .opts = {{"reason", "TEXT", "why; recorded in the audit trail", 0},
             {"if-version", "N", "only if the document still has this version", 0},
             {"organisation", NULL, "the organisation's egress policy instead", 0}},
    .least = 1,
    .most = 2};

static const char *path_of(const stk_cli_args *args)
{
    return stk_cli_opt_get(args, "organisation") ? PATH_ORG : PATH_SANDBOX;
}

static int get(const stk_cli_args *args)
{
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    if (stk_cli_call(args, "GET", path_of(args), (stk_str){0}, NULL, &answer) < 0)
        return 1;
    if (answer.status != 200)
        return stk_cli_problem(args, &answer);
    stk_cli_print_json(stk_json_root(answer.doc));
    return 0;
}

/* FILE's document with --reason put into it. */
static int read_document(const stk_cli_args *args, stk_buf *body)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF((size_t)1 << 20);
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_err err;
    const char *reason = stk_cli_opt_get(args, "reason");
    if (args->n < 2)
        return stk_cli_fail(args, 2, "%s needs a file", args->v[0]);
    if (stk_file_read(args->v[1], &text, &err) < 0)
        return stk_cli_fail(args, 2, "%s", err.detail);
    if (stk_json_parse(stk_buf_view(&text), NULL, &doc, &err) < 0)
        return stk_cli_fail(args, 2, "%s: %s", args->v[1], err.detail);
    stk_jv root = stk_json_root(doc);
    if (!stk_jv_is(root, STK_J_OBJECT))
        return stk_cli_fail(args, 2, "%s holds no JSON object", args->v[1]);
    stk_jw w;
    stk_jw_init(&w, body);
    stk_jw_object(&w);
    for (stk_jv v = stk_jv_first(root); !stk_jv_is(v, STK_J_NONE); v = stk_jv_next(v)) {
        if (reason && stk_str_eq(stk_jv_key(v), STK_STR("reason")))
            continue;
        stk_jw_key_str(&w, stk_jv_key(v));
        stk_jw_value(&w, v);
    }
    if (reason)
        stk_jw_ktext(&w, "reason", reason);
    stk_jw_close(&w, '}');
    return 0;
}

static void print_change(stk_jv root)
{
    char version[24], pointer[300], what[400];
    printf("version %s is in force\n", stk_cli_text(root, "version", version, sizeof(version)));
    for (stk_jv v = stk_jv_first(stk_jv_get(root, "weakening")); !stk_jv_is(v, STK_J_NONE);
         v = stk_jv_next(v))
        printf("loosened: %s at %s\n", stk_cli_text(v, "what", what, sizeof(what)),
               stk_cli_text(v, "pointer", pointer, sizeof(pointer)));
}

static int set(const stk_cli_args *args)
{
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF((size_t)2 << 20);
    char match[64];
    const char *headers[] = {match, NULL};
    const char *version = stk_cli_opt_get(args, "if-version");
    int status = read_document(args, &body);
    if (status)
        return status;
    snprintf(match, sizeof(match), "If-Match: \"%.20s\"", version ? version : "");
    if (stk_cli_call(args, "PUT", path_of(args), stk_buf_view(&body), version ? headers : NULL, &answer) < 0)
        return 1;
    if (answer.status != 200)
        return stk_cli_problem(args, &answer);
    if (args->json)
        stk_cli_print_json(stk_json_root(answer.doc));
    else
        print_change(stk_json_root(answer.doc));
    return 0;
}

/* Two texts, line by line: what only one of them has. Good enough for documents that are written in one
 * order. */
static void print_lines(const stk_buf *text, const stk_buf *other, char mark)
{
    for (const char *p = text->p; p && *p;) {
        size_t n = strcspn(p, "\n");
        bool same = false;
        for (const char *q = other->p; q && *q && !same; q += strcspn(q, "\n"), q += *q == '\n')
            same = strcspn(q, "\n") == n && memcmp(p, q, n) == 0;
        if (!same)
            printf("%c %.*s\n", mark, (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static int pretty(stk_jv v, stk_buf *out)
{
    cJSON *tree STK_AUTO(stk_tree_freep) = NULL;
    stk_err ignored;
    if (stk_tree_from(v, &tree, &ignored) < 0)
        return -1;
    cJSON_DeleteItemFromObject(tree, "reason");
    cJSON_DeleteItemFromObject(tree, "version");
    return stk_tree_pretty(out, tree, &ignored);
}

static int diff(const stk_cli_args *args)
{
    stk_cli_answer answer STK_AUTO(stk_cli_answer_done) = {0};
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF((size_t)2 << 20);
    stk_buf now STK_AUTO(stk_buf_done) = STK_BUF((size_t)4 << 20);
    stk_buf then STK_AUTO(stk_buf_done) = STK_BUF((size_t)4 << 20);
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_err err;
    int status = read_document(args, &body);
    if (status)
        return status;
    if (stk_cli_call(args, "GET", path_of(args), (stk_str){0}, NULL, &answer) < 0)
        return 1;
    if (answer.status != 200)
        return stk_cli_problem(args, &answer);
    if (stk_json_parse(stk_buf_view(&body), NULL, &doc, &err) < 0 ||
        pretty(stk_json_root(answer.doc), &now) < 0 || pretty(stk_json_root(doc), &then) < 0)
        return stk_cli_fail(args, 1, "the documents can't be compared");
    print_lines(&now, &then, '-');
    print_lines(&then, &now, '+');
    return 0;
}

int stk_verb_config(int argc, char **argv)
{
    stk_cli_args args;
    int status = stk_cli_parse(&stk_cli_config, argc, argv, &args);
    if (status >= 0)
        return status;
    if (strcmp(args.v[0], "get") == 0)
        return get(&args);
    if (strcmp(args.v[0], "set") == 0)
        return set(&args);
    if (strcmp(args.v[0], "diff") == 0)
        return diff(&args);
    return stk_cli_fail(&args, 2, "there are config get, set and diff, not %s", args.v[0]);
}
