/* A backend in memory: its sandboxes are pairs of sockets behind which a runtime and a proxy of the test's
 * own answer, or do not. */
#ifndef STK_TEST_WORKERS_FAKE_H
#define STK_TEST_WORKERS_FAKE_H

#include "workers/sandbox.h"

struct bufferevent;

/* What a peer does when it is asked. */
typedef enum fake_act {
    FAKE_OK,
    FAKE_BAD,  /* refuses (policy_bad, 422, 500) */
    FAKE_HOLD, /* does not answer */
    FAKE_DIE,  /* closes its end */
    FAKE_JUNK  /* answers nonsense */
} fake_act;

typedef struct fake_sandbox fake_sandbox;

typedef struct fake {
    stk_backend be;
    stk_loop *loop;
    void (*log)(void *arg, const char *what);
    void *log_arg;
    fake_act create, health, policy, execute, drain; /* FAKE_BAD create: fails */
    bool destroy_fails;
    const char *answer; /* body of a 200 to execute; default: exit 0 */
    int64_t oom;        /* what the counter says */
    size_t made, failed, destroyed;
    char policy_text[4096], body[4096]; /* the last ones */
    fake_sandbox *first;                /* alive */
    stk_sandbox_spec last;
    char spool[128]; /* where journals are made */
} fake;

struct fake_sandbox {
    stk_sandbox base;
    fake *be;
    fake_sandbox *next;
    stk_sandbox_spec spec;
    struct bufferevent *health, *command, *proxy;
    stk_create_done created; /* NULL once it was told */
    stk_lost_fn lost;
    void *arg;
    stk_destroy_done destroyed;
    void *destroy_arg;
};

void fake_init(fake *f, stk_loop *loop, const char *spool);
/* Creates what was held. */
void fake_create_now(fake *f);
/* It ends by itself. */
void fake_lose(fake_sandbox *sbx, bool oom);
/* The proxy writes this line; the runtime this answer to the command. */
void fake_proxy_says(fake_sandbox *sbx, const char *line);
void fake_command_says(fake_sandbox *sbx, const char *text);
size_t fake_alive(const fake *f);

#endif
