#include "egress-proxy/refusal.h"
#include "proto/base/json.h"
#include "proto/http/server.h"

static void write_body(const stk_refusal *refusal, stk_buf *body)
{
    stk_jw w;
    stk_jw_init(&w, body);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "type", "about:blank");
    stk_jw_ktext(&w, "title", stk_reason_text(refusal->reason));
    stk_jw_kint(&w, "status", stk_reason_status(refusal->reason));
    stk_jw_ktext(&w, "reason", stk_reason_code(refusal->reason));
    if (refusal->detail[0])
        stk_jw_ktext(&w, "detail", refusal->detail);
    stk_jw_ktext(&w, "host", refusal->host);
    if (refusal->port)
        stk_jw_kint(&w, "port", refusal->port);
    stk_jw_ktext(&w, "rule", refusal->rule[0] ? refusal->rule : NULL);
    stk_jw_ktext(&w, "run", refusal->run[0] ? refusal->run : NULL);
    stk_jw_close(&w, '}');
    stk_buf_byte(body, '\n');
}

void stk_refusal_write(const stk_refusal *refusal, stk_buf *out)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(4096);
    int status = stk_reason_status(refusal->reason);
    write_body(refusal, &body);
    stk_buf_fmt(out,
                "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\nContent-Length: %zu\r\n"
                "Cache-Control: no-store\r\nX-Stockade-Reason: %s\r\n%s\r\n",
                status, stk_http_status_name(status), body.n, stk_reason_code(refusal->reason),
                refusal->keep_alive ? "" : "Connection: close\r\n");
    if (!refusal->head)
        stk_buf_str(out, stk_buf_view(&body));
}
