#include "proto/base/config_impl.h"
#include "proto/base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES (1u << 20)

/* From a text that stands in no file. */
static int set_value(stk__load *load, const char *source, const stk_conf *row, stk_str text)
{
    load->source = source;
    if (stk__conf_is_tree(row))
        return stk__conf_read_tree(load, row, text);
    if (stk__conf_set(load, row, text) < 0)
        return stk_err_wrap(load->err, "%s: %s", source, row->key);
    return 0;
}

/* A text is never NULL once defaults are set; the others' zero is their empty value. */
static int set_defaults(stk__load *load)
{
    for (const stk_conf *row = load->table; row->key; row++) {
        if (!row->def && row->type != STK_C_TEXT)
            continue;
        int rc = set_value(load, "default", row, stk_str_of(row->def ? row->def : ""));
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int load_file(stk__load *load, const char *path)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(FILE_MAX_BYTES);
    load->source = path;
    if (stk_file_read(path, &text, load->err) < 0) {
        load->err->code = STK_E_CONFIG;
        return -STK_E_CONFIG;
    }
    return stk__conf_read_file(load, stk_buf_view(&text));
}

static const stk_conf *row_named(const stk_conf *table, stk_str key)
{
    for (const stk_conf *row = table; row->key; row++)
        if (stk_str_eq(stk_str_of(row->key), key))
            return row;
    return NULL;
}

static int apply_override(stk__load *load, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return stk_err_set(load->err, STK_E_CONFIG, "override: '%s' is not KEY=VALUE", text);
    stk_str key = stk_str_n(text, (size_t)(equals - text));
    const stk_conf *row = row_named(load->table, key);
    if (!row)
        return stk_err_set(load->err, STK_E_CONFIG, "override: %.*s: unknown key",
                           (int)stk_min(key.n, STK__CONF_KEY_MAX), key.p);
    return set_value(load, "override", row, stk_str_of(equals + 1));
}

static int load_all(stk__load *load, const char *path, const char *const *overrides, stk_conf_check check)
{
    int rc = set_defaults(load);
    if (rc == 0 && path)
        rc = load_file(load, path);
    for (size_t i = 0; rc == 0 && overrides && overrides[i]; i++)
        rc = apply_override(load, overrides[i]);
    if (rc == 0 && check && check(load->out, load->err) < 0)
        rc = path ? stk_err_wrap(load->err, "%s", path) : -(int)load->err->code;
    return rc;
}

int stk_conf_load(const stk_conf *table, const char *path, const char *const *overrides, stk_conf_check check,
                  void *out, stk_err *err)
{
    stk_err own = {0};
    stk__load load = {.table = table, .out = out, .err = err ? err : &own};
    int rc = load_all(&load, path, overrides, check);
    if (rc < 0)
        stk_conf_done(table, out);
    return rc;
}

void stk_conf_done(const stk_conf *table, void *out)
{
    for (const stk_conf *row = table; row->key; row++)
        stk__conf_free(row, (char *)out + row->offset);
}
