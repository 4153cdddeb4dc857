#include "proto/base/config_impl.h"
#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

#define DEPTH_MAX 32

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    stk__load *load;
    stk_conf const *row; /* whose value is being read, for errors; else NULL */
    bool *seen;          /* by row; NULL when one value alone is read */
} reader;

static int fail_at(reader *r, yaml_mark_t at, const char *key, const char *what)
{
    bool named = key && *key;
    return stk_err_set(r->load->err, STK_E_CONFIG, "%s:%zu:%zu: %s%s%s", r->load->source, at.line + 1,
                       at.column + 1, named ? key : "", named ? ": " : "", what);
}

static const char *row_key(const reader *r)
{
    return r->row ? r->row->key : NULL;
}

/* At the event in hand. */
static int fail_here(reader *r, const char *what)
{
    return fail_at(r, r->event.start_mark, row_key(r), what);
}

static int syntax_error(reader *r)
{
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t at = p->problem_mark;
    if (p->error == YAML_READER_ERROR)
        return stk_err_set(r->load->err, STK_E_CONFIG, "%s: byte %zu: %s", r->load->source, p->problem_offset,
                           p->problem ? p->problem : "cannot be read");
    return fail_at(r, at, row_key(r), p->problem ? p->problem : "not YAML");
}

static bool has_tag(const yaml_event_t *e)
{
    return (e->type == YAML_SCALAR_EVENT && e->data.scalar.tag) ||
           (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.tag) ||
           (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.tag);
}

static int next(reader *r)
{
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return syntax_error(r);
    if (r->event.type == YAML_ALIAS_EVENT)
        return fail_here(r, "aliases are not taken");
    if (has_tag(&r->event))
        return fail_here(r, "tags are not taken");
    return 0;
}

static stk_str scalar(const reader *r)
{
    return stk_str_n(r->event.data.scalar.value, r->event.data.scalar.length);
}

static bool is_plain(const reader *r)
{
    return r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static bool one_of(stk_str s, const char *const *words)
{
    for (; *words; words++)
        if (stk_str_eq(s, stk_str_of(*words)))
            return true;
    return false;
}

/* Nothing behind the colon, ~, or null: the key is there, a value is not. */
static bool is_null(const reader *r)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};
    return is_plain(r) && one_of(scalar(r), words);
}

static int read_list(reader *r)
{
    stk_strv *list = stk__conf_at(r->load, r->row);
    if (r->event.type != YAML_SEQUENCE_START_EVENT)
        return fail_here(r, "must be a list");
    stk_strv_done(list);
    for (;;) {
        int rc = next(r);
        if (rc < 0)
            return rc;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return 0;
        if (r->event.type != YAML_SCALAR_EVENT || is_null(r))
            return fail_here(r, "a list of texts was expected");
        if (memchr(scalar(r).p, '\0', scalar(r).n))
            return fail_here(r, "must not hold a NUL byte");
        if (r->row->max && (int64_t)list->n >= r->row->max)
            return fail_here(r, "the list has too many items");
        stk_strv_add(list, scalar(r));
    }
}

static bool is_json_number(stk_str s)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    return stk_json_parse(s, NULL, &doc, NULL) == 0 && stk_jv_is(stk_json_root(doc), STK_J_NUMBER) &&
           stk_str_eq(stk_jv_raw(stk_json_root(doc)), s);
}

/* YAML 1.2 core schema, but for numbers that JSON would not take: those are texts. */
static void convert_scalar(reader *r, stk_jw *w)
{
    static const char *const yes[] = {"true", "True", "TRUE", NULL}, *const no[] = {"false", "False", "FALSE",
                                                                                    NULL};
    stk_str s = scalar(r);
    if (is_null(r))
        stk_jw_null(w);
    else if (is_plain(r) && (one_of(s, yes) || one_of(s, no)))
        stk_jw_bool(w, one_of(s, yes));
    else if (is_plain(r) && is_json_number(s))
        stk_jw_raw(w, s);
    else
        stk_jw_str(w, s);
}

static int convert(reader *r, stk_jw *w, int depth);

static int convert_items(reader *r, stk_jw *w, int depth, bool mapping)
{
    for (;;) {
        int rc = next(r);
        if (rc < 0)
            return rc;
        if (r->event.type == YAML_SEQUENCE_END_EVENT || r->event.type == YAML_MAPPING_END_EVENT)
            return 0;
        if (mapping) {
            if (r->event.type != YAML_SCALAR_EVENT)
                return fail_here(r, "a key must be a text");
            stk_jw_key_str(w, scalar(r));
            rc = next(r);
        }
        if (rc == 0)
            rc = convert(r, w, depth + 1);
        if (rc < 0)
            return rc;
    }
}

static int convert(reader *r, stk_jw *w, int depth)
{
    bool mapping = r->event.type == YAML_MAPPING_START_EVENT;
    if (r->event.type == YAML_SCALAR_EVENT) {
        convert_scalar(r, w);
        return 0;
    }
    if (depth == DEPTH_MAX)
        return fail_here(r, "nested too deep");
    if (mapping)
        stk_jw_object(w);
    else
        stk_jw_array(w);
    int rc = convert_items(r, w, depth, mapping);
    stk_jw_close(w, mapping ? '}' : ']');
    return rc;
}

static int read_document(reader *r)
{
    yaml_mark_t at = r->event.start_mark;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1u << 23);
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_err err = {0};
    stk_jw w;
    stk_jw_init(&w, &text);
    int rc = convert(r, &w, 0);
    if (rc < 0)
        return rc;
    /* What is refused in JSON, a repeated key above all, is refused here too. */
    if (stk_jw_end(&w, &err) < 0 || stk_json_parse(stk_buf_view(&text), NULL, &doc, &err) < 0)
        return fail_at(r, at, row_key(r), err.detail);
    stk_bytes_set(stk__conf_at(r->load, r->row), stk_buf_view(&text));
    return 0;
}

static int read_scalar(reader *r)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return fail_here(r, "one value was expected");
    int rc = stk__conf_set(r->load, r->row, scalar(r));
    if (rc == 0)
        return 0;
    char why[sizeof(r->load->err->detail)];
    snprintf(why, sizeof(why), "%s", r->load->err->detail);
    return fail_here(r, why);
}

/* The value of r->row; a null leaves what is there. */
static int read_row(reader *r)
{
    if (is_null(r))
        return 0;
    if (r->row->type == STK_C_LIST)
        return read_list(r);
    return r->row->type == STK_C_RAW ? read_document(r) : read_scalar(r);
}

static const stk_conf *row_named(const stk_conf *table, const char *key)
{
    for (const stk_conf *row = table; row->key; row++)
        if (strcmp(row->key, key) == 0)
            return row;
    return NULL;
}

static bool is_section(const stk_conf *table, const char *path)
{
    size_t n = strlen(path);
    for (const stk_conf *row = table; row->key; row++)
        if (strncmp(row->key, path, n) == 0 && row->key[n] == '.')
            return true;
    return false;
}

static int read_section(reader *r, const char *prefix, int depth);

static int read_key_of_row(reader *r, const stk_conf *row)
{
    bool *seen = &r->seen[row - r->load->table];
    r->row = row;
    if (*seen)
        return fail_here(r, "is here a second time");
    *seen = true;
    int rc = next(r);
    if (rc == 0)
        rc = read_row(r);
    r->row = NULL;
    return rc;
}

/* At a key of a mapping: the key and its value. */
static int read_key(reader *r, const char *prefix, int depth)
{
    char path[STK__CONF_KEY_MAX];
    stk_str name = scalar(r);
    int n = snprintf(path, sizeof(path), "%s%s%.*s", prefix, *prefix ? "." : "",
                     (int)stk_min(name.n, sizeof(path)), name.p);
    bool usable = (size_t)n < sizeof(path) && !memchr(name.p, '\0', name.n);
    const stk_conf *row = usable ? row_named(r->load->table, path) : NULL;
    if (row)
        return read_key_of_row(r, row);
    if (!usable || !is_section(r->load->table, path))
        return fail_at(r, r->event.start_mark, path, "unknown key");
    int rc = next(r);
    if (rc < 0 || is_null(r))
        return rc;
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return fail_at(r, r->event.start_mark, path, "must be a mapping of keys to values");
    return read_section(r, path, depth + 1);
}

static int read_section(reader *r, const char *prefix, int depth)
{
    if (depth == DEPTH_MAX)
        return fail_here(r, "nested too deep");
    for (;;) {
        int rc = next(r);
        if (rc < 0)
            return rc;
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return 0;
        if (r->event.type != YAML_SCALAR_EVENT)
            return fail_at(r, r->event.start_mark, prefix, "a key must be a text");
        rc = read_key(r, prefix, depth);
        if (rc < 0)
            return rc;
    }
}

static int read_root(reader *r)
{
    if (r->row)
        return read_row(r);
    if (is_null(r))
        return 0;
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return fail_here(r, "must be a mapping of keys to values");
    return read_section(r, "", 0);
}

/* The one document of the stream, or none. */
static int read_stream(reader *r)
{
    int rc = next(r);
    if (rc == 0)
        rc = next(r);
    if (rc < 0 || r->event.type == YAML_STREAM_END_EVENT)
        return rc;
    rc = next(r);
    if (rc == 0)
        rc = read_root(r);
    if (rc == 0)
        rc = next(r);
    if (rc == 0)
        rc = next(r);
    if (rc == 0 && r->event.type != YAML_STREAM_END_EVENT)
        rc = fail_here(r, "a second document");
    return rc;
}

static int read_yaml(reader *r, stk_str text)
{
    if (!yaml_parser_initialize(&r->parser))
        return stk_err_set(r->load->err, STK_E_NOMEM, "no memory for the YAML parser");
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text.p, text.n);
    int rc = read_stream(r);
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
    return rc;
}

int stk__conf_read_file(stk__load *load, stk_str text)
{
    size_t rows = 0;
    while (load->table[rows].key)
        rows++;
    bool *seen STK_AUTO(stk_freep) = stk_xcalloc(rows, sizeof(*seen));
    reader r = {.load = load, .seen = seen};
    return read_yaml(&r, text.p ? text : STK_STR(""));
}

int stk__conf_read_tree(stk__load *load, const stk_conf *row, stk_str text)
{
    reader r = {.load = load, .row = row};
    stk__conf_free(row, stk__conf_at(load, row));
    return read_yaml(&r, text);
}
