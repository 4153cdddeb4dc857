/* What stk.config says, decoded once: the gateway decides and shows by this alone. Records that are older
 * than the one held are passed over (an outbox item that was published late). */
#ifndef STK_GATEWAY_VIEW_H
#define STK_GATEWAY_VIEW_H

#include "api-gateway/tokens.h"
#include "proto/bus/follow.h"
#include "proto/message/config.h"

typedef struct stk_gw_view stk_gw_view;

/* After each record that counts; `text` is the record as it stood on the topic. Both borrowed. */
typedef void (*stk_gw_view_changed)(const stk_config_record *rec, stk_str text, void *arg);
int stk_gw_view_new(stk_bus *bus, stk_gw_view_changed changed, void *arg, stk_gw_view **ret,
                    stk_err *err) STK_MUST_USE;
void stk_gw_view_free(stk_gw_view *view);
/* True once the topic was read to its end and nothing stopped it. */
bool stk_gw_view_ready(const stk_gw_view *view);
/* NULL when never set. Borrowed until the next turn of the loop. */
const stk_config_record *stk_gw_view_record(const stk_gw_view *view, const char *tenant, const char *name);
int64_t stk_gw_view_version(const stk_gw_view *view, const char *tenant, const char *name);
/* NULL when never set or unreadable (nothing runs then). */
const stk_sandbox_doc *stk_gw_view_sandbox(const stk_gw_view *view, const char *tenant);
const stk_token *stk_gw_view_token(const stk_gw_view *view, const uint8_t hash[STK_SHA256], stk_wall now);
bool stk_gw_view_has_tokens(const stk_gw_view *view);

#endif
