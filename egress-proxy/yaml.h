/* A JSON or YAML file as JSON text, so that one strict reader judges both. */
#ifndef STK_EGRESS_PROXY_YAML_H
#define STK_EGRESS_PROXY_YAML_H

#include "proto/base/buf.h"

/* Appends the file as JSON. A text that begins with '{' is taken as it is; else it is YAML: one document of
 * mappings, sequences and scalars, without anchors, aliases and tags. -STK_E_CONFIG with line and column,
 * -STK_E_NOT_FOUND, -STK_E_LIMIT. */
int stk_read_document(const char *path, stk_buf *out, stk_err *err) STK_MUST_USE;

#endif
