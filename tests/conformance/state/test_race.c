/* Many loops on many threads at once: each decision is whole, so exactly one wins. */
#include "tests/conformance/state/rig.h"
#include <pthread.h>

enum { THREADS = 4, IN_FLIGHT = 16 };

/* A thread that calls a list of operations in order, some in flight at a time, and keeps their answers. */
typedef struct racer {
    pthread_t thread;
    stk_loop *loop;
    stk_state *st;
    stk_op **ops;
    size_t n, called, answered, size;
} racer;

static void feed(racer *ra)
{
    while (ra->called < ra->n && ra->called - ra->answered < IN_FLIGHT)
        stk_state_call(ra->st, ra->ops[ra->called++]);
    if (ra->answered == ra->n)
        stk_loop_stop(ra->loop);
}

static void on_answer(stk_op *op, void *arg)
{
    racer *ra = arg;
    void *copy = malloc(ra->size);
    memcpy(copy, op, ra->size);
    memset((char *)op + sizeof(*op), 0, ra->size - sizeof(*op));
    ra->ops[ra->answered++] = copy; /* answers come in the order of the calls */
    feed(ra);
}

static void *race(void *arg)
{
    feed(arg);
    stk_loop_run(((racer *)arg)->loop);
    return NULL;
}

static void racer_init(rig *r, racer *ra, size_t n, size_t size)
{
    *ra = (racer){.n = n, .size = size, .ops = calloc(n, sizeof(stk_op *))};
    assert_int_equal(stk_loop_new(&ra->loop, NULL), 0);
    ra->st = r->factory->handle(r->self, ra->loop);
}

static void run_all(racer *racers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < racers[i].n; k++) {
            racers[i].ops[k]->done = on_answer;
            racers[i].ops[k]->arg = &racers[i];
        }
    for (size_t i = 0; i < n; i++)
        pthread_create(&racers[i].thread, NULL, race, &racers[i]);
    for (size_t i = 0; i < n; i++)
        pthread_join(racers[i].thread, NULL);
}

static void racer_done(racer *ra)
{
    for (size_t i = 0; i < ra->n; i++)
        stk_op_free(ra->ops[i]);
    free(ra->ops);
    stk_state_close(ra->st);
    event_base_loop(stk_loop_base(ra->loop), EVLOOP_NONBLOCK);
    stk_loop_free(ra->loop);
}

static const char *named(const char *prefix, size_t i)
{
    static char name[32];
    snprintf(name, sizeof(name), "%s-%zu", prefix, i);
    return ID(name);
}

enum { RUNS = 300 };

static void assigned(rig *r)
{
    do_join(r, "wrk-1", "inc-1", RUNS, 8);
    for (size_t i = 0; i < RUNS; i++) {
        char run[32], asg[32];
        snprintf(run, sizeof(run), "run-%zu", i);
        snprintf(asg, sizeof(asg), "asg-%zu", i);
        assert_int_equal(do_assign(r, run, asg, "wrk-1", "inc-1")->outcome, STK_ASSIGN_OK);
    }
}

static void of_many_finishes_one_wins(void **state)
{
    rig *r = *state;
    racer racers[THREADS];
    assigned(r);
    for (size_t t = 0; t < THREADS; t++) {
        racer_init(r, &racers[t], RUNS, sizeof(stk_op_finish));
        for (size_t i = 0; i < RUNS; i++) {
            OP(finish, FINISH);
            TEXT(op->in.run, named("run", i));
            TEXT(op->in.assignment, named("asg", i));
            TEXT(op->in.reason, "exited");
            stk_bytes_set(&op->in.event, STK_STR("e"));
            racers[t].ops[i] = &op->op;
        }
    }
    run_all(racers, THREADS);
    for (size_t i = 0; i < RUNS; i++) {
        int won = 0;
        for (size_t t = 0; t < THREADS; t++)
            won += ((stk_op_finish *)racers[t].ops[i])->outcome == STK_FINISH_WON;
        assert_int_equal(won, 1);
    }
    for (size_t t = 0; t < THREADS; t++)
        racer_done(&racers[t]);
    assert_int_equal(do_counts(r)->outbox, RUNS);
    assert_int_equal(do_counts(r)->by_state[STK_RUN_FINISHED], RUNS);
    assert_int_equal(worker_of(r, "wrk-1")->used, 0);
}

static void a_cancel_and_a_start_agree_on_who_was_first(void **state)
{
    rig *r = *state;
    racer racers[2];
    assigned(r);
    racer_init(r, &racers[0], RUNS, sizeof(stk_op_start));
    racer_init(r, &racers[1], RUNS, sizeof(stk_op_cancel));
    for (size_t i = 0; i < RUNS; i++) {
        OP(start, START);
        TEXT(op->in.run, named("run", i));
        TEXT(op->in.assignment, named("asg", i));
        TEXT(op->in.worker, ID("wrk-1"));
        TEXT(op->in.incarnation, ID("inc-1"));
        racers[0].ops[i] = &op->op;
        stk_op_cancel *cancel = stk_op_new(STK_OP_CANCEL, NULL, NULL);
        TEXT(cancel->in.run, named("run", RUNS - 1 - i));
        racers[1].ops[RUNS - 1 - i] = &cancel->op;
    }
    run_all(racers, 2);
    for (size_t i = 0; i < RUNS; i++) {
        char run[32];
        snprintf(run, sizeof(run), "run-%zu", i);
        stk_run_row *row = &do_get(r, run)->row;
        bool started = ((stk_op_start *)racers[0].ops[i])->outcome == STK_START_OK;
        assert_true(row->cancel_asked);
        assert_int_equal(row->state, started ? STK_RUN_RUNNING : STK_RUN_ASSIGNED);
        assert_int_equal(((stk_op_cancel *)racers[1].ops[i])->outcome, STK_CANCEL_ASKED);
    }
    racer_done(&racers[0]);
    racer_done(&racers[1]);
}

static void the_last_slot_is_given_once(void **state)
{
    rig *r = *state;
    racer racers[THREADS];
    do_join(r, "wrk-1", "inc-1", 50, 8);
    for (size_t t = 0; t < THREADS; t++) {
        racer_init(r, &racers[t], 100, sizeof(stk_op_assign));
        for (size_t i = 0; i < 100; i++) {
            OP(assign, ASSIGN);
            TEXT(op->in.run, named("run", t * 100 + i));
            TEXT(op->in.assignment, named("asg", t * 100 + i));
            TEXT(op->in.tenant, "acme");
            TEXT(op->in.agent, "coder");
            TEXT(op->in.worker, ID("wrk-1"));
            TEXT(op->in.incarnation, ID("inc-1"));
            stk_bytes_set(&op->in.record, STK_STR("record"));
            racers[t].ops[i] = &op->op;
        }
    }
    run_all(racers, THREADS);
    int ok = 0, none = 0;
    for (size_t t = 0; t < THREADS; t++) {
        for (size_t i = 0; i < 100; i++) {
            ok += ((stk_op_assign *)racers[t].ops[i])->outcome == STK_ASSIGN_OK;
            none += ((stk_op_assign *)racers[t].ops[i])->outcome == STK_ASSIGN_NO_WORKER;
        }
        racer_done(&racers[t]);
    }
    assert_int_equal(ok, 50);
    assert_int_equal(none, 350);
    assert_int_equal(worker_of(r, "wrk-1")->used, 50);
}

/* --- 64 clients on one pool --------------------------------------------------------------------------------
 */

enum { CLIENTS = 64, CLAIMS = 1000, POOL = 8 };

typedef struct crowd {
    pthread_t thread;
    stk_loop *loop;
    stk_state *st;
    int index, live; /* clients that are not through */
    unsigned made;
    char (*taken)[STK_ID_SIZE];
    size_t ntaken;
} crowd;

typedef struct client {
    crowd *crowd;
    int claims;
} client;

static void claim(client *c);

static void on_put(stk_op *op, void *arg)
{
    assert_int_equal(op->rc, 0);
    assert_true(((stk_op_pool_put *)op)->taken_in);
    claim(arg);
}

/* Every sandbox that was taken is replaced by a new one. */
static void refill(crowd *cr, client *c)
{
    uint8_t bytes[16] = {(uint8_t)(cr->index + 1)};
    stk_op_pool_put *op = stk_op_new(STK_OP_POOL_PUT, on_put, c);
    cr->made++;
    memcpy(bytes + 4, &cr->made, sizeof(cr->made));
    stk_id_from("sbx", bytes, op->in.sandbox);
    TEXT(op->in.template_key, "tpl-a");
    stk_id_from("wrk", (uint8_t[16]){1}, op->in.worker);
    stk_id_from("inc", (uint8_t[16]){1}, op->in.incarnation);
    stk_state_call(cr->st, op);
}

static void on_taken(stk_op *op, void *arg)
{
    client *c = arg;
    stk_op_pool_take *take = (stk_op_pool_take *)op;
    assert_int_equal(op->rc, 0);
    if (!take->found) {
        claim(c);
        return;
    }
    TEXT(c->crowd->taken[c->crowd->ntaken++], take->row.sandbox);
    refill(c->crowd, c);
}

static void claim(client *c)
{
    if (c->claims++ == CLAIMS) {
        if (--c->crowd->live == 0)
            stk_loop_stop(c->crowd->loop);
        return;
    }
    stk_op_pool_take *op = stk_op_new(STK_OP_POOL_TAKE, on_taken, c);
    TEXT(op->in.template_key, "tpl-a");
    stk_state_call(c->crowd->st, op);
}

static void *claim_all(void *arg)
{
    crowd *cr = arg;
    client clients[CLIENTS / THREADS] = {0};
    cr->live = CLIENTS / THREADS;
    for (size_t i = 0; i < CLIENTS / THREADS; i++) {
        clients[i].crowd = cr;
        claim(&clients[i]);
    }
    stk_loop_run(cr->loop);
    return NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void fill_pool(rig *r)
{
    OP(join, JOIN);
    stk_id_from("wrk", (uint8_t[16]){1}, op->in.worker);
    stk_id_from("inc", (uint8_t[16]){1}, op->in.incarnation);
    op->in.lanes = 8;
    op->in.lease = stk_sec(3600);
    CALL_OK(r, op);
    for (uint8_t i = 0; i < POOL; i++) {
        stk_op_pool_put *put = stk_op_new(STK_OP_POOL_PUT, NULL, NULL);
        stk_id_from("sbx", (uint8_t[16]){200, i}, put->in.sandbox);
        TEXT(put->in.template_key, "tpl-a");
        stk_id_from("wrk", (uint8_t[16]){1}, put->in.worker);
        stk_id_from("inc", (uint8_t[16]){1}, put->in.incarnation);
        assert_true(CALL_OK(r, put)->taken_in);
    }
}

static void sixty_four_clients_share_a_pool_of_eight_and_no_sandbox_is_taken_twice(void **state)
{
    rig *r = *state;
    crowd crowds[THREADS] = {0};
    char(*all)[STK_ID_SIZE] = calloc(CLIENTS * CLAIMS, STK_ID_SIZE);
    size_t n = 0;
    fill_pool(r);
    for (int t = 0; t < THREADS; t++) {
        crowds[t].index = t;
        crowds[t].taken = calloc(CLIENTS / THREADS * CLAIMS, STK_ID_SIZE);
        assert_int_equal(stk_loop_new(&crowds[t].loop, NULL), 0);
        crowds[t].st = r->factory->handle(r->self, crowds[t].loop);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_create(&crowds[t].thread, NULL, claim_all, &crowds[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_join(crowds[t].thread, NULL);
    for (int t = 0; t < THREADS; t++) {
        memcpy(all[n], crowds[t].taken, crowds[t].ntaken * STK_ID_SIZE);
        n += crowds[t].ntaken;
        free(crowds[t].taken);
        stk_state_close(crowds[t].st);
        event_base_loop(stk_loop_base(crowds[t].loop), EVLOOP_NONBLOCK);
        stk_loop_free(crowds[t].loop);
    }
    qsort(all, n, STK_ID_SIZE, by_text);
    for (size_t i = 1; i < n; i++)
        assert_string_not_equal(all[i - 1], all[i]);
    printf("%zu of %d claims were served\n", n, CLIENTS * CLAIMS);
    assert_true(n > POOL);
    OP(pool_list, POOL_LIST);
    assert_int_equal(CALL_OK(r, op)->n, POOL);
    free(all);
}

SUITE(race, CASE(of_many_finishes_one_wins), CASE(a_cancel_and_a_start_agree_on_who_was_first),
      CASE(the_last_slot_is_given_once),
      CASE(sixty_four_clients_share_a_pool_of_eight_and_no_sandbox_is_taken_twice));
