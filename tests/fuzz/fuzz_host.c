/* Canonical form and entries: whatever passes is a fixed point and within its bounds. */
#include "proto/policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_str text = stk_str_n(data, size);
    char once[STK_NAME_MAX], twice[STK_NAME_MAX];
    bool a, b;
    stk_err err;
    if (stk_host_canonical(text, once, &a, &err) == 0) {
        need(strlen(once) <= 253 && once[0]);
        need(stk_host_canonical(stk_str_of(once), twice, &b, NULL) == 0);
        need(strcmp(once, twice) == 0 && a == b);
    }
    stk_entry entry, again;
    if (stk_entry_parse(text, &entry, &err) == 0) {
        char out[STK_NAME_MAX + 8];
        stk_entry_text(&entry, out);
        need(stk_entry_parse(stk_str_of(out), &again, NULL) == 0);
        need(stk_entry_covers(&entry, &again) && stk_entry_covers(&again, &entry));
    }
    return 0;
}
