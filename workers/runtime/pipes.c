#include "workers/runtime/pipes.h"
#include <errno.h>
#include <fcntl.h>

#define ONE_TURN (256u << 10)  /* so that others get their turn during a flood        */
#define FULL     (1088u << 10) /* the largest pipe an ordinary user can have, and some */

static void unhook(struct event **event, int *fd)
{
    if (*event)
        event_free(STK_TAKE(*event));
    stk_closep(fd);
    *fd = -1;
}

static void read_some(stk_pipe *pipe, size_t most)
{
    while (pipe->fd >= 0 && most > 0) {
        size_t n;
        char *to = stk_output_room(&pipe->out, &n);
        ssize_t got = read(pipe->fd, to, stk_min(n, most));
        if (got > 0) {
            stk_output_added(&pipe->out, (size_t)got);
            most -= (size_t)got;
        } else if (got < 0 && errno == EINTR) {
            continue;
        } else if (got < 0 && errno == EAGAIN) {
            return;
        } else {
            stk_pipe_close(pipe);
        }
    }
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    stk_pipe *pipe = arg;
    read_some(pipe, ONE_TURN);
    pipe->more(pipe, pipe->arg);
}

void stk_pipe_init(stk_pipe *pipe, size_t cap, void (*more)(stk_pipe *pipe, void *arg), void *arg)
{
    *pipe = (stk_pipe){.fd = -1, .more = more, .arg = arg};
    stk_output_init(&pipe->out, cap);
}

int stk_pipe_open(stk_pipe *pipe, struct event_base *base, int *ret_end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pipe->fd = ends[0];
    pipe->event = event_new(base, pipe->fd, EV_READ | EV_PERSIST, on_readable, pipe);
    event_add(pipe->event, NULL);
    *ret_end = ends[1];
    return 0;
}

void stk_pipe_read(stk_pipe *pipe)
{
    read_some(pipe, FULL);
}

void stk_pipe_close(stk_pipe *pipe)
{
    unhook(&pipe->event, &pipe->fd);
}

void stk_pipe_done(stk_pipe *pipe)
{
    stk_pipe_close(pipe);
    stk_output_done(&pipe->out);
}

static void feed_some(stk_feed *feed)
{
    while (feed->rest.n > 0) {
        ssize_t n = write(feed->fd, feed->rest.p, feed->rest.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;
        feed->rest = stk_str_n(feed->rest.p + n, feed->rest.n - (size_t)n);
    }
    stk_feed_close(feed);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    feed_some(arg);
}

int stk_feed_open(stk_feed *feed, struct event_base *base, stk_str input, int *ret_end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    *feed = (stk_feed){.fd = ends[1], .rest = input};
    *ret_end = ends[0];
    feed_some(feed);
    if (feed->fd >= 0) {
        feed->event = event_new(base, feed->fd, EV_WRITE | EV_PERSIST, on_writable, feed);
        event_add(feed->event, NULL);
    }
    return 0;
}

void stk_feed_close(stk_feed *feed)
{
    unhook(&feed->event, &feed->fd);
}
