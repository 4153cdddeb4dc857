/* One connection: opened, watched, never waited for longer than its timeout. */
#include "proto/store/store_postgres_impl.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#define CONNECT_TIME stk_sec(6)
#define PAUSE_FIRST  100LL /* ms */
#define PAUSE_MOST   5000LL

int stk__pg_closed(stk_pg_link *link, stk_err *err, const char *what)
{
    const char *text = PQerrorMessage(link->conn);
    size_t n = text ? strcspn(text, "\n") : 0;
    return stk_err_set(err, STK_E_UNAVAILABLE, "PostgreSQL: %s%s%.*s", what, n ? ": " : "", (int)n,
                       n ? text : "");
}

/* 0 when the socket is ready for one of `events`. */
int stk__pg_wait(stk_pg_link *link, short events, stk_err *err)
{
    struct pollfd fds[2] = {{PQsocket(link->conn), events, 0}, {link->stop_fd, POLLIN, 0}};
    for (;;) {
        int64_t ms = stk_span_ms(stk_mono_sub(link->until, stk_mono_now()));
        if (fds[0].fd < 0)
            return stk__pg_closed(link, err, "no connection");
        int n = poll(fds, 2, ms > 0 ? (int)stk_min((size_t)ms + 1, 60000) : 0);
        if (n < 0 && errno != EINTR)
            return stk_err_errno(err, errno, "poll");
        if (n > 0 && fds[1].revents)
            return stk_err_set(err, STK_E_UNAVAILABLE, "the store is closing");
        if (n > 0)
            return 0;
        if (!stk_mono_before(stk_mono_now(), link->until))
            return stk_err_set(err, STK_E_UNAVAILABLE, "PostgreSQL did not answer in time");
    }
}

static void ignore_notice(void *arg, const PGresult *res)
{
}

static PGconn *start_connecting(const stk_pg_link *link)
{
    static const char *const defaults[][2] = {
        {"connect_timeout", "5"},    {"keepalives_idle", "10"},     {"keepalives_interval", "5"},
        {"keepalives_count", "3"},   {"tcp_user_timeout", "20000"}, {"application_name", "stockade"},
        {"client_encoding", "UTF8"},
    };
    const char *names[64] = {0}, *values[64] = {0};
    size_t n = 0;
    for (; n < STK_COUNT(defaults); n++) {
        names[n] = defaults[n][0];
        values[n] = defaults[n][1];
    }
    if (link->writer) {
        names[n] = "target_session_attrs";
        values[n++] = "read-write";
    }
    PQconninfoOption *given = PQconninfoParse(link->conninfo, NULL);
    for (const PQconninfoOption *o = given; o && o->keyword && n < STK_COUNT(names) - 1; o++)
        if (o->val) {
            names[n] = o->keyword;
            values[n++] = o->val;
        }
    PGconn *conn = PQconnectStartParams(names, values, 0);
    PQconninfoFree(given);
    return conn;
}

static int finish_connecting(stk_pg_link *link, stk_err *err)
{
    link->until = stk_mono_add(stk_mono_now(), CONNECT_TIME);
    if (!link->conn || PQstatus(link->conn) == CONNECTION_BAD)
        return stk__pg_closed(link, err, "connect");
    for (;;) {
        PostgresPollingStatusType step = PQconnectPoll(link->conn);
        if (step == PGRES_POLLING_OK)
            return 0;
        if (step == PGRES_POLLING_FAILED)
            return stk__pg_closed(link, err, "connect");
        int rc = stk__pg_wait(link, step == PGRES_POLLING_READING ? POLLIN : POLLOUT, err);
        if (rc < 0)
            return rc;
    }
}

static int prepare_session(stk_pg_link *link, stk_err *err)
{
    char sql[640];
    int64_t ms = stk_span_ms(link->timeout);
    PQsetNoticeReceiver(link->conn, ignore_notice, NULL);
    if (PQsetnonblocking(link->conn, 1) < 0)
        return stk__pg_closed(link, err, "set up");
    snprintf(sql, sizeof(sql),
             "SET client_min_messages = error; SET statement_timeout = %" PRId64
             "; SET lock_timeout = %" PRId64 "; SET idle_in_transaction_session_timeout = %" PRId64
             "; SET enable_seqscan = %s; SET default_transaction_read_only = %s; SELECT "
             "set_config('synchronous_commit', 'on', "
             "false) WHERE current_setting('synchronous_commit') = 'off'",
             ms, ms, ms * 2, link->writer ? "off" : "on", link->read_only ? "on" : "off");
    return stk__pg_run(link, sql, err);
}

/* After the n-th failure in a row; the first one is tried again at once. */
static stk_span pause_after(unsigned failures)
{
    if (failures < 2)
        return stk_ms(0);
    int64_t most = PAUSE_FIRST << stk_min(failures - 2, 10);
    uint16_t jitter;
    stk_random(&jitter, sizeof(jitter));
    most = most < PAUSE_MOST ? most : PAUSE_MOST;
    return stk_ms(most / 2 + most * jitter / (2 * 65536));
}

void stk__pg_link_drop(stk_pg_link *link, const stk_err *why)
{
    if (link->conn)
        PQfinish(link->conn);
    link->conn = NULL;
    link->nmonths = 0;
    link->why = *why;
    link->failures++;
    link->retry_at = stk_mono_add(stk_mono_now(), pause_after(link->failures));
}

/* Sees what arrived while it was idle: a server that went away has closed it. */
static bool alive(stk_pg_link *link)
{
    struct pollfd fd = {PQsocket(link->conn), POLLIN, 0};
    if (poll(&fd, 1, 0) > 0 && PQconsumeInput(link->conn) == 0)
        return false;
    return PQstatus(link->conn) == CONNECTION_OK;
}

int stk__pg_link_up(stk_pg_link *link, stk_err *err)
{
    if (link->conn && !alive(link)) {
        stk_err lost;
        stk__pg_closed(link, &lost, "the connection broke");
        stk__pg_link_drop(link, &lost);
    }
    if (link->conn)
        return 0;
    if (stk_mono_before(stk_mono_now(), link->retry_at)) {
        *err = link->why;
        return -(int)err->code;
    }
    link->conn = start_connecting(link);
    int rc = finish_connecting(link, err);
    if (rc == 0)
        rc = prepare_session(link, err);
    if (rc == 0)
        rc = stk__pg_migrate(link, err);
    if (rc < 0)
        stk__pg_link_drop(link, err);
    else
        link->failures = 0;
    return rc;
}

int stk__pg_link_init(stk_pg_link *link, const stk_store_postgres_spec *spec, bool writer, stk_err *err)
{
    char *why = NULL;
    PQconninfoOption *parsed = PQconninfoParse(spec->conninfo, &why);
    if (!parsed) {
        stk_err_set(err, STK_E_CONFIG, "PostgreSQL's connection string: %s", why ? why : "out of memory");
        PQfreemem(why);
        return -STK_E_CONFIG;
    }
    PQconninfoFree(parsed);
    *link = (stk_pg_link){.conninfo = stk_xstrdup(spec->conninfo),
                          .timeout = spec->timeout.ns > 0 ? spec->timeout : stk_sec(30),
                          .writer = writer,
                          .read_only = spec->read_only,
                          .stop_fd = -1};
    return 0;
}

void stk__pg_link_done(stk_pg_link *link)
{
    if (link->conn)
        PQfinish(link->conn);
    free(link->conninfo);
    *link = (stk_pg_link){.stop_fd = -1};
}
