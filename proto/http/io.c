#include "proto/http/io.h"
#include <errno.h>
#include <event2/buffer.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define FIRST_BUFFER 4096
#define ONE_FLUSH    (4u << 20) /* then others have their turn */
#define PARTS        16

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    stk__io *io = arg;
    if (what & EV_WRITE)
        io->wr_on = false;
    io->turn(io->arg, (what & EV_READ ? STK__IO_READ : 0u) | (what & EV_WRITE ? STK__IO_WRITE : 0u));
}

static void on_soon(evutil_socket_t fd, short what, void *arg)
{
    stk__io *io = arg;
    io->turn(io->arg, STK__IO_SOON);
}

static void arm_timer(stk__io *io, stk_mono now)
{
    stk_span wait = stk_mono_sub(io->deadline, now);
    struct timeval tv = stk_span_timeval(wait.ns > 0 ? wait : stk_us(1));
    io->armed = io->deadline;
    io->timer_on = event_add(&io->timer, &tv) == 0;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    stk__io *io = arg;
    io->timer_on = false;
    if (io->deadline.ns == INT64_MAX)
        return;
    stk_mono now = stk_mono_now();
    if (stk_mono_before(now, io->deadline)) {
        arm_timer(io, now);
        return;
    }
    io->deadline.ns = INT64_MAX;
    io->turn(io->arg, STK__IO_TIME);
}

void stk__io_tcp_options(int fd, int family)
{
    int on = 1, idle = 1, every = 1, probes = 3;
    if (family != AF_INET && family != AF_INET6)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

void stk__io_init(stk__io *io, struct event_base *base, int fd, void (*turn)(void *arg, unsigned what),
                  void *arg)
{
    *io = (stk__io){.base = base, .fd = fd, .turn = turn, .arg = arg, .deadline = {INT64_MAX}};
    io->read_at = io->sent_at = stk_mono_now();
    event_assign(&io->rd, base, fd, EV_READ | EV_PERSIST, on_socket, io);
    event_assign(&io->wr, base, fd, EV_WRITE, on_socket, io);
    event_assign(&io->timer, base, -1, 0, on_timer, io);
    event_assign(&io->soon, base, -1, 0, on_soon, io);
}

void stk__io_done(stk__io *io)
{
    event_del(&io->rd);
    event_del(&io->wr);
    event_del(&io->timer);
    event_del(&io->soon);
    stk__io_drop_queue(io);
    if (io->out)
        evbuffer_free(io->out);
    free(io->in);
    close(io->fd);
}

static void make_room(stk__io *io, size_t most)
{
    if (io->start == io->end)
        io->start = io->end = 0;
    bool full = io->end == io->size;
    if (full && io->start > 0) {
        memmove(io->in, io->in + io->start, io->end - io->start);
        io->end -= io->start;
        io->start = 0;
    } else if (io->size < most && (full || (io->hungry && io->end == 0))) {
        io->size = io->size ? stk_min(io->size * 4, most) : stk_min(FIRST_BUFFER, most);
        io->in = stk_xrealloc(io->in, io->size);
    }
}

void stk__io_fill(stk__io *io, size_t most)
{
    if (io->eof || io->read_failed || !stk__io_has_room(io, most))
        return;
    make_room(io, most);
    size_t room = io->size - io->end;
    ssize_t n;
    do
        n = recv(io->fd, io->in + io->end, room, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        io->end += (size_t)n;
        io->hungry = (size_t)n == room;
        io->read_at = stk_mono_now();
    } else if (n == 0) {
        io->eof = true;
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        io->read_failed = true;
        io->error = errno;
    }
}

void stk__io_use(stk__io *io, size_t n)
{
    io->start += n;
}

char *stk__io_pin(stk__io *io, size_t n, size_t *ret_size)
{
    char *block = io->in;
    stk_str rest = {io->in + io->start + n, io->end - io->start - n};
    *ret_size = io->size;
    io->in = NULL;
    io->start = io->end = io->size = 0;
    if (rest.n) {
        io->size = rest.n > FIRST_BUFFER ? rest.n : FIRST_BUFFER;
        io->in = stk_xrealloc(NULL, io->size);
        memcpy(io->in, rest.p, rest.n);
        io->end = rest.n;
    }
    return block;
}

void stk__io_return(stk__io *io, char *block, size_t size)
{
    if (io->in) {
        free(block);
        return;
    }
    io->in = block;
    io->size = size;
    io->start = io->end = 0;
}

size_t stk__io_queued(const stk__io *io)
{
    size_t n = io->out ? evbuffer_get_length(io->out) : 0;
    return io->file_left > SIZE_MAX / 2 ? SIZE_MAX / 2 : n + (size_t)io->file_left;
}

void stk__io_queue(stk__io *io, const struct iovec *parts, int n)
{
    if (!io->out && !(io->out = evbuffer_new()))
        abort();
    if (stk__io_queued(io) == 0)
        io->sent_at = stk_mono_now();
    for (int i = 0; i < n; i++)
        if (parts[i].iov_len && evbuffer_add(io->out, parts[i].iov_base, parts[i].iov_len) < 0)
            abort();
}

void stk__io_queue_file(stk__io *io, int fd, uint64_t at, uint64_t length)
{
    stk__io_file *file = stk_xcalloc(1, sizeof *file), **last = &io->files;
    size_t queued = io->out ? evbuffer_get_length(io->out) : 0;
    while (*last)
        last = &(*last)->next;
    *file = (stk__io_file){.fd = fd, .at = at, .left = length, .before = queued - io->before};
    *last = file;
    if (stk__io_queued(io) == 0)
        io->sent_at = stk_mono_now();
    io->before = queued;
    io->file_left += length;
}

/* Bytes that left, 0 when the kernel takes no more now, -1 on a failure. */
static ssize_t send_parts(stk__io *io, struct iovec *parts, int n)
{
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = (size_t)n};
    ssize_t sent;
    do
        sent = sendmsg(io->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) {
        io->sent += (uint64_t)sent;
        io->sent_at = stk_mono_now();
        return sent;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return 0;
    io->write_failed = true;
    io->error = errno;
    return -1;
}

void stk__io_send(stk__io *io, const struct iovec *parts, int n)
{
    struct iovec left[PARTS];
    if (io->write_failed)
        return;
    if (n > PARTS || stk__io_queued(io) > 0) {
        stk__io_queue(io, parts, n);
        stk__io_flush(io);
        return;
    }
    memcpy(left, parts, (size_t)n * sizeof *left);
    ssize_t sent = send_parts(io, left, n);
    if (sent < 0)
        return;
    size_t done = (size_t)sent, rest = 0;
    for (int i = 0; i < n; i++) {
        size_t cut = stk_min(done, left[i].iov_len);
        if (cut == 0)
            continue;
        left[i].iov_base = (char *)left[i].iov_base + cut;
        left[i].iov_len -= cut;
        done -= cut;
    }
    for (int i = 0; i < n; i++)
        rest += left[i].iov_len;
    if (rest) {
        stk__io_queue(io, left, n);
        stk__io_flush(io);
    }
}

/* Sends from the queue, at most `most` bytes. */
static ssize_t flush_bytes(stk__io *io, size_t most)
{
    struct iovec parts[PARTS];
    int n = evbuffer_peek(io->out, (ev_ssize_t)most, NULL, (struct evbuffer_iovec *)parts, PARTS);
    n = n > PARTS ? PARTS : n;
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        parts[i].iov_len = stk_min(parts[i].iov_len, most - total);
        total += parts[i].iov_len;
    }
    ssize_t sent = send_parts(io, parts, n);
    if (sent > 0)
        evbuffer_drain(io->out, (size_t)sent);
    return sent;
}

static void pop_file(stk__io *io)
{
    stk__io_file *file = io->files;
    io->files = file->next;
    io->file_left -= file->left;
    close(file->fd);
    free(file);
}

static ssize_t flush_file(stk__io *io)
{
    stk__io_file *file = io->files;
    off_t at = (off_t)file->at;
    ssize_t n = 1;
    if (file->left) {
        size_t most = file->left < ONE_FLUSH ? (size_t)file->left : ONE_FLUSH;
        do
            n = sendfile(io->fd, file->fd, &at, most);
        while (n < 0 && errno == EINTR);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n <= 0) {
            io->write_failed = true;
            io->error = n < 0 ? errno : 0;
            return -1;
        }
        file->at += (uint64_t)n;
        file->left -= (uint64_t)n;
        io->file_left -= (uint64_t)n;
        io->sent += (uint64_t)n;
        io->sent_at = stk_mono_now();
    }
    if (file->left == 0)
        pop_file(io);
    return n;
}

/* One piece: queued bytes up to the next file, or that file. */
static ssize_t flush_piece(stk__io *io)
{
    size_t queued = io->out ? evbuffer_get_length(io->out) : 0;
    if (io->files && io->files->before == 0)
        return flush_file(io);
    ssize_t n = flush_bytes(io, io->files ? io->files->before : queued);
    if (n > 0) {
        io->before -= stk_min(io->before, (size_t)n);
        if (io->files)
            io->files->before -= (size_t)n;
    }
    return n;
}

void stk__io_flush(stk__io *io)
{
    size_t budget = ONE_FLUSH;
    while (!io->write_failed && (stk__io_queued(io) > 0 || io->files) && budget > 0) {
        ssize_t n = flush_piece(io);
        if (n <= 0)
            break;
        budget -= stk_min(budget, (size_t)n);
    }
    bool want = !io->write_failed && stk__io_queued(io) > 0;
    if (want && !io->wr_on)
        io->wr_on = event_add(&io->wr, NULL) == 0;
}

void stk__io_drop_queue(stk__io *io)
{
    while (io->files)
        pop_file(io);
    io->before = 0;
    if (io->out)
        evbuffer_drain(io->out, evbuffer_get_length(io->out));
}

void stk__io_want_read(stk__io *io, bool want)
{
    if (want == io->rd_on)
        return;
    io->rd_on = want;
    if (want)
        event_add(&io->rd, NULL);
    else
        event_del(&io->rd);
}

void stk__io_deadline(stk__io *io, stk_mono at)
{
    io->deadline = at;
    if (at.ns != INT64_MAX && (!io->timer_on || stk_mono_before(at, io->armed)))
        arm_timer(io, stk_mono_now());
}

void stk__io_kick(stk__io *io)
{
    event_active(&io->soon, EV_TIMEOUT, 1);
}

bool stk__io_hung_up(const stk__io *io)
{
    struct pollfd p = {.fd = io->fd};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP | POLLNVAL));
}
