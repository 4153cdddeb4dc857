#include "proto/store/batch.h"

static void append_tell(stk_store_job *base)
{
    stk_append_job *job = stk__append_of(base);
    bool ok = base->err.code == STK_OK;
    base->tell.done(ok ? NULL : &base->err, job->offset, ok ? job->stored : 0, job->bad, base->arg);
}

static void append_done(stk_store_job *base)
{
    stk_append_job *job = stk__append_of(base);
    free(job->topic);
    free(job->rows);
    free(job->events);
    stk_buf_done(&job->bytes);
}

static const stk_store_kind append_kind = {
    .size = sizeof(stk_append_job), .writes = true, .tell = append_tell, .done = append_done};

void stk__append_stale(stk_append_job *job, int64_t there)
{
    job->offset = there;
    stk_err_set(&job->base.err, STK_E_STALE, "%s/%d is at offset %lld, not %lld", job->topic, job->partition,
                (long long)there, (long long)job->from);
}

/* Free-form parts are written as they are: what could not be read again must not get into a chain. */
static bool readable(stk_append_job *job, stk_store_entry *e)
{
    e->n = job->bytes.n - e->at;
    if (e->n > STK_RECORD_MAX) {
        stk_err_set(&job->base.err, STK_E_FIELD, "%zu bytes, at most %d", e->n, STK_RECORD_MAX);
        return false;
    }
    stk_json *doc = NULL;
    bool ok = stk_json_parse(stk__entry_bytes(job, e), NULL, &doc, &job->base.err) == 0;
    stk_json_free(doc);
    return ok;
}

static void copy_text(char *to, const char *from, size_t size)
{
    memcpy(to, from, strnlen(from, size - 1) + 1);
}

static void encode_row(stk_append_job *job, const stk_audit_row *row, stk_store_entry *e)
{
    bool free_form = row->details.set || row->before.set || row->after.set || row->weakening.set;
    e->at = job->bytes.n;
    if (stk_audit_encode(row, &job->bytes, &job->base.err) < 0)
        return;
    e->n = job->bytes.n - e->at;
    if (free_form && !readable(job, e))
        return;
    copy_text(e->id, row->id, sizeof(e->id));
    copy_text(e->tenant, row->tenant, sizeof(e->tenant));
    copy_text(e->agent, row->agent, sizeof(e->agent));
    copy_text(e->run, row->run, sizeof(e->run));
    copy_text(e->action, row->action, sizeof(e->action));
    e->ms = row->time.ns / 1000000;
}

static void encode_event(stk_append_job *job, const stk_event *ev, stk_store_entry *e)
{
    e->at = job->bytes.n;
    if (stk_event_encode(ev, &job->bytes, &job->base.err) < 0 || !readable(job, e))
        return;
    copy_text(e->id, ev->assignment, sizeof(e->id));
    copy_text(e->tenant, ev->tenant, sizeof(e->tenant));
    copy_text(e->run, ev->run, sizeof(e->run));
    copy_text(e->action, ev->kind, sizeof(ev->kind));
    e->late = ev->late;
}

/* What can't be encoded can never be stored: the caller learns which one. */
static void encode(stk_append_job *job, const stk_store_batch *batch)
{
    stk_err *err = &job->base.err;
    for (size_t i = 0; i < batch->nrows && !err->code; i++) {
        job->bad = i;
        encode_row(job, &batch->rows[i], &job->rows[i]);
    }
    for (size_t i = 0; i < batch->nevents && !err->code; i++) {
        job->bad = batch->nrows + i;
        encode_event(job, &batch->events[i], &job->events[i]);
    }
    if (err->code)
        err->code = STK_E_FIELD;
    else
        job->bad = 0;
}

void stk__store_append(stk_store *store, const stk_store_batch *batch, stk_store_done done, void *arg)
{
    stk_append_job *job = stk__store_job_new(store, &append_kind, arg);
    job->base.tell.done = done;
    job->topic = stk_xstrdup(batch->topic);
    job->partition = batch->partition;
    job->from = batch->from;
    job->to = batch->to;
    job->nrows = batch->nrows;
    job->nevents = batch->nevents;
    job->rows = stk_xcalloc(batch->nrows, sizeof(*job->rows));
    job->events = stk_xcalloc(batch->nevents, sizeof(*job->events));
    stk_buf_init(&job->bytes, STK__STORE_ROW_MAX * (batch->nrows + batch->nevents + 1));
    if (batch->from < 0 || batch->to < batch->from)
        stk_err_set(&job->base.err, STK_E_USAGE, "a batch of offsets %lld to %lld", (long long)batch->from,
                    (long long)batch->to);
    else
        encode(job, batch);
    job->base.bytes = job->bytes.n + (batch->nrows + batch->nevents) * sizeof(stk_store_entry);
    stk__store_job_submit(&job->base);
}
