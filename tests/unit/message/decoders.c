/* For schema_as_decoders.py: lines "KIND JSON" in, "ok" or "CODE POINTER" out. KIND is a golden's name,
 * policy or run-body. */
#include "tests/unit/message/golden.h"
#include "proto/message/request.h"
#include "proto/policy/policy.h"
#include <stdio.h>

static int through_policy(stk_str text, stk_buf *out, stk_err *err)
{
    stk_policy *policy STK_AUTO(stk_policy_freep) = NULL;
    return stk_policy_parse_text(text, &policy, err);
}

static int through_body(stk_str text, stk_buf *out, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_request req = {0};
    stk_run_secret secret = {0};
    int rc = stk_json_parse(text, NULL, &doc, err);
    if (rc == 0)
        rc = stk_request_from_api(stk_json_root(doc), false, (stk_wall){0}, &req, &secret, err);
    stk_request_done(&req);
    stk_run_secret_done(&secret);
    return rc;
}

static int through(stk_str kind, stk_str text, stk_err *err)
{
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF((size_t)1 << 24);
    if (stk_str_eq(kind, STK_STR("policy")))
        return through_policy(text, &out, err);
    if (stk_str_eq(kind, STK_STR("run-body")))
        return through_body(text, &out, err);
    for (size_t i = 0; i < golden_count; i++)
        if (stk_str_eq(kind, stk_str_of(goldens[i].file)))
            return goldens[i].through(text, &out, err);
    fprintf(stderr, "no such kind: %.*s\n", (int)kind.n, kind.p);
    exit(1);
}

int main(void)
{
    char *line STK_AUTO(stk_freep) = NULL;
    size_t size = 0;
    ssize_t n;
    while ((n = getline(&line, &size, stdin)) > 0) {
        stk_err err = {0};
        size_t space = strcspn(line, " ");
        stk_str text = stk_str_n(line + space + 1, (size_t)n - space - 2);
        if (through(stk_str_n(line, space), text, &err) == 0)
            printf("ok\n");
        else
            printf("%s %s %s\n", stk_code_text(err.code), err.pointer[0] ? err.pointer : "-", err.detail);
    }
    return 0;
}
