/* A part of the standalone process: one program of the fleet on a thread and event loop of its own, wired to
 * the embedded adapters. */
#ifndef STK_STANDALONE_PART_H
#define STK_STANDALONE_PART_H

#include "deploy/standalone/settings.h"
#include "deploy/standalone/trim.h"
#include "proto/base/crypto.h"
#include "proto/bus/bus_sqlite.h"
#include "proto/state/state_sqlite.h"
#include "proto/store/store_sqlite.h"
#include <pthread.h>

typedef struct stk_up stk_up;
typedef struct stk_part stk_part;

/* What a part is. All but `wait` run on the part's thread. */
typedef struct stk_part_ops {
    const char *name;
    int (*open)(stk_part *part, stk_err *err);
    /* Begins to stop; true once nothing is under way. Asked again every few milliseconds. hurry: a second
     * signal came. */
    bool (*quiet)(stk_part *part, bool hurry);
    void (*metrics)(stk_part *part, stk_buf *out);
    void (*close)(stk_part *part);
    bool (*ready)(stk_part *part);
} stk_part_ops;

struct stk_part {
    const stk_part_ops *ops;
    stk_up *up;
    pthread_t thread;
    stk_loop *loop;
    stk_bus *bus;
    stk_state *state;
    stk_store *store;
    stk_trimmer *trimmer; /* of the audit part, which reads most */
    void *program;        /* stk_gateway * and so on */
    stk_timer *tick;      /* metrics, readiness, quiet */
    bool opened, stopping, hurry, hurried, quiet, drain_called;
};

/* What the parts share: files and the texts of /metrics, one per part, under a mutex. */
struct stk_up {
    stk_settings settings;
    stk_keyring *ring;
    stk_bus_file *bus_file;
    stk_state_file *state_file;
    stk_store_file *store_file;
    char worker[STK_WORKER_MAX];
    int worker_lock, dir_lock;
    stk_loop *main_loop;
    stk_part parts[4];
    pthread_mutex_t mutex;
    stk_buf metrics[4];
    bool ready[4];
    char address[128];
    stk_err failure;
    bool failed, announced;
    int signals;
    size_t stopping; /* which part is being stopped */
};

extern const stk_part_ops stk_part_audit, stk_part_scheduler, stk_part_worker, stk_part_gateway;

/* Starts the thread; on_opened is posted to main's loop by the part (up.c). */
int stk_part_start(stk_part *part, stk_err *err) STK_MUST_USE;
/* Posts "stop" to the part's loop; stk_up_part_quiet is posted back. */
void stk_part_stop(stk_part *part, bool hurry);
void stk_part_join(stk_part *part);

/* up.c: on main's loop. */
void stk_up_part_opened(void *part);
void stk_up_part_quiet(void *part);
void stk_up_part_ready(void *part);

#define STK_STANDALONE_LANES  8
#define STK_STANDALONE_TOPICS 6
extern const stk_bus_topic stk_standalone_topics[STK_STANDALONE_TOPICS];

#endif
