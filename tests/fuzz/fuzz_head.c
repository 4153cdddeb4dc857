/* A head decides the same in one piece as in two, its slices lie inside it, and nothing that could end a line
 * or move the end of a message gets through. First byte: which kind of head; second: where it is cut. */
#include "proto/http/head.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool inside(stk_str whole, stk_str part)
{
    return part.n == 0 || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static bool clean(stk_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\r' || s.p[i] == '\n' || s.p[i] == '\0' || s.p[i] == 0x7f)
            return false;
    return true;
}

static size_t count(const stk_head *head, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < head->nfields; i++)
        n += stk_str_ieq(head->fields[i].name, stk_str_of(name));
    return n;
}

static void check_head(stk_str in, size_t used, const stk_head *head, bool request)
{
    check(used >= 4 && used <= in.n && memcmp(in.p + used - 4, "\r\n\r\n", 4) == 0);
    check(inside(in, head->method) && inside(in, head->target) && inside(in, head->reason) &&
          clean(head->target));
    for (size_t i = 0; i < head->nfields; i++) {
        check(inside(in, head->fields[i].name) && inside(in, head->fields[i].value));
        check(stk_is_token(head->fields[i].name) && clean(head->fields[i].value));
    }
    size_t lengths = count(head, "content-length"), codings = count(head, "transfer-encoding");
    check(lengths <= 1 && codings <= 1 && lengths + codings <= 1 && count(head, "host") <= 1);
    check(head->framing != STK_FRAMING_LENGTH || (lengths == 1 && head->length > 0));
    check(head->framing != STK_FRAMING_CHUNKED || (codings == 1 && head->minor == 1));
    check(!request || (head->framing != STK_FRAMING_CLOSE && (head->minor == 0 || head->host.n > 0)));
    check(request || (head->status >= 100 && head->status <= 599));
}

typedef struct verdict {
    ptrdiff_t used;
    stk_head_fault fault;
} verdict;

static verdict parse(uint8_t kind, stk_str in, size_t *scan, stk_head *head)
{
    const stk_head_limits limits = {.bytes = 600, .fields = 12};
    verdict v = {0, STK_HEAD_OK};
    const char *why;
    if (kind & 1)
        v.used = stk_head_response(in, &limits, scan, kind & 2, kind & 4, head, &v.fault, &why);
    else
        v.used = stk_head_request(in, &limits, scan, head, &v.fault, &why);
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static stk_head head;
    if (size < 2)
        return 0;
    stk_str in = stk_str_n(data + 2, size - 2);
    size_t scan = 0, cut = in.n ? data[1] * in.n / 256 : 0;
    verdict once = parse(data[0], in, &scan, &head);
    if (once.used > 0)
        check_head(in, (size_t)once.used, &head, !(data[0] & 1));
    check((once.used < 0) == (once.fault != STK_HEAD_OK));
    scan = 0;
    verdict twice = parse(data[0], stk_str_n(in.p, cut), &scan, &head);
    if (twice.used == 0)
        twice = parse(data[0], in, &scan, &head);
    check(twice.used == once.used && twice.fault == once.fault);
    return 0;
}
