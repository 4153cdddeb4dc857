/* Our ends of a command's stdin, stdout and stderr. */
#ifndef STK_RUNTIME_PIPES_H
#define STK_RUNTIME_PIPES_H

#include "workers/runtime/output.h"
#include <event2/event.h>

/* The read end of one output stream; always drained, into `out`. */
typedef struct stk_pipe stk_pipe;
struct stk_pipe {
    int fd; /* -1 = at its end */
    struct event *event;
    stk_output out;
    void (*more)(stk_pipe *pipe, void *arg); /* bytes or the end were read by the loop */
    void *arg;
};

void stk_pipe_init(stk_pipe *pipe, size_t cap, void (*more)(stk_pipe *pipe, void *arg), void *arg);
/* Makes the pipe; *ret_end is the command's end. -1 with errno. */
int stk_pipe_open(stk_pipe *pipe, struct event_base *base, int *ret_end);
/* Reads what is there now, without `more`; at most what a pipe holds. */
void stk_pipe_read(stk_pipe *pipe);
/* Closes our end; what was read stays. */
void stk_pipe_close(stk_pipe *pipe);
void stk_pipe_done(stk_pipe *pipe);

/* The write end of stdin. */
typedef struct stk_feed {
    int fd;
    struct event *event;
    stk_str rest; /* borrowed */
} stk_feed;

/* -1 with errno. A command that does not read loses nothing but the input. */
int stk_feed_open(stk_feed *feed, struct event_base *base, stk_str input, int *ret_end);
void stk_feed_close(stk_feed *feed);

#endif
