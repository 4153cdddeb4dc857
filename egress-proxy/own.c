#include "egress-proxy/own.h"
#include <errno.h>
#include <event2/event_struct.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#define MOST 4096 /* a host with more is refused at start, and loses its network when it grows there */

struct stk_own {
    int fd;
    struct event event;
    stk_sock *v;
    size_t n, size;
};

static void drop(stk_own *own, const stk_sock *addr)
{
    for (size_t i = 0; i < own->n; i++)
        if (stk_sock_same_addr(&own->v[i], addr)) {
            own->v[i] = own->v[--own->n];
            return;
        }
}

static int add(stk_own *own, const stk_sock *addr)
{
    if (own->n == MOST)
        return -1;
    if (own->n == own->size) {
        own->size = own->size ? own->size * 2 : 8;
        own->v = stk_xrealloc(own->v, own->size * sizeof(*own->v));
    }
    own->v[own->n++] = *addr;
    return 0;
}

static int take_message(stk_own *own, const struct nlmsghdr *msg)
{
    const struct ifaddrmsg *info = NLMSG_DATA(msg);
    if (msg->nlmsg_len < NLMSG_LENGTH(sizeof(*info)))
        return -1;
    size_t left = msg->nlmsg_len - NLMSG_LENGTH(sizeof(*info));
    const char *at = (const char *)info + NLMSG_ALIGN(sizeof(*info));
    const struct rtattr *local = NULL, *address = NULL;
    while (left >= sizeof(struct rtattr)) {
        const struct rtattr *attr = (const void *)at;
        size_t step = RTA_ALIGN(attr->rta_len);
        if (attr->rta_len < sizeof(*attr) || attr->rta_len > left)
            return -1;
        if (attr->rta_type == IFA_LOCAL)
            local = attr;
        else if (attr->rta_type == IFA_ADDRESS)
            address = attr;
        at += stk_min(step, left);
        left -= stk_min(step, left);
    }
    const struct rtattr *attr = local ? local : address;
    stk_sock addr = {.any.sa_family = info->ifa_family};
    size_t want = info->ifa_family == AF_INET ? 4 : 16;
    if (!attr || (info->ifa_family != AF_INET && info->ifa_family != AF_INET6) || RTA_PAYLOAD(attr) != want)
        return 0;
    memcpy(want == 4 ? (void *)&addr.v4.sin_addr : (void *)&addr.v6.sin6_addr, RTA_DATA(attr), want);
    drop(own, &addr);
    return msg->nlmsg_type == RTM_NEWADDR ? add(own, &addr) : 0;
}

/* 1: the end of a dump was among them; 0; -1: damaged, or too many addresses. */
static int take_messages(stk_own *own, const char *p, size_t n)
{
    int done = 0;
    unsigned left = (unsigned)n;
    for (const struct nlmsghdr *msg = (const void *)p; NLMSG_OK(msg, left); msg = NLMSG_NEXT(msg, left)) {
        if (msg->nlmsg_type == NLMSG_DONE)
            done = 1;
        else if (msg->nlmsg_type == NLMSG_ERROR)
            return -1;
        else if ((msg->nlmsg_type == RTM_NEWADDR || msg->nlmsg_type == RTM_DELADDR) &&
                 take_message(own, msg) < 0)
            return -1;
    }
    return done;
}

/* A dump is answered within recv(2) itself; notices that arrive in between are taken in order. */
static int dump(stk_own *own)
{
    struct {
        struct nlmsghdr head;
        struct ifaddrmsg info;
    } ask = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg)),
                      .nlmsg_type = RTM_GETADDR,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    own->n = 0;
    if (send(own->fd, &ask, ask.head.nlmsg_len, 0) < 0)
        return -1;
    for (;;) {
        char buf[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
        ssize_t n = recv(own->fd, buf, sizeof(buf), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        int done = take_messages(own, buf, (size_t)n);
        if (done)
            return done < 0 ? -1 : 0;
    }
}

/* Notices may be lost when many come at once: then everything is read anew. Without a true list nothing may
 * be dialled, so a failure ends the process. */
static void on_notice(evutil_socket_t fd, short what, void *arg)
{
    stk_own *own = arg;
    char buf[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
    for (;;) {
        ssize_t n = recv(own->fd, buf, sizeof(buf), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        bool bad = n <= 0 || take_messages(own, buf, (size_t)n) < 0;
        if (bad && dump(own) < 0)
            abort();
    }
}

int stk_own_new(struct event_base *base, stk_own **ret, stk_err *err)
{
    stk_own *own = stk_xcalloc(1, sizeof(*own));
    struct sockaddr_nl groups = {.nl_family = AF_NETLINK,
                                 .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    own->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (own->fd < 0 || bind(own->fd, (struct sockaddr *)&groups, sizeof(groups)) < 0 || dump(own) < 0) {
        int rc = stk_err_errno(err, errno, "list the addresses of this machine");
        stk_closep(&own->fd);
        free(own->v);
        free(own);
        return rc;
    }
    event_assign(&own->event, base, own->fd, EV_READ | EV_PERSIST, on_notice, own);
    event_add(&own->event, NULL);
    *ret = own;
    return 0;
}

void stk_own_free(stk_own *own)
{
    event_del(&own->event);
    close(own->fd);
    free(own->v);
    free(own);
}

stk_own_addrs stk_own_view(const stk_own *own)
{
    return (stk_own_addrs){own->v, own->n};
}
