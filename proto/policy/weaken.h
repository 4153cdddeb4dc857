/* Does a configuration change loosen anything? Pure, as a table of cases. */
#ifndef STK_POLICY_WEAKEN_H
#define STK_POLICY_WEAKEN_H

#include "proto/message/config.h"
#include "proto/policy/policy.h"

typedef struct stk_weakening {
    char pointer[256]; /* into the new document, "/agents/helper/allow/0" */
    char what[320];    /* one sentence */
} stk_weakening;
typedef struct stk_weakenings {
    stk_weakening *v;
    size_t n;
} stk_weakenings;
void stk_weakenings_done(stk_weakenings *list);
void stk_weakenings_write(stk_jw *w, const stk_weakenings *list); /* [{"pointer","what"}] */

/* before NULL = never set (off, nobody listed). */
void stk_weaken_sandbox(const stk_sandbox_doc *before, const stk_sandbox_doc *after, stk_weakenings *ret);
void stk_weaken_org(const stk_org_doc *before, const stk_org_doc *after, stk_weakenings *ret);

/* Checks what message/config does not: every allow/deny entry of a document. -STK_E_FIELD with pointer. */
int stk_sandbox_doc_check(const stk_sandbox_doc *doc, stk_err *err) STK_MUST_USE;
int stk_org_doc_check(const stk_org_doc *doc, stk_err *err) STK_MUST_USE;

/* The proxy's policy document of one agent (sandbox list + organisation policy under its scope), as JSON
 * text. Used by worker (to configure) and plan (to show): the same bytes. version: of the newer of the two
 * documents' sum. */
int stk_policy_document(const stk_agent_config *agent, const stk_org_doc *org, stk_str internal_json,
                        int64_t version, stk_buf *out, stk_err *err) STK_MUST_USE;

#endif
