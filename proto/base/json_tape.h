/* The tape behind stk_json, shared by json_read.c (makes it), json_keys.c and json_value.c (read it) only. */
#ifndef STK_BASE_JSON_TAPE_H
#define STK_BASE_JSON_TAPE_H

#include "proto/base/json.h"

#define STK__NODE_TYPE    7u
#define STK__NODE_ESCAPED 8u  /* a string whose unescaped form is in `plain` */
#define STK__NODE_LAST    16u /* has no next sibling */
#define STK__NODE_MEMBER  32u /* the node before it is its key */
#define STK__NODE_COUNT   6   /* bits above: number of children */
#define STK__CHILDREN_MAX (1u << 26)

/* Values in document order, each member's key (a string) right before its value. */
typedef struct stk__node {
    uint32_t start, end; /* raw text; while a container is open, end is its last child */
    uint32_t
        link; /* container: the node after its content; while open, its parent. Escaped string: in plain */
    uint32_t bits;
} stk__node;

struct stk_json {
    char *text; /* NUL-terminated copy */
    stk__node *node;
    stk_buf plain; /* for each escaped string: uint32_t length, bytes */
    uint32_t n, size;
};

static inline unsigned stk__node_type(const stk__node *node)
{
    return node->bits & STK__NODE_TYPE;
}

/* The unescaped bytes of a string node. */
stk_str stk__json_string(const stk_json *doc, const stk__node *node);
/* First child of a container, and the sibling after one; 0 when there is none. */
uint32_t stk__json_first(const stk_json *doc, uint32_t at);
uint32_t stk__json_next(const stk_json *doc, uint32_t at);
/* The node of a key that stood before in the object at `at`, or 0. */
uint32_t stk__json_repeated(const stk_json *doc, uint32_t at);

#endif
