#include "proto/message/request.h"
#include "proto/state/state_sdb.h"
#include <stdio.h>

#define LABELS_MAX 65536

static void copy(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
}
#define COPY(array, text) copy(array, sizeof(array), text)

void stk__run_fresh(stk_srun *run, const char *id, const char *tenant, const char *agent, const char *kind,
                    const char *retry, int64_t priority, stk_wall submitted, stk_wall deadline)
{
    *run = (stk_srun){.lane = -1, .part = -1};
    COPY(run->id, id);
    COPY(run->tenant, tenant);
    COPY(run->agent, agent);
    COPY(run->kind, kind[0] ? kind : "run");
    COPY(run->retry, retry[0] ? retry : "never");
    run->priority = priority;
    run->submitted = submitted.ns;
    run->deadline = deadline.ns;
}

static void read_row(sqlite3_stmt *stmt, stk_srun *run)
{
    int c = 0;
    run->seq = sqlite3_column_int64(stmt, c++);
    STK_COL_TEXT(stmt, c++, run->tenant);
    STK_COL_TEXT(stmt, c++, run->agent);
    STK_COL_TEXT(stmt, c++, run->kind);
    STK_COL_TEXT(stmt, c++, run->retry);
    run->state = (stk_run_state)sqlite3_column_int(stmt, c++);
    STK_COL_TEXT(stmt, c++, run->reason);
    STK_COL_TEXT(stmt, c++, run->assignment);
    STK_COL_TEXT(stmt, c++, run->worker);
    STK_COL_TEXT(stmt, c++, run->incarnation);
    STK_COL_TEXT(stmt, c++, run->sandbox);
    run->lane = sqlite3_column_int(stmt, c++);
    run->slot = sqlite3_column_int(stmt, c++) != 0;
    run->cancel = sqlite3_column_int(stmt, c++) != 0;
    run->attempt = sqlite3_column_int64(stmt, c++);
    run->attempts = sqlite3_column_int64(stmt, c++);
    run->losses = sqlite3_column_int64(stmt, c++);
    run->priority = sqlite3_column_int64(stmt, c++);
    run->submitted = sqlite3_column_int64(stmt, c++);
    run->deadline = sqlite3_column_int64(stmt, c++);
    run->started = sqlite3_column_int64(stmt, c++);
    run->finished = sqlite3_column_int64(stmt, c++);
    run->part = sqlite3_column_int(stmt, c++);
    run->off = sqlite3_column_int64(stmt, c);
}

int stk__run_load(stk_sdb *db, const char *id, stk_srun *ret)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) = STK_SQL(
        db,
        "SELECT seq, tenant, agent, kind, retry, state, reason, assignment, worker, incarnation, sandbox,"
        " lane, slot, cancel, attempt, attempts, losses, priority, submitted, deadline, started, finished,"
        " part, off FROM runs WHERE id = ?1",
        V_TEXT(id));
    int rc = stk__sql_next(db, stmt);
    if (rc < 0)
        return rc;
    *ret = (stk_srun){.lane = -1, .part = -1};
    if (rc > 0)
        read_row(stmt, ret);
    COPY(ret->id, id);
    return 0;
}

static int count(stk_sdb *db, const char *tenant, stk_run_state from, stk_run_state to)
{
    int64_t d[STK_RUN_STATES] = {0};
    d[from]--;
    d[to]++;
    return STK_SQL_DO(db,
                      "INSERT INTO tenants VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(tenant) DO UPDATE SET"
                      " s1 = s1 + ?2, s2 = s2 + ?3, s3 = s3 + ?4, s4 = s4 + ?5, s5 = s5 + ?6",
                      V_TEXT(tenant), V_INT(d[STK_RUN_SUBMITTED]), V_INT(d[STK_RUN_QUEUED]),
                      V_INT(d[STK_RUN_ASSIGNED]), V_INT(d[STK_RUN_RUNNING]), V_INT(d[STK_RUN_FINISHED]));
}

int stk__tenant_counts(stk_sdb *db, const char *tenant, int64_t *ret_unfinished, int64_t *ret_running)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT s1 + s2 + s3 + s4, s3 + s4 FROM tenants WHERE tenant = ?1", V_TEXT(tenant));
    int rc = stk__sql_next(db, stmt);
    *ret_unfinished = rc > 0 ? sqlite3_column_int64(stmt, 0) : 0;
    *ret_running = rc > 0 ? sqlite3_column_int64(stmt, 1) : 0;
    return rc < 0 ? rc : 0;
}

static int labels_text(const stk_map *labels, stk_buf *out, stk_err *err)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    for (size_t i = 0; i < labels->n; i++) {
        stk_jw_key_str(&w, stk_bytes_view(&labels->v[i].key));
        stk_jw_str(&w, stk_bytes_view(&labels->v[i].value));
    }
    stk_jw_close(&w, '}');
    return stk_jw_end(&w, err);
}

int stk__labels_decode(stk_str json, stk_map *ret, stk_err *err)
{
    if (!json.n)
        return 0;
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    if (stk_json_parse(json, NULL, &doc, err) < 0)
        return stk_err_wrap(err, "labels of a run");
    for (stk_jv v = stk_jv_first(stk_json_root(doc)); stk_jv_type(v) != STK_J_NONE; v = stk_jv_next(v))
        stk_map_add(ret, stk_jv_key(v), stk_jv_str(v));
    return 0;
}

int stk__run_labels(stk_sdb *db, int64_t seq, stk_map *ret)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT labels FROM runs WHERE seq = ?1", V_INT(seq));
    int rc = stk__sql_next(db, stmt);
    return rc > 0 ? stk__labels_decode(stk_db_blob(stmt, 0), ret, db->err) : rc;
}

int stk__run_insert(stk_sdb *db, stk_srun *run, const stk_map *labels, const uint8_t *key_hash,
                    const uint8_t *body_hash)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(LABELS_MAX);
    bool named = strcmp(run->kind, "plan") == 0 || stk_agent_ok(stk_str_of(run->agent));
    if (!stk_id_valid("run", stk_str_of(run->id)) || !stk_tenant_ok(stk_str_of(run->tenant)) || !named)
        return stk_err_set(db->err, STK_E_FIELD, "a run has an id, a tenant and an agent");
    if (labels->n && labels_text(labels, &text, db->err) < 0)
        return stk_err_wrap(db->err, "labels");
    run->state = STK_RUN_SUBMITTED;
    if (STK_SQL_DO(db,
                   "INSERT INTO runs(id, tenant, agent, kind, retry, priority, submitted, deadline, labels,"
                   " key_hash, body_hash, state, since) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
                   "?12, ?13)",
                   V_TEXT(run->id), V_TEXT(run->tenant), V_TEXT(run->agent), V_TEXT(run->kind),
                   V_TEXT(run->retry), V_INT(run->priority), V_INT(run->submitted), V_INT(run->deadline),
                   text.n ? (stk_val){'t', 0, stk_buf_view(&text)} : V_NULL(),
                   key_hash ? V_BLOB(stk_str_n(key_hash, STK_SHA256)) : V_NULL(),
                   body_hash ? V_BLOB(stk_str_n(body_hash, STK_SHA256)) : V_NULL(), V_INT(STK_RUN_SUBMITTED),
                   V_INT(db->now)) < 0)
        return stk_err_wrap(db->err, "insert run %s", run->id);
    run->seq = sqlite3_last_insert_rowid(db->db);
    stk__note_of(db, "run", run->id);
    return count(db, run->tenant, STK_RUN_NONE, STK_RUN_SUBMITTED);
}

int stk__run_move(stk_sdb *db, stk_srun *run, stk_run_event event)
{
    stk_run_state to = stk_run_next(run->state, event);
    if (to == STK_RUN_NONE)
        return stk_err_set(db->err, STK_E_INTERNAL, "run %s: event %d is not allowed while it is %s", run->id,
                           (int)event, stk_run_state_text(run->state));
    int rc = count(db, run->tenant, run->state, to);
    run->state = to;
    stk__note_of(db, "run", run->id);
    return rc;
}

int stk__run_save(stk_sdb *db, stk_srun *run)
{
    return STK_SQL_DO(
        db,
        "UPDATE runs SET state = ?2, since = ?3, reason = ?4, assignment = ?5, worker = ?6,"
        " incarnation = ?7, sandbox = ?8, lane = ?9, slot = ?10, cancel = ?11, attempt = ?12, attempts = ?13,"
        " losses = ?14, started = ?15, finished = ?16, part = ?17, off = ?18 WHERE seq = ?1",
        V_INT(run->seq), V_INT(run->state), V_INT(db->now), V_TEXT(run->reason), V_TEXT(run->assignment),
        V_TEXT(run->worker), V_TEXT(run->incarnation), V_TEXT(run->sandbox), V_INT(run->lane),
        V_INT(run->slot), V_INT(run->cancel), V_INT(run->attempt), V_INT(run->attempts), V_INT(run->losses),
        V_INT(run->started), V_INT(run->finished), V_INT(run->part), V_INT(run->off));
}

int stk__run_remove(stk_sdb *db, const stk_srun *run)
{
    if (STK_SQL_DO(db, "DELETE FROM runs WHERE seq = ?1", V_INT(run->seq)) < 0 ||
        STK_SQL_DO(db, "DELETE FROM results WHERE seq = ?1", V_INT(run->seq)) < 0 ||
        stk__record_drop(db, run->seq) < 0)
        return -(int)db->err->code;
    stk__note_of(db, "run", run->id);
    return count(db, run->tenant, run->state, STK_RUN_NONE);
}

int stk__run_free_slot(stk_sdb *db, stk_srun *run)
{
    if (!run->slot)
        return 0;
    run->slot = false;
    stk__note(db, "capacity");
    return STK_SQL_DO(db, "UPDATE workers SET used = used - 1 WHERE worker = ?1 AND incarnation = ?2",
                      V_TEXT(run->worker), V_TEXT(run->incarnation));
}

int stk__record_get(stk_sdb *db, int64_t seq, stk_bytes *ret)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT record FROM records WHERE seq = ?1", V_INT(seq));
    int rc = stk__sql_next(db, stmt);
    if (rc > 0)
        stk__col_bytes(stmt, 0, ret);
    return rc < 0 ? rc : 0;
}

int stk__record_drop(stk_sdb *db, int64_t seq)
{
    return STK_SQL_DO(db, "DELETE FROM records WHERE seq = ?1", V_INT(seq));
}
