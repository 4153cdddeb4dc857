#include "tests/conformance/store/postgres.h"
#include <libpq-fe.h>

static void ignore_notice(void *arg, const PGresult *res)
{
}

const char *served_sql(const served *s, const char *sql)
{
    static char first[256];
    PGconn *conn = PQconnectdb(s->conninfo);
    PQsetNoticeReceiver(conn, ignore_notice, NULL);
    PGresult *res = PQexec(conn, sql);
    if (PQresultStatus(res) != PGRES_COMMAND_OK && PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    snprintf(first, sizeof(first), "%s", PQntuples(res) > 0 ? PQgetvalue(res, 0, 0) : PQcmdTuples(res));
    PQclear(res);
    PQfinish(conn);
    return first;
}

void served_open(served *s)
{
    stk_err err = {0};
    stk_store_postgres_spec spec = {
        .conninfo = s->conninfo, .timeout = stk_sec(10), .ring = s->ring, .read_only = s->read_only};
    if (stk_store_postgres_open(&spec, &s->pg, &err) < 0)
        fail_msg("open: %s", err.detail);
}

static void *make(void)
{
    static int n;
    const char *server = getenv("STK_PG_CONNINFO");
    served *s = stk_xcalloc(1, sizeof(*s));
    char sql[64];
    if (!server)
        fail_msg("STK_PG_CONNINFO is not set: run_postgres.py starts a server");
    snprintf(s->schema, sizeof(s->schema), "world_%d", ++n);
    snprintf(s->conninfo, sizeof(s->conninfo), "%s options='-c search_path=%s'", server, s->schema);
    snprintf(sql, sizeof(sql), "CREATE SCHEMA %s", s->schema);
    served_sql(s, sql);
    served_open(s);
    return s;
}

static stk_store *open_handle(void *self, stk_loop *loop)
{
    stk_store *store = NULL;
    stk_err err;
    assert_int_equal(stk_store_postgres_new(((served *)self)->pg, loop, &store, &err), 0);
    return store;
}

static void restart(void *self)
{
    stk_store_postgres_close(((served *)self)->pg);
    served_open(self);
}

static void hurt(void *self, damage what, int32_t partition, int64_t seq)
{
    static const char *const sql[] = {
        [FLIP_BYTE] = "UPDATE audit SET row = convert_to(replace(convert_from(row, 'UTF8'), 'worker', "
                      "'walker'), 'UTF8')",
        [FLIP_HASH] = "UPDATE audit SET hash = decode(repeat('00', 32), 'hex')",
        [DROP_ROW] = "DELETE FROM audit",
        [CHANGE_COLUMN] = "UPDATE audit SET tenant = 'hidden'",
    };
    char text[256];
    snprintf(text, sizeof(text), "%s WHERE partition = %d AND seq = %lld", sql[what], partition,
             (long long)seq);
    assert_string_equal(served_sql(self, text), "1");
}

static void destroy(void *self)
{
    served *s = self;
    char sql[64];
    stk_store_postgres_close(s->pg);
    snprintf(sql, sizeof(sql), "DROP SCHEMA %s CASCADE", s->schema);
    served_sql(s, sql);
    free(s);
}

const store_factory served_factory = {make, open_handle, restart, hurt, destroy};

void server_order(const char *order)
{
    const char *text = getenv("STK_PG_CONTROL");
    char told[8] = "";
    int fd = text ? (int)strtol(text, NULL, 10) : -1;
    char line[16];
    int n = snprintf(line, sizeof(line), "%s\n", order);
    assert_int_equal(write(fd, line, (size_t)n), n);
    assert_int_equal(read(fd, told, sizeof(told) - 1), 3);
    assert_string_equal(told, "ok\n");
}
