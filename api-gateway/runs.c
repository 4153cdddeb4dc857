#include "api-gateway/runs.h"
#include "api-gateway/result.h"
#include "proto/base/log.h"
#include "proto/message/assignment.h"
#include "proto/message/request.h"
#include "proto/state/outbox.h"
#include <stdio.h>

#define ANSWER_MAX ((size_t)16 << 20)
#define PATIENCE   stk_sec(1)

static void put_wall(stk_jw *w, const char *key, stk_wall t)
{
    char text[STK_WALL_TEXT];
    stk_wall_format(t, text);
    stk_jw_ktext(w, key, t.ns ? text : NULL);
}

static void put_text(stk_jw *w, const char *key, const char *text)
{
    stk_jw_ktext(w, key, text[0] ? text : NULL);
}

void stk_gw_run_write(stk_jw *w, const stk_run_row *row, bool close)
{
    stk_jw_object(w);
    stk_jw_ktext(w, "id", row->id);
    stk_jw_ktext(w, "tenant", row->tenant);
    stk_jw_ktext(w, "agent", row->agent);
    stk_jw_ktext(w, "state", stk_run_state_text(row->state));
    put_text(w, "reason", row->reason);
    stk_jw_kint(w, "priority", row->priority);
    stk_jw_kint(w, "attempt", row->attempt);
    stk_jw_kbool(w, "cancel_asked", row->cancel_asked);
    put_text(w, "worker", row->worker);
    put_text(w, "sandbox", row->sandbox);
    put_wall(w, "submitted", row->submitted);
    put_wall(w, "started", row->started);
    put_wall(w, "finished", row->finished);
    stk_jw_key(w, "labels");
    stk_jw_object(w);
    for (size_t i = 0; i < row->labels.n; i++) {
        stk_jw_key_str(w, stk_bytes_view(&row->labels.v[i].key));
        stk_jw_str(w, stk_bytes_view(&row->labels.v[i].value));
    }
    stk_jw_close(w, '}');
    if (close)
        stk_jw_close(w, '}');
}

int stk_gw_run_id_check(const stk_gw_exchange *ex, stk_err *err)
{
    if (stk_id_valid("run", stk_str_of(ex->param)))
        return 0;
    return stk_err_set(err, STK_E_NOT_FOUND, "\"%s\" is not the id of a run", ex->param);
}

static void answer_written(stk_gw_exchange *ex, stk_jw *w)
{
    stk_err err;
    if (stk_jw_end(w, &err) < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_answer_json(ex, 200, "", w->out);
}

static void answer_unknown(stk_gw_exchange *ex)
{
    stk_err err;
    stk_err_set(&err, STK_E_NOT_FOUND, "no run %s", ex->param);
    stk_gw_answer_err(ex, &err);
}

/* --- one run --- */

/* Once state has forgotten it, the event is all there is. */
static void row_from_event(const stk_event *ev, stk_run_row *row)
{
    *row = (stk_run_row){.state = STK_RUN_FINISHED, .attempt = ev->attempt, .priority = 5};
    memcpy(row->id, ev->run, sizeof(row->id));
    memcpy(row->tenant, ev->tenant, sizeof(row->tenant));
    memcpy(row->agent, ev->agent, sizeof(row->agent));
    memcpy(row->reason, ev->reason, sizeof(row->reason));
    memcpy(row->worker, ev->worker, sizeof(row->worker));
    memcpy(row->sandbox, ev->sandbox, sizeof(row->sandbox));
    row->submitted = ev->submitted;
    row->started = ev->started;
    row->finished = ev->finished;
    row->labels = ev->labels; /* borrowed */
}

static void row_free(void *row)
{
    stk_run_row_done(row);
    free(row);
}

static void on_result(stk_gw_exchange *ex, const stk_event *ev, const stk_err *err, void *arg)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(ANSWER_MAX);
    stk_run_row old;
    const stk_run_row *row = ex->work;
    stk_jw w;
    if (stk_gw_over(ex))
        return;
    if (!row && err) {
        stk_gw_answer_err(ex, err);
        return;
    }
    if (!row && !ev) {
        answer_unknown(ex);
        return;
    }
    if (!row)
        row_from_event(ev, &old);
    stk_jw_init(&w, &body);
    stk_gw_run_write(&w, row ? row : &old, false);
    stk_jw_key(&w, "result");
    if (ev)
        stk_gw_result_write(ex, ev, &w);
    else
        stk_jw_null(&w);
    stk_jw_close(&w, '}');
    answer_written(ex, &w);
}

static void on_run(stk_op *op_, void *arg)
{
    stk_op_run_get *op = (stk_op_run_get *)op_;
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(ANSWER_MAX);
    stk_jw w;
    if (stk_gw_over(ex))
        return;
    if (op_->rc < 0) {
        stk_gw_answer_err(ex, &op_->err);
    } else if (op->found && strcmp(op->row.kind, "run") != 0) {
        answer_unknown(ex);
    } else if (op->found && op->row.state != STK_RUN_FINISHED) {
        stk_jw_init(&w, &body);
        stk_gw_run_write(&w, &op->row, true);
        answer_written(ex, &w);
    } else {
        if (op->found) {
            stk_run_row *row = ex->work = stk_xcalloc(1, sizeof(*row));
            *row = op->row;
            op->row = (stk_run_row){0};
            ex->work_free = row_free;
        }
        stk_gw_result(ex, ex->param, ex->work, op->found ? PATIENCE : stk_ns(0), on_result, NULL);
    }
}

static stk_op_run_get *ask_run(stk_gw_exchange *ex, stk_op_done done)
{
    stk_op_run_get *op = stk_gw_op(ex, STK_OP_RUN_GET, done);
    stk_str_copy(stk_str_of(ex->param), op->in.run, sizeof(op->in.run));
    memcpy(op->in.tenant, ex->caller.tenant, sizeof(op->in.tenant));
    return op;
}

void stk_gw_run_get(stk_gw_exchange *ex)
{
    stk_err err;
    if (stk_gw_run_id_check(ex, &err) < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_state_call(ex->gw->spec.state, ask_run(ex, on_run));
}

/* --- the list --- */

static void on_list(stk_op *op_, void *arg)
{
    stk_op_run_list *op = (stk_op_run_list *)op_;
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(ANSWER_MAX);
    stk_jw w;
    if (stk_gw_over(ex))
        return;
    if (op_->rc < 0) {
        stk_gw_answer_err(ex, &op_->err);
        return;
    }
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_key(&w, "runs");
    stk_jw_array(&w);
    for (size_t i = 0; i < op->n; i++)
        if (strcmp(op->rows[i].kind, "run") == 0)
            stk_gw_run_write(&w, &op->rows[i], true);
    stk_jw_close(&w, ']');
    stk_jw_ktext(&w, "next", op->more && op->n ? op->rows[op->n - 1].id : NULL);
    stk_jw_close(&w, '}');
    answer_written(ex, &w);
}

static int take_label(const char *text, stk_op_run_list *op, stk_err *err)
{
    const char *eq = text ? strchr(text, '=') : NULL;
    if (!text)
        return 0;
    if (!eq || eq == text ||
        !stk_str_copy(stk_str_n(text, (size_t)(eq - text)), op->in.label_key, sizeof(op->in.label_key)) ||
        !stk_str_copy(stk_str_of(eq + 1), op->in.label_value, sizeof(op->in.label_value)))
        return stk_err_set(err, STK_E_FIELD, "label: key=value");
    return 0;
}

static int take_filters(const stk_gw_exchange *ex, stk_op_run_list *op, stk_err *err)
{
    const char *agent = stk_gw_query(ex, "agent"), *state = stk_gw_query(ex, "state"),
               *cursor = stk_gw_query(ex, "cursor");
    memcpy(op->in.tenant, ex->caller.tenant, sizeof(op->in.tenant));
    if (agent && !(stk_agent_ok(stk_str_of(agent)) &&
                   stk_str_copy(stk_str_of(agent), op->in.agent, sizeof(op->in.agent))))
        return stk_err_set(err, STK_E_FIELD, "agent: not an agent's name");
    if (state && (op->in.state = stk_run_state_parse(state)) == STK_RUN_NONE)
        return stk_err_set(err, STK_E_FIELD, "state: submitted, queued, assigned, running or finished");
    if (cursor && *cursor &&
        !(stk_id_valid("run", stk_str_of(cursor)) &&
          stk_str_copy(stk_str_of(cursor), op->in.cursor, STK_ID_SIZE)))
        return stk_err_set(err, STK_E_FIELD, "cursor: take `next` of the page before");
    int rc = take_label(stk_gw_query(ex, "label"), op, err);
    return rc < 0 ? rc : stk_gw_query_limit(ex, &op->in.limit, err);
}

void stk_gw_runs_list(stk_gw_exchange *ex)
{
    stk_err err;
    stk_op_run_list *op = stk_op_new(STK_OP_RUN_LIST, on_list, ex);
    if (take_filters(ex, op, &err) < 0) {
        stk_op_free(&op->op);
        stk_gw_answer_err(ex, &err);
        return;
    }
    stk_gw_ref(ex);
    stk_state_call(ex->gw->spec.state, op);
}
