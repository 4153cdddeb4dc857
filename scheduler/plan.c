#include "scheduler/impl.h"

/* The same members as a worker's answer; what only a host knows is null. */
int stk__plan_answer(const stk_job *job, const char *why, stk_buf *out, stk_err *err)
{
    static const char *const known[] = {"firecracker", "k8s", "oci", "docker"};
    static const char *const unknown[] = {"worker",        "backend", "isolation",
                                          "runtime_class", "runtime", "objects"};
    const stk_sandbox_doc *doc = stk__docs_get(job->s->docs, job->req.tenant, NULL);
    bool listed = doc && stk_sandbox_doc_agent(doc, stk_str_of(job->req.agent));
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "agent", job->req.agent);
    stk_jw_ktext(&w, "asked_backend", job->req.backend[0] ? job->req.backend : "auto");
    for (size_t i = 0; i < STK_COUNT(unknown); i++)
        stk_jw_ktext(&w, unknown[i], NULL);
    stk_jw_key(&w, "would_refuse");
    stk_jw_array(&w);
    if (!doc || !doc->enabled)
        stk_jw_text(&w, "not_sandboxed: the feature is off");
    if (!listed)
        stk_jw_text(&w, "not_sandboxed: this agent is not listed");
    stk_jw_text(&w, why);
    stk_jw_close(&w, ']');
    stk_jw_key(&w, "warnings");
    stk_jw_array(&w);
    stk_jw_text(&w, "no worker answered: what it would create on a host is not known");
    stk_jw_close(&w, ']');
    stk_jw_key(&w, "other_backends");
    stk_jw_array(&w);
    for (size_t i = 0; i < STK_COUNT(known); i++) {
        stk_jw_object(&w);
        stk_jw_ktext(&w, "backend", known[i]);
        stk_jw_ktext(&w, "why_not", "no worker is live");
        stk_jw_close(&w, '}');
    }
    stk_jw_close(&w, ']');
    stk_jw_close(&w, '}');
    return stk_jw_end(&w, err);
}
