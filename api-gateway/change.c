#include "api-gateway/change.h"
#include "proto/base/log.h"
#include "proto/state/outbox.h"
#include <stdio.h>

#define DOC_MAX   ((size_t)4 << 20)
#define TRIES     5
#define VIEW_WAIT stk_sec(10)

static void read_head(stk_gw_change *change);

static void unlink_change(stk_gw_change *change)
{
    stk_gateway *gw = change->ex->gw;
    if (!change->waiting)
        return;
    change->waiting = false;
    if (change->next)
        change->next->prev = change->prev;
    if (change->prev)
        change->prev->next = change->next;
    else
        gw->changes = change->next;
}

static void change_free(stk_gw_change *change)
{
    stk_gw_exchange *ex = change->ex;
    unlink_change(change);
    if (change->timer)
        stk_timer_free(change->timer);
    stk_buf_done(&change->stored);
    stk_buf_done(&change->before);
    stk_buf_done(&change->after);
    stk_weakenings_done(&change->weak);
    stk_bytes_done(&change->if_match);
    free(change);
    stk_gw_unref_exchange(ex);
}

void stk_gw_change_end(stk_gw_change *change)
{
    change_free(change);
}

static void fail(stk_gw_change *change, const stk_err *err)
{
    stk_gw_answer_err(change->ex, err);
    change_free(change);
}

/* --- answering --- */

static void answer(stk_gw_change *change)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(4 * DOC_MAX);
    char etag[32], header[64];
    stk_err err;
    stk_jw w;
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_kint(&w, "version", change->version);
    stk_jw_kraw(&w, "before", change->before.n ? stk_buf_view(&change->before) : STK_STR("null"));
    stk_jw_kraw(&w, "after", stk_buf_view(&change->after));
    stk_jw_key(&w, "weakening");
    stk_weakenings_write(&w, &change->weak);
    stk_jw_close(&w, '}');
    stk_gw_etag(change->version, etag);
    snprintf(header, sizeof(header), "ETag: %s\r\n", etag);
    if (stk_jw_end(&w, &err) < 0)
        stk_gw_answer_err(change->ex, &err);
    else
        stk_gw_answer_json(change->ex, 200, header, &body);
}

static void succeed(stk_gw_change *change)
{
    if (change->kind->answer)
        change->kind->answer(change);
    else
        answer(change);
    change_free(change);
}

/* --- waiting for stk.config --- */

static void on_late(void *arg)
{
    stk_gw_change *change = arg;
    stk_err err;
    if (change->published)
        stk_err_set(&err, STK_E_OUTCOME_UNKNOWN,
                    "version %lld is decided but was not seen on the bus yet: read the document again",
                    (long long)change->version);
    else
        stk_err_set(
            &err, STK_E_UNAVAILABLE,
            "version %lld of this document is still on its way to the bus: nothing was changed, try again",
            (long long)change->version);
    fail(change, &err);
}

static void wait_for_view(stk_gw_change *change)
{
    stk_gateway *gw = change->ex->gw;
    change->waiting = true;
    change->prev = NULL;
    change->next = gw->changes;
    if (change->next)
        change->next->prev = change;
    gw->changes = change;
    if (!change->timer)
        change->timer = stk_timer_new(gw->spec.loop, on_late, change);
    stk_timer_set(change->timer, VIEW_WAIT);
    stk_gw_changes_check(gw);
}

static bool seen(const stk_gw_change *change)
{
    const stk_gw_exchange *ex = change->ex;
    return stk_gw_view_version(ex->gw->view, ex->caller.tenant, change->kind->name) >= change->version;
}

void stk_gw_changes_check(stk_gateway *gw)
{
    for (stk_gw_change *change = gw->changes, *next; change; change = next) {
        next = change->next;
        if (!seen(change))
            continue;
        unlink_change(change);
        stk_timer_clear(change->timer);
        if (change->published)
            succeed(change);
        else
            read_head(change);
    }
}

void stk_gw_changes_drop(stk_gateway *gw)
{
    while (gw->changes)
        change_free(gw->changes);
}

/* --- publishing --- */

static void on_config_out(bool ok, size_t published, void *arg)
{
    stk_gw_change *change = arg;
    if (stk_gw_over(change->ex)) {
        change_free(change);
        return;
    }
    /* Not ok: a sweeper brings it out; until then we wait like everybody. Whoever sees it tells state that it
     * is out. */
    wait_for_view(change);
}

static void on_audit_out(bool ok, size_t published, void *arg)
{
    stk_gw_change *change = arg;
    const stk_gateway *gw = change->ex->gw;
    if (stk_gw_over(change->ex))
        change_free(change);
    else if (!ok || !published) /* a sweeper has it, or will */
        wait_for_view(change);
    else
        stk_outbox_publish(gw->spec.bus, gw->spec.state, change->outbox_config, on_config_out, change);
}

static void on_set(stk_op *op_, void *arg)
{
    stk_op_config_set *op = (stk_op_config_set *)op_;
    stk_gw_change *change = arg;
    const stk_gateway *gw = change->ex->gw;
    stk_err err;
    if (stk_gw_over(change->ex)) {
        change_free(change);
    } else if (op_->rc < 0) {
        fail(change, &op_->err);
    } else if (op->outcome == STK_CONFIG_SET_STALE && ++change->tries >= TRIES) {
        stk_err_set(&err, STK_E_STALE, "others change this document all the time: try again");
        fail(change, &err);
    } else if (op->outcome == STK_CONFIG_SET_STALE) {
        read_head(change);
    } else {
        change->version = op->version;
        change->published = true;
        change->outbox_config = op->outbox_config;
        stk_outbox_publish(gw->spec.bus, gw->spec.state, op->outbox_audit, on_audit_out, change);
    }
}

/* --- deciding --- */

static void set_next(stk_gw_change *change)
{
    stk_buf audit STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_buf record STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    const stk_gw_exchange *ex = change->ex;
    stk_config_record rec = {
        .v = STK_MESSAGE_VERSION, .version = change->version + 1, .updated = stk_wall_now()};
    stk_err err = {0};
    memcpy(rec.tenant, ex->caller.tenant, sizeof(rec.tenant));
    memcpy(rec.actor, ex->caller.actor, sizeof(rec.actor));
    snprintf(rec.name, sizeof(rec.name), "%s", change->kind->name);
    stk_bytes_set(&rec.doc, stk_buf_view(&change->stored));
    int rc = stk_config_record_encode(&rec, &record, &err);
    if (rc == -STK_E_LIMIT)
        stk_err_set(&err, STK_E_TOO_LARGE, "the document is too large");
    if (rc == 0)
        rc = stk_gw_change_row(change, change->kind->action, rec.version, &audit, &err);
    stk_config_record_done(&rec);
    if (rc == 0 && !stk_bus_ready(ex->gw->spec.bus))
        rc = stk_err_set(&err, STK_E_UNAVAILABLE, "the bus is not there now: nothing was changed");
    if (rc < 0) {
        fail(change, &err);
        return;
    }
    stk_op_config_set *op = stk_op_new(STK_OP_CONFIG_SET, on_set, change);
    memcpy(op->in.tenant, ex->caller.tenant, sizeof(op->in.tenant));
    snprintf(op->in.name, sizeof(op->in.name), "%s", change->kind->name);
    op->in.expect = change->version;
    stk_bytes_set(&op->in.record, stk_buf_view(&record));
    stk_bytes_set(&op->in.audit, stk_buf_view(&audit));
    stk_state_call(ex->gw->spec.state, op);
}

static int decide(stk_gw_change *change, const stk_config_record *rec, stk_err *err)
{
    change->version = rec ? rec->version : 0;
    stk_buf_reset(&change->stored);
    stk_buf_reset(&change->before);
    stk_buf_reset(&change->after);
    stk_weakenings_done(&change->weak);
    int rc = stk_gw_if_match((stk_str){change->if_match.p, change->if_match.n}, change->version, err);
    return rc < 0 ? rc : change->kind->build(change, rec, err);
}

/* Spaces and control bytes tell nobody why. */
static bool says_something(stk_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] > ' ' && text.p[i] != 0x7f)
            return true;
    return false;
}

static void go_on(stk_gw_change *change)
{
    stk_err err;
    bool may = stk_gw_has_scope(change->ex, STK_SCOPE_GOVERNANCE_WEAKEN);
    if (change->weak.n && !may) {
        stk_gw_change_forbid(change);
    } else if (change->weak.n && !says_something(change->reason)) {
        stk_err_field(&err, STK_E_FIELD, "/reason",
                      "this change loosens something (%s: %s): say why in \"reason\"",
                      change->weak.v[0].pointer, change->weak.v[0].what);
        fail(change, &err);
    } else {
        set_next(change);
    }
}

static void on_taught(stk_op *op, void *arg)
{
    stk_gw_change *change = arg;
    stk_err err = op->err;
    if (stk_gw_over(change->ex)) {
        change_free(change);
    } else if (op->rc == 0 && ++change->tries < TRIES) {
        read_head(change);
    } else {
        if (op->rc == 0)
            stk_err_set(&err, STK_E_UNAVAILABLE,
                        "state does not know the version that is in force: try again");
        fail(change, &err);
    }
}

/* State has lost what the topic says: it is told, and asked again. */
static void teach(stk_gw_change *change)
{
    const stk_gw_exchange *ex = change->ex;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    const stk_config_record *rec = stk_gw_view_record(ex->gw->view, ex->caller.tenant, change->kind->name);
    stk_err err;
    if (stk_config_record_encode(rec, &text, &err) < 0) {
        fail(change, &err);
        return;
    }
    stk_op_config_done *op = stk_op_new(STK_OP_CONFIG_DONE, on_taught, change);
    memcpy(op->in.tenant, rec->tenant, sizeof(op->in.tenant));
    memcpy(op->in.name, rec->name, sizeof(op->in.name));
    op->in.version = rec->version;
    stk_bytes_set(&op->in.record, stk_buf_view(&text));
    stk_state_call(ex->gw->spec.state, op);
}

static void on_head(stk_op *op_, void *arg)
{
    stk_op_config_get *op = (stk_op_config_get *)op_;
    stk_gw_change *change = arg;
    stk_config_record rec = {0};
    stk_err err = {0};
    if (stk_gw_over(change->ex)) {
        change_free(change);
        return;
    }
    int rc = op_->rc;
    if (rc < 0)
        err = op_->err;
    else if (op->version)
        rc = stk_config_record_decode(stk_bytes_view(&op->record), &rec, &err);
    change->version = op->version;
    if (rc == 0 && change->version < stk_gw_view_version(change->ex->gw->view, change->ex->caller.tenant,
                                                         change->kind->name)) {
        stk_config_record_done(&rec);
        teach(change);
        return;
    }
    if (rc == 0 && !seen(change)) {
        /* An earlier change is still on its way: ours must come behind it on the topic. */
        stk_config_record_done(&rec);
        wait_for_view(change);
        return;
    }
    if (rc == 0)
        rc = decide(change, op->version ? &rec : NULL, &err);
    stk_config_record_done(&rec);
    if (rc < 0)
        fail(change, &err);
    else
        go_on(change);
}

static void read_head(stk_gw_change *change)
{
    stk_op_config_get *op = stk_op_new(STK_OP_CONFIG_GET, on_head, change);
    memcpy(op->in.tenant, change->ex->caller.tenant, sizeof(op->in.tenant));
    snprintf(op->in.name, sizeof(op->in.name), "%s", change->kind->name);
    stk_state_call(change->ex->gw->spec.state, op);
}

void stk_gw_change_start(stk_gw_exchange *ex, const stk_gw_change_kind *kind, void *arg, stk_str reason)
{
    stk_err err;
    stk_gw_change *change = stk_xcalloc(1, sizeof(*change));
    *change = (stk_gw_change){.ex = stk_gw_ref(ex), .kind = kind, .arg = arg, .reason = reason};
    stk_buf_init(&change->stored, DOC_MAX);
    stk_buf_init(&change->before, DOC_MAX);
    stk_buf_init(&change->after, DOC_MAX);
    stk_str match = stk_gw_header(ex, "If-Match");
    if (match.p)
        stk_bytes_set(&change->if_match, match);
    if (stk_gw_view_ready(ex->gw->view)) {
        read_head(change);
        return;
    }
    stk_err_set(&err, STK_E_UNAVAILABLE, "the configuration is still being read");
    fail(change, &err);
}
