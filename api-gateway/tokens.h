/* Bearer tokens: "stk_" and 64 hex digits (256 random bits), kept only as SHA-256.
 *
 * The document "tokens" of a tenant on stk.config, and the bootstrap file that `stockade token create` writes
 * before a first start (stk_gateway_spec.tokens_file), have one format:
 * {"tokens":[{"id","hash","tenant","scopes":[…],"created","expires","label"}]}. */
#ifndef STK_GATEWAY_TOKENS_H
#define STK_GATEWAY_TOKENS_H

#include "proto/base/crypto.h"
#include "proto/message/limits.h"
#include "proto/base/field.h"

#define STK_SCOPE_TABLE(X)                                                                                   \
    X(RUNS_WRITE, "runs.write")                                                                              \
    X(RUNS_READ, "runs.read")                                                                                \
    X(PLAN, "plan")                                                                                          \
    X(CONFIG_READ, "config.read")                                                                            \
    X(CONFIG_WRITE, "config.write")                                                                          \
    X(GOVERNANCE_WEAKEN, "governance.weaken")                                                                \
    X(AUDIT_READ, "audit.read")                                                                              \
    X(POOLS_WRITE, "pools.write")                                                                            \
    X(ADMIN, "admin")
typedef enum stk_scope_bit {
#define X(sym, text) STK_SCOPE_BIT_##sym,
    STK_SCOPE_TABLE(X)
#undef X
        STK_SCOPES
} stk_scope_bit;
enum {
#define X(sym, text) STK_SCOPE_##sym = 1u << STK_SCOPE_BIT_##sym,
    STK_SCOPE_TABLE(X)
#undef X
        STK_SCOPE_ALL = (1u << STK_SCOPES) - 1
};
/* 0 when unknown. */
unsigned stk_scope_parse(stk_str text);
/* Of one scope. */
const char *stk_scope_text(unsigned scope);

#define STK_TOKEN_TEXT  72 /* of the array */
#define STK_TOKEN_LABEL 64
#define STK_TOKENS_MAX  1000

typedef struct stk_token {
    char id[STK_ID_SIZE]; /* "tok-…" */
    uint8_t hash[STK_SHA256];
    char tenant[STK_TENANT_MAX];
    unsigned scopes;
    stk_wall created, expires; /* expires.ns == 0: never */
    char label[STK_TOKEN_LABEL];
} stk_token;

typedef struct stk_tokens_doc {
    stk_token *v;
    size_t n;
} stk_tokens_doc;
void stk_tokens_done(stk_tokens_doc *doc);

/* Makes a fresh token; `text` is what the client sends and is kept nowhere. tenant and label must be valid
 * (stk_token_label_ok). */
void stk_token_make(const char *tenant, unsigned scopes, stk_wall now, stk_wall expires, const char *label,
                    stk_token *ret, char text[STK_TOKEN_TEXT]);
/* At most 63 printable ASCII characters. */
bool stk_token_label_ok(stk_str label);
/* Hash of a presented text. */
void stk_token_hash(stk_str text, uint8_t out[STK_SHA256]);

/* -STK_E_FIELD and the like with pointers. */
int stk_tokens_decode(stk_jv v, stk_tokens_doc *ret, stk_err *err) STK_MUST_USE;
void stk_tokens_write(stk_jw *w, const stk_tokens_doc *doc);
/* One token for people: everything but the hash. */
void stk_token_show(stk_jw *w, const stk_token *token);
/* The token with that hash that has not expired, or NULL. Takes the same time whichever it is. */
const stk_token *stk_tokens_find(const stk_tokens_doc *doc, const uint8_t hash[STK_SHA256], stk_wall now);

/* The bootstrap file. Missing is an empty document; -STK_E_CONFIG when others can read it or it is damaged.
 */
int stk_tokens_load(const char *path, stk_tokens_doc *ret, stk_err *err) STK_MUST_USE;
/* Adds one to the file (made 0600 when missing), replacing it atomically. */
int stk_tokens_append(const char *path, const stk_token *token, stk_err *err) STK_MUST_USE;

#endif
