#include "proto/http/head_impl.h"
#include "proto/http/server_impl.h"
#include <stdio.h>
#include <time.h>

#define BIG_WRITE 16384 /* worth a system call of its own, to save the copy */

static struct iovec part_of(stk_str s)
{
    return (struct iovec){(void *)(uintptr_t)s.p, s.n};
}

/* RFC 9110 section 5.6.7; made anew once a second. strftime would follow the locale. */
static const char *date_now(stk_http_server *server)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = (time_t)(stk_wall_now().ns / 1000000000);
    struct tm tm;
    if (now != server->date_at && gmtime_r(&now, &tm)) {
        snprintf(server->date, sizeof server->date, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday],
                 tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
        server->date_at = now;
    }
    return server->date;
}

static bool has_no_body(int status)
{
    return status == 204 || status == 304;
}

static stk_framing choose_framing(const stk_http_x *x, int status, uint64_t length)
{
    if (has_no_body(status))
        return STK_FRAMING_NONE;
    if (length != UINT64_MAX)
        return STK_FRAMING_LENGTH;
    return x->head.minor == 1 ? STK_FRAMING_CHUNKED : STK_FRAMING_CLOSE;
}

/* The fixed lines, up to where a content type's value goes. */
static size_t put_lines(const stk_http_x *x, int status, const char *type, char *out, size_t size)
{
    char framing[48] = "";
    if (x->out_framing == STK_FRAMING_LENGTH)
        snprintf(framing, sizeof framing, "Content-Length: %llu\r\n", (unsigned long long)x->out_left);
    else if (x->out_framing == STK_FRAMING_CHUNKED)
        snprintf(framing, sizeof framing, "Transfer-Encoding: chunked\r\n");
    const char *connection = "";
    if (x->close)
        connection = "Connection: close\r\n";
    else if (x->head.minor == 0)
        connection = "Connection: keep-alive\r\n";
    int n = snprintf(out, size, "HTTP/1.1 %d %s\r\nDate: %s\r\n%s%s%s", status, stk_http_status_name(status),
                     date_now(x->server), framing, connection, type ? "Content-Type: " : "");
    return (size_t)n;
}

/* Starts the answer: head and, when it's a whole one, its body go out together. */
static void begin(stk_http_x *x, int status, const char *type, const char *headers, uint64_t length,
                  stk_str body)
{
    bool whole = length != UINT64_MAX && body.n == length;
    char lines[512];
    if (status < 200 || status > 599 || !stk__header_lines_ok(stk_str_of(headers)) ||
        (type && !stk__all(stk_str_of(type), STK__C_VALUE))) {
        status = 500;
        type = NULL;
        headers = "";
        length = body.n = 0;
        x->drop = true;
    }
    if (x->in != STK__IN_DONE || x->server->draining)
        x->close = true;
    x->out_framing = choose_framing(x, status, length);
    x->out_left = length;
    if (x->out_framing == STK_FRAMING_CLOSE)
        x->close = true;
    x->drop |= x->is_head || has_no_body(status);
    struct iovec parts[6] = {{lines, put_lines(x, status, type, lines, sizeof lines)}};
    parts[1] = part_of(stk_str_of(type));
    parts[2] = part_of(type ? STK_STR("\r\n") : (stk_str){NULL, 0});
    parts[3] = part_of(stk_str_of(headers));
    parts[4] = part_of(STK_STR("\r\n"));
    parts[5] = part_of(x->drop ? (stk_str){NULL, 0} : body);
    x->out = STK__OUT_STREAM;
    if (whole)
        stk__io_send(&x->io, parts, 6);
    else
        stk__io_queue(&x->io, parts, 5);
}

void stk_http_answer(stk_http_x *x, int status, const char *type, const char *headers, stk_str body)
{
    if (x->out != STK__OUT_NONE)
        return;
    begin(x, status, type, headers, body.n, body);
    x->out = STK__OUT_ENDED;
    if (x->in != STK__IN_DONE)
        x->in = STK__IN_DROP;
    stk__conn_kick(x);
}

void stk_http_start(stk_http_x *x, int status, const char *type, const char *headers, uint64_t length)
{
    if (x->out != STK__OUT_NONE)
        return;
    begin(x, status, type, headers, length, (stk_str){NULL, 0});
    stk__conn_kick(x);
}

static bool has_room(stk_http_x *x)
{
    if (stk__io_queued(&x->io) < x->server->limits.write_buffer)
        return true;
    x->want_writable = true;
    return false;
}

/* More than was promised can't be sent, and less would read as the start of the next answer. */
static bool count_out(stk_http_x *x, uint64_t n)
{
    if (x->out_framing != STK_FRAMING_LENGTH)
        return true;
    if (n > x->out_left) {
        x->cut = true;
        stk__conn_kick(x);
        return false;
    }
    x->out_left -= n;
    return true;
}

bool stk_http_write(stk_http_x *x, stk_str data)
{
    if (x->out != STK__OUT_STREAM || x->cut || data.n == 0)
        return true;
    if (x->drop || !count_out(x, data.n))
        return true;
    char size[24] = "";
    struct iovec parts[3] = {{size, 0}, part_of(data), {"\r\n", 0}};
    if (x->out_framing == STK_FRAMING_CHUNKED) {
        parts[0].iov_len = (size_t)snprintf(size, sizeof size, "%zx\r\n", data.n);
        parts[2].iov_len = 2;
    }
    if (data.n >= BIG_WRITE) {
        stk__io_flush(&x->io);
        stk__io_send(&x->io, parts, 3);
    } else {
        stk__io_queue(&x->io, parts, 3);
    }
    stk__conn_kick(x);
    return has_room(x);
}

bool stk_http_write_file(stk_http_x *x, int fd, uint64_t offset, uint64_t length)
{
    bool wanted = x->out == STK__OUT_STREAM && !x->cut && !x->drop && x->out_framing == STK_FRAMING_LENGTH;
    if (!wanted || length == 0 || !count_out(x, length)) {
        close(fd);
        return true;
    }
    stk__io_queue_file(&x->io, fd, offset, length);
    stk__conn_kick(x);
    return has_room(x);
}

void stk_http_end(stk_http_x *x)
{
    if (x->out != STK__OUT_STREAM)
        return;
    struct iovec last = part_of(STK_STR("0\r\n\r\n"));
    if (!x->drop && x->out_framing == STK_FRAMING_CHUNKED)
        stk__io_queue(&x->io, &last, 1);
    if (!x->drop && x->out_framing == STK_FRAMING_LENGTH && x->out_left > 0)
        x->cut = true;
    x->out = STK__OUT_ENDED;
    if (x->in != STK__IN_DONE) {
        x->in = STK__IN_DROP;
        x->close = true;
    }
    stk__conn_kick(x);
}
