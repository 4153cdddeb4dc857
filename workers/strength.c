#include "workers/sandbox.h"

const char *stk_strength_text(stk_strength s)
{
    static const char *const texts[] = {"none", "container", "gvisor", "microvm"};
    return (unsigned)s < STK_COUNT(texts) ? texts[s] : "none";
}
