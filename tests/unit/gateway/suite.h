/* setup and teardown of a gateway without authentication, with a fleet. */
#ifndef TEST_GATEWAY_SUITE_H
#define TEST_GATEWAY_SUITE_H

#include "tests/unit/gateway/fixture.h"

#define RUN  "/api/admin/platform/agent-sandbox/run"
#define PLAN "/api/admin/platform/agent-sandbox/plan"
#define CFG  "/api/admin/platform/agent-sandbox"
#define ORG  "/api/admin/platform/egress-policy"
#define BODY "{\"agent\":\"helper\",\"command\":[\"true\"]}"

/* SUITE_TOKENS: with a bootstrap token of all scopes instead. */
static int setup(void **state)
{
#ifdef SUITE_TOKENS
    fx *f = fx_new(true);
#else
    fx *f = fx_new(false);
#endif
    fx_start(f);
    fleet_start(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fx_free(*state);
    return 0;
}
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
