/* Each decoder of proto/message: the first byte chooses one. What decodes must encode, and that must decode
 * again to the same bytes. */
#include "proto/message/assignment.h"
#include "proto/message/audit.h"
#include "proto/message/config.h"
#include "proto/message/event.h"
#include "proto/message/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define ROUND(name, T, decode, encode, done)                                                                 \
    static int name(stk_str text, stk_buf *out)                                                              \
    {                                                                                                        \
        static T m;                                                                                          \
        if (decode(text, &m, NULL) < 0)                                                                      \
            return -1;                                                                                       \
        int rc = encode(&m, out, NULL);                                                                      \
        done(&m);                                                                                            \
        if (rc < 0)                                                                                          \
            abort();                                                                                         \
        return 0;                                                                                            \
    }

#define ROUND_VALUE(name, T, DECODE, WRITE, done)                                                            \
    static int name(stk_str text, stk_buf *out)                                                              \
    {                                                                                                        \
        stk_json *doc STK_AUTO(stk_json_freep) = NULL;                                                       \
        static T m;                                                                                          \
        if (stk_json_parse(text, NULL, &doc, NULL) < 0)                                                      \
            return -1;                                                                                       \
        stk_jv v = stk_json_root(doc);                                                                       \
        if (DECODE < 0)                                                                                      \
            return -1;                                                                                       \
        stk_jw w;                                                                                            \
        stk_jw_init(&w, out);                                                                                \
        WRITE;                                                                                               \
        done(&m);                                                                                            \
        if (stk_jw_end(&w, NULL) < 0)                                                                        \
            abort();                                                                                         \
        return 0;                                                                                            \
    }

static void nothing(void *m)
{
}

ROUND(request, stk_request, stk_request_decode, stk_request_encode, stk_request_done)
ROUND(assignment, stk_assignment, stk_assignment_decode, stk_assignment_encode, stk_assignment_done)
ROUND(event, stk_event, stk_event_decode, stk_event_encode, stk_event_done)
ROUND(audit, stk_audit_row, stk_audit_decode, stk_audit_encode, stk_audit_row_done)
ROUND(record, stk_config_record, stk_config_record_decode, stk_config_record_encode, stk_config_record_done)
ROUND(egress, stk_egress_record, stk_egress_decode, stk_egress_encode, nothing)
ROUND_VALUE(end, stk_exec_end, stk_exec_end_decode(v, &m, NULL), stk_exec_end_write(&w, &m), nothing)
ROUND_VALUE(sandbox, stk_sandbox_doc, stk_sandbox_doc_decode(v, true, &m, NULL, NULL),
            stk_sandbox_doc_write(&w, &m, false), stk_sandbox_doc_done)
ROUND_VALUE(org, stk_org_doc, stk_org_doc_decode(v, &m, NULL, NULL), stk_org_doc_write(&w, &m),
            stk_org_doc_done)
ROUND_VALUE(pools, stk_pools_doc, stk_pools_doc_decode(v, &m, NULL), stk_pools_doc_write(&w, &m),
            stk_pools_doc_done)

/* Bodies have no way back: they must only never crash, and what they give must be whole. */
static int body(stk_str text, bool plan)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    static stk_request req;
    static stk_run_secret secret;
    if (stk_json_parse(text, NULL, &doc, NULL) < 0 ||
        stk_request_from_api(stk_json_root(doc), plan, (stk_wall){0}, &req, &secret, NULL) < 0)
        return -1;
    if (secret.command.n == 0 || stk_command_check(&secret.command, &secret.env, NULL) < 0)
        abort();
    stk_request_done(&req);
    stk_run_secret_done(&secret);
    return -1;
}

static int (*const rounds[])(stk_str, stk_buf *) = {request, assignment, event,   audit, record,
                                                    egress,  end,        sandbox, org,   pools};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    stk_str text = stk_str_n(data + 1, n - 1);
    size_t which = data[0] % (STK_COUNT(rounds) + 3);
    if (which == STK_COUNT(rounds) + 2) {
        stk_strv words = {0};
        (void)!stk_shlex_split(text, &words, NULL);
        stk_strv_done(&words);
        return 0;
    }
    if (which >= STK_COUNT(rounds))
        return body(text, which == STK_COUNT(rounds)) & 0;
    stk_buf once STK_AUTO(stk_buf_done) = STK_BUF(4 * STK_RECORD_MAX);
    stk_buf twice STK_AUTO(stk_buf_done) = STK_BUF(4 * STK_RECORD_MAX);
    if (rounds[which](text, &once) < 0)
        return 0;
    if (rounds[which](stk_buf_view(&once), &twice) < 0 ||
        !stk_str_eq(stk_buf_view(&once), stk_buf_view(&twice)))
        abort();
    return 0;
}
