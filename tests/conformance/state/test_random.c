/* 20,000 random operations against a model. Printed seed; STK_SEED=<n> repeats one.
 *
 * The model knows each run's state, assignment and holder from the outcomes alone. After every step the
 * adapter's row must agree, and the invariants hold: one terminal state per run, used slots = assigned +
 * running, no sandbox given twice. */
#include "proto/state/decide.h"
#include "tests/conformance/state/rig.h"

enum { STEPS = 20000, RUNS = 24, WORKERS = 4, SLOTS = 4, SANDBOXES = STEPS };

typedef struct mrun {
    int generation; /* of the name: a finished run's place is used again */
    stk_run_state state;
    int assignment; /* 0 = none */
    int worker, incarnation;
    bool cancel, always;
    int ended; /* terminal states seen */
} mrun;

typedef struct mworker {
    int incarnation; /* newest that joined */
    bool there;
    int64_t until;
} mworker;

typedef struct model {
    rig *r;
    unsigned seed;
    mrun runs[RUNS];
    mworker workers[WORKERS];
    int assignments, incarnations, sandboxes;
    bool given[SANDBOXES];
    int64_t now, reaped;
    int finished;
} model;

static unsigned rnd(model *m, unsigned n)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (m->seed >> 10) % n;
}

static const char *name_of(const char *prefix, int n)
{
    static char ring[16][32];
    static unsigned at;
    char *out = ring[at++ % 16];
    snprintf(out, 32, "%s-%d", prefix, n);
    return n || strcmp(prefix, "asg") != 0 ? out : "";
}

static const char *run_name(const model *m, int i)
{
    return name_of("run", i + m->runs[i].generation * RUNS);
}

static const char *inc_name(int worker, int incarnation)
{
    return name_of("inc", worker * 1000000 + incarnation);
}

static bool live(const model *m, int w)
{
    return m->workers[w].there && m->workers[w].until > m->now;
}

static int64_t used(const model *m, int w)
{
    int64_t n = 0;
    for (int i = 0; i < RUNS; i++)
        n += (m->runs[i].state == STK_RUN_ASSIGNED || m->runs[i].state == STK_RUN_RUNNING) &&
             m->runs[i].worker == w;
    return n;
}

static void ended(model *m, mrun *run)
{
    run->state = STK_RUN_FINISHED;
    run->ended++;
    m->finished++;
    assert_int_equal(run->ended, 1);
}

static void give(model *m, const char *id)
{
    char sandbox[STK_ID_SIZE];
    TEXT(sandbox, id); /* ID() uses its places again */
    for (int i = 1; i <= m->sandboxes; i++)
        if (strcmp(sandbox, ID(name_of("sbx", i))) == 0) {
            assert_false(m->given[i]);
            m->given[i] = true;
            return;
        }
    fail_msg("a sandbox nobody put: %s", sandbox);
}

/* --- one step of each kind
 * ---------------------------------------------------------------------------------- */

static void step_submit(model *m, int i)
{
    mrun *run = &m->runs[i];
    if (run->state == STK_RUN_FINISHED) {
        int generation = run->generation + 1;
        *run = (mrun){.generation = generation};
    }
    stk_op_submit *op = do_submit(m->r, run_name(m, i), "acme", NULL, NULL, 0);
    assert_int_equal(op->outcome, run->state == STK_RUN_NONE ? STK_SUBMIT_NEW : STK_SUBMIT_SAME);
    if (op->outcome == STK_SUBMIT_NEW)
        run->state = STK_RUN_SUBMITTED;
}

static void step_queue(model *m, int i)
{
    mrun *run = &m->runs[i];
    stk_op_queue *op = do_queue(m->r, run_name(m, i), "acme", (int64_t)rnd(m, 100));
    assert_int_equal(op->outcome, stk_decide_queue(run->state));
    if (op->outcome == STK_QUEUE_OK)
        run->state = STK_RUN_QUEUED;
}

static void step_assign(model *m, int i)
{
    mrun *run = &m->runs[i];
    int w = (int)rnd(m, WORKERS), asg = ++m->assignments;
    const char *sandbox =
        m->sandboxes && rnd(m, 4) == 0 ? name_of("sbx", 1 + (int)rnd(m, (unsigned)m->sandboxes)) : "";
    stk_op_assign *op =
        ASSIGN(m->r, .run = run_name(m, i), .assignment = name_of("asg", asg), .worker = name_of("wrk", w),
               .incarnation = inc_name(w, m->workers[w].incarnation), .sandbox = sandbox);
    if (run->state >= STK_RUN_ASSIGNED) {
        assert_int_equal(op->outcome,
                         run->state == STK_RUN_ASSIGNED ? STK_ASSIGN_ALREADY : STK_ASSIGN_PASSED);
        return;
    }
    if (run->cancel) {
        assert_int_equal(op->outcome, STK_ASSIGN_CANCELLED);
        return;
    }
    bool fits = live(m, w) && used(m, w) < SLOTS;
    if (!fits || !sandbox[0] || op->outcome != STK_ASSIGN_NO_SANDBOX)
        assert_int_equal(op->outcome, fits ? STK_ASSIGN_OK : STK_ASSIGN_NO_WORKER);
    if (op->outcome != STK_ASSIGN_OK)
        return;
    if (sandbox[0])
        give(m, ID(sandbox));
    run->state = STK_RUN_ASSIGNED;
    run->assignment = asg;
    run->worker = w;
    run->incarnation = m->workers[w].incarnation;
}

static void step_start(model *m, int i)
{
    mrun *run = &m->runs[i];
    int asg = rnd(m, 5) ? run->assignment : 1;
    int inc = rnd(m, 9) ? run->incarnation : 0;
    stk_op_start *op = do_start(m->r, run_name(m, i), name_of("asg", asg), name_of("wrk", run->worker),
                                inc_name(run->worker, inc));
    bool ours = run->state == STK_RUN_ASSIGNED && asg == run->assignment && inc == run->incarnation &&
                inc == m->workers[run->worker].incarnation && live(m, run->worker);
    assert_int_equal(op->outcome, !ours ? STK_START_STALE : run->cancel ? STK_START_CANCELLED : STK_START_OK);
    if (op->outcome == STK_START_OK)
        run->state = STK_RUN_RUNNING;
}

static void step_finish(model *m, int i)
{
    mrun *run = &m->runs[i];
    int asg = rnd(m, 5) ? run->assignment : 1;
    stk_op_finish *op = do_finish(m->r, run_name(m, i), name_of("asg", asg), "exited");
    bool wins = run->state != STK_RUN_NONE && run->state != STK_RUN_FINISHED && asg == run->assignment;
    assert_int_equal(op->outcome, wins ? STK_FINISH_WON : STK_FINISH_LOST);
    if (wins)
        ended(m, run);
}

static void step_cancel(model *m, int i)
{
    mrun *run = &m->runs[i];
    stk_op_cancel *op = do_cancel(m->r, run_name(m, i), "acme");
    assert_int_equal(op->outcome, stk_decide_cancel(run->state, true));
    if (op->outcome == STK_CANCEL_FINISHED)
        ended(m, run);
    if (op->outcome == STK_CANCEL_ASKED)
        run->cancel = true;
}

static void back(mrun *run)
{
    run->state = STK_RUN_QUEUED;
    run->assignment = 0;
}

static void step_requeue(model *m, int i)
{
    mrun *run = &m->runs[i];
    bool repeat = rnd(m, 2);
    stk_op_requeue *op = do_requeue(m->r, run_name(m, i), name_of("asg", run->assignment), rnd(m, 2), repeat);
    assert_int_equal(op->outcome, stk_decide_requeue(run->state, true, repeat));
    if (op->outcome == STK_REQUEUE_OK)
        back(run);
}

static void lose(model *m, int w, const stk_lost_run *lost, size_t n)
{
    size_t held = 0;
    for (int i = 0; i < RUNS; i++) {
        mrun *run = &m->runs[i];
        if ((run->state != STK_RUN_ASSIGNED && run->state != STK_RUN_RUNNING) || run->worker != w)
            continue;
        held++;
        if (run->state == STK_RUN_ASSIGNED && !run->cancel)
            back(run);
        else
            ended(m, run);
    }
    for (size_t k = 0; k < n; k++)
        held -= strcmp(lost[k].worker, ID(name_of("wrk", w))) == 0;
    assert_int_equal(held, 0);
}

static void step_join(model *m, int w)
{
    mworker *worker = &m->workers[w];
    worker->incarnation = ++m->incarnations;
    stk_op_join *op = do_join(m->r, name_of("wrk", w), inc_name(w, worker->incarnation), SLOTS, WORKERS);
    assert_int_equal(op->outcome, STK_JOIN_OK);
    lose(m, w, op->lost, op->nlost);
    worker->there = true;
    worker->until = m->now + LEASE.ns;
}

static void step_heartbeat(model *m, int w)
{
    mworker *worker = &m->workers[w];
    stk_op_heartbeat *op = do_heartbeat(m->r, name_of("wrk", w), inc_name(w, worker->incarnation));
    assert_int_equal(op->outcome, worker->there ? STK_HEARTBEAT_OK : STK_HEARTBEAT_ENDED);
    if (worker->there)
        worker->until = m->now + LEASE.ns;
}

static void step_leave(model *m, int w)
{
    mworker *worker = &m->workers[w];
    stk_op_leave *op = do_leave(m->r, name_of("wrk", w), inc_name(w, worker->incarnation));
    if (worker->there)
        lose(m, w, op->lost, op->nlost);
    worker->there = false;
}

static void step_reap(model *m, int unused)
{
    bool grace = stk_decide_grace(m->reaped, m->now, HEARTBEAT);
    m->reaped = m->now;
    stk_op_reap *op = do_reap(m->r);
    size_t dead = 0;
    for (int w = 0; w < WORKERS; w++) {
        mworker *worker = &m->workers[w];
        if (worker->there && grace && worker->until < m->now + LEASE.ns)
            worker->until = m->now + LEASE.ns;
        if (!worker->there || worker->until > m->now)
            continue;
        lose(m, w, op->lost, op->nlost);
        worker->there = false;
        dead++;
    }
    assert_int_equal(op->workers.n, dead);
}

static void step_time(model *m, int unused)
{
    stk_span by = stk_ms((int64_t)rnd(m, 1500));
    m->now += by.ns;
    rig_advance(m->r, by);
}

static void step_put(model *m, int w)
{
    int n = ++m->sandboxes;
    stk_op_pool_put *op =
        do_put(m->r, name_of("sbx", n), "tpl-a", name_of("wrk", w), inc_name(w, m->workers[w].incarnation));
    if (!live(m, w))
        assert_false(op->taken_in);
    do_put(m->r, name_of("sbx", 1 + (int)rnd(m, (unsigned)n)), "tpl-a", name_of("wrk", w),
           inc_name(w, m->workers[w].incarnation)); /* late, or a second time */
}

static void step_take(model *m, int unused)
{
    stk_op_pool_take *op = do_take(m->r, "", "tpl-a");
    if (op->found)
        give(m, op->row.sandbox);
}

/* --- the walk
 * -------------------------------------------------------------------------------------------------- */

static const struct {
    void (*step)(model *m, int which);
    unsigned weight, range;
} steps[] = {{step_submit, 14, RUNS},  {step_queue, 14, RUNS},  {step_assign, 20, RUNS},
             {step_start, 14, RUNS},   {step_finish, 9, RUNS},  {step_cancel, 3, RUNS},
             {step_requeue, 4, RUNS},  {step_join, 2, WORKERS}, {step_heartbeat, 8, WORKERS},
             {step_leave, 1, WORKERS}, {step_reap, 5, 1},       {step_time, 5, 1},
             {step_put, 4, WORKERS},   {step_take, 4, 1}};

static void check_row(model *m, int i)
{
    const mrun *run = &m->runs[i];
    stk_op_run_get *get = do_get(m->r, run_name(m, i));
    assert_int_equal(get->found ? get->row.state : STK_RUN_NONE, run->state);
    if (run->state == STK_RUN_ASSIGNED || run->state == STK_RUN_RUNNING)
        assert_string_equal(get->row.assignment, ID(name_of("asg", run->assignment)));
}

static void check_all(model *m)
{
    int64_t by_state[STK_RUN_STATES] = {0};
    for (int i = 0; i < RUNS; i++) {
        check_row(m, i);
        by_state[m->runs[i].state] += m->runs[i].state != STK_RUN_FINISHED;
    }
    by_state[STK_RUN_FINISHED] = m->finished;
    stk_op_counts *counts = do_counts(m->r);
    for (int s = STK_RUN_SUBMITTED; s < STK_RUN_STATES; s++)
        assert_int_equal(counts->by_state[s], by_state[s]);
    for (int w = 0; w < WORKERS; w++) {
        stk_worker_row *row = worker_of(m->r, name_of("wrk", w));
        assert_int_equal(row != NULL, m->workers[w].there);
        if (row)
            assert_int_equal(row->used, used(m, w));
    }
}

/* Exactly one `finished` for every run that ended; requeues are not events. */
static void check_outbox(model *m)
{
    int events = 0;
    for (size_t n = 1; n > 0;) {
        OP(outbox_take, OUTBOX_TAKE);
        op->in.most = 1000;
        op->in.hold = stk_sec(3600);
        op = CALL_OK(m->r, op);
        n = op->items.n;
        for (size_t i = 0; i < n; i++)
            events += strcmp(op->items.v[i].topic, "stk.events") == 0;
    }
    assert_int_equal(events, m->finished);
}

static void random_operations_never_break_an_invariant(void **state)
{
    rig *r = *state;
    const char *given = getenv("STK_SEED");
    model *m = calloc(1, sizeof(*m));
    m->r = r;
    m->seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)stk_mono_now().ns;
    m->reaped = -1;
    printf("seed %u\n", m->seed);
    unsigned total = 0;
    for (size_t k = 0; k < STK_COUNT(steps); k++)
        total += steps[k].weight;
    for (int n = 0; n < STEPS; n++) {
        unsigned at = rnd(m, total);
        size_t k = 0;
        while (at >= steps[k].weight)
            at -= steps[k++].weight;
        int which = (int)rnd(m, steps[k].range);
        steps[k].step(m, which);
        if (steps[k].range == RUNS)
            check_row(m, which);
        if (n % 500 == 0)
            check_all(m);
    }
    check_all(m);
    check_outbox(m);
    printf("%d runs ended, %d sandboxes put\n", m->finished, m->sandboxes);
    assert_true(m->finished > 100);
    free(m);
}

SUITE(random, CASE(random_operations_never_break_an_invariant));
