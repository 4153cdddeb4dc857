/* GET /download/{path}: a regular file, sent by the kernel from file to socket. */
#include "workers/runtime/names.h"
#include "workers/runtime/problem.h"
#include "workers/runtime/range.h"
#include "workers/runtime/target.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

typedef struct piece {
    stk_range kind;
    uint64_t at, n;
} piece;

static void put_date(stk_buf *out, time_t t)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm;
    if (t >= 0 && t < (time_t)253402300800 && gmtime_r(&t, &tm))
        stk_buf_fmt(out, "Last-Modified: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", days[tm.tm_wday],
                    tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void put_tag(const struct stat *st, char out[80])
{
    snprintf(out, 80, "\"%llx-%llx-%llx\"", (unsigned long long)st->st_mtim.tv_sec,
             (unsigned long long)st->st_mtim.tv_nsec, (unsigned long long)st->st_size);
}

/* A range that is asked for under another version of the file is of no use. */
static piece choose(const stk_head *head, uint64_t size, const char *tag)
{
    const stk_head_field *range = stk_head_get(head, "Range"), *only = stk_head_get(head, "If-Range");
    piece p = {STK_RANGE_WHOLE, 0, size};
    if (!range || (only && !stk_str_eq(only->value, stk_str_of(tag))))
        return p;
    p.kind = stk_range_parse(range->value, size, &p.at, &p.n);
    return p;
}

static void put_headers(stk_buf *out, const char *path, const struct stat *st, const char *tag, piece p)
{
    const char *slash = strrchr(path, '/');
    stk_buf_text(out, "Content-Disposition: ");
    stk_name_disposition(stk_str_of(slash ? slash + 1 : path), out);
    stk_buf_fmt(out, "\r\nAccept-Ranges: bytes\r\nETag: %s\r\n", tag);
    put_date(out, st->st_mtim.tv_sec);
    if (p.kind == STK_RANGE_PART)
        stk_buf_fmt(out, "Content-Range: bytes %llu-%llu/%llu\r\n", (unsigned long long)p.at,
                    (unsigned long long)(p.at + p.n - 1), (unsigned long long)st->st_size);
}

static void answer_outside(stk_exchange *ex, uint64_t size)
{
    char header[64];
    snprintf(header, sizeof(header), "Content-Range: bytes */%llu\r\n", (unsigned long long)size);
    stk_rt_problem(ex->x, 416, header, "the range lies outside the file");
}

static void on_end(stk_exchange *ex)
{
    stk_err err;
    char path[PATH_MAX], tag[80];
    int fd STK_AUTO(stk_closep) = -1;
    uint64_t size = 0;
    struct stat st;
    int rc = stk_target_of(ex, "/download/", path, &err);
    if (rc == 0)
        rc = stk_target_open(ex->rt->root, path, &fd, &size, &err);
    if (rc == 0 && fstat(fd, &st) < 0)
        rc = stk_target_errno(errno, &err);
    if (rc < 0) {
        stk_rt_refuse(ex->x, &err);
        return;
    }
    st.st_size = (off_t)size;
    put_tag(&st, tag);
    piece p = choose(stk_http_head(ex->x), size, tag);
    if (p.kind == STK_RANGE_OUTSIDE) {
        answer_outside(ex, size);
        return;
    }
    stk_buf headers STK_AUTO(stk_buf_done) = STK_BUF(8192);
    put_headers(&headers, path, &st, tag, p);
    stk_http_start(ex->x, p.kind == STK_RANGE_PART ? 206 : 200, "application/octet-stream", headers.p, p.n);
    stk_http_write_file(ex->x, fd, p.at, p.n);
    fd = -1;
    stk_http_end(ex->x);
}

const stk_call stk_call_download = {.end = on_end};
