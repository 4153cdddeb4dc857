/* GET /v1/runs/{id}/events: server-sent events.
 *
 *   event: state    {"state", and at the end reason, exit_code, …}    at each change seen; the last one is
 * `finished` event: output   {"stream","data"} or {"stream","data_base64"} where the bytes are not UTF-8; id:
 * the byte offset behind the piece event: egress   one decision each, once the run has ended Last-Event-ID is
 * that byte offset: output goes on from there. A comment every 15 s keeps the connection alive. */
#include "api-gateway/result.h"
#include "api-gateway/runs.h"
#include "proto/message/live.h"
#include <stdio.h>

#define SWEEP    stk_sec(1)
#define COMMENT  stk_sec(15)
#define PATIENCE stk_sec(2)
#define PIECE    ((size_t)512 << 10)
#define EVENT    ((size_t)4 << 20)

typedef struct stream {
    stk_gw_exchange *ex;
    int64_t offset; /* next byte of output to send */
    stk_run_state told;
    stk_run_row row; /* newest that was read */
    bool begun, asking, again, full, any, ended;
    int64_t watches[2];
    stk_timer *sweep;
    stk_mono quiet_since;
} stream;

static void ask(void *arg);

static void stream_free(stream *s)
{
    stk_gw_exchange *ex = s->ex;
    stk_run_row_done(&s->row);
    free(s);
    stk_gw_unref_exchange(ex);
}

static void stop(stream *s)
{
    if (s->ended)
        return;
    s->ended = true;
    s->ex->interrupt = NULL;
    s->ex->writable = NULL;
    stk_state_unwatch(s->ex->gw->spec.state, s->watches[0]);
    stk_state_unwatch(s->ex->gw->spec.state, s->watches[1]);
    stk_timer_free(s->sweep);
    if (s->ex->x && s->begun)
        stk_http_end(s->ex->x);
    if (!s->asking)
        stream_free(s);
}

/* --- events --- */

static void send_event(stream *s, const char *name, int64_t id, const stk_buf *data)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(EVENT);
    if (!s->ex->x)
        return;
    if (id >= 0)
        stk_buf_fmt(&text, "id: %lld\n", (long long)id);
    stk_buf_fmt(&text, "event: %s\ndata: ", name);
    stk_buf_str(&text, stk_buf_view(data));
    stk_buf_text(&text, "\n\n");
    if (!stk_http_write(s->ex->x, stk_buf_view(&text)))
        s->full = true;
    s->quiet_since = stk_mono_now();
}

static void send_state(stream *s, const stk_event *ev)
{
    stk_buf data STK_AUTO(stk_buf_done) = STK_BUF(8192);
    stk_jw w;
    stk_jw_init(&w, &data);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "id", s->ex->param);
    stk_jw_ktext(&w, "state", stk_run_state_text(s->told));
    if (ev) {
        stk_reason reason = stk_reason_parse(ev->reason);
        stk_jw_ktext(&w, "reason", ev->reason);
        stk_jw_ktext(&w, "detail", ev->detail);
        stk_jw_kint(&w, "exit_code", ev->exit_code);
        stk_jw_kint(&w, "signal", ev->signal);
        stk_jw_kint(&w, "status", stk_reason_exit(reason, (int)ev->exit_code, (int)ev->signal));
        stk_jw_kbool(&w, "truncated", ev->truncated);
        stk_jw_kint(&w, "duration_ms", stk_span_ms(ev->duration));
    } else if (s->told == STK_RUN_FINISHED) {
        stk_jw_ktext(&w, "reason", s->row.reason);
    }
    stk_jw_close(&w, '}');
    send_event(s, "state", -1, &data);
}

static void send_output(stream *s, bool is_stderr, stk_str bytes)
{
    stk_buf data STK_AUTO(stk_buf_done) = STK_BUF(EVENT);
    stk_buf base64 STK_AUTO(stk_buf_done) = STK_BUF(EVENT);
    bool text = stk_utf8_valid(bytes);
    stk_jw w;
    if (!text)
        stk_base64_encode(&base64, bytes);
    stk_jw_init(&w, &data);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "stream", is_stderr ? "stderr" : "stdout");
    stk_jw_kstr(&w, text ? "data" : "data_base64", text ? bytes : stk_buf_view(&base64));
    stk_jw_close(&w, '}');
    s->any = true;
    s->offset += (int64_t)bytes.n;
    send_event(s, "output", s->offset, &data);
}

static void send_piece(stream *s, const stk_output_piece *piece)
{
    stk_buf clear STK_AUTO(stk_buf_done) = STK_BUF(PIECE);
    bool is_stderr = false;
    int64_t skip = s->offset - piece->offset;
    if (skip >= piece->length || stk_live_open(s->ex->gw->spec.ring, s->ex->param, piece->offset,
                                               stk_bytes_view(&piece->sealed), &is_stderr, &clear, NULL) < 0)
        return;
    if (skip < 0) /* a hole: what lay between was not kept */
        skip = 0, s->offset = piece->offset;
    if ((size_t)skip < clear.n)
        send_output(s, is_stderr, stk_str_n(clear.p + skip, clear.n - (size_t)skip));
}

static void send_egress(stream *s, const stk_event *ev)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_buf all STK_AUTO(stk_buf_done) = STK_BUF(EVENT);
    stk_jw w;
    stk_jw_init(&w, &all);
    stk_event_write_api(&w, ev, NULL);
    if (stk_jw_end(&w, NULL) < 0 || stk_json_parse(stk_buf_view(&all), NULL, &doc, NULL) < 0)
        return;
    stk_jv list = stk_jv_get(stk_json_root(doc), "egress");
    for (stk_jv one = stk_jv_first(list); !stk_jv_is(one, STK_J_NONE); one = stk_jv_next(one)) {
        stk_buf data STK_AUTO(stk_buf_done) = STK_BUF(16384);
        stk_buf_str(&data, stk_jv_raw(one));
        send_event(s, "egress", -1, &data);
    }
}

/* The live pieces are gone after ten minutes; the result has the output still, one stream after the other. */
static void send_kept_output(stream *s, const stk_event *ev)
{
    stk_result_secret secret = {0};
    if (s->any || s->offset > 0 || !ev->secret.set ||
        stk_event_open(ev, s->ex->gw->spec.ring, &secret, NULL) < 0)
        return;
    if (secret.stdout_data.n)
        send_output(s, false, stk_bytes_view(&secret.stdout_data));
    if (secret.stderr_data.n)
        send_output(s, true, stk_bytes_view(&secret.stderr_data));
    stk_result_secret_done(&secret);
}

/* --- the steps: run -> output -> (at the end) result --- */

static void begin(stream *s)
{
    if (!s->begun)
        stk_gw_begin_stream(s->ex, 200, "text/event-stream");
    s->begun = true;
}

static void on_result(stk_gw_exchange *ex, const stk_event *ev, const stk_err *err, void *arg)
{
    stream *s = arg;
    stk_err why;
    s->asking = false;
    if (s->ended) {
        stream_free(s);
        return;
    }
    if (!ev && !s->begun && s->row.state == STK_RUN_NONE) {
        stk_err_set(&why, STK_E_NOT_FOUND, "no run %s", ex->param);
        stk_gw_answer_err(ex, err ? err : &why);
        stop(s);
        return;
    }
    begin(s);
    s->told = STK_RUN_FINISHED;
    if (ev) {
        send_kept_output(s, ev);
        send_egress(s, ev);
    }
    send_state(s, ev);
    stop(s);
}

static void finish_step(stream *s)
{
    s->asking = false;
    if (s->ended) {
        stream_free(s);
        return;
    }
    if (s->row.state == STK_RUN_FINISHED && !s->full) {
        s->asking = true;
        stk_gw_result(s->ex, s->ex->param, &s->row, PATIENCE, on_result, s);
        return;
    }
    stk_timer_set(s->sweep, SWEEP);
    if (s->again)
        ask(s);
}

static void on_output(stk_op *op_, void *arg)
{
    stk_op_output_read *op = (stk_op_output_read *)op_;
    stream *s = arg;
    for (size_t i = 0; op_->rc == 0 && !s->ended && !s->full && i < op->n; i++)
        send_piece(s, &op->pieces[i]);
    if (s->full)
        s->again = false; /* on_writable asks again */
    finish_step(s);
}

static void tell_state(stream *s)
{
    begin(s);
    if (s->row.state != s->told && s->row.state != STK_RUN_FINISHED) {
        s->told = s->row.state;
        send_state(s, NULL);
    }
    if (stk_mono_sub(stk_mono_now(), s->quiet_since).ns >= COMMENT.ns && s->ex->x) {
        stk_http_write(s->ex->x, STK_STR(": alive\n\n"));
        s->quiet_since = stk_mono_now();
    }
}

static void on_run(stk_op *op_, void *arg)
{
    stk_op_run_get *op = (stk_op_run_get *)op_;
    stream *s = arg;
    const stk_gateway *gw = s->ex->gw;
    if (s->ended || op_->rc < 0) {
        if (!s->ended && !s->begun) {
            stk_gw_answer_err(s->ex, &op_->err);
            stop(s);
        }
        finish_step(s);
        return;
    }
    if (!op->found && !s->begun) {
        stk_gw_result(s->ex, s->ex->param, NULL, stk_ns(0), on_result, s);
        return;
    }
    if (op->found) {
        stk_run_row_done(&s->row);
        s->row = op->row;
        op->row = (stk_run_row){0};
    }
    tell_state(s);
    stk_op_output_read *read = stk_op_new(STK_OP_OUTPUT_READ, on_output, s);
    memcpy(read->in.run, s->row.id, sizeof(read->in.run));
    read->in.from = s->offset;
    stk_state_call(gw->spec.state, read);
}

static void ask(void *arg)
{
    stream *s = arg;
    s->again = s->asking;
    if (s->asking || s->full)
        return;
    s->asking = true;
    stk_op_run_get *op = stk_op_new(STK_OP_RUN_GET, on_run, s);
    stk_str_copy(stk_str_of(s->ex->param), op->in.run, sizeof(op->in.run));
    memcpy(op->in.tenant, s->ex->caller.tenant, sizeof(op->in.tenant));
    stk_state_call(s->ex->gw->spec.state, op);
}

static void on_note(const char *what, void *arg)
{
    ask(arg);
}

static void on_writable(stk_gw_exchange *ex)
{
    stream *s = ex->waiting;
    s->full = false;
    ask(s);
}

static void on_interrupt(stk_gw_exchange *ex, bool gone)
{
    stop(ex->waiting);
}

static int first_offset(const stk_gw_exchange *ex, int64_t *ret, stk_err *err)
{
    stk_str text = stk_gw_header(ex, "Last-Event-ID");
    uint64_t n = 0;
    if (text.n && !stk_str_u64(text, INT64_MAX, &n))
        return stk_err_set(err, STK_E_FIELD, "Last-Event-ID: a byte offset, as it stood in an event's id");
    *ret = (int64_t)n;
    return 0;
}

void stk_gw_run_events(stk_gw_exchange *ex)
{
    stk_state *st = ex->gw->spec.state;
    char what[STK_ID_SIZE + 16];
    int64_t offset = 0;
    stk_err err;
    if (stk_gw_run_id_check(ex, &err) < 0 || first_offset(ex, &offset, &err) < 0) {
        stk_gw_answer_err(ex, &err);
        return;
    }
    if (stk_str_eq(stk_http_head(ex->x)->method, STK_STR("HEAD"))) {
        stk_gw_answer(ex, 200, "text/event-stream", "", (stk_str){NULL, 0});
        return;
    }
    stream *s = ex->waiting = stk_xcalloc(1, sizeof(*s));
    *s = (stream){.ex = stk_gw_ref(ex), .offset = offset, .quiet_since = stk_mono_now()};
    ex->interrupt = on_interrupt;
    ex->writable = on_writable;
    ex->gw->counts.streams++;
    snprintf(what, sizeof(what), "run/%.40s", ex->param);
    s->watches[0] = stk_state_watch(st, what, on_note, s);
    snprintf(what, sizeof(what), "output/%.40s", ex->param);
    s->watches[1] = stk_state_watch(st, what, on_note, s);
    s->sweep = stk_timer_new(ex->gw->spec.loop, ask, s);
    ask(s);
}
