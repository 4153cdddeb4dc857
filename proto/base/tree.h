/* cJSON is the tree for free-form documents (configuration, plans, OCI, Docker, Kubernetes objects, audit
 * details). It only ever sees text that stk_json_parse accepted, and is only ever written by our writer. */
#ifndef STK_BASE_TREE_H
#define STK_BASE_TREE_H

#include "proto/base/json.h"
#include <cjson/cJSON.h>

STK_DEFINE_FREEP(cJSON, stk_tree_freep, cJSON_Delete)

/* A checked value as a tree; -STK_E_JSON when a string or key holds NUL (a tree can't) or it nests over 64
 * deep. The caller deletes it. A whole number beyond 2^53 keeps its digits in valuestring, so that writing it
 * is exact. */
int stk_tree_from(stk_jv v, cJSON **ret, stk_err *err) STK_MUST_USE;
/* Writes the tree; numbers that are whole print as such. canonical: members sorted by key bytes. A tree
 * nested over 64 deep makes stk_jw_end fail. */
void stk_tree_write(stk_jw *w, const cJSON *tree, bool canonical);
/* JSON text of a tree, appended. */
int stk_tree_text(stk_buf *out, const cJSON *tree, bool canonical, stk_err *err);
/* Two-space indented text for people (plans, config get), appended; no newline at the end. */
int stk_tree_pretty(stk_buf *out, const cJSON *tree, stk_err *err);
/* Sets key: text (copied; NUL becomes U+FFFD; replaces a member of that name) and returns the tree's new
 * child. Memory failure ends the process like stk_xcalloc. */
cJSON *stk_tree_set_str(cJSON *object, const char *key, stk_str value);

#endif
