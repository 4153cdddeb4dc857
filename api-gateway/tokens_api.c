/* GET and POST /v1/tokens, DELETE /v1/tokens/{id}. A token's text is shown once, in the answer that made it.
 */
#include "api-gateway/change.h"
#include "proto/message/audit.h"
#include <stdio.h>

#define DOC_MAX     ((size_t)1 << 20)
#define EXPIRES_MAX (10 * 366 * 86400LL * 1000000000)

typedef struct minting {
    stk_token token;
    char text[STK_TOKEN_TEXT];
    stk_strv scopes;
    stk_span expires;
} minting;

#define F(m) STK_FIELD_AT(minting, m)
static const stk_field fields[] = {
    {"label", STK_F_TEXT, F(token.label)},
    {"scopes", STK_F_STRV, F(scopes), STK_FIELD_REQUIRED, 0, STK_SCOPES},
    {"expires_seconds", STK_F_SECONDS, F(expires), 0, 1000000000LL, EXPIRES_MAX},
    STK_FIELD_END,
};

static void minting_free(void *arg)
{
    minting *m = arg;
    stk_fields_done(fields, m);
    explicit_bzero(m->text, sizeof(m->text));
    free(m);
}

static int read_stored(const stk_config_record *rec, stk_tokens_doc *ret, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    *ret = (stk_tokens_doc){0};
    if (!rec)
        return 0;
    int rc = stk_json_parse(stk_bytes_view(&rec->doc), NULL, &doc, err);
    if (rc == 0)
        rc = stk_tokens_decode(stk_json_root(doc), ret, err);
    if (rc < 0 && err)
        err->code = STK_E_CORRUPT;
    return rc < 0 ? stk_err_wrap(err, "version %lld of %s", (long long)rec->version, rec->name) : 0;
}

static int write_stored(const stk_tokens_doc *doc, stk_gw_change *change, stk_err *err)
{
    stk_jw w;
    stk_jw_init(&w, &change->stored);
    stk_tokens_write(&w, doc);
    return stk_jw_end(&w, err);
}

static int show(const stk_token *token, stk_buf *out, stk_err *err)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_token_show(&w, token);
    return stk_jw_end(&w, err);
}

/* --- POST --- */

static int build_new(stk_gw_change *change, const stk_config_record *rec, stk_err *err)
{
    const minting *m = change->arg;
    stk_tokens_doc doc STK_AUTO(stk_tokens_done) = {0};
    int rc = read_stored(rec, &doc, err);
    if (rc == 0 && doc.n >= STK_TOKENS_MAX)
        rc = stk_err_set(err, STK_E_LIMIT, "this tenant has %d tokens already: delete some", STK_TOKENS_MAX);
    if (rc < 0)
        return rc;
    doc.v = stk_xrealloc(doc.v, (doc.n + 1) * sizeof(*doc.v));
    doc.v[doc.n++] = m->token;
    rc = write_stored(&doc, change, err);
    return rc < 0 ? rc : show(&m->token, &change->after, err);
}

static void answer_new(stk_gw_change *change)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(8192);
    const minting *m = change->arg;
    stk_jw w;
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "token", m->text);
    stk_jw_key(&w, "details");
    stk_token_show(&w, &m->token);
    stk_jw_close(&w, '}');
    stk_gw_answer_json(change->ex, 201, "", &body);
}

static const stk_gw_change_kind make_kind = {STK_CONF_TOKENS, STK_AUDIT_TOKEN_CREATE, build_new, answer_new};

static int mint(stk_gw_exchange *ex, minting *m, stk_err *err)
{
    stk_wall now = stk_wall_now(), until = {0};
    unsigned scopes = 0;
    char label[STK_TOKEN_LABEL], pointer[32];
    int rc = stk_fields_decode(fields, stk_json_root(ex->doc), m, err);
    if (rc < 0)
        return rc;
    if (!stk_token_label_ok(stk_str_of(m->token.label)))
        return stk_err_field(err, STK_E_FIELD, "/label", "a label is printable ASCII");
    for (size_t i = 0; i < m->scopes.n; i++) {
        unsigned one = stk_scope_parse(stk_bytes_view(&m->scopes.v[i]));
        snprintf(pointer, sizeof(pointer), "/scopes/%zu", i);
        if (!one)
            return stk_err_field(err, STK_E_FIELD, pointer, "no such scope");
        scopes |= one;
    }
    if (m->expires.ns)
        until = stk_wall_add(now, m->expires);
    memcpy(label, m->token.label, sizeof(label));
    stk_token_make(ex->caller.tenant, scopes, now, until, label, &m->token, m->text);
    return 0;
}

void stk_gw_tokens_post(stk_gw_exchange *ex)
{
    stk_err err;
    minting *m = ex->work = stk_xcalloc(1, sizeof(*m));
    ex->work_free = minting_free;
    if (mint(ex, m, &err) < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_change_start(ex, &make_kind, m, (stk_str){NULL, 0});
}

/* --- DELETE --- */

static int build_without(stk_gw_change *change, const stk_config_record *rec, stk_err *err)
{
    stk_tokens_doc doc STK_AUTO(stk_tokens_done) = {0};
    const char *id = change->ex->param;
    size_t kept = 0;
    int rc = read_stored(rec, &doc, err);
    for (size_t i = 0; rc == 0 && i < doc.n; i++) {
        if (strcmp(doc.v[i].id, id) == 0)
            rc = show(&doc.v[i], &change->before, err);
        else
            doc.v[kept++] = doc.v[i];
    }
    if (rc == 0 && !change->before.n)
        return stk_err_set(err, STK_E_NOT_FOUND, "no token %s", id);
    doc.n = kept;
    return rc < 0 ? rc : write_stored(&doc, change, err);
}

static void answer_without(stk_gw_change *change)
{
    stk_gw_answer(change->ex, 204, NULL, "", (stk_str){NULL, 0});
}

static const stk_gw_change_kind drop_kind = {STK_CONF_TOKENS, STK_AUDIT_CONFIG_UPDATE, build_without,
                                             answer_without};

void stk_gw_token_delete(stk_gw_exchange *ex)
{
    stk_gw_change_start(ex, &drop_kind, NULL, (stk_str){NULL, 0});
}

/* --- GET --- */

void stk_gw_tokens_list(stk_gw_exchange *ex)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(4 * DOC_MAX);
    stk_tokens_doc doc STK_AUTO(stk_tokens_done) = {0};
    stk_err err;
    stk_jw w;
    int rc = read_stored(stk_gw_view_record(ex->gw->view, ex->caller.tenant, STK_CONF_TOKENS), &doc, &err);
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_key(&w, "tokens");
    stk_jw_array(&w);
    for (size_t i = 0; rc == 0 && i < doc.n; i++)
        stk_token_show(&w, &doc.v[i]);
    stk_jw_close(&w, ']');
    stk_jw_close(&w, '}');
    if (rc == 0)
        rc = stk_jw_end(&w, &err);
    if (rc < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_answer_json(ex, 200, "", &body);
}
