#include "egress-proxy/yaml.h"
#include "proto/base/fd.h"
#include "proto/base/json.h"
#include <yaml.h>

#define DEPTH_MOST 32

typedef struct level {
    bool mapping, key; /* key: the next scalar is one */
} level;

typedef struct reader {
    yaml_parser_t parser;
    stk_jw w;
    level levels[DEPTH_MOST];
    int depth;
} reader;

static int complain(const reader *r, const yaml_mark_t *at, const char *text, stk_err *err)
{
    return stk_err_set(err, STK_E_CONFIG, "line %zu, column %zu: %s", at->line + 1, at->column + 1, text);
}

static bool is_json_word(stk_str s)
{
    stk_json *doc = NULL;
    bool ok = stk_json_parse(s, NULL, &doc, NULL) == 0;
    if (ok)
        stk_json_free(doc);
    return ok && s.p[0] != '{' && s.p[0] != '[' && s.p[0] != '"';
}

/* Numbers, true, false and null stand as they do in JSON; everything else that is plain is text. */
static int on_scalar(reader *r, const yaml_event_t *event, stk_err *err)
{
    stk_str s = {(const char *)event->data.scalar.value, event->data.scalar.length};
    level *top = &r->levels[r->depth];
    if (event->data.scalar.anchor || event->data.scalar.tag)
        return complain(r, &event->start_mark, "anchors and tags are not read", err);
    if (top->mapping && top->key) {
        stk_jw_key_str(&r->w, s);
        top->key = false;
        return 0;
    }
    top->key = true;
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        stk_jw_str(&r->w, s);
    else if (s.n == 0 || (s.n == 1 && s.p[0] == '~'))
        stk_jw_null(&r->w);
    else if (is_json_word(s))
        stk_jw_raw(&r->w, s);
    else
        stk_jw_str(&r->w, s);
    return 0;
}

static int on_start(reader *r, const yaml_event_t *event, bool mapping, stk_err *err)
{
    level *top = &r->levels[r->depth];
    bool marked = mapping ? event->data.mapping_start.anchor || event->data.mapping_start.tag
                          : event->data.sequence_start.anchor || event->data.sequence_start.tag;
    if (marked)
        return complain(r, &event->start_mark, "anchors and tags are not read", err);
    if (top->mapping && top->key)
        return complain(r, &event->start_mark, "a key is a plain text", err);
    if (r->depth + 1 == DEPTH_MOST)
        return complain(r, &event->start_mark, "nested too deep", err);
    top->key = true;
    r->levels[++r->depth] = (level){.mapping = mapping, .key = true};
    if (mapping)
        stk_jw_object(&r->w);
    else
        stk_jw_array(&r->w);
    return 0;
}

static int on_event(reader *r, const yaml_event_t *event, stk_err *err)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(r, event, err);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return on_start(r, event, event->type == YAML_MAPPING_START_EVENT, err);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        stk_jw_close(&r->w, event->type == YAML_MAPPING_END_EVENT ? '}' : ']');
        r->depth--;
        return 0;
    case YAML_ALIAS_EVENT:
        return complain(r, &event->start_mark, "aliases are not read", err);
    default:
        return 0;
    }
}

static int convert(reader *r, stk_err *err)
{
    for (bool end = false; !end;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event))
            return complain(r, &r->parser.problem_mark, r->parser.problem ? r->parser.problem : "not YAML",
                            err);
        int rc = on_event(r, &event, err);
        end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (rc < 0)
            return rc;
    }
    return stk_jw_end(&r->w, err) < 0 ? stk_err_set(err, STK_E_CONFIG, "the file is not one whole document")
                                      : 0;
}

int stk_read_document(const char *path, stk_buf *out, stk_err *err)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(out->cap);
    int rc = stk_file_read(path, &text, err);
    if (rc < 0)
        return rc;
    size_t blank = text.n ? strspn(text.p, " \t\r\n") : 0;
    if (blank < text.n && text.p[blank] == '{')
        return stk_buf_str(out, stk_buf_view(&text));
    reader r = {.depth = 0};
    if (!yaml_parser_initialize(&r.parser))
        return stk_err_set(err, STK_E_NOMEM, "no memory to read %s", path);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text.p, text.n);
    stk_jw_init(&r.w, out);
    rc = convert(&r, err);
    yaml_parser_delete(&r.parser);
    return rc;
}
