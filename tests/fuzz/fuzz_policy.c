/* The policy document: whatever loads answers every question, and an effective entry is one that some name
 * passes. */
#include "proto/policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_policy *policy = NULL;
    stk_err err = {.code = STK_OK};
    if (stk_policy_parse_text(stk_str_n(data, size), &policy, &err) < 0) {
        if (err.code != STK_E_POLICY || policy)
            abort();
        return 0;
    }
    stk_effective *v = NULL;
    size_t n = 0;
    if (stk_policy_effective(policy, &v, &n, NULL) < 0)
        abort();
    for (size_t i = 0; i < n; i++) {
        stk_entry entry;
        if (stk_entry_parse(stk_str_of(v[i].entry), &entry, NULL) < 0)
            abort();
        uint16_t port = entry.port ? entry.port : 443;
        stk_verdict verdict = stk_policy_judge(policy, entry.name, port);
        if (!entry.wildcard && verdict.allow && !v[i].effective)
            abort();
    }
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f};
    stk_addr_class cls;
    if (stk_policy_address_ok(policy, (const struct sockaddr *)&in, "localhost", 443, &cls))
        abort();
    free(v);
    stk_policy_free(policy);
    return 0;
}
