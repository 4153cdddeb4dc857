/* The reader thread: fetches, and batches for consumers that are behind. */
#include "proto/bus/bus_sqlite_impl.h"

#define READ_ROWS  256
#define READ_BYTES (4 << 20)

void stk__bus_read_queue(stk_bus_file *file, stk_bus_read *read)
{
    read->next = NULL;
    *file->reads_tail = read;
    file->reads_tail = &read->next;
    pthread_cond_signal(&file->read_wake);
}

typedef struct rows {
    stk_bus_rec *recs[READ_ROWS];
    int n;
    bool all; /* nothing more was there */
} rows;

static int read_rows(stk_bus_file *file, const stk_bus_read *read, int most, rows *ret, stk_err *err)
{
    sqlite3_stmt *stmt = file->read_stmt;
    sqlite3_bind_int64(stmt, 1, read->topic->id);
    sqlite3_bind_int(stmt, 2, read->partition);
    sqlite3_bind_int64(stmt, 3, read->from);
    sqlite3_bind_int(stmt, 4, most);
    size_t bytes = 0;
    int rc;
    while ((rc = stk_db_step(stmt, err)) == 1) {
        stk_bus_rec *rec = stk__bus_rec_load(read->topic, read->partition, sqlite3_column_int64(stmt, 0),
                                             (stk_wall){sqlite3_column_int64(stmt, 1)}, stk_db_blob(stmt, 2),
                                             stk_db_blob(stmt, 3), stk_db_blob(stmt, 4));
        ret->recs[ret->n++] = rec;
        bytes += stk__bus_rec_size(rec);
        if (bytes >= READ_BYTES) {
            sqlite3_reset(stmt);
            return 0;
        }
    }
    ret->all = rc == 0 && ret->n < most;
    return rc;
}

void stk__bus_fetched(stk_bus_read *read)
{
    stk_bus_handle *bus = read->bus;
    if (!bus) {
        stk__bus_rec_unref(read->rec);
        free(read);
        return;
    }
    read->next = NULL;
    stk_bus_read **at = &bus->fetched;
    while (*at)
        at = &(*at)->next;
    *at = read;
    bus->nfetches--;
    bus->need_wake = true;
}

static void give_fetch(stk_bus_read *read, rows *found, int rc)
{
    if (rc == 0 && found->n == 1 && found->recs[0]->offset == read->from) {
        read->rec = stk__bus_rec_ref(found->recs[0]);
    } else if (rc == 0) {
        stk_err_set(&read->err, STK_E_NOT_FOUND, "%s/%d: offset %lld is not there", read->topic->name,
                    read->partition, (long long)read->from);
    }
    stk__bus_fetched(read);
}

static void give_consumer(stk_bus_read *read, rows *found, int rc)
{
    stk_bus_reader *c = read->consumer;
    stk_bus_sub *sub = NULL;
    for (int32_t i = 0; c && i < c->nsubs; i++)
        if (c->subs[i].partition == read->partition)
            sub = &c->subs[i];
    if (sub && sub->state == STK_SUB_LIVE && sub->want == read->from) {
        for (int i = 0; i < found->n; i++) {
            sub->want = found->recs[i]->offset;
            stk__bus_append(sub, found->recs[i]);
        }
        if (found->all && sub->want < read->end)
            sub->want = read->end;
        if (rc < 0) {
            sub->broken = true;
            c->failure = c->failure ? c->failure : stk_xcalloc(1, sizeof(*c->failure));
            *c->failure = read->err;
        }
    }
    if (c) {
        c->read = NULL;
        stk__bus_flag(c);
    }
    free(read);
}

static void serve(stk_bus_file *file, stk_bus_read *read)
{
    rows found = {.n = 0};
    int most = read->done ? 1 : READ_ROWS;
    int rc = read_rows(file, read, most, &found, &read->err);
    pthread_mutex_lock(&file->lock);
    file->serving = NULL;
    if (read->done)
        give_fetch(read, &found, rc);
    else
        give_consumer(read, &found, rc);
    stk__bus_wake(file);
    pthread_cond_broadcast(&file->settled);
    pthread_mutex_unlock(&file->lock);
    for (int i = 0; i < found.n; i++)
        stk__bus_rec_unref(found.recs[i]);
}

void *stk__bus_reader_main(void *arg)
{
    stk_bus_file *file = arg;
    for (;;) {
        pthread_mutex_lock(&file->lock);
        while (!file->reads && !file->stop)
            pthread_cond_wait(&file->read_wake, &file->lock);
        stk_bus_read *read = file->reads;
        if (read && !(file->reads = read->next))
            file->reads_tail = &file->reads;
        file->serving = read;
        pthread_mutex_unlock(&file->lock);
        if (!read)
            return NULL;
        serve(file, read);
    }
}

void stk__bus_fetch(stk_bus *bus, const char *topic, int32_t partition, int64_t offset,
                    void (*done)(const stk_bus_msg *msg, const stk_err *err, void *arg), void *arg)
{
    stk_bus_handle *h = STK_CONTAINER(bus, stk_bus_handle, base);
    stk_bus_file *file = h->file;
    const stk_bus_topic_state *known = stk__bus_topic(file, topic);
    stk_bus_read *read = stk_xcalloc(1, sizeof(*read));
    *read = (stk_bus_read){
        .topic = known, .partition = partition, .from = offset, .bus = h, .done = done, .arg = arg};
    pthread_mutex_lock(&file->lock);
    h->nfetches++;
    if (!known || partition < 0 || partition >= known->nparts)
        stk_err_set(&read->err, STK_E_NOT_FOUND, "no topic %s with partition %d", topic, partition);
    else if (h->closing)
        stk_err_set(&read->err, STK_E_UNAVAILABLE, "the bus is closing");
    if (read->err.code) {
        stk__bus_fetched(read);
        stk__bus_wake(file);
    } else {
        stk__bus_read_queue(file, read);
    }
    pthread_mutex_unlock(&file->lock);
}
