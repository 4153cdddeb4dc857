#include "tests/conformance/state/rig.h"

static const state_factory *const factories[] = {&sqlite_factory};

/* Every case against every adapter. STK_SUITE=<name> runs one of the suites. */
int main(void)
{
    static const struct {
        const char *name;
        const struct CMUnitTest *cases;
        const size_t *n;
    } suites[] = {
#define X(name) {#name, suite_##name, &suite_##name##_n},
        SUITES(X)
#undef X
    };
    const char *only = getenv("STK_SUITE");
    int failed = 0;
    for (size_t f = 0; f < STK_COUNT(factories); f++)
        for (size_t s = 0; s < STK_COUNT(suites); s++) {
            if (only && strcmp(only, suites[s].name) != 0)
                continue;
            char title[64];
            snprintf(title, sizeof(title), "state/%s/%s", factories[f]->name, suites[s].name);
            struct CMUnitTest *cases = calloc(*suites[s].n, sizeof(*cases));
            for (size_t i = 0; i < *suites[s].n; i++) {
                cases[i] = suites[s].cases[i];
                cases[i].initial_state = (void *)(uintptr_t)factories[f];
            }
            failed += _cmocka_run_group_tests(title, cases, *suites[s].n, NULL, NULL);
            free(cases);
        }
    return failed ? 1 : 0;
}
