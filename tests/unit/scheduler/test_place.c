#include "scheduler/place.h"
#include "tests/unit/scheduler/unit.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* rows that end early */

/* "oci:container docker:gvisor" -> probes; "oci!why" is one that is lacking, "-" none at all. */
static void probes_of(const char *text, stk_place_worker *w)
{
    char copy[200], *save = NULL;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        size_t n = strcspn(word, ":!");
        stk_place_backend b = stk_place_backend_parse(stk_str_n(word, n));
        if (b == STK_PLACE_BACKENDS || b == STK_PLACE_AUTO)
            continue;
        w->probes[b].ok = word[n] == ':';
        if (word[n] == '!')
            snprintf(w->probes[b].reason, sizeof(w->probes[b].reason), "%s", word + n + 1);
        else
            w->probes[b].isolation = strcmp(word + n + 1, "microvm") == 0  ? STK_PLACE_MICROVM
                                     : strcmp(word + n + 1, "gvisor") == 0 ? STK_PLACE_GVISOR
                                                                           : STK_PLACE_CONTAINER;
    }
}

typedef struct host {
    const char *probes;
    int64_t slots, used;
    bool away;
} host;

typedef struct row {
    const char *what;
    host hosts[3];
    const char *backend;
    bool runtime_class, plan;
    int want;           /* STK_PLACE_… */
    int worker;         /* HERE */
    const char *chosen; /* HERE: backend; LACKING: part of why */
} row;

static void check(const row *r)
{
    stk_place_worker workers[3];
    stk_place_view view = {.workers = workers};
    memset(workers, 0, sizeof(workers));
    for (size_t i = 0; i < 3 && r->hosts[i].probes; i++, view.nworkers++) {
        snprintf(workers[i].id, sizeof(workers[i].id), "w%zu", i);
        workers[i].slots = r->hosts[i].slots;
        workers[i].used = r->hosts[i].used;
        workers[i].usable = !r->hosts[i].away;
        probes_of(r->hosts[i].probes, &workers[i]);
    }
    stk_place_need need = {.backend = stk_place_backend_parse(stk_str_of(r->backend)),
                           .runtime_class = r->runtime_class,
                           .plan = r->plan};
    stk_place_choice choice;
    stk_place(&view, &need, &choice);
    if ((int)choice.what != r->want)
        fail_msg("%s: %d (%s), not %d", r->what, (int)choice.what, choice.why, r->want);
    if (r->want == STK_PLACE_HERE &&
        ((int)choice.worker != r->worker || strcmp(stk_place_backend_text(choice.backend), r->chosen) != 0))
        fail_msg("%s: worker %u, %s", r->what, choice.worker, stk_place_backend_text(choice.backend));
    if (r->want == STK_PLACE_LACKING && !strstr(choice.why, r->chosen))
        fail_msg("%s: \"%s\" does not say \"%s\"", r->what, choice.why, r->chosen);
}

static void where_a_run_goes(void **state)
{
    static const row rows[] = {
        {"nobody there", {{NULL}}, "auto", false, false, STK_PLACE_NOBODY, 0, ""},
        {"nobody usable", {{"oci:container", 4, 0, true}}, "oci", false, false, STK_PLACE_NOBODY, 0, ""},
        {"the one", {{"oci:container", 4, 0}}, "auto", false, false, STK_PLACE_HERE, 0, "oci"},
        {"full", {{"oci:container", 4, 4}}, "auto", false, false, STK_PLACE_FULL, 0, ""},
        {"no slots at all", {{"oci:container", 0, 0}}, "auto", false, false, STK_PLACE_FULL, 0, ""},
        {"the less loaded",
         {{"oci:container", 4, 3}, {"oci:container", 4, 1}},
         "auto",
         false,
         false,
         STK_PLACE_HERE,
         1,
         "oci"},
        {"by share",
         {{"oci:container", 2, 1}, {"oci:container", 16, 4}},
         "auto",
         false,
         false,
         STK_PLACE_HERE,
         1,
         "oci"},
        {"idle ones: the larger",
         {{"oci:container", 2, 0}, {"oci:container", 16, 0}},
         "auto",
         false,
         false,
         STK_PLACE_HERE,
         1,
         "oci"},
        {"oci before docker",
         {{"docker:container oci:container", 4, 0}},
         "auto",
         false,
         false,
         STK_PLACE_HERE,
         0,
         "oci"},
        {"docker while oci is full",
         {{"oci:container", 1, 1}, {"docker:container", 1, 0}},
         "auto",
         false,
         false,
         STK_PLACE_HERE,
         1,
         "docker"},
        {"gvisor before a plain container",
         {{"oci:container", 9, 0}, {"docker:gvisor", 1, 0}},
         "auto",
         false,
         false,
         STK_PLACE_HERE,
         1,
         "docker"},
        {"k8s before gvisor",
         {{"oci:gvisor", 9, 0}, {"k8s:container", 1, 0}},
         "auto",
         false,
         false,
         STK_PLACE_HERE,
         1,
         "k8s"},
        {"a microvm before all",
         {{"k8s:gvisor", 9, 0}, {"firecracker:microvm", 1, 0}},
         "auto",
         false,
         false,
         STK_PLACE_HERE,
         1,
         "firecracker"},
        {"never weaker because the strongest is full",
         {{"oci:container", 9, 0}, {"firecracker:microvm", 1, 1}},
         "auto",
         false,
         false,
         STK_PLACE_FULL,
         0,
         ""},
        {"the strongest is away",
         {{"oci:container", 9, 0}, {"firecracker:microvm", 1, 1, true}},
         "auto",
         false,
         false,
         STK_PLACE_HERE,
         0,
         "oci"},
        {"a named one",
         {{"oci:container docker:container", 9, 0}},
         "docker",
         false,
         false,
         STK_PLACE_HERE,
         0,
         "docker"},
        {"a named one elsewhere",
         {{"oci:container", 9, 0}, {"docker:container", 9, 8}},
         "docker",
         false,
         false,
         STK_PLACE_HERE,
         1,
         "docker"},
        {"a named one is full",
         {{"oci:container", 9, 0}, {"docker:container", 9, 9}},
         "docker",
         false,
         false,
         STK_PLACE_FULL,
         0,
         ""},
        {"a named one is lacking",
         {{"oci:container docker!no_daemon", 9, 0}},
         "docker",
         false,
         false,
         STK_PLACE_LACKING,
         0,
         "docker: no_daemon"},
        {"a named one is unknown",
         {{"oci:container", 9, 0}},
         "k8s",
         false,
         false,
         STK_PLACE_LACKING,
         0,
         "k8s: no live worker has it"},
        {"no backend anywhere",
         {{"oci!no_runc", 9, 0}},
         "auto",
         false,
         false,
         STK_PLACE_LACKING,
         0,
         "no live worker has a backend"},
        {"a runtime class",
         {{"oci:container", 9, 0}, {"oci:gvisor", 1, 0}},
         "auto",
         true,
         false,
         STK_PLACE_HERE,
         1,
         "oci"},
        {"a runtime class is full",
         {{"oci:container", 9, 0}, {"oci:gvisor", 1, 1}},
         "auto",
         true,
         false,
         STK_PLACE_FULL,
         0,
         ""},
        {"a runtime class is lacking",
         {{"oci:container", 9, 0}},
         "auto",
         true,
         false,
         STK_PLACE_LACKING,
         0,
         "runtime class"},
        {"a named one without a runtime class",
         {{"oci:container", 9, 0}},
         "oci",
         true,
         false,
         STK_PLACE_LACKING,
         0,
         "runtime class"},
        {"a plan takes no slot", {{"oci:container", 1, 1}}, "auto", false, true, STK_PLACE_HERE, 0, "oci"},
        {"a plan goes to who has it",
         {{"oci:container", 1, 0}, {"docker:container", 1, 1}},
         "docker",
         false,
         true,
         STK_PLACE_HERE,
         1,
         "docker"},
        {"a plan of what is lacking goes to anybody",
         {{"oci:container", 1, 0}},
         "firecracker",
         false,
         true,
         STK_PLACE_HERE,
         0,
         "auto"},
        {"a plan without a worker", {{NULL}}, "auto", false, true, STK_PLACE_NOBODY, 0, ""},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        check(&rows[i]);
}

static void warm_sandboxes_come_first(void **state)
{
    stk_place_worker workers[3] = {{.slots = 4, .used = 0, .usable = true},
                                   {.slots = 4, .used = 3, .usable = true},
                                   {.slots = 4, .used = 2, .usable = true}};
    stk_place_warm warm[4] = {{.sandbox = "s0", .template_key = "tpl-b", .worker = 0},
                              {.sandbox = "s1", .template_key = "tpl-a", .worker = 1},
                              {.sandbox = "s2", .template_key = "tpl-a", .worker = 2},
                              {.sandbox = "s3", .template_key = "tpl-a", .worker = 2}};
    stk_place_view view = {.workers = workers, .nworkers = 3, .warm = warm, .nwarm = 4};
    stk_place_need need = {.backend = STK_PLACE_AUTO};
    stk_place_choice choice;
    for (int i = 0; i < 3; i++)
        probes_of("oci:container", &workers[i]);
    snprintf(need.template_keys[STK_PLACE_OCI], STK_ID_SIZE, "tpl-a");
    stk_place(&view, &need,
              &choice); /* the less loaded of those that hold one, not the idle one that holds none */
    assert_int_equal(choice.what, STK_PLACE_HERE);
    assert_int_equal(choice.worker, 2);
    assert_string_equal(warm[choice.warm].template_key, "tpl-a");
    warm[2].gone = warm[3].gone = true;
    stk_place(&view, &need, &choice);
    assert_int_equal(choice.worker, 1);
    assert_int_equal(choice.warm, 1);
    workers[1].used = 4; /* its worker is full */
    stk_place(&view, &need, &choice);
    assert_int_equal(choice.worker, 0);
    assert_int_equal(choice.warm, UINT32_MAX);
    need.template_keys[STK_PLACE_OCI][0] = '\0';
    workers[1].used = 0;
    stk_place(&view, &need, &choice);
    assert_int_equal(choice.warm, UINT32_MAX);
    snprintf(need.template_keys[STK_PLACE_OCI], STK_ID_SIZE, "tpl-a");
    need.plan = true; /* a plan takes nothing away */
    stk_place(&view, &need, &choice);
    assert_int_equal(choice.warm, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_a_run_goes),
        cmocka_unit_test(warm_sandboxes_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
