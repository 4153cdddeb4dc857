/* GET /v1/workers. */
#include "api-gateway/exchange.h"

#define ANSWER_MAX ((size_t)16 << 20)

static void put_wall(stk_jw *w, const char *key, stk_wall t)
{
    char text[STK_WALL_TEXT];
    stk_wall_format(t, text);
    stk_jw_ktext(w, key, t.ns ? text : NULL);
}

/* What a worker wrote about itself is checked before it becomes part of our answer. */
static void put_json(stk_jw *w, const char *key, const stk_bytes *text)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_jw_key(w, key);
    if (text->set && stk_json_parse(stk_bytes_view(text), NULL, &doc, NULL) == 0)
        stk_jw_value(w, stk_json_root(doc));
    else
        stk_jw_null(w);
}

static void put_worker(stk_jw *w, const stk_worker_row *row)
{
    stk_jw_object(w);
    stk_jw_ktext(w, "id", row->id);
    stk_jw_ktext(w, "host", row->host);
    stk_jw_ktext(w, "incarnation", row->incarnation);
    stk_jw_kbool(w, "live", row->live);
    stk_jw_kbool(w, "draining", row->draining);
    stk_jw_kint(w, "slots", row->slots);
    stk_jw_kint(w, "used", row->used);
    put_wall(w, "joined", row->joined);
    put_wall(w, "seen", row->seen);
    put_json(w, "backends", &row->backends);
    put_json(w, "stats", &row->stats);
    stk_jw_close(w, '}');
}

static void on_workers(stk_op *op_, void *arg)
{
    stk_op_workers *op = (stk_op_workers *)op_;
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(ANSWER_MAX);
    stk_err err;
    stk_jw w;
    if (stk_gw_over(ex))
        return;
    if (op_->rc < 0) {
        stk_gw_answer_err(ex, &op_->err);
        return;
    }
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_key(&w, "workers");
    stk_jw_array(&w);
    for (size_t i = 0; i < op->n; i++)
        put_worker(&w, &op->rows[i]);
    stk_jw_close(&w, ']');
    stk_jw_close(&w, '}');
    if (stk_jw_end(&w, &err) < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_answer_json(ex, 200, "", &body);
}

void stk_gw_workers_list(stk_gw_exchange *ex)
{
    stk_state_call(ex->gw->spec.state, stk_gw_op(ex, STK_OP_WORKERS, on_workers));
}
