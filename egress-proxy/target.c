#include "egress-proxy/target.h"

stk_reason stk_target_fault(stk_head_fault fault)
{
    return stk_reason_of(stk_head_fault_text(fault));
}

static stk_reason fail(stk_err *why, stk_reason reason, const char *text)
{
    stk_err_set(why, STK_E_FIELD, "%s", text);
    return reason;
}

static stk_reason read_port(stk_str text, uint16_t *ret, stk_err *why)
{
    uint64_t port;
    if (!stk_str_u64(text, 65535, &port) || port == 0)
        return fail(why, STK_R_BAD_PORT, "a port is 1 to 65535 in plain digits");
    *ret = (uint16_t)port;
    return STK_R_ALLOWED;
}

/* Splits at the first colon outside brackets, so that whatever hides behind a second one is a bad port. */
static stk_reason read_authority(stk_str text, uint16_t port_if_none, stk_target *ret, stk_err *why)
{
    size_t n = text.n;
    if (n && text.p[0] == '[') {
        const char *end = memchr(text.p, ']', n);
        if (!end)
            return fail(why, STK_R_BAD_HOST, "a bracket is not closed");
        n = (size_t)(end - text.p) + 1;
        if (n < text.n && text.p[n] != ':')
            return fail(why, STK_R_BAD_HOST, "bytes follow a closing bracket");
    } else {
        const char *colon = n ? memchr(text.p, ':', n) : NULL;
        n = colon ? (size_t)(colon - text.p) : n;
    }
    if (stk_host_canonical(stk_str_n(text.p, n), ret->host, &ret->literal, why) < 0) {
        ret->host[0] = '\0';
        return STK_R_BAD_HOST;
    }
    if (n < text.n)
        return read_port(stk_str_n(text.p + n + 1, text.n - n - 1), &ret->port, why);
    if (!port_if_none)
        return fail(why, STK_R_BAD_PORT, "the port is missing");
    ret->port = port_if_none;
    return STK_R_ALLOWED;
}

static stk_reason read_absolute(stk_str target, stk_target *ret, stk_err *why)
{
    const char *colon = memchr(target.p, ':', target.n);
    size_t scheme = colon ? (size_t)(colon - target.p) : 0;
    if (!scheme || target.n < scheme + 3 || memcmp(colon, "://", 3) != 0)
        return fail(why, STK_R_BAD_TARGET, "a proxy is asked for http://host/… or CONNECT host:port");
    if (!stk_str_ieq(stk_str_n(target.p, scheme), STK_STR("http")))
        return fail(why, STK_R_BAD_SCHEME, "only http:// is forwarded; TLS goes through CONNECT");
    stk_str rest = {target.p + scheme + 3, target.n - scheme - 3};
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    if (memchr(rest.p, '@', n))
        return fail(why, STK_R_BAD_TARGET, "user information does not belong in a target");
    ret->path = stk_str_n(rest.p + n, rest.n - n);
    return read_authority(stk_str_n(rest.p, n), 80, ret, why);
}

stk_reason stk_target_read(const stk_head *head, stk_target *ret, stk_err *why)
{
    ret->connect = stk_str_eq(head->method, STK_STR("CONNECT"));
    ret->literal = false;
    ret->host[0] = '\0';
    ret->port = 0;
    ret->path = (stk_str){NULL, 0};
    if (!ret->connect)
        return read_absolute(head->target, ret, why);
    stk_reason reason = read_authority(head->target, 0, ret, why);
    if (reason == STK_R_ALLOWED && head->framing != STK_FRAMING_NONE)
        return fail(why, STK_R_BAD_FRAMING, "CONNECT has no body");
    return reason;
}

stk_reason stk_target_hostport(stk_str text, stk_target *ret, stk_err *why)
{
    *ret = (stk_target){.connect = true};
    return read_authority(text, 443, ret, why);
}
