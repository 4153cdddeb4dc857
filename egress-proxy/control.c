#include "egress-proxy/control.h"
#include "proto/base/fd.h"
#include <errno.h>
#include <event2/event_struct.h>
#include <sys/socket.h>

#define REPLIES_MOST ((size_t)65536)
#define RECORDS_MARK ((size_t)1 << 20)
#define RECORDS_MOST                                                                                         \
    ((size_t)256 << 20) /* what connections already open may still add; memory ends first                    \
                         */
#define WRITE_AT_ONCE ((size_t)65536)

struct stk_ctl {
    int fd;
    struct event readable, writable, flush;
    stk_buf in, replies, records;
    size_t records_at, line_left; /* of records: written; of the line being written */
    bool was_full, ended;
    const stk_ctl_ops *ops;
    void *arg;
};

static void end(stk_ctl *ctl)
{
    if (ctl->ended)
        return;
    ctl->ended = true;
    ctl->ops->on_end(ctl->arg);
}

static void take_line(stk_ctl *ctl, stk_str line)
{
    stk_control message = {0};
    stk_err err;
    int kind = stk_control_decode(line, &message, &err) < 0 ? -1 : stk_control_kind_of(&message);
    if (kind == STK_CTL_POLICY)
        ctl->ops->on_policy(message.version, message.run, stk_bytes_view(&message.body), ctl->arg);
    else if (kind == STK_CTL_ACK)
        ctl->ops->on_ack(message.seq, ctl->arg);
    else if (kind == STK_CTL_DRAIN)
        ctl->ops->on_drain(ctl->arg);
    else
        end(ctl);
    stk_control_done(&message);
}

static void take_lines(stk_ctl *ctl)
{
    size_t at = 0;
    while (!ctl->ended) {
        const char *lf = at < ctl->in.n ? memchr(ctl->in.p + at, '\n', ctl->in.n - at) : NULL;
        if (!lf)
            break;
        size_t n = (size_t)(lf - (ctl->in.p + at));
        take_line(ctl, stk_str_n(ctl->in.p + at, n));
        at += n + 1;
    }
    stk_buf_drop(&ctl->in, at);
    if (ctl->in.n > STK_CONTROL_LINE_MAX)
        end(ctl);
    if (ctl->in.n == 0)
        stk_buf_done(&ctl->in);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    stk_ctl *ctl = arg;
    char *to = stk_buf_room(&ctl->in, 16384);
    ssize_t n = to ? recv(ctl->fd, to, 16384, 0) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end(ctl);
        return;
    }
    ctl->in.n += (size_t)n;
    take_lines(ctl);
}

/* Writes n bytes or fewer; -1 when the stream is gone. */
static ssize_t put(stk_ctl *ctl, const char *p, size_t n)
{
    ssize_t done = send(ctl->fd, p, n, MSG_NOSIGNAL);
    if (done < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    return done;
}

/* Bytes of whole lines, so that replies can go in between. */
static size_t whole_lines(const stk_ctl *ctl)
{
    const char *p = ctl->records.p + ctl->records_at;
    size_t n = ctl->records.n - ctl->records_at;
    if (n <= WRITE_AT_ONCE)
        return n;
    const char *lf = memrchr(p, '\n', WRITE_AT_ONCE);
    if (!lf)
        lf = memchr(p + WRITE_AT_ONCE, '\n', n - WRITE_AT_ONCE);
    return (size_t)(lf - p) + 1;
}

static void forget_written(stk_ctl *ctl)
{
    if (ctl->records_at == ctl->records.n) {
        stk_buf_done(&ctl->records);
        stk_buf_init(&ctl->records, RECORDS_MOST);
        ctl->records_at = 0;
    } else if (ctl->records_at > RECORDS_MARK) {
        stk_buf_drop(&ctl->records, ctl->records_at);
        ctl->records_at = 0;
    }
    if (ctl->was_full && !stk_ctl_full(ctl)) {
        ctl->was_full = false;
        ctl->ops->on_room(ctl->arg);
    }
}

/* One step; 1: more may go, 0: nothing is left or the socket is full, -1: gone. */
static int write_step(stk_ctl *ctl)
{
    if (ctl->line_left == 0 && ctl->replies.n) {
        ssize_t n = put(ctl, ctl->replies.p, ctl->replies.n);
        if (n > 0)
            stk_buf_drop(&ctl->replies, (size_t)n);
        if (n > 0 && ctl->replies.n == 0)
            stk_buf_done(&ctl->replies);
        return n > 0 ? 1 : (int)n;
    }
    if (ctl->line_left == 0)
        ctl->line_left = whole_lines(ctl);
    if (ctl->line_left == 0)
        return 0;
    ssize_t n = put(ctl, ctl->records.p + ctl->records_at, ctl->line_left);
    if (n <= 0)
        return (int)n;
    ctl->line_left -= (size_t)n;
    ctl->records_at += (size_t)n;
    forget_written(ctl);
    return 1;
}

void stk_ctl_flush(stk_ctl *ctl)
{
    int more = 1;
    while (!ctl->ended && (more = write_step(ctl)) > 0)
        continue;
    if (more < 0)
        end(ctl);
    else if (!ctl->ended && (ctl->replies.n || ctl->records_at < ctl->records.n))
        event_add(&ctl->writable, NULL);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
    stk_ctl_flush(arg);
}

/* Once a turn of the loop, so that many records share a write. */
static void flush_soon(stk_ctl *ctl)
{
    ctl->was_full |= stk_ctl_full(ctl);
    if (!event_pending(&ctl->writable, EV_WRITE, NULL))
        event_active(&ctl->flush, EV_TIMEOUT, 1);
}

int stk_ctl_new(struct event_base *base, int fd, const stk_ctl_ops *ops, void *arg, stk_ctl **ret,
                stk_err *err)
{
    int rc = stk_fd_nonblock(fd, err);
    if (rc < 0)
        return stk_err_wrap(err, "the control stream");
    stk_ctl *ctl = stk_xcalloc(1, sizeof(*ctl));
    *ctl = (stk_ctl){.fd = fd, .ops = ops, .arg = arg};
    stk_buf_init(&ctl->in, 2 * STK_CONTROL_LINE_MAX);
    stk_buf_init(&ctl->replies, REPLIES_MOST);
    stk_buf_init(&ctl->records, RECORDS_MOST);
    event_assign(&ctl->readable, base, fd, EV_READ | EV_PERSIST, on_readable, ctl);
    event_assign(&ctl->writable, base, fd, EV_WRITE, on_flush, ctl);
    evtimer_assign(&ctl->flush, base, on_flush, ctl);
    event_add(&ctl->readable, NULL);
    *ret = ctl;
    return 0;
}

void stk_ctl_free(stk_ctl *ctl)
{
    event_del(&ctl->readable);
    event_del(&ctl->writable);
    event_del(&ctl->flush);
    close(ctl->fd);
    stk_buf_done(&ctl->in);
    stk_buf_done(&ctl->replies);
    stk_buf_done(&ctl->records);
    free(ctl);
}

void stk_ctl_reply(stk_ctl *ctl, const stk_control *message)
{
    stk_err err;
    if (stk_control_encode(message, &ctl->replies, &err) < 0)
        end(ctl);
    flush_soon(ctl);
}

/* By hand: the record is ours and valid, so that checking it a second time shows nothing new. */
void stk_ctl_record(stk_ctl *ctl, stk_str json)
{
    stk_buf_str(&ctl->records, STK_STR("{\"kind\":\"record\",\"body\":"));
    stk_buf_str(&ctl->records, json);
    if (stk_buf_str(&ctl->records, STK_STR("}\n")) < 0)
        end(ctl);
    flush_soon(ctl);
}

void stk_ctl_drained(stk_ctl *ctl)
{
    stk_buf_str(&ctl->records, STK_STR("{\"kind\":\"drained\"}\n"));
    flush_soon(ctl);
}

bool stk_ctl_full(const stk_ctl *ctl)
{
    return ctl->records.n - ctl->records_at > RECORDS_MARK;
}
