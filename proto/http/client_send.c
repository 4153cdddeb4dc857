#include "proto/http/client_impl.h"
#include "proto/http/head_impl.h"
#include <stdio.h>

#define QUEUE_MOST (256u << 10)

static struct iovec part_of(stk_str s)
{
    return (struct iovec){(void *)(uintptr_t)s.p, s.n};
}

static int check_request(const stk_http_conn *conn, const char *method, const char *target, const char *host,
                         const char *headers, stk_err *err)
{
    if (conn->state == STK__CONN_DEAD || conn->freed)
        return stk_err_set(err, STK_E_CLOSED, "the connection is closed");
    if (conn->state != STK__CONN_IDLE)
        return stk_err_set(err, STK_E_CONFLICT, "the connection is busy with another request");
    if (!stk_is_token(stk_str_of(method)) || !*target || !stk__all(stk_str_of(target), STK__C_TARGET))
        return stk_err_set(err, STK_E_HTTP, "the method or the target is malformed");
    if (!*host || !stk__all(stk_str_of(host), STK__C_HOST) || !stk__header_lines_ok(stk_str_of(headers)))
        return stk_err_set(err, STK_E_HTTP, "the host or a header line is malformed");
    return 0;
}

static void begin(stk_http_conn *conn, const char *method, const stk_http_conn_limits *limits)
{
    stk__conn_limits(conn, limits);
    if (conn->head_block)
        stk__io_return(&conn->io, STK_TAKE(conn->head_block), conn->head_size);
    conn->state = STK__CONN_HEAD;
    conn->whole = conn->flushed = conn->chunked_out = conn->want_writable = conn->paused = false;
    conn->to_head = strcmp(method, "HEAD") == 0;
    conn->sent_before = conn->io.sent;
    conn->since = stk_mono_now();
    conn->interim = 0;
    conn->scan = 0;
}

static bool implies_body(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;
}

/* Puts head and body (or what of it is there) out at once. */
static void put(stk_http_conn *conn, const char *method, const char *target, const char *host,
                const char *headers, const char *framing, stk_str body)
{
    struct iovec parts[] = {
        part_of(stk_str_of(method)),  part_of(STK_STR(" ")),
        part_of(stk_str_of(target)),  part_of(STK_STR(" HTTP/1.1\r\nHost: ")),
        part_of(stk_str_of(host)),    part_of(STK_STR("\r\n")),
        part_of(stk_str_of(headers)), part_of(stk_str_of(framing)),
        part_of(STK_STR("\r\n")),     part_of(body),
    };
    stk__io_send(&conn->io, parts, (int)STK_COUNT(parts));
}

static void after_write(stk_http_conn *conn)
{
    if (conn->busy)
        return;
    stk__conn_arm(conn);
    if (conn->io.write_failed)
        stk__io_kick(&conn->io);
}

int stk_http_conn_send(stk_http_conn *conn, const char *method, const char *target, const char *host,
                       const char *headers, stk_str body, const stk_http_conn_limits *limits, stk_err *err)
{
    char framing[48] = "";
    int rc = check_request(conn, method, target, host, headers, err);
    if (rc < 0)
        return rc;
    begin(conn, method, limits);
    if (body.n || implies_body(method))
        snprintf(framing, sizeof framing, "Content-Length: %zu\r\n", body.n);
    put(conn, method, target, host, headers, framing, body);
    conn->whole = true;
    after_write(conn);
    return 0;
}

int stk_http_conn_start(stk_http_conn *conn, const char *method, const char *target, const char *host,
                        const char *headers, uint64_t length, const stk_http_conn_limits *limits,
                        stk_err *err)
{
    char framing[48] = "Transfer-Encoding: chunked\r\n";
    int rc = check_request(conn, method, target, host, headers, err);
    if (rc < 0)
        return rc;
    begin(conn, method, limits);
    conn->chunked_out = length == UINT64_MAX;
    conn->out_left = length;
    if (!conn->chunked_out)
        snprintf(framing, sizeof framing, "Content-Length: %llu\r\n", (unsigned long long)length);
    put(conn, method, target, host, headers, framing, (stk_str){NULL, 0});
    after_write(conn);
    return 0;
}

static bool writing(const stk_http_conn *conn)
{
    bool asked = conn->state == STK__CONN_HEAD || conn->state == STK__CONN_BODY;
    return asked && !conn->whole && !conn->io.write_failed && !conn->failure.code;
}

static void fail_later(stk_http_conn *conn, const char *why)
{
    stk_err_set(&conn->failure, STK_E_INTERNAL, "%s", why);
    if (!conn->busy)
        stk__io_kick(&conn->io);
}

bool stk_http_conn_write(stk_http_conn *conn, stk_str data)
{
    char size[24];
    if (!writing(conn) || data.n == 0)
        return true;
    if (!conn->chunked_out && data.n > conn->out_left) {
        fail_later(conn, "the request is longer than was promised");
        return true;
    }
    if (conn->chunked_out) {
        int n = snprintf(size, sizeof size, "%zx\r\n", data.n);
        struct iovec parts[] = {{size, (size_t)n}, part_of(data), part_of(STK_STR("\r\n"))};
        stk__io_queue(&conn->io, parts, 3);
    } else {
        struct iovec part = part_of(data);
        conn->out_left -= data.n;
        stk__io_queue(&conn->io, &part, 1);
    }
    if (!conn->busy)
        stk__io_kick(&conn->io);
    conn->want_writable = stk__io_queued(&conn->io) >= QUEUE_MOST;
    return !conn->want_writable;
}

void stk_http_conn_finish(stk_http_conn *conn)
{
    if (!writing(conn))
        return;
    if (!conn->chunked_out && conn->out_left > 0) {
        fail_later(conn, "the request is shorter than was promised");
        return;
    }
    struct iovec last = part_of(STK_STR("0\r\n\r\n"));
    if (conn->chunked_out)
        stk__io_queue(&conn->io, &last, 1);
    conn->whole = true;
    if (!conn->busy)
        stk__io_kick(&conn->io);
}
