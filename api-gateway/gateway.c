#include "api-gateway/change.h"
#include "api-gateway/exchange.h"
#include "proto/base/fd.h"
#include "proto/base/log.h"
#include "proto/state/outbox.h"
#include <sys/socket.h>

#define BACKLOG     512
#define FIRST_READ  stk_sec(10)
#define LAST_TURNS  stk_sec(5)
#define SWEEP_EVERY stk_sec(1)
#define SWEEP_OLDER stk_sec(5)
#define SWEEP_HOLD  stk_sec(30)

void stk_gw_unref(stk_gateway *gw)
{
    if (--gw->refs)
        return;
    stk_tokens_done(&gw->bootstrap);
    free(gw->by_route);
    free(gw);
}

static void on_told(stk_op *op, void *arg)
{
    stk_gateway *gw = arg;
    gw->telling--;
    stk_gw_unref(gw);
}

void stk_gw_tell(stk_gateway *gw, void *op_)
{
    stk_op *op = op_;
    op->done = on_told;
    op->arg = gw;
    gw->refs++;
    gw->telling++;
    stk_state_call(gw->spec.state, op);
}

/* A state that lost its heads learns them from whoever follows the topic. */
static void on_config(const stk_config_record *rec, stk_str text, void *arg)
{
    stk_gateway *gw = arg;
    stk_op_config_done *op = stk_op_new(STK_OP_CONFIG_DONE, NULL, NULL);
    memcpy(op->in.tenant, rec->tenant, sizeof(op->in.tenant));
    memcpy(op->in.name, rec->name, sizeof(op->in.name));
    op->in.version = rec->version;
    stk_bytes_set(&op->in.record, text);
    stk_gw_tell(gw, op);
    stk_gw_changes_check(gw);
}

static void arm_sweep(stk_gateway *gw);

static void on_swept(bool ok, size_t published, void *arg)
{
    stk_gateway *gw = arg;
    gw->sweeping = false;
    if (!gw->dead)
        arm_sweep(gw);
    stk_gw_unref(gw);
}

static void on_sweep(void *arg)
{
    stk_gateway *gw = arg;
    if (gw->sweeping)
        return;
    gw->sweeping = true;
    gw->refs++;
    stk_outbox_sweep(gw->spec.bus, gw->spec.state, SWEEP_OLDER, SWEEP_HOLD, on_swept, gw);
}

static void arm_sweep(stk_gateway *gw)
{
    stk_timer_set(gw->sweep, SWEEP_EVERY);
}

static void on_tick(void *arg)
{
    stk_timer **timer = arg;
    stk_timer_set(*timer, stk_ms(50));
}

/* Runs the loop while the gateway is being made, which is before its owner runs it. */
static void turn_until(stk_gateway *gw, bool (*done)(const stk_gateway *gw), stk_span most)
{
    stk_mono end = stk_mono_add(stk_mono_now(), most);
    stk_timer *timer STK_AUTO(stk_timer_freep) = stk_timer_new(gw->spec.loop, on_tick, &timer);
    on_tick(&timer);
    while (!done(gw) && stk_mono_before(stk_mono_now(), end))
        event_base_loop(stk_loop_base(gw->spec.loop), EVLOOP_ONCE);
}

static bool config_read(const stk_gateway *gw)
{
    return stk_gw_view_ready(gw->view);
}

/* State must not be closed by our owner while it still works for us. */
static bool nothing_told(const stk_gateway *gw)
{
    return gw->telling == 0;
}

static int check_auth(stk_gateway *gw, stk_err *err)
{
    bool loopback = stk_addr_is_loopback(gw->spec.listen);
    if (gw->spec.auth_none && loopback)
        return 0;
    if (gw->spec.auth_none)
        return stk_err_set(err, STK_E_CONFIG,
                           "auth: none is only allowed on loopback or a Unix socket, not on %s",
                           gw->spec.listen);
    if (gw->spec.tokens_file && stk_tokens_load(gw->spec.tokens_file, &gw->bootstrap, err) < 0)
        return -(int)err->code;
    if (gw->bootstrap.n)
        return 0;
    turn_until(gw, config_read, FIRST_READ); /* whether a token exists is on stk.config */
    if (stk_gw_view_ready(gw->view) && !stk_gw_view_has_tokens(gw->view))
        return stk_err_set(err, STK_E_CONFIG,
                           "no token is configured: make one (`stockade token create`), or say auth: none%s",
                           loopback ? "" : " and listen on loopback");
    return 0;
}

static int open_listener(stk_gateway *gw, stk_err *err)
{
    const stk_http_limits limits = {.body = (uint64_t)gw->spec.body_max, .connections = 4096};
    int fd = -1;
    int rc = stk_listen(gw->spec.listen, BACKLOG, &fd, err);
    if (rc < 0)
        return rc;
    stk_listen_text(fd, gw->address);
    gw->is_unix = strncmp(gw->address, "unix:", 5) == 0;
    rc = stk_http_server_new(stk_loop_base(gw->spec.loop), &limits, &stk_gw_http_ops, gw, &gw->server, err);
    if (rc == 0)
        rc = stk_http_server_listen(gw->server, fd, err);
    if (rc < 0)
        close(fd);
    return rc;
}

static void fill_defaults(stk_gateway_spec *spec)
{
    if (!spec->body_max)
        spec->body_max = STK_BODY_MAX;
    if (!spec->wait_default.ns)
        spec->wait_default = stk_sec(60);
    if (!spec->wait_most.ns)
        spec->wait_most = stk_sec(600);
}

int stk_gateway_new(const stk_gateway_spec *spec, stk_gateway **ret, stk_err *err)
{
    stk_err local;
    err = err ? err : &local;
    stk_gateway *gw = stk_xcalloc(1, sizeof(*gw));
    *gw = (stk_gateway){.spec = *spec, .refs = 1};
    gw->by_route = stk_xcalloc(stk_gw_nroutes * 6, sizeof(*gw->by_route));
    fill_defaults(&gw->spec);
    int rc = stk_gw_view_new(spec->bus, on_config, gw, &gw->view, err);
    if (rc == 0)
        rc = check_auth(gw, err);
    if (rc == 0)
        rc = open_listener(gw, err);
    if (rc < 0) {
        turn_until(gw, nothing_told, LAST_TURNS);
        stk_gateway_free(gw);
        return rc;
    }
    gw->sweep = stk_timer_new(spec->loop, on_sweep, gw);
    arm_sweep(gw);
    *ret = gw;
    return 0;
}

const char *stk_gateway_address(const stk_gateway *gw)
{
    return gw->address;
}

bool stk_gateway_quiet(stk_gateway *gw)
{
    if (!gw->draining) {
        gw->draining = true;
        stk_http_server_drain(gw->server);
        for (stk_gw_exchange *ex = gw->exchanges, *next; ex; ex = next) {
            next = ex->next;
            if (ex->interrupt)
                ex->interrupt(ex, false);
        }
    }
    return !gw->exchanges && !gw->sweeping && !gw->telling;
}

void stk_gateway_metrics(stk_gateway *gw, void (*fn)(stk_buf *out, void *arg), void *arg)
{
    if (gw->nextras < STK_GW_EXTRAS)
        gw->extras[gw->nextras++] = (stk_gw_extra){fn, arg};
}

void stk_gateway_free(stk_gateway *gw)
{
    if (!gw)
        return;
    gw->dead = true;
    if (gw->server)
        stk_http_server_free(gw->server);
    stk_gw_changes_drop(gw);
    if (gw->sweep)
        stk_timer_free(gw->sweep);
    if (gw->view)
        stk_gw_view_free(gw->view);
    gw->server = NULL;
    gw->view = NULL;
    gw->sweep = NULL;
    stk_gw_unref(gw);
}
