#include "proto/base/json_scan.h"
#include "proto/base/json_tape.h"
#include <math.h>

typedef struct reader {
    stk_json *doc;
    const unsigned char *p; /* doc->text */
    size_t n, at;
    size_t depth, values;
    stk_json_limits limits;
    uint32_t open; /* innermost open container */
    stk_err *err;
} reader;

static int bad_at(reader *r, size_t at, const char *what)
{
    return stk_err_set(r->err, STK_E_JSON, "%s at byte %zu", what, at);
}

static int bad(reader *r, const char *what)
{
    return bad_at(r, r->at, r->at >= r->n ? "the text ends too early" : what);
}

static void skip_space(reader *r)
{
    while (r->p[r->at] == ' ' || r->p[r->at] == '\n' || r->p[r->at] == '\r' || r->p[r->at] == '\t')
        r->at++;
}

static stk__node *push(reader *r, stk_jtype type)
{
    stk_json *doc = r->doc;
    if (doc->n == doc->size) {
        doc->size += doc->size / 2;
        doc->node = stk_xrealloc(doc->node, doc->size * sizeof(*doc->node));
    }
    stk__node *node = &doc->node[doc->n++];
    *node = (stk__node){.start = (uint32_t)r->at, .bits = type};
    return node;
}

static int hex4(reader *r, size_t at, uint32_t *ret)
{
    uint32_t v = 0;
    for (size_t i = at; i < at + 4; i++) {
        unsigned char c = r->p[i];
        unsigned char low = c | 0x20;
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            v = v << 4 | (uint32_t)(low - 'a' + 10);
        else
            return bad_at(r, i, i >= r->n ? "the text ends too early" : "a bad \\u escape");
    }
    *ret = v;
    return 0;
}

static void put_utf8(stk_buf *out, uint32_t c)
{
    char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        b[i] = (char)(0x80 | (c & 63));
    b[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xf0u) | c);
    stk_buf_add(out, b, n);
}

/* At the 'u' of an escape. */
static int unicode_escape(reader *r)
{
    uint32_t c = 0, low = 0;
    size_t start = r->at - 1;
    int rc = hex4(r, r->at + 1, &c);
    if (rc < 0)
        return rc;
    r->at += 5;
    if (c >= 0xdc00 && c <= 0xdfff)
        return bad_at(r, start, "a lone surrogate");
    if (c >= 0xd800 && c <= 0xdbff) {
        if (r->p[r->at] != '\\' || r->p[r->at + 1] != 'u')
            return bad_at(r, start, "a lone surrogate");
        rc = hex4(r, r->at + 2, &low);
        if (rc < 0)
            return rc;
        if (low < 0xdc00 || low > 0xdfff)
            return bad_at(r, start, "a lone surrogate");
        r->at += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(&r->doc->plain, c);
    return 0;
}

static int escape(reader *r)
{
    static const char plain[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    unsigned char c = r->p[++r->at];
    if (c == 'u')
        return unicode_escape(r);
    for (size_t i = 0; plain[i]; i += 2) {
        if (c != (unsigned char)plain[i])
            continue;
        r->at++;
        return stk_buf_byte(&r->doc->plain, plain[i + 1]);
    }
    return bad(r, "an unknown escape");
}

/* Goes over ordinary characters: stops at a quote or a backslash, fails at what a string must not hold. */
static int skip_plain(reader *r)
{
    for (;;) {
        unsigned char c = r->p[r->at];
        if (c == '"' || c == '\\')
            return 0;
        if (c < 0x20)
            return bad(r, "a control byte in a string");
        stk_str rest = stk_str_n(r->p + r->at, r->n - r->at);
        bool good = true;
        size_t n = c < 0x80 ? stk__json_plain_run(rest) : stk_utf8_step(rest, &good);
        if (!good)
            return bad(r, "bytes that are not UTF-8");
        r->at += n;
    }
}

/* The rest of a string with an escape in it: the unescaped form goes to doc->plain. */
static int read_escaped(reader *r, uint32_t at)
{
    stk_buf *plain = &r->doc->plain;
    uint32_t place = (uint32_t)plain->n, length = 0;
    size_t from = r->doc->node[at].start + 1;
    int rc = stk_buf_add(plain, &length, sizeof(length));
    while (rc == 0) {
        stk_buf_add(plain, r->p + from, r->at - from);
        if (r->p[r->at] == '"')
            break;
        rc = escape(r);
        from = r->at;
        if (rc == 0)
            rc = skip_plain(r);
    }
    if (rc < 0)
        return rc;
    length = (uint32_t)(plain->n - place - sizeof(length));
    memcpy(plain->p + place, &length, sizeof(length));
    r->doc->node[at].link = place;
    r->doc->node[at].bits |= STK__NODE_ESCAPED;
    return 0;
}

static int read_string(reader *r)
{
    uint32_t at = r->doc->n;
    push(r, STK_J_STRING);
    r->at++;
    int rc = skip_plain(r);
    if (rc == 0 && r->p[r->at] == '\\')
        rc = read_escaped(r, at);
    if (rc < 0)
        return rc;
    r->doc->node[at].end = (uint32_t)++r->at;
    return 0;
}

static size_t skip_digits(reader *r)
{
    size_t from = r->at;
    while (r->p[r->at] >= '0' && r->p[r->at] <= '9')
        r->at++;
    return r->at - from;
}

static int read_number(reader *r)
{
    size_t start = r->at;
    stk__node *node = push(r, STK_J_NUMBER);
    if (r->p[r->at] == '-')
        r->at++;
    bool zero = r->p[r->at] == '0';
    size_t whole = skip_digits(r);
    if (whole == 0 || (zero && whole > 1))
        return bad_at(r, start, "a malformed number");
    bool risky = whole > 200;
    if (r->p[r->at] == '.') {
        r->at++;
        if (skip_digits(r) == 0)
            return bad_at(r, start, "a malformed number");
    }
    if ((r->p[r->at] | 0x20) == 'e') {
        r->at++;
        if (r->p[r->at] == '+' || r->p[r->at] == '-')
            r->at++;
        size_t digits = skip_digits(r);
        if (digits == 0)
            return bad_at(r, start, "a malformed number");
        risky = risky || digits > 2;
    }
    if (risky && !isfinite(strtod((const char *)r->p + start, NULL)))
        return bad_at(r, start, "a number too large for a double");
    node->end = (uint32_t)r->at;
    return 0;
}

static int read_word(reader *r, const char *word, stk_jtype type)
{
    size_t n = strlen(word);
    if (r->n - r->at < n || memcmp(r->p + r->at, word, n) != 0)
        return bad(r, "an unknown word");
    stk__node *node = push(r, type);
    r->at += n;
    node->end = (uint32_t)r->at;
    return 0;
}

/* Counts the value that comes next and makes it the open container's last child. */
static int adopt(reader *r)
{
    if (++r->values > r->limits.values)
        return stk_err_set(r->err, STK_E_LIMIT, "more than %zu JSON values", r->limits.values);
    if (r->depth == 0)
        return 0;
    stk__node *parent = &r->doc->node[r->open];
    parent->end = r->doc->n;
    parent->bits += 1u << STK__NODE_COUNT;
    return 0;
}

static int open_container(reader *r, stk_jtype type)
{
    if (r->depth == r->limits.depth)
        return bad(r, "nesting too deep");
    uint32_t at = r->doc->n;
    push(r, type)->link = r->open;
    r->open = at;
    r->depth++;
    r->at++;
    return 0;
}

static int close_container(reader *r)
{
    stk_json *doc = r->doc;
    stk__node *node = &doc->node[r->open];
    uint32_t at = r->open;
    r->open = node->link;
    r->depth--;
    if (node->bits >> STK__NODE_COUNT)
        doc->node[node->end].bits |= STK__NODE_LAST;
    node->link = doc->n;
    node->end = (uint32_t)++r->at;
    uint32_t twice = stk__node_type(node) == STK_J_OBJECT ? stk__json_repeated(doc, at) : 0;
    return twice ? bad_at(r, doc->node[twice].start, "a repeated key") : 0;
}

static int read_value(reader *r)
{
    int rc = adopt(r);
    if (rc < 0)
        return rc;
    switch (r->p[r->at]) {
    case '{':
        return open_container(r, STK_J_OBJECT);
    case '[':
        return open_container(r, STK_J_ARRAY);
    case '"':
        return read_string(r);
    case 't':
        return read_word(r, "true", STK_J_BOOL);
    case 'f':
        return read_word(r, "false", STK_J_BOOL);
    case 'n':
        return read_word(r, "null", STK_J_NULL);
    default:
        if (r->p[r->at] == '-' || (r->p[r->at] >= '0' && r->p[r->at] <= '9'))
            return read_number(r);
        return bad(r, "not a value");
    }
}

static int read_key(reader *r)
{
    if (r->p[r->at] != '"')
        return bad(r, "a key was expected");
    int rc = read_string(r);
    if (rc < 0)
        return rc;
    skip_space(r);
    if (r->p[r->at] != ':')
        return bad(r, "':' was expected");
    r->at++;
    skip_space(r);
    return 0;
}

/* One step inside the open container: its next child or its end. */
static int step(reader *r)
{
    stk__node *node = &r->doc->node[r->open];
    bool object = stk__node_type(node) == STK_J_OBJECT;
    bool first = node->bits >> STK__NODE_COUNT == 0;
    skip_space(r);
    /* A container that was just opened has no comma before its first child. */
    if (r->p[r->at] == (object ? '}' : ']'))
        return close_container(r);
    if (!first) {
        if (r->p[r->at] != ',')
            return bad(r, object ? "',' or '}' was expected" : "',' or ']' was expected");
        r->at++;
        skip_space(r);
    }
    int rc = object ? read_key(r) : 0;
    if (rc < 0)
        return rc;
    uint32_t at = r->doc->n;
    rc = read_value(r);
    if (rc == 0 && object)
        r->doc->node[at].bits |= STK__NODE_MEMBER;
    return rc;
}

static int read_document(reader *r)
{
    if (r->n >= 3 && memcmp(r->p, "\xef\xbb\xbf", 3) == 0)
        return bad_at(r, 0, "a byte order mark");
    skip_space(r);
    if (r->at == r->n)
        return stk_err_set(r->err, STK_E_JSON, "the text is empty");
    int rc = read_value(r);
    while (rc == 0 && r->depth > 0)
        rc = step(r);
    if (rc < 0)
        return rc;
    skip_space(r);
    return r->at == r->n ? 0 : bad(r, "text after the end of the document");
}

int stk_json_parse(stk_str text, const stk_json_limits *limits, stk_json **ret_doc, stk_err *err)
{
    if (text.n >= UINT32_MAX / 4)
        return stk_err_set(err, STK_E_LIMIT, "a JSON text of %zu bytes", text.n);
    stk_json *doc STK_AUTO(stk_json_freep) = stk_xcalloc(1, sizeof(*doc));
    doc->text = stk_xmemdup(text.p, text.n);
    doc->plain = STK_BUF(UINT32_MAX);
    doc->size = (uint32_t)stk_min(text.n / 8 + 4, 4096);
    doc->node = stk_xcalloc(doc->size, sizeof(*doc->node));
    reader r = {.doc = doc, .p = (const unsigned char *)doc->text, .n = text.n, .err = err};
    r.limits.depth = limits && limits->depth ? limits->depth : 64;
    r.limits.values = stk_min(limits && limits->values ? limits->values : 100000, STK__CHILDREN_MAX - 1);
    int rc = read_document(&r);
    if (rc < 0)
        return rc;
    doc->node[0].bits |= STK__NODE_LAST;
    doc->node = stk_xrealloc(doc->node, doc->n * sizeof(*doc->node));
    doc->size = doc->n;
    if (doc->plain.size > 256)
        doc->plain.p = stk_xrealloc(doc->plain.p, doc->plain.size = doc->plain.n + 1);
    *ret_doc = STK_TAKE(doc);
    return 0;
}

void stk_json_free(stk_json *doc)
{
    if (!doc)
        return;
    free(doc->text);
    free(doc->node);
    stk_buf_done(&doc->plain);
    free(doc);
}
