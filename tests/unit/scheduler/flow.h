/* What the tests of the whole scheduler share: a rig with two listed agents, and waiting. */
#ifndef STK_TEST_SCHEDULER_FLOW_H
#define STK_TEST_SCHEDULER_FLOW_H

#include "tests/unit/scheduler/fixture.h"

#define OCI                                                                                                  \
    "[{\"name\":\"oci\",\"ok\":true,\"isolation\":\"container\"},{\"name\":\"docker\",\"ok\":false,"         \
    "\"reason\":\"no docker daemon answers\"}]"
#define LISTED "{\"enabled\":true,\"agents\":{\"helper\":{\"allow\":[]},\"other\":{\"allow\":[]}}}"
#define HOUR   stk_sec(3600)

static int setup(void **state)
{
    rig *r = rig_new();
    rig_config(r, "t", LISTED);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    rig_free(*state);
    return 0;
}

static bool has_assignments(rig *r, void *arg)
{
    return r->assignments.n >= *(size_t *)arg;
}

static void until_assigned(rig *r, size_t n)
{
    rig_until(r, has_assignments, &n);
}

typedef struct expect {
    const char *run, *state;
} expect;

static bool state_is(rig *r, void *arg)
{
    const expect *e = arg;
    return strcmp(rig_state(r, e->run), e->state) == 0;
}

static void until_state(rig *r, const char *run, const char *wanted)
{
    rig_until(r, state_is, &(expect){run, wanted});
}

static bool event_there(rig *r, void *arg)
{
    return rig_count(&r->events, arg) > 0;
}

#endif
