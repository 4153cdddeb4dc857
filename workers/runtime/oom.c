#include "workers/runtime/oom.h"
#include "proto/base/buf.h"
#include <fcntl.h>
#include <stdio.h>

static const char key[] = "oom_kill ";

int64_t stk_oom_parse(const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, sizeof(key) - 1) == 0)
            return strtoll(line + sizeof(key) - 1, NULL, 10);
    }
    return 0;
}

static int open_counter(const char *fmt_root, const char *group, const char *file)
{
    char path[512], text[512];
    if (snprintf(path, sizeof(path), "%s%s/%s", fmt_root, group, file) >= (int)sizeof(path))
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    if (strstr(text, key))
        return fd;
    close(fd);
    return -1;
}

/* Our group's path in the hierarchy whose line in /proc/self/cgroup has `controller` ("" = version 2). */
static bool own_group(const char *controller, char *out, size_t size)
{
    char text[4096];
    int fd STK_AUTO(stk_closep) = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        char *names = strchr(line, ':');
        char *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        if (strcmp(names + 1, controller) == 0)
            return stk_str_copy(stk_str_of(strcmp(group, "/") == 0 ? "" : group), out, size);
    }
    return false;
}

void stk_oom_init(stk_oom *oom)
{
    char group[256];
    oom->fd = -1;
    if (own_group("", group, sizeof(group)))
        oom->fd = open_counter("/sys/fs/cgroup", group, "memory.events");
    if (oom->fd < 0 && own_group("memory", group, sizeof(group)))
        oom->fd = open_counter("/sys/fs/cgroup/memory", group, "memory.oom_control");
    if (oom->fd < 0)
        oom->fd = open_counter("/sys/fs/cgroup", "", "memory.events");
    if (oom->fd < 0)
        oom->fd = open_counter("/sys/fs/cgroup/memory", "", "memory.oom_control");
}

void stk_oom_done(stk_oom *oom)
{
    stk_closep(&oom->fd);
    oom->fd = -1;
}

int64_t stk_oom_kills(const stk_oom *oom)
{
    char text[512];
    ssize_t n = oom->fd < 0 ? -1 : pread(oom->fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return stk_oom_parse(text);
}
