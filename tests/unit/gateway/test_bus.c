/* What the gateway makes of a bus that does not do as it is asked. */
#include "tests/unit/gateway/suite.h"

typedef struct odd_bus {
    stk_bus base;
    stk_bus *real;
    const char *topic; /* of which publishes end so */
    stk_publish_outcome outcome;
    stk_code code;
    int hits;
    char order[8][32]; /* topics of what was published, oldest first */
    size_t norder;
    fx *f;
} odd_bus;

static odd_bus *odd_of(const stk_bus *bus)
{
    return (odd_bus *)(uintptr_t)bus;
}

typedef struct delayed {
    odd_bus *odd;
    stk_publish_done done;
    void *arg;
} delayed;

static void say(void *arg)
{
    delayed *d = arg;
    stk_err err;
    stk_err_set(&err, d->odd->code, "as the test wants it");
    d->done(d->odd->outcome, -1, -1, &err, d->arg);
    free(d);
}

static void publish(stk_bus *bus, const stk_bus_out *out, stk_publish_done done, void *arg)
{
    odd_bus *odd = odd_of(bus);
    if (odd->norder < 8)
        snprintf(odd->order[odd->norder++], 32, "%s", out->topic);
    if (!odd->topic || strcmp(odd->topic, out->topic) != 0) {
        stk_bus_publish(odd->real, out, done, arg);
        return;
    }
    odd->hits++;
    delayed *d = stk_xcalloc(1, sizeof(*d));
    *d = (delayed){odd, done, arg};
    stk_loop_post(odd->f->loop, say, d);
}

static int subscribe(stk_bus *bus, const stk_consumer_spec *spec, const stk_consumer_ops *ops, void *arg,
                     stk_consumer **ret, stk_err *err)
{
    return stk_bus_subscribe(odd_of(bus)->real, spec, ops, arg, ret, err);
}

static bool ready(const stk_bus *bus)
{
    return stk_bus_ready(odd_of(bus)->real);
}

static const stk_bus_ops odd_ops = {.publish = publish, .subscribe = subscribe, .ready = ready};
static odd_bus odd;

static int odd_setup(void **state)
{
    fx *f = fx_new(false);
    odd = (odd_bus){.base.ops = &odd_ops, .real = f->bus, .f = f};
    f->spec.bus = &odd.base;
    fx_start(f);
    fleet_start(f);
    fx_enable(f);
    odd.norder = 0;
    *state = f;
    return 0;
}

static void an_unknown_outcome_names_the_run_to_ask_for(void **state)
{
    fx *f = *state;
    odd.topic = STK_TOPIC_REQUESTS;
    odd.outcome = STK_PUBLISH_UNKNOWN;
    odd.code = STK_E_TIMEOUT;
    reply *r = fx_expect(f, 503, "POST", RUN, "Idempotency-Key: k\r\n", BODY);
    assert_string_equal(reply_text(r, "code"), "outcome_unknown");
    assert_true(stk_id_valid("run", stk_jv_str(reply_at(r, "run_id"))));
    odd.topic = NULL;
    reply *again = fx_expect(f, 200, "POST", RUN, "Idempotency-Key: k\r\n", BODY);
    assert_string_equal(reply_text(again, "run_id"), reply_text(r, "run_id"));
    assert_int_equal(f->fleet.requests, 1);
}

static void what_the_bus_refuses_is_said_in_our_words(void **state)
{
    static const struct {
        stk_code code;
        int status;
        const char *text;
    } rows[] = {
        {STK_E_BUSY, 503, "unavailable"},
        {STK_E_UNAVAILABLE, 503, "unavailable"},
        {STK_E_NO_SPACE, 503, "unavailable"},
        {STK_E_TOO_LARGE, 413, "too_large"},
    };
    fx *f = *state;
    odd.topic = STK_TOPIC_REQUESTS;
    odd.outcome = STK_PUBLISH_REFUSED;
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        odd.code = rows[i].code;
        reply *r = fx_expect(f, rows[i].status, "POST", "/v1/runs", "", BODY);
        assert_string_equal(reply_text(r, "code"), rows[i].text);
        assert_int_equal(reply_has_header(r, "Retry-After: "), rows[i].status == 503);
    }
    assert_int_equal(odd.hits, STK_COUNT(rows));
    assert_int_equal(f->fleet.requests, 0);
}

static void the_audit_row_is_durable_before_the_document(void **state)
{
    fx *f = *state;
    fx_expect(f, 200, "PUT", CFG, "", "{\"enabled\":true,\"agents\":{\"helper\":{},\"b\":{}}}");
    assert_int_equal(odd.norder, 2);
    assert_string_equal(odd.order[0], STK_TOPIC_AUDIT);
    assert_string_equal(odd.order[1], STK_TOPIC_CONFIG);
}

static void a_change_whose_audit_row_is_not_durable_is_not_in_force(void **state)
{
    fx *f = *state;
    odd.topic = STK_TOPIC_AUDIT;
    odd.outcome = STK_PUBLISH_REFUSED;
    odd.code = STK_E_UNAVAILABLE;
    reply *r = fx_expect(f, 503, "PUT", CFG, "", "{\"enabled\":true,\"agents\":{\"helper\":{},\"b\":{}}}");
    assert_string_equal(reply_text(r, "code"), "outcome_unknown");
    assert_int_equal(odd.norder, 1);
    assert_true(reply_has_header(fx_expect(f, 200, "GET", CFG, "", NULL), "ETag: \"1\"\r\n"));
    odd.topic = NULL;
}

int main(void)
{
#define O(name) cmocka_unit_test_setup_teardown(name, odd_setup, teardown)
    const struct CMUnitTest tests[] = {
        O(an_unknown_outcome_names_the_run_to_ask_for),
        O(what_the_bus_refuses_is_said_in_our_words),
        O(the_audit_row_is_durable_before_the_document),
        O(a_change_whose_audit_row_is_not_durable_is_not_in_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
