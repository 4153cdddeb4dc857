/* Trims the embedded bus: what every consumer group has finished goes, once a minute. The bus itself never
 * trims past the lowest committed offset of a group, and keeps the newest record of each key of a compacted
 * topic. Lanes are trimmed by their worker; stk.dead is never. */
#ifndef STK_STANDALONE_TRIM_H
#define STK_STANDALONE_TRIM_H

#include "proto/bus/bus_sqlite.h"

typedef struct stk_trimmer stk_trimmer;
/* Borrows loop, bus and topics. */
stk_trimmer *stk_trimmer_new(stk_loop *loop, stk_bus *bus, const stk_bus_topic *topics, size_t ntopics);
void stk_trimmer_free(stk_trimmer *trimmer);

#endif
