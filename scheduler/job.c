#include "scheduler/impl.h"

int stk__job_new(stk_scheduler *s, const stk_bus_msg *msg, stk_job **ret, stk_err *err)
{
    stk_job *job STK_AUTO(stk__job_freep) = stk_xcalloc(1, sizeof(*job));
    job->s = s;
    job->item = STK_FAIR_NONE;
    job->partition = msg->partition;
    job->offset = msg->offset;
    int rc = stk_request_decode(msg->value, &job->req, err);
    if (rc < 0)
        return rc;
    stk_bytes_set(&job->raw, msg->value);
    job->plan = strcmp(job->req.kind, "plan") == 0;
    *ret = STK_TAKE(job);
    return 0;
}

void stk__job_free(stk_job *job)
{
    if (!job)
        return;
    stk_request_done(&job->req);
    stk_bytes_done(&job->raw);
    stk_bytes_done(&job->record);
    stk_bytes_done(&job->event);
    free(job->detail);
    free(job);
}

size_t stk__job_bytes(const stk_job *job)
{
    return sizeof(*job) + 2 * job->raw.n;
}

void stk__job_close(stk_job *job)
{
    stk_scheduler *s = job->s;
    stk_bus_finish(s->consumer, job->partition, job->offset);
    stk_index_set_due(&s->index, job->item, (stk_mono){0});
    s->index.slots[job->item] = (stk_slot){.state = STK_SLOT_FREE};
    stk_fair_drop(s->fair, job->item);
    stk__job_free(job);
    stk__intake_flow(s);
}

/* The slot keeps the job, or, over the budget, only where to fetch it from. */
static void put_away(stk_job *job, stk_slot_state state)
{
    stk_scheduler *s = job->s;
    stk_slot *slot = &s->index.slots[job->item];
    slot->state = (uint8_t)state;
    slot->partition = job->partition;
    slot->offset = job->offset;
    slot->attempts = (uint8_t)stk_min((size_t)job->attempts, UINT8_MAX);
    if (state == STK_SLOT_DELAYED || s->index.bytes + stk__job_bytes(job) <= s->spec.payload_bytes) {
        s->index.bytes += stk__job_bytes(job);
        slot->job = job;
        return;
    }
    stk__job_free(job);
}

static stk_mono deadline_of(const stk_job *job)
{
    if (!job->req.deadline.ns)
        return (stk_mono){0};
    stk_mono due = stk_mono_add(stk_mono_now(), stk_wall_sub(job->req.deadline, stk_wall_now()));
    return due.ns > 0 ? due : (stk_mono){1};
}

void stk__job_wait(stk_job *job, bool in_front)
{
    stk_scheduler *s = job->s;
    uint32_t item = job->item;
    unsigned cls = stk__job_class(job);
    stk_index_set_due(&s->index, item, deadline_of(job));
    put_away(job, STK_SLOT_WAITING);
    if (in_front && stk_fair_class(s->fair, item) == cls)
        stk_fair_return(s->fair, item);
    else
        stk_fair_enter(s->fair, item, cls);
    stk__due_arm(s);
}

void stk__job_delay(stk_job *job, stk_span after)
{
    stk_scheduler *s = job->s;
    stk_index_set_due(&s->index, job->item, stk_mono_add(stk_mono_now(), after));
    put_away(job, STK_SLOT_DELAYED);
    stk__due_arm(s);
}

/* --- what it needs --- */

#define PLAN_CLASS (2 * STK_PLACE_BACKENDS)

static bool wants_runtime_class(const stk_job *job)
{
    const stk_sandbox_doc *doc = stk__docs_get(job->s->docs, job->req.tenant, NULL);
    return doc && doc->require_runtime_class;
}

/* A plan is shown by any worker that is there, whatever the backend: it says what is lacking. */
unsigned stk__job_class(const stk_job *job)
{
    if (job->plan)
        return PLAN_CLASS;
    stk_place_backend backend = stk_place_backend_parse(stk_str_of(job->req.backend));
    return (unsigned)(2 * (backend < STK_PLACE_BACKENDS ? backend : STK_PLACE_AUTO)) +
           wants_runtime_class(job);
}

void stk__class_need(unsigned cls, stk_place_need *ret)
{
    *ret = (stk_place_need){.plan = cls == PLAN_CLASS};
    if (!ret->plan) {
        ret->backend = (stk_place_backend)(cls / 2);
        ret->runtime_class = cls % 2;
    }
}

void stk__job_need(const stk_job *job, stk_place_need *ret)
{
    stk__class_need(stk__job_class(job), ret);
    if (job->plan) {
        ret->backend = stk_place_backend_parse(stk_str_of(job->req.backend));
        ret->runtime_class = wants_runtime_class(job);
        return;
    }
    const stk_sandbox_doc *doc = stk__docs_get(job->s->docs, job->req.tenant, NULL);
    const stk_agent_config *agent = doc ? stk_sandbox_doc_agent(doc, stk_str_of(job->req.agent)) : NULL;
    if (!agent)
        return;
    const char *image = job->req.image[0] ? job->req.image : agent->image;
    for (int b = STK_PLACE_AUTO + 1; b < STK_PLACE_BACKENDS; b++)
        stk_template_key(job->req.tenant, stk_place_backend_text((stk_place_backend)b), image, &agent->limits,
                         ret->template_keys[b]);
}
