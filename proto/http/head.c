#include "proto/http/head_impl.h"

#define ALNUM (STK__C_TOKEN | STK__C_VALUE | STK__C_TARGET | STK__C_HOST)
#define THV   (STK__C_TOKEN | STK__C_VALUE | STK__C_TARGET | STK__C_HOST)
#define TV    (STK__C_TOKEN | STK__C_VALUE | STK__C_TARGET)
#define HV    (STK__C_VALUE | STK__C_TARGET | STK__C_HOST)
#define V     (STK__C_VALUE | STK__C_TARGET)
#define ONLY  STK__C_VALUE

const uint8_t stk__byte_class[256] = {
    ['0' ... '9'] = ALNUM,
    ['A' ... 'Z'] = ALNUM,
    ['a' ... 'z'] = ALNUM,
    ['!'] = THV,
    ['$'] = THV,
    ['%'] = THV,
    ['&'] = THV,
    ['\''] = THV,
    ['*'] = THV,
    ['+'] = THV,
    ['-'] = THV,
    ['.'] = THV,
    ['_'] = THV,
    ['~'] = THV,
    ['^'] = TV,
    ['`'] = TV,
    ['|'] = TV,
    ['('] = HV,
    [')'] = HV,
    [':'] = HV,
    [';'] = HV,
    ['='] = HV,
    ['['] = HV,
    [']'] = HV,
    [','] = V,
    ['/'] = V,
    ['?'] = V,
    ['@'] = V,
    ['{'] = V,
    ['}'] = V,
    ['#'] = STK__C_TOKEN | STK__C_VALUE,
    ['"'] = ONLY,
    ['<'] = ONLY,
    ['>'] = ONLY,
    ['\\'] = ONLY,
    [' '] = ONLY,
    ['\t'] = ONLY,
    [0x80 ... 0xff] = ONLY,
};

const char *stk_head_fault_text(stk_head_fault fault)
{
    static const char *const texts[] = {[STK_HEAD_OK] = "ok",
#define X(sym, text, status) [STK_HEAD_##sym] = text,
                                        STK_HEAD_FAULTS(X)
#undef X
    };
    return (size_t)fault < STK_COUNT(texts) ? texts[fault] : "bad_request";
}

int stk_head_fault_status(stk_head_fault fault)
{
    static const int statuses[] = {[STK_HEAD_OK] = 200,
#define X(sym, text, status) [STK_HEAD_##sym] = status,
                                   STK_HEAD_FAULTS(X)
#undef X
    };
    return (size_t)fault < STK_COUNT(statuses) ? statuses[fault] : 400;
}

bool stk_is_token(stk_str s)
{
    return s.n > 0 && stk__all(s, STK__C_TOKEN);
}

static stk_head_fault parse_version(stk__parse *parse, stk_str s, stk_head_fault shape)
{
    if (s.n != 8 || memcmp(s.p, "HTTP/", 5) != 0 || s.p[6] != '.' || s.p[5] < '0' || s.p[5] > '9' ||
        s.p[7] < '0' || s.p[7] > '9')
        return stk__fail(parse, shape, "the HTTP version is malformed");
    if (s.p[5] != '1' || s.p[7] > '1')
        return stk__fail(parse, STK_HEAD_VERSION, "only HTTP/1.0 and HTTP/1.1 are spoken");
    parse->head->minor = s.p[7] - '0';
    return STK_HEAD_OK;
}

static bool is_alpha(char c)
{
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'z';
}

/* A scheme without its "//", unlike an authority, whose colon has digits after it. */
static bool is_scheme(stk_str target, const char *colon)
{
    const char *after = colon + 1;
    bool port = after < target.p + target.n && *after >= '0' && *after <= '9';
    return colon != target.p && is_alpha(target.p[0]) && !port &&
           !memchr(target.p, '/', (size_t)(colon - target.p));
}

/* Which of the four forms of RFC 9112 section 3.2 it may be; what it names is for the caller to judge. */
static stk_head_fault target_form(stk_str method, stk_str target)
{
    if (stk_str_eq(method, STK_STR("CONNECT")))
        return memchr(target.p, '/', target.n) || memchr(target.p, '@', target.n) ||
                       memchr(target.p, '?', target.n)
                   ? STK_HEAD_TARGET
                   : STK_HEAD_OK;
    if (target.p[0] == '/')
        return STK_HEAD_OK;
    if (target.n == 1 && target.p[0] == '*')
        return stk_str_eq(method, STK_STR("OPTIONS")) ? STK_HEAD_OK : STK_HEAD_TARGET;
    const char *colon = memchr(target.p, ':', target.n);
    if (!colon || !is_scheme(target, colon))
        return STK_HEAD_TARGET;
    bool slashes = target.p + target.n - colon > 3 && colon[1] == '/' && colon[2] == '/';
    return slashes ? STK_HEAD_OK : STK_HEAD_SCHEME;
}

static bool is_printing(stk_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((uint8_t)s.p[i] <= ' ' || (uint8_t)s.p[i] >= 0x7f)
            return false;
    return true;
}

static stk_head_fault parse_request_line(stk__parse *parse, stk_str line)
{
    stk_head *head = parse->head;
    const char *sp = memchr(line.p, ' ', line.n);
    if (!sp)
        return stk__fail(parse, STK_HEAD_REQUEST_LINE, "the request line is not METHOD TARGET VERSION");
    head->method = stk_str_n(line.p, (size_t)(sp - line.p));
    if (!stk_is_token(head->method))
        return stk__fail(parse, STK_HEAD_REQUEST_LINE, "the method is not a token");
    stk_str rest = {sp + 1, line.n - head->method.n - 1};
    const char *end = memrchr(rest.p, ' ', rest.n);
    if (!end)
        return stk__fail(parse, STK_HEAD_VERSION, "the request line has no HTTP version");
    head->target = stk_str_n(rest.p, (size_t)(end - rest.p));
    stk_str version = {end + 1, rest.n - head->target.n - 1};
    stk_head_fault fault = parse_version(parse, version, STK_HEAD_REQUEST_LINE);
    if (fault)
        return fault;
    if (head->target.n == 0 || !is_printing(head->target))
        return stk__fail(parse, STK_HEAD_REQUEST_LINE,
                         "blanks, control bytes or none at all where the target goes");
    if (!stk__all(head->target, STK__C_TARGET))
        return stk__fail(parse, STK_HEAD_TARGET, "the request target holds a character that it must not");
    fault = target_form(head->method, head->target);
    return fault ? stk__fail(parse, fault, "the request target has none of the four forms") : STK_HEAD_OK;
}

static stk_head_fault parse_status_line(stk__parse *parse, stk_str line)
{
    stk_head *head = parse->head;
    if (line.n < 12 || line.p[8] != ' ')
        return stk__fail(parse, STK_HEAD_STATUS_LINE, "the status line is malformed");
    stk_head_fault fault = parse_version(parse, stk_str_n(line.p, 8), STK_HEAD_STATUS_LINE);
    if (fault)
        return fault;
    int status = 0;
    for (int i = 9; i < 12; i++) {
        if (line.p[i] < '0' || line.p[i] > '9')
            return stk__fail(parse, STK_HEAD_STATUS_LINE, "the status is not three digits");
        status = status * 10 + (line.p[i] - '0');
    }
    if (status < 100 || status > 599 || (line.n > 12 && line.p[12] != ' '))
        return stk__fail(parse, STK_HEAD_STATUS_LINE, "the status is out of range");
    head->status = status;
    head->reason = line.n > 13 ? stk_str_n(line.p + 13, line.n - 13) : (stk_str){NULL, 0};
    if (!stk__all(head->reason, STK__C_VALUE))
        return stk__fail(parse, STK_HEAD_STATUS_LINE, "the reason holds control bytes");
    return STK_HEAD_OK;
}

static void reset(stk_head *head)
{
    head->method = head->target = head->reason = head->host = (stk_str){NULL, 0};
    head->status = head->minor = 0;
    head->nfields = 0;
    head->framing = STK_FRAMING_NONE;
    head->length = 0;
    head->keep_alive = head->expect_continue = head->expect_other = head->upgrade = false;
}

typedef stk_head_fault (*line_fn)(stk__parse *parse, stk_str line);

/* Walks the lines that arrived since the last call. Sets *ret_end to the length of the head once the empty
 * line is there, and checks the first line as soon as it is whole: who speaks another protocol need not be
 * waited for. */
static stk_head_fault find_end(stk__parse *parse, stk_str in, size_t limit, size_t *scan, line_fn first,
                               size_t *ret_end)
{
    size_t from = *scan < in.n ? *scan : in.n;
    const char *before = from ? memrchr(in.p, '\n', from) : NULL;
    size_t line = before ? (size_t)(before - in.p) + 1 : 0;
    size_t most = stk_min(in.n, limit);
    while (from < most) {
        const char *lf = memchr(in.p + from, '\n', most - from);
        if (!lf)
            break;
        size_t at = (size_t)(lf - in.p);
        if (at == line || in.p[at - 1] != '\r')
            return stk__fail(parse, STK_HEAD_FRAMING, "a line ends in a bare LF");
        if (line == 0) {
            stk_head_fault fault = first(parse, stk_str_n(in.p, at - 1));
            if (fault)
                return fault;
        } else if (at - 1 == line) {
            *ret_end = at + 1;
            return STK_HEAD_OK;
        }
        line = from = at + 1;
    }
    *scan = most;
    if (most == limit)
        return stk__fail(parse, STK_HEAD_TOO_LARGE, "the head is larger than the limit");
    return STK_HEAD_OK;
}

static ptrdiff_t run(stk_str in, const stk_head_limits *limits, size_t *scan, line_fn first,
                     stk__parse *parse, stk_head_fault *ret_fault)
{
    size_t bytes = limits && limits->bytes ? limits->bytes : 16384;
    size_t fields = limits && limits->fields ? limits->fields : STK_HEAD_MAX_FIELDS;
    parse->max_fields = stk_min(fields, STK_HEAD_MAX_FIELDS);
    reset(parse->head);
    size_t end = 0;
    stk_head_fault fault = find_end(parse, in, bytes, scan, first, &end);
    if (!fault && end) {
        const char *lf = memchr(in.p, '\n', end);
        size_t start = (size_t)(lf - in.p) + 1;
        fault = first(parse, stk_str_n(in.p, start - 2));
        if (!fault)
            fault = stk__head_fields(parse, stk_str_n(in.p + start, end - 2 - start));
    }
    *ret_fault = fault;
    return fault ? -1 : (ptrdiff_t)end;
}

ptrdiff_t stk_head_request(stk_str in, const stk_head_limits *limits, size_t *scan, stk_head *ret,
                           stk_head_fault *ret_fault, const char **ret_why)
{
    stk__parse parse = {.head = ret};
    ptrdiff_t used = run(in, limits, scan, parse_request_line, &parse, ret_fault);
    if (used > 0 && (*ret_fault = stk__request_framing(&parse)) != STK_HEAD_OK)
        used = -1;
    if (used < 0)
        *ret_why = parse.why;
    return used;
}

ptrdiff_t stk_head_response(stk_str in, const stk_head_limits *limits, size_t *scan, bool to_head,
                            bool to_connect, stk_head *ret, stk_head_fault *ret_fault, const char **ret_why)
{
    stk__parse parse = {.head = ret};
    ptrdiff_t used = run(in, limits, scan, parse_status_line, &parse, ret_fault);
    if (used > 0 && (*ret_fault = stk__response_framing(&parse, to_head, to_connect)) != STK_HEAD_OK)
        used = -1;
    if (used < 0)
        *ret_why = parse.why;
    return used;
}
