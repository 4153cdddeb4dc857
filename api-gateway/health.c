/* /healthz, /readyz, /metrics, /openapi.json and the console page. */
#include "api-gateway/exchange.h"
#include "api-gateway/texts.h"

#define METRICS_MAX ((size_t)4 << 20)

void stk_gw_healthz(stk_gw_exchange *ex)
{
    stk_gw_answer(ex, 200, "application/json", "", STK_STR("{\"ok\":true}"));
}

void stk_gw_readyz(stk_gw_exchange *ex)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1024);
    const stk_gateway *gw = ex->gw;
    bool bus = stk_bus_ready(gw->spec.bus), state = stk_state_ready(gw->spec.state),
         store = stk_store_ready(gw->spec.store);
    bool config = stk_gw_view_ready(gw->view);
    bool ready = bus && state && store && config && !gw->draining;
    stk_jw w;
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_kbool(&w, "ready", ready);
    stk_jw_kbool(&w, "bus", bus);
    stk_jw_kbool(&w, "state", state);
    stk_jw_kbool(&w, "store", store);
    stk_jw_kbool(&w, "configuration", config);
    stk_jw_kbool(&w, "draining", gw->draining);
    stk_jw_close(&w, '}');
    stk_gw_answer_json(ex, ready ? 200 : 503, "", &body);
}

void stk_gw_openapi(stk_gw_exchange *ex)
{
    stk_gw_answer(ex, 200, "application/json", "", stk_gw_text_openapi());
}

void stk_gw_console(stk_gw_exchange *ex)
{
    static const char policy[] =
        "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
        "Referrer-Policy: no-referrer\r\n";
    stk_gw_answer(ex, 200, "text/html; charset=utf-8", policy, stk_gw_text_console());
}

/* --- metrics --- */

static void put(stk_buf *out, const char *name, const char *type, const char *help, double value)
{
    stk_buf_fmt(out, "# HELP stockade_%s %s\n# TYPE stockade_%s %s\nstockade_%s %.17g\n", name, help, name,
                type, name, value);
}

static void put_requests(const stk_gateway *gw, stk_buf *out)
{
    stk_buf_text(out, "# HELP stockade_http_requests_total Requests answered.\n# TYPE "
                      "stockade_http_requests_total counter\n");
    for (size_t i = 0; i < stk_gw_nroutes; i++)
        for (size_t c = 1; c < 6; c++)
            if (gw->by_route[i * 6 + c])
                stk_buf_fmt(out,
                            "stockade_http_requests_total{method=\"%s\",path=\"%s\",status=\"%zuxx\"} %llu\n",
                            stk_gw_routes[i].method, stk_gw_routes[i].path, c,
                            (unsigned long long)gw->by_route[i * 6 + c]);
}

static void put_own(const stk_gateway *gw, stk_buf *out)
{
    const stk_gw_counts *c = &gw->counts;
    put_requests(gw, out);
    put(out, "gateway_open_requests", "gauge", "Requests whose client is there.", (double)gw->open);
    put(out, "gateway_submitted_total", "counter", "Runs and plans reserved.", (double)c->submitted);
    put(out, "gateway_repeated_total", "counter",
        "Submissions that met an earlier one by their Idempotency-Key.", (double)c->repeated);
    put(out, "gateway_over_cap_total", "counter",
        "Submissions refused because the tenant had too many unfinished runs.", (double)c->over_cap);
    put(out, "gateway_publish_refused_total", "counter", "Submissions that the bus refused.",
        (double)c->refused_publish);
    put(out, "gateway_publish_unknown_total", "counter", "Submissions whose outcome the bus did not tell.",
        (double)c->unknown_publish);
    put(out, "gateway_abandoned_total", "counter", "Requests whose client left before the answer.",
        (double)c->abandoned);
    put(out, "gateway_waits_total", "counter", "Calls that waited for a run.", (double)c->waits);
    put(out, "gateway_streams_total", "counter", "Event streams begun.", (double)c->streams);
    put(out, "gateway_loop_lag_seconds", "gauge",
        "How late the gateway's loop was, worst of the last second.",
        stk_span_sec(stk_loop_lag(gw->spec.loop)));
}

static void put_state(const stk_op_counts *op, stk_buf *out)
{
    stk_buf_text(out, "# HELP stockade_runs Runs by state.\n# TYPE stockade_runs gauge\n");
    for (int s = STK_RUN_SUBMITTED; s < STK_RUN_STATES; s++)
        stk_buf_fmt(out, "stockade_runs{state=\"%s\"} %lld\n", stk_run_state_text((stk_run_state)s),
                    (long long)op->by_state[s]);
    double age = op->oldest_queued.ns ? stk_span_sec(stk_wall_sub(stk_wall_now(), op->oldest_queued)) : 0;
    put(out, "queue_oldest_seconds", "gauge", "Age of the oldest queued run.", age > 0 ? age : 0);
    put(out, "outbox_items", "gauge", "Messages decided and not published yet.", (double)op->outbox);
    put(out, "workers_live", "gauge", "Workers with a live lease.", (double)op->workers_live);
    put(out, "slots", "gauge", "Slots of live workers.", (double)op->slots);
    put(out, "slots_used", "gauge", "Slots in use.", (double)op->used);
    put(out, "state_open", "gauge", "1 when state may assign (0 after it was lost).", op->open);
}

static void on_counts(stk_op *op, void *arg)
{
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(METRICS_MAX);
    if (stk_gw_over(ex))
        return;
    const stk_gateway *gw = ex->gw;
    put(&body, "state_up", "gauge", "1 when state answered.", op->rc == 0);
    if (op->rc == 0)
        put_state((stk_op_counts *)op, &body);
    put_own(gw, &body);
    for (size_t i = 0; i < gw->nextras; i++)
        gw->extras[i].fn(&body, gw->extras[i].arg);
    stk_gw_answer(ex, 200, "text/plain; version=0.0.4; charset=utf-8", "", stk_buf_view(&body));
}

void stk_gw_metrics(stk_gw_exchange *ex)
{
    stk_state_call(ex->gw->spec.state, stk_gw_op(ex, STK_OP_COUNTS, on_counts));
}
