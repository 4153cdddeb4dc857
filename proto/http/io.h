/* Private: one nonblocking socket with its input buffer, output queue, events and one deadline. Server and
 * client connections are built on it.
 *
 * Not a bufferevent: those stop watching a descriptor at end of file (a half-closed client could vanish
 * unseen), ask the kernel how much there is before each read, and always wait for writability before they
 * write; here a small exchange is one wait, one read and one write. */
#ifndef STK_HTTP_IO_H
#define STK_HTTP_IO_H

#include "proto/base/buf.h"
#include "proto/base/time.h"
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/uio.h>

/* What a turn is about; bits. */
enum { STK__IO_READ = 1, STK__IO_WRITE = 2, STK__IO_TIME = 4, STK__IO_SOON = 8 };

/* A run of a file that goes out once `before` more bytes of the queue have. */
typedef struct stk__io_file {
    struct stk__io_file *next;
    int fd;
    uint64_t at, left;
    size_t before;
} stk__io_file;

typedef struct stk__io {
    struct event_base *base;
    int fd;
    void (*turn)(void *arg, unsigned what);
    void *arg;
    struct event rd, wr, timer, soon;
    bool rd_on, wr_on, timer_on;
    stk_mono armed, deadline;
    char *in; /* bytes start..end of size */
    size_t start, end, size;
    bool hungry;               /* the last read filled the buffer: a larger one pays */
    struct evbuffer *out;      /* NULL until something had to wait */
    stk__io_file *files;       /* in order */
    size_t before;             /* bytes of `out` that come before the last of the files */
    uint64_t file_left;        /* bytes of files still to go */
    uint64_t sent;             /* bytes that left, ever */
    stk_mono read_at, sent_at; /* last progress of either side */
    bool eof;                  /* the peer sends no more */
    bool read_failed, write_failed;
    int error; /* errno of the failure; 0 when a file was shorter than promised */
} stk__io;

/* No delay, keep-alive of 1 s x 3; nothing for other families than AF_INET and AF_INET6. */
void stk__io_tcp_options(int fd, int family);
/* Takes the descriptor. Nothing is watched yet. */
void stk__io_init(stk__io *io, struct event_base *base, int fd, void (*turn)(void *arg, unsigned what),
                  void *arg);
/* Closes. */
void stk__io_done(stk__io *io);

static inline stk_str stk__io_in(const stk__io *io)
{
    return io->in ? stk_str_n(io->in + io->start, io->end - io->start) : (stk_str){NULL, 0};
}
static inline bool stk__io_has_room(const stk__io *io, size_t most)
{
    return io->end - io->start < most;
}
/* One read, so that at most `most` bytes wait in the buffer. Sets eof or read_failed. */
void stk__io_fill(stk__io *io, size_t most);
void stk__io_use(stk__io *io, size_t n);
/* Takes the buffer away with its first n bytes, which then stay where they are; what follows goes to a new
 * one. *ret_size belongs to the block: hand both to stk__io_return. */
char *stk__io_pin(stk__io *io, size_t n, size_t *ret_size);
void stk__io_return(stk__io *io, char *block, size_t size);

size_t stk__io_queued(const stk__io *io);
/* Sends at once what the kernel takes when nothing waits; copies the rest. */
void stk__io_send(stk__io *io, const struct iovec *parts, int n);
/* Copies, to leave with the next flush. */
void stk__io_queue(stk__io *io, const struct iovec *parts, int n);
/* Takes the descriptor. */
void stk__io_queue_file(stk__io *io, int fd, uint64_t at, uint64_t length);
/* Sets write_failed on a failure; arms the wait for writability when something is left. */
void stk__io_flush(stk__io *io);
void stk__io_drop_queue(stk__io *io);

void stk__io_want_read(stk__io *io, bool want);
/* One deadline; {INT64_MAX} = none. Cheap to move: the timer is only armed anew when it must come earlier. */
void stk__io_deadline(stk__io *io, stk_mono at);
/* A turn with STK__IO_SOON later in this round of the loop. */
void stk__io_kick(stk__io *io);
/* The peer reset or closed both ways. */
bool stk__io_hung_up(const stk__io *io);

#endif
