/* Typed YAML configuration: one table gives parser, defaults, bounds, --help text, reference page and
 * cross-checks. Unknown keys, wrong units and out-of-range values are errors with line:column. */
#ifndef STK_BASE_CONFIG_H
#define STK_BASE_CONFIG_H

#include "proto/base/field.h"

typedef enum stk_conf_type {
    STK_C_TEXT, /* char *, owned, never NULL once loaded                              */
    STK_C_BOOL, /* bool: true/false only                                              */
    STK_C_INT,  /* int64_t                                                            */
    STK_C_SPAN, /* stk_span: "500us", "250ms", "10s", "5m", "1h" (unit required)      */
    STK_C_SIZE, /* int64_t bytes: "64KiB", "256MiB", "1GiB", "2TiB", "123"            */
    STK_C_LIST, /* stk_strv: sequence of scalars, "[a, b]"; max = most items          */
    STK_C_ENUM, /* int; words in `words`                                              */
    STK_C_RAW   /* stk_bytes: any sub-tree, converted to JSON text; not set = no value */
} stk_conf_type;

typedef struct stk_conf {
    const char *key; /* dotted: "http.listen" */
    stk_conf_type type;
    size_t offset;
    const char *def;          /* the default as it would be written; NULL = empty */
    int64_t min, max;         /* of INT, SIZE, SPAN (ns); both 0 = unbounded; max 0 = no upper bound */
    const char *const *words; /* STK_C_ENUM, NULL-terminated */
    bool reloadable;
    const char *help; /* one sentence */
} stk_conf;
#define STK_CONF_END                                                                                         \
    {                                                                                                        \
        .key = NULL                                                                                          \
    }

typedef int (*stk_conf_check)(const void *config, stk_err *err);

/* Fills *out (zeroed by the caller) from defaults, then the YAML file (path NULL: none), then `overrides`
 * ("key=value" strings, NULL-terminated or NULL; an override replaces what the file said), then runs `check`.
 *
 * The file is one mapping of at most 1 MiB; "http.listen" is `http: {listen: …}` or `http.listen: …`. A key
 * with no value, ~ or null keeps its default: false, 0 and "" are values. Aliases, tags, a second document
 * and a key twice are errors. In a RAW sub-tree plain scalars are null, true/false, JSON's numbers, else
 * texts.
 *
 * -STK_E_CONFIG: detail begins "FILE:LINE:COLUMN: key: ", or "override: key: ". What `check` says gets
 * "FILE: " before it. On error nothing is left to free. */
int stk_conf_load(const stk_conf *table, const char *path, const char *const *overrides, stk_conf_check check,
                  void *out, stk_err *err) STK_MUST_USE;
/* Frees what the table's rows own and zeroes those. */
void stk_conf_done(const stk_conf *table, void *out);
/* The reference page (Markdown table), also shown by --help. */
void stk_conf_reference(const stk_conf *table, stk_buf *out);

#endif
