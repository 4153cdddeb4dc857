/* Load for the egress proxy: `origin PORT` accepts, reads and closes, or sends without end when the first
 * byte is 'S'; `connects ADDR HOST PORT IN_FLIGHT SECONDS` sets tunnels up and closes them, printing how
 * many; `pull ADDR HOST PORT STREAMS SECONDS` reads from that many tunnels, printing bytes; `hold` (same
 * arguments) keeps them until its input ends. ADDR: a path, or IP:PORT. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096
static char buffer[1 << 20];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void watch(int epoll, int op, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll, op, fd, &event) < 0)
        die("epoll_ctl");
}

static double number(const char *text)
{
    char *end;
    double n = strtod(text, &end);
    if (*end || n < 0)
        die(text);
    return n;
}

static bool sending[65536];

static _Noreturn void origin(int port)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1, zero = 0, epoll = epoll_create1(0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 || listen(fd, 4096) < 0)
        die("listen");
    watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct epoll_event events[256];
        int n = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int at = events[i].data.fd;
            if (at == fd) {
                int conn;
                while ((conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    sending[conn] = false;
                    watch(epoll, EPOLL_CTL_ADD, conn, EPOLLIN);
                }
                continue;
            }
            ssize_t got =
                sending[at] ? send(at, buffer, sizeof(buffer), MSG_NOSIGNAL) : recv(at, buffer, 65536, 0);
            if (got == 0 || (got < 0 && errno != EAGAIN))
                close(at);
            else if (!sending[at] && got > 0 && buffer[0] == 'S') {
                sending[at] = true;
                memset(buffer, 'S', sizeof(buffer));
                watch(epoll, EPOLL_CTL_MOD, at, EPOLLOUT);
            }
        }
    }
}

static int dial(const char *addr)
{
    if (addr[0] == '/') {
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        snprintf(un.sun_path, sizeof(un.sun_path), "%s", addr);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
            die(addr);
        return fd;
    }
    char host[64];
    const char *colon = strrchr(addr, ':');
    snprintf(host, sizeof(host), "%.*s", (int)(colon - addr), addr);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number(colon + 1))};
    inet_pton(AF_INET, host, &in.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0)
        die(addr);
    return fd;
}

/* "*.x" stands for 256 names below x in turn, so that no one address runs out of ports. */
static size_t request(const char *host, const char *port, char *out, size_t size)
{
    static unsigned turn;
    char name[300];
    if (host[0] == '*')
        snprintf(name, sizeof(name), "h%u%s", turn++ % 256, host + 1);
    else
        snprintf(name, sizeof(name), "%s", host);
    return (size_t)snprintf(out, size, "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", name, port, name,
                            port);
}

static int connects(char **argv)
{
    char text[1024];
    int flight = (int)number(argv[3]), epoll = epoll_create1(0);
    double end = now() + number(argv[4]);
    long done = 0, failed = 0;
    for (int i = 0; i < flight; i++) {
        int fd = dial(argv[0]);
        if (send(fd, text, request(argv[1], argv[2], text, sizeof(text)), MSG_NOSIGNAL) < 0)
            die("send");
        watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
    }
    while (now() < end) {
        struct epoll_event events[256];
        int got = epoll_wait(epoll, events, 256, 100);
        for (int i = 0; i < got; i++) {
            ssize_t in = recv(events[i].data.fd, buffer, 4096, 0);
            *(in > 12 && memcmp(buffer + 9, "200", 3) == 0 ? &done : &failed) += 1;
            close(events[i].data.fd);
            int fd = dial(argv[0]);
            if (send(fd, text, request(argv[1], argv[2], text, sizeof(text)), MSG_NOSIGNAL) < 0)
                die("send");
            watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
        }
    }
    printf("%ld %ld\n", done, failed);
    return 0;
}

static int pull(char **argv)
{
    char text[1024];
    size_t n = request(argv[1], argv[2], text, sizeof(text));
    int streams = (int)number(argv[3]), epoll = epoll_create1(0);
    for (int i = 0; i < streams; i++) {
        int fd = dial(argv[0]);
        if (send(fd, text, n, MSG_NOSIGNAL) < 0 || recv(fd, buffer, 4096, 0) <= 0 || send(fd, "S", 1, 0) != 1)
            die("tunnel");
        watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
    }
    double begun = now(), end = begun + number(argv[4]);
    long long bytes = 0;
    while (now() < end) {
        struct epoll_event events[64];
        int got = epoll_wait(epoll, events, 64, 100);
        for (int i = 0; i < got; i++) {
            ssize_t in = recv(events[i].data.fd, buffer, sizeof(buffer), argv[0][0] == '/' ? 0 : MSG_TRUNC);
            if (in <= 0)
                die("recv");
            bytes += in;
        }
    }
    printf("%lld %.6f\n", bytes, now() - begun);
    return 0;
}

/* Opens tunnels and keeps them until its input ends. */
static int hold(char **argv)
{
    char text[1024];
    size_t n = request(argv[1], argv[2], text, sizeof(text));
    int count = (int)number(argv[3]);
    for (int i = 0; i < count; i++) {
        int fd = dial(argv[0]);
        if (send(fd, text, n, MSG_NOSIGNAL) < 0 || recv(fd, buffer, 4096, 0) <= 0 ||
            memcmp(buffer + 9, "200", 3) != 0)
            die("tunnel");
    }
    puts("held");
    fflush(stdout);
    while (read(0, buffer, sizeof(buffer)) > 0)
        continue;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "origin") == 0)
        origin((int)number(argv[2]));
    if (argc == 7 && strcmp(argv[1], "connects") == 0)
        return connects(argv + 2);
    if (argc == 7 && strcmp(argv[1], "pull") == 0)
        return pull(argv + 2);
    if (argc == 7 && strcmp(argv[1], "hold") == 0)
        return hold(argv + 2);
    fputs("usage: bench_egress_load origin PORT | connects|pull|hold ADDR HOST PORT N SECONDS\n", stderr);
    return 2;
}
