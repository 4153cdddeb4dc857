/* The scheduler's picture of workers and pools. It is read again when state says that capacity changed, never
 * per run; between two readings the scheduler's own placements are kept in its books. A wrong picture costs
 * one refused ASSIGN, nothing else. */
#ifndef STK_SCHEDULER_FLEET_H
#define STK_SCHEDULER_FLEET_H

#include "proto/state/state.h"
#include "scheduler/place.h"

struct stk_scheduler;

/* A placement since the last reading. */
typedef struct stk_booking {
    uint64_t ticket;
    char worker[STK_WORKER_MAX];
    char sandbox[STK_ID_SIZE];
    bool slot;  /* takes one */
    bool void_; /* state refused it */
} stk_booking;

typedef struct stk_fleet {
    stk_place_view view;
    size_t live; /* usable workers */
    int64_t slots, used;
    bool known; /* it was read once */
    bool reading, again;
    stk_mono read_at;
    stk_timer *timer;
    uint64_t tickets;     /* last one given */
    uint64_t read_ticket; /* what the reading under way includes */
    stk_booking *books;
    size_t nbooks, books_size;
} stk_fleet;

void stk_fleet_init(stk_fleet *fleet, struct stk_scheduler *s);
void stk_fleet_done(stk_fleet *fleet);
/* Capacity may have changed: read again, soon, once for many calls. */
void stk_fleet_stale(struct stk_scheduler *s);
/* Books a choice; the ticket is for stk_fleet_void when state refuses it. */
uint64_t stk_fleet_book(stk_fleet *fleet, const stk_place_choice *choice, bool slot);
/* slot_back: the slot is free again in the picture; else only the sandbox is known to be gone. */
void stk_fleet_void(stk_fleet *fleet, uint64_t ticket);

/* From state's rows (pure; tested). Free with stk_fleet_view_done. */
void stk_fleet_view(const stk_worker_row *workers, size_t nworkers, const stk_pool_row *pool, size_t npool,
                    stk_place_view *ret);
void stk_fleet_view_done(stk_place_view *view);

#endif
