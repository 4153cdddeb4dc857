#include "egress-proxy/pipes.h"
#include <fcntl.h>

#define WANTED ((int)262144)
#define USEFUL ((size_t)65536)

void stk_pipes_init(stk_pipes *pipes)
{
    pipes->n = 0;
}

static void shut(stk_pipe *pipe)
{
    close(pipe->read);
    close(pipe->write);
    pipe->read = pipe->write = -1;
}

void stk_pipes_done(stk_pipes *pipes)
{
    while (pipes->n > 0)
        shut(&pipes->kept[--pipes->n]);
}

bool stk_pipes_lend(stk_pipes *pipes, stk_pipe *ret)
{
    if (pipes->n > 0) {
        *ret = pipes->kept[--pipes->n];
        return true;
    }
    int fds[2];
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
        return false;
    stk_pipe made = {.read = fds[0], .write = fds[1]};
    int size = fcntl(fds[1], F_SETPIPE_SZ, WANTED);
    if (size < 0)
        size = fcntl(fds[1], F_GETPIPE_SZ);
    made.size = size > 0 ? (size_t)size : 0;
    if (made.size < USEFUL) {
        shut(&made);
        return false;
    }
    *ret = made;
    return true;
}

void stk_pipes_return(stk_pipes *pipes, stk_pipe *pipe, bool empty)
{
    if (empty && pipes->n < STK_PIPES_KEPT)
        pipes->kept[pipes->n++] = *pipe;
    else
        shut(pipe);
    pipe->read = pipe->write = -1;
}
