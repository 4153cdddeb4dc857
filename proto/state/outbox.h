/* Publishing what an operation left in the outbox: taken, published, and only then marked done. A publish
 * that fails leaves the item; a sweeper takes it again later. */
#ifndef STK_STATE_OUTBOX_H
#define STK_STATE_OUTBOX_H

#include "proto/bus/bus.h"
#include "proto/state/state.h"

/* ok: every item that was taken is on the bus and marked (nothing to take is ok). */
typedef void (*stk_outbox_flushed)(bool ok, size_t published, void *arg);

/* The winner's own item, at once; id 0 = nothing to do. done may be NULL; it is called once, never from
 * inside the call. */
void stk_outbox_publish(stk_bus *bus, stk_state *st, int64_t id, stk_outbox_flushed done, void *arg);
/* Items nobody published for `older`, in order of id; each is held for `hold`. For sweepers, about once a
 * second. */
void stk_outbox_sweep(stk_bus *bus, stk_state *st, stk_span older, stk_span hold, stk_outbox_flushed done,
                      void *arg);

#endif
