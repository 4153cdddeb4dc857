#include "tests/conformance/state/rig.h"

static stk_op_config_set *set(rig *r, const char *tenant, const char *name, int64_t expect, const char *text)
{
    OP(config_set, CONFIG_SET);
    TEXT(op->in.tenant, tenant);
    TEXT(op->in.name, name);
    op->in.expect = expect;
    stk_bytes_set(&op->in.record, stk_str_of(text));
    stk_bytes_set(&op->in.audit, STK_STR("audit row"));
    return CALL_OK(r, op);
}

static stk_op_config_get *get(rig *r, const char *tenant, const char *name)
{
    OP(config_get, CONFIG_GET);
    TEXT(op->in.tenant, tenant);
    TEXT(op->in.name, name);
    return CALL_OK(r, op);
}

static void learn(rig *r, const char *tenant, const char *name, int64_t version, const char *text)
{
    OP(config_done, CONFIG_DONE);
    TEXT(op->in.tenant, tenant);
    TEXT(op->in.name, name);
    op->in.version = version;
    if (text)
        stk_bytes_set(&op->in.record, stk_str_of(text));
    CALL_OK(r, op);
}

static void the_first_writer_of_a_version_wins(void **state)
{
    rig *r = *state;
    assert_int_equal(get(r, "acme", "agent-sandbox")->version, 0);
    assert_false(get(r, "acme", "agent-sandbox")->record.set);
    stk_op_config_set *first = set(r, "acme", "agent-sandbox", 0, "one");
    assert_int_equal(first->outcome, STK_CONFIG_SET_OK);
    assert_int_equal(first->version, 1);
    stk_op_config_set *stale = set(r, "acme", "agent-sandbox", 0, "other");
    assert_int_equal(stale->outcome, STK_CONFIG_SET_STALE);
    assert_int_equal(stale->version, 1);
    assert_int_equal(stale->outbox_audit, 0);
    assert_string_equal(get(r, "acme", "agent-sandbox")->record.p, "one");
    assert_int_equal(set(r, "acme", "agent-sandbox", 1, "two")->version, 2);
    assert_string_equal(get(r, "acme", "agent-sandbox")->record.p, "two");
    assert_int_equal(do_counts(r)->outbox, 4);
}

static void documents_and_tenants_have_their_own_versions(void **state)
{
    rig *r = *state;
    set(r, "acme", "agent-sandbox", 0, "a");
    assert_int_equal(set(r, "acme", "pools", 0, "b")->version, 1);
    assert_int_equal(set(r, "zeta", "agent-sandbox", 0, "c")->version, 1);
    assert_string_equal(get(r, "acme", "pools")->record.p, "b");
}

static void the_audit_row_goes_out_before_the_document(void **state)
{
    rig *r = *state;
    stk_op_config_set *op = set(r, "acme", "agent-sandbox", 0, "one");
    assert_true(op->outbox_audit < op->outbox_config);
    stk_op_outbox_take *take = do_outbox(r, stk_ns(0), stk_sec(10));
    assert_int_equal(take->items.n, 1);
    assert_int_equal(take->items.v[0].id, op->outbox_audit);
    assert_string_equal(take->items.v[0].topic, "stk.audit");
    assert_string_equal(take->items.v[0].value.p, "audit row");
    assert_int_equal(do_outbox(r, stk_ns(0), stk_sec(10))->items.n, 0);
    do_outbox_done(r, op->outbox_audit);
    take = do_outbox(r, stk_ns(0), stk_sec(10));
    assert_int_equal(take->items.n, 1);
    assert_int_equal(take->items.v[0].id, op->outbox_config);
    assert_string_equal(take->items.v[0].topic, "stk.config");
    assert_string_equal(take->items.v[0].key, "acme/agent-sandbox");
    assert_string_equal(take->items.v[0].value.p, "one");
}

static void a_change_without_its_audit_row_is_refused(void **state)
{
    rig *r = *state;
    OP(config_set, CONFIG_SET);
    TEXT(op->in.tenant, "acme");
    TEXT(op->in.name, "pools");
    stk_bytes_set(&op->in.record, STK_STR("x"));
    assert_int_equal(CALL(r, op)->op.rc, -STK_E_FIELD);
    assert_int_equal(get(r, "acme", "pools")->version, 0);
}

static void a_head_that_was_lost_is_learned_from_the_topic(void **state)
{
    rig *r = *state;
    learn(r, "acme", "pools", 7, "seven");
    assert_int_equal(get(r, "acme", "pools")->version, 7);
    learn(r, "acme", "pools", 5, "five");
    assert_string_equal(get(r, "acme", "pools")->record.p, "seven");
    learn(r, "acme", "pools", 9, NULL);
    assert_int_equal(get(r, "acme", "pools")->version, 7);
    assert_int_equal(set(r, "acme", "pools", 7, "eight")->version, 8);
}

SUITE(config, CASE(the_first_writer_of_a_version_wins), CASE(documents_and_tenants_have_their_own_versions),
      CASE(the_audit_row_goes_out_before_the_document), CASE(a_change_without_its_audit_row_is_refused),
      CASE(a_head_that_was_lost_is_learned_from_the_topic));
