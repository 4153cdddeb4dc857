#include "api-gateway/tokens.h"
#include "proto/message/request.h"
#include <stdio.h>

static const char *const scope_texts[STK_SCOPES] = {
#define X(sym, text) text,
    STK_SCOPE_TABLE(X)
#undef X
};

unsigned stk_scope_parse(stk_str text)
{
    for (unsigned i = 0; i < STK_SCOPES; i++)
        if (stk_str_eq(text, stk_str_of(scope_texts[i])))
            return 1u << i;
    return 0;
}

const char *stk_scope_text(unsigned scope)
{
    for (unsigned i = 0; i < STK_SCOPES; i++)
        if (scope == 1u << i)
            return scope_texts[i];
    return "";
}

/* A token as it stands in the document. */
typedef struct entry {
    stk_token token;
    char hash[2 * STK_SHA256 + 1];
    stk_strv scopes;
} entry;

#define F(m) STK_FIELD_AT(entry, m)
#define KEPT (STK_FIELD_REQUIRED | STK_FIELD_KEEP)
static const stk_field fields[] = {
    {"id", STK_F_TEXT, F(token.id), KEPT},         {"hash", STK_F_TEXT, F(hash), STK_FIELD_REQUIRED},
    {"tenant", STK_F_TEXT, F(token.tenant), KEPT}, {"scopes", STK_F_STRV, F(scopes), KEPT, 0, STK_SCOPES},
    {"created", STK_F_WALL, F(token.created)},     {"expires", STK_F_WALL, F(token.expires)},
    {"label", STK_F_TEXT, F(token.label)},         STK_FIELD_END,
};

bool stk_token_label_ok(stk_str label)
{
    for (size_t i = 0; i < label.n; i++)
        if (label.p[i] < 0x20 || label.p[i] > 0x7e)
            return false;
    return label.n < STK_TOKEN_LABEL;
}

static int check(entry *in, stk_err *err)
{
    if (!stk_id_valid("tok", stk_str_of(in->token.id)))
        return stk_err_field(err, STK_E_FIELD, "/id", "not the id of a token");
    if (strlen(in->hash) != 2 * STK_SHA256 || stk_unhex(stk_str_of(in->hash), in->token.hash, STK_SHA256) < 0)
        return stk_err_field(err, STK_E_FIELD, "/hash", "not 64 hex digits");
    if (!stk_tenant_ok(stk_str_of(in->token.tenant)))
        return stk_err_field(err, STK_E_FIELD, "/tenant", "a tenant is 1 to 63 of a-z 0-9 -");
    if (!stk_token_label_ok(stk_str_of(in->token.label)))
        return stk_err_field(err, STK_E_FIELD, "/label", "a label is printable ASCII");
    for (size_t i = 0; i < in->scopes.n; i++) {
        unsigned scope = stk_scope_parse(stk_bytes_view(&in->scopes.v[i]));
        char pointer[32];
        snprintf(pointer, sizeof(pointer), "/scopes/%zu", i);
        if (!scope)
            return stk_err_field(err, STK_E_FIELD, pointer, "no such scope");
        in->token.scopes |= scope;
    }
    return 0;
}

static int one_token(stk_jv v, stk_token *ret, stk_err *err)
{
    entry in = {0};
    int rc = stk_fields_decode(fields, v, &in, err);
    if (rc == 0)
        rc = check(&in, err);
    *ret = in.token;
    stk_fields_done(fields, &in);
    return rc;
}

void stk_tokens_done(stk_tokens_doc *doc)
{
    free(doc->v);
    *doc = (stk_tokens_doc){0};
}

static int tokens_read(stk_jv v, void *at, stk_err *err)
{
    stk_tokens_doc *doc = at;
    size_t n = stk_jv_count(v);
    if (!stk_jv_is(v, STK_J_ARRAY))
        return stk_err_field(err, STK_E_FIELD, "", "must be an array");
    if (n > STK_TOKENS_MAX)
        return stk_err_field(err, STK_E_FIELD, "", "more than %d tokens", STK_TOKENS_MAX);
    doc->v = stk_xcalloc(n + 1, sizeof(*doc->v));
    for (stk_jv item = stk_jv_first(v); !stk_jv_is(item, STK_J_NONE); item = stk_jv_next(item)) {
        int rc = one_token(item, &doc->v[doc->n], err);
        char prefix[32];
        snprintf(prefix, sizeof(prefix), "/%zu", doc->n);
        if (rc < 0)
            return stk_err_prefix(err, prefix), rc;
        doc->n++;
    }
    return 0;
}

static void token_write(stk_jw *w, const stk_token *token, bool hash)
{
    entry out = {.token = *token};
    if (hash)
        stk_hex(token->hash, STK_SHA256, out.hash);
    for (unsigned i = 0; i < STK_SCOPES; i++)
        if (token->scopes & 1u << i)
            stk_strv_add(&out.scopes, stk_str_of(scope_texts[i]));
    stk_fields_encode(fields, &out, w);
    stk_strv_done(&out.scopes);
}

static void tokens_write(stk_jw *w, const void *at)
{
    const stk_tokens_doc *doc = at;
    stk_jw_array(w);
    for (size_t i = 0; i < doc->n; i++)
        token_write(w, &doc->v[i], true);
    stk_jw_close(w, ']');
}

static void tokens_free(void *at)
{
    stk_tokens_done(at);
}

static const stk_field doc_fields[] = {
    {"tokens", STK_F_CUSTOM, 0, 0, STK_FIELD_REQUIRED | STK_FIELD_KEEP, .read = tokens_read,
     .write = tokens_write, .done = tokens_free},
    STK_FIELD_END,
};

int stk_tokens_decode(stk_jv v, stk_tokens_doc *ret, stk_err *err)
{
    stk_tokens_doc doc = {0};
    *ret = (stk_tokens_doc){0};
    int rc = stk_fields_decode(doc_fields, v, &doc, err);
    if (rc < 0)
        stk_tokens_done(&doc);
    else
        *ret = doc;
    return rc;
}

void stk_tokens_write(stk_jw *w, const stk_tokens_doc *doc)
{
    stk_fields_encode(doc_fields, doc, w);
}

void stk_token_show(stk_jw *w, const stk_token *token)
{
    token_write(w, token, false);
}

void stk_token_hash(stk_str text, uint8_t out[STK_SHA256])
{
    stk_sha256_of(text, out);
}

void stk_token_make(const char *tenant, unsigned scopes, stk_wall now, stk_wall expires, const char *label,
                    stk_token *ret, char text[STK_TOKEN_TEXT])
{
    uint8_t secret[32];
    *ret = (stk_token){.scopes = scopes, .created = now, .expires = expires};
    stk_id_new("tok", now, ret->id);
    snprintf(ret->tenant, sizeof(ret->tenant), "%s", tenant);
    snprintf(ret->label, sizeof(ret->label), "%s", label);
    stk_random(secret, sizeof(secret));
    memcpy(text, "stk_", 4);
    stk_hex(secret, sizeof(secret), text + 4);
    stk_token_hash(stk_str_of(text), ret->hash);
}

const stk_token *stk_tokens_find(const stk_tokens_doc *doc, const uint8_t hash[STK_SHA256], stk_wall now)
{
    const stk_token *found = NULL;
    for (size_t i = 0; i < doc->n; i++) {
        bool same = stk_equal_ct(doc->v[i].hash, hash, STK_SHA256);
        bool live = !doc->v[i].expires.ns || stk_wall_before(now, doc->v[i].expires);
        if (same && live)
            found = &doc->v[i];
    }
    return found;
}
