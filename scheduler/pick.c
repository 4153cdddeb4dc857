/* From the queue to a place. */
#include "scheduler/impl.h"

#define FETCH_PAUSE stk_ms(200)

typedef enum verdict {
    WANTED,
    TOO_LATE,
    TOO_EARLY, /* the configuration it was accepted under is not here yet */
    TURNED_OFF,
    TAKEN_OFF
} verdict;

static verdict verdict_on(const stk_job *job)
{
    stk_scheduler *s = job->s;
    int64_t version = 0;
    if (job->req.deadline.ns && !stk_wall_before(stk_wall_now(), job->req.deadline))
        return TOO_LATE;
    if (job->plan)
        return WANTED;
    const stk_sandbox_doc *doc = stk__docs_get(s->docs, job->req.tenant, &version);
    stk_span waited = stk_mono_sub(stk_mono_now(), stk_fair_arrived(s->fair, job->item));
    if (version < job->req.config_version && waited.ns < STK_SCHED_NOBODY.ns)
        return TOO_EARLY;
    if (doc && !doc->enabled)
        return TURNED_OFF;
    return doc && stk_sandbox_doc_agent(doc, stk_str_of(job->req.agent)) ? WANTED : TAKEN_OFF;
}

/* False when the job went another way. */
static bool still_wanted(stk_job *job)
{
    switch (verdict_on(job)) {
    case WANTED:
        return true;
    case TOO_LATE:
        stk__job_end(job, STK_REASON_EXPIRED, STK_E_TIMEOUT, "its deadline passed while it was queued");
        break;
    case TOO_EARLY:
        stk__job_delay(job, stk_ms(20));
        break;
    case TURNED_OFF:
        stk__job_end(job, STK_REASON_REFUSED, STK_E_NOT_SANDBOXED,
                     "sandboxing was turned off while the run was queued");
        break;
    case TAKEN_OFF:
        stk__job_end(job, STK_REASON_REFUSED, STK_E_NOT_SANDBOXED,
                     "the agent was taken off the list while the run was queued");
        break;
    }
    return false;
}

bool stk__job_fast(stk_job *job)
{
    stk_scheduler *s = job->s;
    stk_place_need need;
    stk_place_choice choice;
    if (s->closed || s->draining || !s->fleet.known || stk_fair_classes(s->fair) ||
        s->assigning >= STK_SCHED_ASSIGNING || verdict_on(job) != WANTED)
        return false;
    stk__job_need(job, &need);
    stk_place(&s->fleet.view, &need, &choice);
    if (choice.what != STK_PLACE_HERE)
        return false;
    stk__job_assign(job, &choice);
    return true;
}

/* Nobody is refused for a backend that may be about to join. */
static bool settled(const stk_scheduler *s)
{
    return s->somebody_since.ns && stk_mono_sub(stk_mono_now(), s->somebody_since).ns >= STK_SCHED_SETTLE.ns;
}

static bool nobody_for(const stk_scheduler *s, stk_span span)
{
    return s->nobody_since.ns && stk_mono_sub(stk_mono_now(), s->nobody_since).ns >= span.ns;
}

static void place(stk_job *job)
{
    stk_scheduler *s = job->s;
    stk_place_need need;
    stk_place_choice choice;
    if (!still_wanted(job))
        return;
    stk__job_need(job, &need);
    stk_place(&s->fleet.view, &need, &choice);
    stk_span waited = stk_mono_sub(stk_mono_now(), stk_fair_arrived(s->fair, job->item));
    bool too_long = choice.what == STK_PLACE_NOBODY &&
                    waited.ns >= (job->plan ? STK_SCHED_NOBODY_PLAN : STK_SCHED_NOBODY).ns &&
                    nobody_for(s, job->plan ? STK_SCHED_NOBODY_PLAN : STK_SCHED_NOBODY);
    if (choice.what == STK_PLACE_HERE)
        stk__job_assign(job, &choice);
    else if (too_long || (choice.what == STK_PLACE_LACKING && settled(s)))
        stk__job_end(job, STK_REASON_REFUSED, STK_E_BACKEND, "%s", choice.why);
    else
        stk__job_delay(job, choice.what == STK_PLACE_FULL ? stk_ms(5) : stk_ms(100));
}

static void on_fetched(const stk_bus_msg *msg, const stk_err *err, void *arg)
{
    stk_job *job = arg; /* a shell: item, partition, offset */
    stk_scheduler *s = job->s;
    stk_job *whole = NULL;
    if (stk__leave(s)) {
        stk__job_free(job);
        return;
    }
    s->assigning--;
    stk_err why = {.code = STK_OK};
    int rc = msg ? stk__job_new(s, msg, &whole, &why) : -(int)err->code;
    if (rc == 0) {
        whole->item = job->item;
        whole->attempts = job->attempts;
        whole->known = true;
        stk__job_free(job);
        place(whole);
    } else if (!msg && err->code != STK_E_NOT_FOUND) {
        /* The bus is away: the shell waits with its place. */
        stk__job_delay(job, FETCH_PAUSE);
    } else {
        stk_log_err(STK_LOG_ERROR, NULL, msg ? &why : err, "the request at %d/%lld can't be read again",
                    job->partition, (long long)job->offset);
        stk__job_close(job);
    }
    stk__pump(s);
}

static void fetch(stk_scheduler *s, uint32_t item)
{
    const stk_slot *slot = &s->index.slots[item];
    stk_job *shell = stk_xcalloc(1, sizeof(*shell));
    *shell = (stk_job){.s = s,
                       .item = item,
                       .partition = slot->partition,
                       .offset = slot->offset,
                       .attempts = slot->attempts};
    s->assigning++;
    stk__enter(s);
    stk_bus_fetch(s->spec.bus, STK_TOPIC_REQUESTS, slot->partition, slot->offset, on_fetched, shell);
}

void stk__item_go(stk_scheduler *s, uint32_t item)
{
    stk_slot *slot = &s->index.slots[item];
    stk_job *job = STK_TAKE(slot->job);
    stk_index_set_due(&s->index, item, (stk_mono){0});
    slot->state = STK_SLOT_BUSY;
    if (job)
        s->index.bytes -= stk__job_bytes(job);
    if (!job || !job->req.id[0]) {
        stk__job_free(job);
        fetch(s, item);
    } else if (job->reason) {
        stk__job_finish(job);
    } else if (!job->known) {
        stk__job_queue(job);
    } else {
        place(job);
    }
}

/* Classes for which placing would come to something now. */
static uint32_t possible(const stk_scheduler *s)
{
    uint32_t mask = 0, asked = stk_fair_classes(s->fair);
    for (; asked; asked &= asked - 1) {
        unsigned cls = (unsigned)__builtin_ctz(asked);
        stk_place_need need;
        stk_place_choice choice;
        stk__class_need(cls, &need);
        stk_place(&s->fleet.view, &need, &choice);
        bool go = choice.what == STK_PLACE_HERE || (choice.what == STK_PLACE_LACKING && settled(s)) ||
                  (choice.what == STK_PLACE_NOBODY &&
                   nobody_for(s, need.plan ? STK_SCHED_NOBODY_PLAN : STK_SCHED_NOBODY));
        mask |= (go ? 1u : 0u) << cls;
    }
    return mask;
}

void stk__pump(stk_scheduler *s)
{
    if (s->pumping || s->closed || s->draining || !s->fleet.known)
        return;
    s->pumping = true;
    while (s->assigning < STK_SCHED_ASSIGNING && !s->closed) {
        uint32_t classes = possible(s);
        uint32_t item = classes ? stk_fair_pick(s->fair, classes, stk_mono_now()) : STK_FAIR_NONE;
        if (item == STK_FAIR_NONE)
            break;
        stk__item_go(s, item);
    }
    s->pumping = false;
}
