#include "proto/message/check.h"
#include "proto/message/request.h"
#include <stdio.h>

static bool code_ok(stk_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '_'))
            return false;
    return true;
}

static bool visible_ok(stk_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    return stk_utf8_valid(s);
}

static bool label_key_ok(stk_str s)
{
    if (s.n == 0 || s.n > 63)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '/' ||
              c == '-'))
            return false;
    }
    return true;
}

static bool image_ok(stk_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || (s.p[i] == '.' && i + 1 < s.n && s.p[i + 1] == '.'))
            return false;
    return s.p[0] != '-';
}

static int check_labels(const char *name, const stk_map *labels, stk_err *err)
{
    char pointer[192];
    for (size_t i = 0; i < labels->n; i++) {
        const stk_pair *pair = &labels->v[i];
        snprintf(pointer, sizeof(pointer), "/%s", name);
        stk__pointer_add(pointer, stk_bytes_view(&pair->key));
        if (!label_key_ok(stk_bytes_view(&pair->key)))
            return stk_err_field(err, STK_E_FIELD, pointer, "a label's key is 1 to 63 of a-z 0-9 . _ / -");
        if (pair->value.n > 127 || !visible_ok(stk_bytes_view(&pair->value)))
            return stk_err_field(err, STK_E_FIELD, pointer,
                                 "a label's value is at most 127 bytes without control characters");
    }
    if (labels->n > STK_LABELS_MAX) {
        snprintf(pointer, sizeof(pointer), "/%s", name);
        return stk_err_field(err, STK_E_FIELD, pointer, "at most %d labels", STK_LABELS_MAX);
    }
    return 0;
}

static int check_json(const stk__check *check, const stk_bytes *bytes, stk_err *err)
{
    char pointer[64];
    if (!bytes->set && !check->need)
        return 0;
    snprintf(pointer, sizeof(pointer), "/%s", check->name);
    if (!bytes->set)
        return stk_err_field(err, STK_E_MISSING_FIELD, pointer, "%s is missing", check->name);
    if (check->rule == STK__OBJECT && (bytes->n == 0 || bytes->p[0] != '{'))
        return stk_err_field(err, STK_E_FIELD, pointer, "must be an object");
    if (check->rule == STK__ARRAY && (bytes->n == 0 || bytes->p[0] != '['))
        return stk_err_field(err, STK_E_FIELD, pointer, "must be an array");
    if (check->rule == STK__SET && bytes->n == 0)
        return stk_err_field(err, STK_E_FIELD, pointer, "must not be empty");
    return 0;
}

static const char *text_bad(const stk__check *check, stk_str s)
{
    switch (check->rule) {
    case STK__ID:
        return stk_id_valid(check->arg, s) ? NULL : "is not an id of the form";
    case STK__TENANT:
        return stk_tenant_ok(s) ? NULL
                                : "must be 1 to 63 of a-z 0-9 - and begin and end with a letter or digit";
    case STK__AGENT:
        return stk_agent_ok(s) ? NULL : "must be 1 to 128 of A-Z a-z 0-9 . _ - and not begin with . or -";
    case STK__WORD:
        return stk__word_ok(check->arg, s) ? NULL : "must be one of";
    case STK__CODE:
        return code_ok(s) ? NULL : "must be of a-z 0-9 _";
    case STK__TRACE:
        return stk__trace_ok(s) ? NULL : "is not a traceparent";
    case STK__IMAGE:
        return image_ok(s) ? NULL : "must be printable ASCII without spaces or \"..\" and not begin with -";
    default:
        return visible_ok(s) ? NULL : "must not hold control characters";
    }
}

static int check_text(const stk__check *check, const char *text, stk_err *err)
{
    const char *bad = text[0] ? text_bad(check, stk_str_of(text)) : NULL;
    if (!bad && (text[0] || !check->need))
        return 0;
    char pointer[64];
    snprintf(pointer, sizeof(pointer), "/%s", check->name);
    if (!text[0] && check->need == STK__GIVEN)
        return stk_err_field(err, STK_E_MISSING_FIELD, pointer, "%s is missing", check->name);
    if (!text[0])
        return stk_err_field(err, STK_E_FIELD, pointer, "must not be empty");
    return stk_err_field(err, STK_E_FIELD, pointer, "%s%s%s", bad, check->arg ? " " : "",
                         check->arg ? check->arg : "");
}

static int checks_run(const stk__check *checks, const void *in, bool encoding, stk_err *err)
{
    for (const stk__check *check = checks; check->name; check++) {
        const void *at = (const char *)in + check->offset;
        int rc;
        if (check->rule == STK__LABELS)
            rc = check_labels(check->name, at, err);
        else if (check->rule >= STK__OBJECT)
            rc = check_json(check, at, err);
        else if (check->rule == STK__CLEAN && encoding)
            continue;
        else
            rc = check_text(check, at, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int stk__checks_run(const stk__check *checks, const void *in, stk_err *err)
{
    return checks_run(checks, in, false, err);
}

static void explain_field(const stk_field *f, const char *pointer, stk_err *err)
{
    if (f->kind == STK_F_INT)
        stk_err_field(err, STK_E_FIELD, pointer, "must be a whole number from %lld to %lld",
                      (long long)f->min, (long long)f->max);
    else if (f->kind == STK_F_SECONDS)
        stk_err_field(err, STK_E_FIELD, pointer, "must be a number of seconds from %.9g to %.9g",
                      (double)f->min / 1e9, (double)f->max / 1e9);
}

void stk__explain(const stk_field *fields, const stk__check *checks, stk_err *err)
{
    if (!err || err->code != STK_E_FIELD || err->pointer[0] != '/')
        return;
    char pointer[192];
    memcpy(pointer, err->pointer, sizeof(pointer));
    for (const stk_field *f = fields; f->name; f++)
        if (strcmp(pointer + 1, f->name) == 0 && f->max)
            explain_field(f, pointer, err);
    for (const stk__check *check = checks; check && check->name; check++)
        if (strcmp(pointer + 1, check->name) == 0 && check->rule == STK__WORD)
            stk_err_field(err, STK_E_FIELD, pointer, "must be one of %s", check->arg);
}

static int check_version(stk_jv root, stk_err *err)
{
    stk_jv v = stk_jv_get(root, "v");
    int64_t n = 0;
    if (stk_jv_is(v, STK_J_NONE))
        return stk_err_field(err, STK_E_MISSING_FIELD, "/v", "v, the version, is missing");
    if (!stk_jv_is(v, STK_J_NUMBER) || !stk_jv_int(v, &n) || n < 1)
        return stk_err_field(err, STK_E_FIELD, "/v", "v must be a whole number from 1");
    if (n > STK_MESSAGE_VERSION)
        return stk_err_field(err, STK_E_NEWER, "/v", "version %lld; this program reads up to %d",
                             (long long)n, STK_MESSAGE_VERSION);
    return 0;
}

static int validate(const stk__message *m, const void *in, bool encoding, stk_err *err)
{
    int rc = checks_run(m->checks, in, encoding, err);
    if (rc == 0 && m->validate)
        rc = m->validate(in, err);
    return rc;
}

int stk__message_decode_jv(const stk__message *m, stk_jv v, void *ret, stk_err *err)
{
    memset(ret, 0, m->size);
    int rc;
    /* Before the fields: a newer version may have members that this one does not know. */
    if (!stk_jv_is(v, STK_J_OBJECT))
        rc = stk_err_field(err, STK_E_FIELD, "", "must be an object");
    else if (m->versioned && (rc = check_version(v, err)) < 0)
        ;
    else if ((rc = stk_fields_decode(m->fields, v, ret, err)) == 0)
        rc = validate(m, ret, false, err);
    if (rc < 0) {
        stk_fields_done(m->fields, ret);
        memset(ret, 0, m->size);
        stk_err_wrap(err, "%s", m->what);
    }
    return rc;
}

int stk__message_decode(const stk__message *m, stk_str json, void *ret, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    memset(ret, 0, m->size);
    if (json.n > STK_RECORD_MAX)
        return stk_err_set(err, STK_E_LIMIT, "%s: %zu bytes, the limit is %d", m->what, json.n,
                           STK_RECORD_MAX);
    int rc = stk_json_parse(json, NULL, &doc, err);
    if (rc < 0) {
        stk_err_wrap(err, "%s", m->what);
        return rc;
    }
    return stk__message_decode_jv(m, stk_json_root(doc), ret, err);
}

static bool needs_cleaning(const stk__message *m, const void *in)
{
    for (const stk__check *check = m->checks; check->name; check++)
        if (check->rule == STK__CLEAN && !visible_ok(stk_str_of((const char *)in + check->offset)))
            return true;
    return false;
}

static void clean(char *text)
{
    for (size_t n = strlen(text), at = 0; at < n;) {
        size_t len = 1;
        while (len <= 4 && at + len <= n && !visible_ok(stk_str_n(text + at, len)))
            len++;
        if (len > 4 || at + len > n) {
            text[at] = '?';
            len = 1;
        }
        at += len;
    }
}

static void write_members(const stk__message *m, const void *in, stk_jw *w)
{
    stk_jw_object(w);
    if (m->versioned)
        stk_jw_kint(w, "v", STK_MESSAGE_VERSION);
    stk_fields_encode_members(m->fields + (m->versioned ? 1 : 0), in, w);
    stk_jw_close(w, '}');
}

void stk__message_write(const stk__message *m, const void *in, stk_jw *w)
{
    if (!needs_cleaning(m, in)) {
        write_members(m, in, w);
        return;
    }
    char *copy STK_AUTO(stk_freep) = stk_xmemdup(in, m->size); /* what it owns stays in's */
    for (const stk__check *check = m->checks; check->name; check++)
        if (check->rule == STK__CLEAN)
            clean(copy + check->offset);
    write_members(m, copy, w);
}

int stk__message_encode(const stk__message *m, const void *in, stk_buf *out, stk_err *err)
{
    stk_jw w;
    int rc = validate(m, in, true, err);
    if (rc == 0) {
        stk_jw_init(&w, out);
        stk__message_write(m, in, &w);
        rc = stk_jw_end(&w, err);
    }
    if (rc < 0)
        stk_err_wrap(err, "encode %s", m->what);
    return rc;
}
