#include "egress-proxy/records.h"
#include "egress-proxy/seen.h"
#include <errno.h>
#include <event2/event_struct.h>
#include <stdio.h>

#define LINE_MOST ((size_t)8192)

typedef struct tally {
    int64_t count, bytes_in, bytes_out;
    char hosts[STK_HOST_MAX]; /* the first few, by commas */
    bool deny;
} tally;

struct stk_records {
    int fd;
    stk_ctl *ctl;
    char run[STK_ID_SIZE];
    int64_t seq, rows, acked, version;
    bool torn; /* the journal ends in half a line */
    stk_seen seen;
    TAILQ_HEAD(, stk_ack_wait) waiting;
    tally tallies[STK_REASON_COUNT];
    struct event second;
    stk_buf line;
};

static void on_second(evutil_socket_t fd, short what, void *arg)
{
    stk_records_flush(arg);
}

stk_records *stk_records_new(struct event_base *base, int fd, stk_ctl *ctl)
{
    stk_records *records = stk_xcalloc(1, sizeof(*records));
    records->fd = fd;
    records->ctl = ctl;
    TAILQ_INIT(&records->waiting);
    evtimer_assign(&records->second, base, on_second, records);
    stk_buf_init(&records->line, LINE_MOST);
    return records;
}

void stk_records_free(stk_records *records)
{
    evtimer_del(&records->second);
    stk_seen_clear(&records->seen);
    stk_buf_done(&records->line);
    free(records);
}

void stk_records_run(stk_records *records, const char *run)
{
    if (strcmp(records->run, run) == 0)
        return;
    stk_records_flush(records);
    stk_seen_clear(&records->seen);
    records->rows = 0;
    snprintf(records->run, sizeof(records->run), "%s", run);
}

/* One write: O_APPEND keeps rows of one file apart, a short write is told by the next row starting on a new
 * line. */
static int append(stk_records *records, stk_err *err)
{
    stk_buf *line = &records->line;
    if (records->fd < 0)
        return 0;
    if (records->torn && write(records->fd, "\n", 1) != 1)
        return stk_err_errno(err, errno, "append to the journal");
    records->torn = false;
    ssize_t n;
    do
        n = write(records->fd, line->p, line->n);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)line->n)
        return 0;
    records->torn = n > 0;
    return stk_err_errno(err, n < 0 ? errno : ENOSPC, "append to the journal");
}

static int emit(stk_records *records, stk_egress_record *rec, bool must, stk_err *err)
{
    rec->seq = records->seq + 1;
    rec->time = stk_wall_now();
    memcpy(rec->run, records->run, sizeof(rec->run));
    if (records->fd < 0 && !records->ctl) {
        records->seq++;
        return 0;
    }
    stk_buf_reset(&records->line);
    int rc = stk_egress_encode(rec, &records->line, err);
    if (rc < 0)
        return rc;
    stk_buf_byte(&records->line, '\n');
    rc = append(records, err);
    if (rc < 0 && must)
        return rc;
    records->seq++;
    if (records->ctl)
        stk_ctl_record(records->ctl, stk_str_n(records->line.p, records->line.n - 1));
    return rc;
}

static void add_sample(tally *t, const char *host)
{
    size_t have = strlen(t->hosts), n = strlen(host);
    if (!n || have + n + 2 > sizeof(t->hosts) || strstr(t->hosts, host))
        return;
    snprintf(t->hosts + have, sizeof(t->hosts) - have, "%s%s", have ? "," : "", host);
}

static void count(stk_records *records, stk_reason reason, stk_egress_record *rec)
{
    tally *t = &records->tallies[reason];
    t->count++;
    t->bytes_in += rec->bytes_in;
    t->bytes_out += rec->bytes_out;
    t->deny = rec->verdict[0] == 'd';
    add_sample(t, rec->host);
    records->version = rec->policy_version;
    rec->seq = 0;
    if (!evtimer_pending(&records->second, NULL))
        evtimer_add(&records->second, &(struct timeval){.tv_sec = 1});
}

void stk_records_flush(stk_records *records)
{
    evtimer_del(&records->second);
    for (size_t i = 0; i < STK_REASON_COUNT; i++) {
        tally *t = &records->tallies[i];
        if (!t->count)
            continue;
        stk_egress_record rec = {.kind = "summary",
                                 .count = t->count,
                                 .policy_version = records->version,
                                 .bytes_in = t->bytes_in,
                                 .bytes_out = t->bytes_out};
        memcpy(rec.host, t->hosts, sizeof(rec.host));
        snprintf(rec.verdict, sizeof(rec.verdict), "%s", t->deny ? "deny" : "allow");
        snprintf(rec.reason, sizeof(rec.reason), "%s", stk_reason_code((stk_reason)i));
        stk_err err;
        emit(records, &rec, false, &err);
        *t = (tally){0};
    }
}

/* A close belongs to its decision: exact when that was, counted when that was. */
static bool is_exact(stk_records *records, const stk_egress_record *rec)
{
    if (rec->kind[0] == 'c')
        return rec->open_seq != 0;
    return rec->first || records->rows < STK_RECORDS_EXACT;
}

int stk_records_add(stk_records *records, stk_reason reason, stk_egress_record *rec, stk_err *err)
{
    snprintf(rec->reason, sizeof(rec->reason), "%s", stk_reason_code(reason));
    bool deny = stk_reason_kind_of(reason) == STK_REASON_DENY && rec->kind[0] != 'c';
    snprintf(rec->verdict, sizeof(rec->verdict), "%s", deny ? "deny" : "allow");
    if (!is_exact(records, rec)) {
        count(records, reason, rec);
        return 0;
    }
    records->rows++;
    return emit(records, rec, reason == STK_R_ALLOWED, err);
}

int stk_records_allow(stk_records *records, stk_egress_record *rec, int64_t *ret_wait, stk_err *err)
{
    int64_t *seen = stk_seen_get(&records->seen, rec->host);
    rec->first = !seen;
    int rc = stk_records_add(records, STK_R_ALLOWED, rec, err);
    if (rc < 0)
        return rc;
    if (!seen)
        stk_seen_put(&records->seen, rec->host, rec->seq, STK_RECORDS_HOSTS_MAX);
    int64_t wait = seen ? *seen : rec->seq;
    *ret_wait = records->ctl && wait > records->acked ? wait : 0;
    return 0;
}

void stk_records_wait(stk_records *records, stk_ack_wait *wait, int64_t seq)
{
    wait->seq = seq;
    TAILQ_INSERT_TAIL(&records->waiting, wait, link);
}

void stk_records_forget(stk_records *records, stk_ack_wait *wait)
{
    if (!wait->seq)
        return;
    wait->seq = 0;
    TAILQ_REMOVE(&records->waiting, wait, link);
}

void stk_records_acked(stk_records *records, int64_t seq)
{
    if (seq > records->seq || seq <= records->acked)
        return;
    records->acked = seq;
    for (;;) {
        stk_ack_wait *wait = TAILQ_FIRST(&records->waiting);
        while (wait && wait->seq > seq)
            wait = TAILQ_NEXT(wait, link);
        if (!wait)
            return;
        stk_records_forget(records, wait);
        wait->on_ack(wait->arg);
    }
}
