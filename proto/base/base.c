#include "proto/base/base.h"
#include <stdio.h>

static void *or_die(void *p, size_t size)
{
    if (!p && size) {
        static const char line[] = "stockade: out of memory\n";
        ssize_t ignored = write(2, line, sizeof(line) - 1);
        (void)ignored;
        abort();
    }
    return p;
}

void *stk_xcalloc(size_t n, size_t size)
{
    return or_die(calloc(n ? n : 1, size ? size : 1), 1);
}

void *stk_xrealloc(void *p, size_t size)
{
    return or_die(realloc(p, size ? size : 1), 1);
}

char *stk_xmemdup(const void *p, size_t n)
{
    char *copy = or_die(malloc(n + 1), 1);
    if (n)
        memcpy(copy, p, n);
    copy[n] = '\0';
    return copy;
}

char *stk_xstrdup(const char *s)
{
    return s ? stk_xmemdup(s, strlen(s)) : NULL;
}
