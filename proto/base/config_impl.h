/* Shared by config.c, config_yaml.c, config_value.c and config_page.c only. */
#ifndef STK_BASE_CONFIG_IMPL_H
#define STK_BASE_CONFIG_IMPL_H

#include "proto/base/config.h"

#define STK__CONF_KEY_MAX 128

/* One load. */
typedef struct stk__load {
    const stk_conf *table;
    void *out;
    const char *source; /* what an error's place begins with */
    stk_err *err;       /* never NULL */
} stk__load;

static inline void *stk__conf_at(const stk__load *load, const stk_conf *row)
{
    return (char *)load->out + row->offset;
}
/* Whether a row takes a sequence or a sub-tree rather than one scalar. */
static inline bool stk__conf_is_tree(const stk_conf *row)
{
    return row->type == STK_C_LIST || row->type == STK_C_RAW;
}

/* Sets a row of a scalar type from its text; the error names neither key nor place. */
int stk__conf_set(const stk__load *load, const stk_conf *row, stk_str text);
void stk__conf_free(const stk_conf *row, void *at);
/* A bound of the row as one would write it: "10s", "64KiB", "5". */
void stk__conf_bound(const stk_conf *row, int64_t n, char out[32]);

/* The whole file: a mapping of sections and keys. Errors carry place and key. */
int stk__conf_read_file(stk__load *load, stk_str text);
/* One value of a row that takes a tree, from YAML text (a default, an override). */
int stk__conf_read_tree(stk__load *load, const stk_conf *row, stk_str text);

#endif
