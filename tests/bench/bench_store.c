/* Audit rows stored per second: `bench_store sqlite|postgres N BATCH`. Rows are as workers write them, with
 * details. Per core = rows / CPU seconds of all threads of this process. PostgreSQL: STK_PG_CONNINFO, into
 * new schemas "bench…"; the floor is a bare COPY of the same rows, batches and columns into the same table.
 */
#include "proto/base/fd.h"
#include "proto/store/store_postgres.h"
#include "proto/store/store_sqlite.h"
#include <fcntl.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <sys/resource.h>

#define PARTITIONS 4
#define IN_FLIGHT  2 /* batches of each partition */

typedef struct lane {
    struct bench *bench;
    int32_t partition;
    int64_t sent;
    int waiting;
} lane;

typedef struct bench {
    stk_loop *loop;
    stk_store *store;
    int64_t n, stored;
    size_t batch;
    stk_wall begun;
    lane lanes[PARTITIONS];
    stk_audit_row *rows;
} bench;

static void send_one(lane *l);

static void on_done(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg)
{
    lane *l = arg;
    bench *b = l->bench;
    if (err) {
        fprintf(stderr, "bench_store: %s\n", err->detail);
        exit(1);
    }
    l->waiting--;
    b->stored += (int64_t)stored;
    if (b->stored >= b->n)
        stk_loop_stop(b->loop);
    else
        send_one(l);
}

static void send_one(lane *l)
{
    bench *b = l->bench;
    if (l->sent * PARTITIONS >= b->n)
        return;
    char id[STK_ID_SIZE] = "";
    for (size_t i = 0; i < b->batch; i++) {
        stk_audit_row *row = &b->rows[i];
        uint64_t n = (uint64_t)(l->sent + (int64_t)i) * PARTITIONS + (uint64_t)l->partition;
        row->time = stk_wall_add(b->begun, stk_us((int64_t)n * 100));
        if (i % 8 == 0)
            stk_audit_id(row->time, "run", "", "", n, id);
        snprintf(row->run, sizeof(row->run), "run%s", id + 3);
        stk_audit_id(row->time, row->run, row->assignment, row->action, n, row->id);
    }
    stk_store_batch batch = {.topic = STK_TOPIC_AUDIT,
                             .partition = l->partition,
                             .from = l->sent,
                             .to = l->sent + (int64_t)b->batch,
                             .rows = b->rows,
                             .nrows = b->batch};
    l->sent += (int64_t)b->batch;
    l->waiting++;
    stk_store_append(b->store, &batch, on_done, l);
}

static void bench_store_rows(stk_audit_row *rows, size_t n)
{
    static char details[] =
        "{\"host\":\"files.example.org\",\"port\":443,\"verdict\":\"deny\",\"reason\":\"not_listed\","
        "\"seq\":17,\"bytes_up\":0,\"bytes_down\":0}";
    stk_wall now = stk_wall_now();
    for (size_t i = 0; i < n; i++) {
        rows[i] = (stk_audit_row){.v = 1, .time = now, .details = {details, sizeof(details) - 1, true}};
        stk_audit_row *row = &rows[i];
        snprintf(row->action, sizeof(row->action), STK_AUDIT_EGRESS_DENY);
        snprintf(row->actor, sizeof(row->actor), "worker");
        snprintf(row->tenant, sizeof(row->tenant), "acme");
        snprintf(row->agent, sizeof(row->agent), "evaluator-%zu", i % 7);
        snprintf(row->backend, sizeof(row->backend), "oci");
        snprintf(row->isolation, sizeof(row->isolation), "container");
        stk_id_new("asg", now, row->assignment);
        stk_id_new("wrk", now, row->worker);
        stk_id_new("sbx", now, row->sandbox);
    }
}

static double bench_cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void run(bench *b, stk_store *store, double *ret_wall, double *ret_cpu)
{
    b->store = store;
    b->stored = 0;
    b->begun = stk_wall_now();
    double cpu = bench_cpu_seconds();
    stk_mono begun = stk_mono_now();
    for (int i = 0; i < PARTITIONS; i++) {
        b->lanes[i] = (lane){.bench = b, .partition = i};
        for (int k = 0; k < IN_FLIGHT; k++)
            send_one(&b->lanes[i]);
    }
    stk_loop_run(b->loop);
    *ret_wall = stk_span_sec(stk_mono_sub(stk_mono_now(), begun));
    *ret_cpu = bench_cpu_seconds() - cpu;
}

static int bench_sqlite(bench *b)
{
    char dir[] = "/var/tmp/stk-bench-XXXXXX", path[64];
    stk_err err = {0};
    stk_store_file *file;
    stk_store *store;
    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof(path), "%s/store.db", dir);
    if (stk_store_file_open(path, NULL, &file, &err) < 0 ||
        stk_store_sqlite_new(file, b->loop, &store, &err) < 0) {
        fprintf(stderr, "bench_store: %s\n", err.detail);
        return 1;
    }
    double wall, cpu;
    run(b, store, &wall, &cpu);
    printf("{\"name\":\"audit_rows_per_second_sqlite\",\"batch\":%zu,\"n\":%lld,\"value\":%.0f,\"per_core\":%"
           ".0f}\n",
           b->batch, (long long)b->stored, (double)b->stored / wall, (double)b->stored / cpu);
    stk_store_close(store);
    stk_store_file_close(file);
    return stk_rmtree(AT_FDCWD, dir, &err) < 0;
}

/* --- PostgreSQL */

static void sql(PGconn *conn, const char *text)
{
    PGresult *res = PQexec(conn, text);
    if (PQresultStatus(res) != PGRES_COMMAND_OK && PQresultStatus(res) != PGRES_TUPLES_OK &&
        PQresultStatus(res) != PGRES_COPY_IN && PQresultStatus(res) != PGRES_COPY_OUT) {
        fprintf(stderr, "bench_store: %s", PQerrorMessage(conn));
        exit(1);
    }
    PQclear(res);
}

/* The rows that our store wrote, from the server into memory once, then back into an empty copy of the
 * schema. */
static void bare_copy(const char *conninfo, size_t batch, int64_t n, double *ret_wall, double *ret_cpu)
{
    PGconn *conn = PQconnectdb(conninfo);
    stk_buf *batches = stk_xcalloc((size_t)n / batch + 2, sizeof(*batches));
    size_t nbatches = 0, rows = 0;
    sql(conn, "CREATE TABLE kept (LIKE audit)");
    sql(conn, "INSERT INTO kept SELECT * FROM audit");
    sql(conn, "COPY (SELECT * FROM kept) TO STDOUT (FORMAT text)");
    for (char *line; PQgetCopyData(conn, &line, 0) > 0; rows++, PQfreemem(line)) {
        if (rows % batch == 0)
            stk_buf_init(&batches[nbatches++], (size_t)1 << 30);
        (void)!stk_buf_text(&batches[nbatches - 1], line);
    }
    PQclear(PQgetResult(conn));
    sql(conn, "TRUNCATE audit");
    double cpu = bench_cpu_seconds();
    stk_mono begun = stk_mono_now();
    for (size_t i = 0; i < nbatches; i++) {
        sql(conn, "COPY audit FROM STDIN (FORMAT text)");
        if (PQputCopyData(conn, batches[i].p, (int)batches[i].n) != 1 || PQputCopyEnd(conn, NULL) != 1)
            exit(1);
        for (PGresult *res; (res = PQgetResult(conn)); PQclear(res))
            if (PQresultStatus(res) != PGRES_COMMAND_OK)
                exit(1);
    }
    *ret_wall = stk_span_sec(stk_mono_sub(stk_mono_now(), begun));
    *ret_cpu = bench_cpu_seconds() - cpu;
    for (size_t i = 0; i < nbatches; i++)
        stk_buf_done(&batches[i]);
    free(batches);
    PQfinish(conn);
}

static int bench_postgres(bench *b)
{
    const char *server = getenv("STK_PG_CONNINFO");
    char conninfo[1024], text[96];
    stk_err err = {0};
    stk_store_pg *pg;
    stk_store *store;
    PGconn *conn = PQconnectdb(server ? server : "");
    snprintf(text, sizeof(text), "CREATE SCHEMA bench_%d", getpid());
    sql(conn, text);
    snprintf(conninfo, sizeof(conninfo), "%s options='-c search_path=bench_%d'", server ? server : "",
             getpid());
    stk_store_postgres_spec spec = {.conninfo = conninfo};
    if (stk_store_postgres_open(&spec, &pg, &err) < 0 ||
        stk_store_postgres_new(pg, b->loop, &store, &err) < 0) {
        fprintf(stderr, "bench_store: %s\n", err.detail);
        return 1;
    }
    double wall, cpu, bare_wall, bare_cpu;
    run(b, store, &wall, &cpu);
    stk_store_close(store);
    stk_store_postgres_close(pg);
    bare_copy(conninfo, b->batch, b->stored, &bare_wall, &bare_cpu);
    printf("{\"name\":\"audit_rows_per_second_postgres\",\"batch\":%zu,\"n\":%lld,\"value\":%.0f,\"per_"
           "core\":%.0f,"
           "\"floor\":\"bare COPY\",\"floor_value\":%.0f,\"floor_per_core\":%.0f,\"ratio\":%.2f}\n",
           b->batch, (long long)b->stored, (double)b->stored / wall, (double)b->stored / cpu,
           (double)b->stored / bare_wall, (double)b->stored / bare_cpu, bare_wall / wall);
    snprintf(text, sizeof(text), "SET client_min_messages = error; DROP SCHEMA bench_%d CASCADE", getpid());
    sql(conn, text);
    PQfinish(conn);
    return 0;
}

int main(int argc, char **argv)
{
    stk_err err;
    bench b = {0};
    if (argc != 4 || stk_loop_new(&b.loop, &err) < 0) {
        fputs("usage: bench_store sqlite|postgres N BATCH\n", stderr);
        return 2;
    }
    b.n = strtoll(argv[2], NULL, 10);
    b.batch = (size_t)strtoul(argv[3], NULL, 10);
    b.rows = stk_xcalloc(b.batch, sizeof(*b.rows));
    bench_store_rows(b.rows, b.batch);
    int rc = strcmp(argv[1], "postgres") == 0 ? bench_postgres(&b) : bench_sqlite(&b);
    free(b.rows);
    stk_loop_free(b.loop);
    return rc;
}
