#include "egress-proxy/reason.h"

static const struct {
    const char *code;
    stk_reason_kind kind;
    int status;
    const char *text;
} table[] = {
#define X(sym, code, kind, status, text) [STK_R_##sym] = {code, STK_REASON_##kind, status, text},
    STK_REASONS(X)
#undef X
};

const char *stk_reason_code(stk_reason reason)
{
    return table[reason].code;
}

stk_reason_kind stk_reason_kind_of(stk_reason reason)
{
    return table[reason].kind;
}

int stk_reason_status(stk_reason reason)
{
    return table[reason].status;
}

const char *stk_reason_text(stk_reason reason)
{
    return table[reason].text;
}

stk_reason stk_reason_of(const char *code)
{
    for (size_t i = 0; i < STK_COUNT(table); i++)
        if (strcmp(table[i].code, code) == 0)
            return (stk_reason)i;
    return STK_R_BAD_REQUEST;
}
