/* Where a run goes: worker rows + pool rows + what it needs -> a choice. Pure; tested as a table.
 *
 * The backend first: the one that is named, or with `auto` the strongest that a live worker's probe found
 * (firecracker, k8s, gvisor, plain container; of equals oci before docker). Never a weaker one because the
 * strongest is full: then the run waits. Then the worker: one that holds a warm sandbox of the template, else
 * the least loaded with a free slot. */
#ifndef STK_SCHEDULER_PLACE_H
#define STK_SCHEDULER_PLACE_H

#include "proto/message/limits.h"

typedef enum stk_place_backend {
    STK_PLACE_AUTO, /* as a need only */
    STK_PLACE_K8S,
    STK_PLACE_FIRECRACKER,
    STK_PLACE_DOCKER,
    STK_PLACE_OCI,
    STK_PLACE_BACKENDS
} stk_place_backend;
stk_place_backend stk_place_backend_parse(stk_str name); /* STK_PLACE_BACKENDS when unknown; "" is auto */
const char *stk_place_backend_text(stk_place_backend backend);

typedef enum stk_place_isolation {
    STK_PLACE_NONE,
    STK_PLACE_CONTAINER,
    STK_PLACE_GVISOR,
    STK_PLACE_MICROVM
} stk_place_isolation;

typedef struct stk_place_probe {
    bool ok;
    stk_place_isolation isolation;
    char reason[256]; /* !ok: what is missing; "" = the worker does not know this backend */
} stk_place_probe;

typedef struct stk_place_worker {
    char id[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
    int64_t slots, used;
    bool usable; /* live and not draining */
    stk_place_probe probes[STK_PLACE_BACKENDS];
} stk_place_worker;

typedef struct stk_place_warm {
    char sandbox[STK_ID_SIZE], template_key[STK_ID_SIZE];
    uint32_t worker; /* index */
    bool gone;       /* taken since */
} stk_place_warm;

typedef struct stk_place_view {
    stk_place_worker *workers;
    size_t nworkers;
    stk_place_warm *warm;
    size_t nwarm;
} stk_place_view;

typedef struct stk_place_need {
    stk_place_backend backend;
    bool runtime_class;                                  /* nothing weaker than gVisor */
    bool plan;                                           /* takes no slot and no warm sandbox */
    char template_keys[STK_PLACE_BACKENDS][STK_ID_SIZE]; /* "" = never warm */
} stk_place_need;

typedef struct stk_place_choice {
    enum {
        STK_PLACE_HERE,
        STK_PLACE_FULL,    /* it exists, but no slot is free: wait              */
        STK_PLACE_LACKING, /* no usable worker has it: refuse, and `why` says what is missing */
        STK_PLACE_NOBODY   /* no usable worker at all: wait                     */
    } what;
    uint32_t worker;
    stk_place_backend backend;
    uint32_t warm; /* index, or UINT32_MAX */
    char why[320];
} stk_place_choice;

void stk_place(const stk_place_view *view, const stk_place_need *need, stk_place_choice *ret);

#endif
