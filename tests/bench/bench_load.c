/* One request again and again over keep-alive connections, each with one request at a time:
 *
 *   bench_load ADDRESS:PORT|unix:PATH COUNT CONNECTIONS STATUS <REQUEST
 *
 * Prints one JSON line: seconds, answers with another status, p50 and p99 in milliseconds. A connection that
 * the server closes after an answer is made anew, and that is part of the time. */
#include "proto/base/base.h"
#include "proto/base/time.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MAX  65536
#define REQUEST_MAX 65536

typedef struct conn {
    int fd;
    stk_mono since;
    size_t n;
    char answer[ANSWER_MAX];
} conn;

static struct sockaddr_storage address;
static socklen_t address_size;
static char request[REQUEST_MAX];
static size_t request_size;
static int poller;
static long count, begun, ended, failed;
static const char *expected;
static double *times;

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static void parse_address(char *text)
{
    struct sockaddr_in *in = (struct sockaddr_in *)&address;
    struct sockaddr_un *un = (struct sockaddr_un *)&address;
    char *colon = strrchr(text, ':');
    if (strncmp(text, "unix:", 5) == 0) {
        un->sun_family = AF_UNIX;
        snprintf(un->sun_path, sizeof(un->sun_path), "%s", text + 5);
        address_size = sizeof(*un);
    } else if (colon) {
        *colon = '\0';
        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
        address_size = sizeof(*in);
        if (inet_pton(AF_INET, text, &in->sin_addr) != 1)
            die(text);
    }
}

static void dial(conn *c)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    c->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, address_size) < 0)
        die("connect");
    if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &ev) < 0)
        die("epoll");
}

static void ask(conn *c)
{
    if (begun == count)
        return;
    if (c->fd < 0)
        dial(c);
    begun++;
    c->n = 0;
    c->since = stk_mono_now();
    if (write(c->fd, request, request_size) != (ssize_t)request_size)
        die("write");
}

/* Bytes of the whole answer; 0 = its head is not here yet. */
static size_t answer_size(const conn *c)
{
    const char *head_end = memmem(c->answer, c->n, "\r\n\r\n", 4);
    const char *length = head_end ? strcasestr(c->answer, "\r\nContent-Length:") : NULL;
    if (!head_end)
        return 0;
    return (size_t)(head_end + 4 - c->answer) + (length ? strtoul(length + 17, NULL, 10) : 0);
}

static void hang_up(conn *c)
{
    close(c->fd);
    c->fd = -1;
}

static void on_answer(conn *c)
{
    times[ended++] = stk_span_sec(stk_mono_sub(stk_mono_now(), c->since)) * 1e3;
    if (c->n < 12 || strncmp(c->answer + 9, expected, 3) != 0) {
        if (!failed++)
            fprintf(stderr, "bench_load: an answer was: %.*s\n", (int)c->n, c->answer);
    }
    if (strcasestr(c->answer, "\r\nConnection: close"))
        hang_up(c);
    ask(c);
}

static void on_readable(conn *c)
{
    ssize_t n = read(c->fd, c->answer + c->n, sizeof(c->answer) - 1 - c->n);
    if (n <= 0) {
        fprintf(stderr, "bench_load: the server closed a connection early\n");
        exit(1);
    }
    c->n += (size_t)n;
    c->answer[c->n] = '\0';
    size_t whole = answer_size(c);
    if (whole && c->n >= whole)
        on_answer(c);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fputs("usage: bench_load ADDRESS COUNT CONNECTIONS STATUS <REQUEST\n", stderr);
        return 2;
    }
    parse_address(argv[1]);
    count = strtol(argv[2], NULL, 10);
    long nconns = strtol(argv[3], NULL, 10);
    expected = argv[4];
    request_size = fread(request, 1, sizeof(request), stdin);
    times = stk_xcalloc((size_t)count, sizeof(*times));
    conn *conns = stk_xcalloc((size_t)nconns, sizeof(*conns));
    poller = epoll_create1(EPOLL_CLOEXEC);
    stk_mono since = stk_mono_now();
    for (long i = 0; i < nconns; i++) {
        conns[i].fd = -1;
        ask(&conns[i]);
    }
    while (ended < count) {
        struct epoll_event evs[64];
        int n = epoll_wait(poller, evs, 64, 30000);
        if (n <= 0)
            die("epoll_wait");
        for (int i = 0; i < n; i++)
            on_readable(evs[i].data.ptr);
    }
    double seconds = stk_span_sec(stk_mono_sub(stk_mono_now(), since));
    qsort(times, (size_t)count, sizeof(*times), by_value);
    printf("{\"n\":%ld,\"seconds\":%.4f,\"failed\":%ld,\"p50\":%.3f,\"p99\":%.3f}\n", count, seconds, failed,
           times[count / 2], times[count * 99 / 100]);
    return failed != 0;
}
