/* What the API answers for a finished run. */
#include "proto/message/event.h"

static void put_wall(stk_jw *w, const char *key, stk_wall t)
{
    char text[STK_WALL_TEXT];
    stk_wall_format(t, text);
    stk_jw_ktext(w, key, t.ns ? text : NULL);
}

static void put_decision(stk_jw *w, const stk_egress_record *rec)
{
    stk_jw_object(w);
    stk_jw_kint(w, "seq", rec->seq);
    put_wall(w, "time", rec->time);
    stk_jw_ktext(w, "host", rec->host);
    stk_jw_kint(w, "port", rec->port);
    stk_jw_ktext(w, "method", rec->method);
    stk_jw_ktext(w, "verdict", rec->verdict);
    stk_jw_ktext(w, "rule", rec->rule);
    stk_jw_ktext(w, "reason", rec->reason);
    stk_jw_ktext(w, "address", rec->address);
    stk_jw_kint(w, "bytes_in", rec->bytes_in);
    stk_jw_kint(w, "bytes_out", rec->bytes_out);
    stk_jw_kint(w, "duration_ms", stk_span_ms(rec->duration));
    if (rec->count)
        stk_jw_kint(w, "count", rec->count);
    stk_jw_close(w, '}');
}

static void merge_close(stk_egress_record *v, size_t n, const stk_egress_record *close)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].seq == close->open_seq) {
            v[i].bytes_in = close->bytes_in;
            v[i].bytes_out = close->bytes_out;
            v[i].duration = close->duration;
        }
}

/* Each decision once, with the bytes of the close that followed it. */
static void put_egress(stk_jw *w, const stk_bytes *list)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_egress_record *v STK_AUTO(stk_freep) = NULL;
    size_t n = 0;
    stk_jw_array(w);
    if (list->set && stk_json_parse(stk_bytes_view(list), NULL, &doc, NULL) == 0) {
        stk_jv root = stk_json_root(doc);
        v = stk_xcalloc(stk_jv_count(root) + 1, sizeof(*v));
        for (stk_jv item = stk_jv_first(root); !stk_jv_is(item, STK_J_NONE); item = stk_jv_next(item)) {
            if (stk_egress_decode_jv(item, &v[n], NULL) < 0)
                continue;
            if (strcmp(v[n].kind, "close") == 0)
                merge_close(v, n, &v[n]);
            else
                n++;
        }
    }
    for (size_t i = 0; i < n; i++)
        put_decision(w, &v[i]);
    stk_jw_close(w, ']');
}

/* The last STK_TAIL_MAX bytes from a character's first byte on; true when something was left out. */
static bool put_tail(stk_jw *w, const char *key, const stk_bytes *data)
{
    size_t from = data->n > STK_TAIL_MAX ? data->n - STK_TAIL_MAX : 0;
    for (int i = 0; from && i < 3 && from < data->n && ((unsigned char)data->p[from] & 0xc0) == 0x80; i++)
        from++;
    stk_jw_kstr(w, key, stk_str_n(data->p + from, data->n - from));
    return from > 0;
}

/* An exit code of the command's own, or one that is defined for how it ended; null when it did not end by
 * itself. */
static void put_exit(stk_jw *w, const stk_event *ev, stk_reason reason)
{
    stk_jw_key(w, "exit_code");
    switch (reason) {
    case STK_REASON_EXITED:
    case STK_REASON_SIGNALED:
    case STK_REASON_TIMEOUT:
    case STK_REASON_OOM:
        stk_jw_int(w, stk_reason_exit(reason, (int)ev->exit_code, (int)ev->signal));
        break;
    default:
        stk_jw_null(w);
    }
    stk_jw_kint(w, "signal", ev->signal);
}

static void put_where(stk_jw *w, const stk_event *ev)
{
    stk_jw_ktext(w, "backend", ev->backend);
    stk_jw_ktext(w, "isolation", ev->isolation);
    stk_jw_ktext(w, "worker", ev->worker);
    stk_jw_ktext(w, "sandbox", ev->sandbox);
    stk_jw_kbool(w, "warm", ev->warm);
    stk_jw_kint(w, "attempt", ev->attempt);
    put_wall(w, "submitted", ev->submitted);
    put_wall(w, "started", ev->started);
    put_wall(w, "finished", ev->finished);
}

void stk_event_write_api(stk_jw *w, const stk_event *ev, const stk_result_secret *secret)
{
    bool truncated = ev->truncated;
    stk_jw_object(w);
    stk_jw_ktext(w, "run_id", ev->run);
    stk_jw_ktext(w, "agent", ev->agent);
    stk_jw_ktext(w, "reason", ev->reason);
    stk_jw_ktext(w, "detail", ev->detail);
    put_exit(w, ev, stk_reason_parse(ev->reason));
    stk_jw_kbool(w, "timed_out", ev->timed_out);
    stk_jw_kbool(w, "oom_killed", ev->oom_killed);
    if (secret) {
        truncated |= put_tail(w, "stdout_tail", &secret->stdout_data);
        truncated |= put_tail(w, "stderr_tail", &secret->stderr_data);
    }
    stk_jw_kbool(w, "truncated", truncated);
    stk_jw_kint(w, "stdout_bytes", ev->stdout_bytes);
    stk_jw_kint(w, "stderr_bytes", ev->stderr_bytes);
    stk_jw_kint(w, "duration_ms", stk_span_ms(ev->duration));
    put_where(w, ev);
    stk_jw_key(w, "egress");
    put_egress(w, &ev->egress);
    stk_jw_kint(w, "egress_dropped", ev->egress_dropped);
    stk_jw_kint(w, "egress_allowed", ev->egress_allowed);
    stk_jw_kint(w, "egress_denied", ev->egress_denied);
    if (secret && secret->files.set)
        stk_jw_kraw(w, "files", stk_bytes_view(&secret->files));
    stk_jw_close(w, '}');
}
