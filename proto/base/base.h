/* The few macros every file uses: cleanup attributes and small arithmetic. */
#ifndef STK_BASE_BASE_H
#define STK_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* STK_AUTO(fn): run fn(&variable) when the variable leaves its scope. */
#define STK_AUTO(fn) __attribute__((cleanup(fn)))
/* STK_TAKE(p): hand the pointer on and leave NULL behind, so that its cleanup does nothing. */
#define STK_TAKE(p)                                                                                          \
    __extension__({                                                                                          \
        __typeof__(p) stk__taken = (p);                                                                      \
        (p) = NULL;                                                                                          \
        stk__taken;                                                                                          \
    })
#define STK_PRINTF(fmt, args)  __attribute__((format(printf, fmt, args)))
#define STK_MUST_USE           __attribute__((warn_unused_result))
#define STK_COUNT(array)       (sizeof(array) / sizeof((array)[0]))
#define STK_CONTAINER(p, T, m) ((T *)((char *)(p)-offsetof(T, m)))

/* Defines `name`, a cleanup function for variables of pointer type T freed by `fn`. */
#define STK_DEFINE_FREEP(T, name, fn)                                                                        \
    static inline void name(T **p)                                                                           \
    {                                                                                                        \
        if (*p)                                                                                              \
            fn(*p);                                                                                          \
    }

static inline void stk_freep(void *p)
{
    free(*(void **)p);
}

/* Closes *fd when it is >= 0. */
static inline void stk_closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline size_t stk_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* calloc that never returns NULL: memory for our own bookkeeping is not a run-time condition we can report
 * from, so the process ends with one line. Sizes that come from outside never reach it unchecked. */
void *stk_xcalloc(size_t n, size_t size);
/* realloc likewise. */
void *stk_xrealloc(void *p, size_t size);
/* Copies n bytes and adds a NUL. The caller frees. */
char *stk_xmemdup(const void *p, size_t n);
/* strdup likewise; NULL gives NULL. */
char *stk_xstrdup(const char *s);

#endif
