#include "proto/policy/idn.h"
#include "proto/policy/policy.h"
#include <arpa/inet.h>

#define NAME_LONGEST 253
#define TEXT_LONGEST 1024 /* a U-label name in UTF-8 */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* "1", "017", "0x7f", "0x": what inet_aton would read as a part of an address. */
static bool is_number(stk_str label)
{
    size_t i = 0;
    bool hex = label.n >= 2 && label.p[0] == '0' && label.p[1] == 'x';
    for (i = hex ? 2 : 0; i < label.n; i++)
        if (hex ? !is_hex(label.p[i]) : !is_digit(label.p[i]))
            return false;
    return true;
}

static int ascii_label(stk_str label, char out[STK_LABEL_MAX], stk_err *err)
{
    if (label.n >= STK_LABEL_MAX)
        return stk_err_set(err, STK_E_FIELD, "a label is longer than 63");
    for (size_t i = 0; i < label.n; i++) {
        char c = label.p[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c + 0x20);
        if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_')
            return c > 0x20 && c < 0x7f
                       ? stk_err_set(err, STK_E_FIELD, "'%c' can't stand in a host name", c)
                       : stk_err_set(err, STK_E_FIELD, "byte 0x%02x can't stand in a host name",
                                     (unsigned char)c);
        out[i] = c;
    }
    out[label.n] = '\0';
    if (out[0] == '-' || out[label.n - 1] == '-')
        return stk_err_set(err, STK_E_FIELD, "a label starts or ends with '-'");
    stk_str made = stk_str_n(out, label.n);
    return stk_str_starts(made, STK_STR("xn--")) ? stk__idn_verify(made, err) : 0;
}

static int canonical_label(stk_str label, char out[STK_LABEL_MAX], stk_err *err)
{
    if (!label.n)
        return stk_err_set(err, STK_E_FIELD, "a label is empty");
    for (size_t i = 0; i < label.n; i++)
        if ((unsigned char)label.p[i] >= 0x80)
            return stk__idn_encode(label, out, err);
    return ascii_label(label, out, err);
}

/* "[v6]" in any spelling; a zone id is never taken. */
static int bracketed(stk_str host, char out[STK_NAME_MAX], stk_err *err)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr addr;
    if (host.p[host.n - 1] != ']' || !stk_str_copy(stk_str_n(host.p + 1, host.n - 2), text, sizeof(text)) ||
        inet_pton(AF_INET6, text, &addr) != 1)
        return stk_err_set(err, STK_E_FIELD, "brackets hold no IPv6 address");
    out[0] = '[';
    inet_ntop(AF_INET6, &addr, out + 1, INET6_ADDRSTRLEN);
    size_t n = strlen(out);
    out[n] = ']';
    out[n + 1] = '\0';
    return 0;
}

int stk_host_canonical(stk_str host, char out[STK_NAME_MAX], bool *ret_literal, stk_err *err)
{
    if (!host.n)
        return stk_err_set(err, STK_E_FIELD, "the host is empty");
    if (host.n > TEXT_LONGEST)
        return stk_err_set(err, STK_E_FIELD, "a host name is longer than %d", NAME_LONGEST);
    char name[STK_NAME_MAX];
    if (host.p[0] == '[') {
        if (bracketed(host, name, err) < 0)
            return -STK_E_FIELD;
        memcpy(out, name, sizeof(name));
        *ret_literal = true;
        return 0;
    }
    if (host.p[host.n - 1] == '.')
        host.n--;
    size_t n = 0, last = 0;
    for (size_t at = 0; at <= host.n;) {
        const char *dot = host.n > at ? memchr(host.p + at, '.', host.n - at) : NULL;
        size_t len = (dot ? (size_t)(dot - host.p) : host.n) - at;
        char label[STK_LABEL_MAX];
        if (canonical_label(stk_str_n(host.p + at, len), label, err) < 0)
            return -STK_E_FIELD;
        size_t add = strlen(label);
        if (n + (n > 0) + add > NAME_LONGEST)
            return stk_err_set(err, STK_E_FIELD, "a host name is longer than %d", NAME_LONGEST);
        if (n)
            name[n++] = '.';
        last = n;
        memcpy(name + n, label, add);
        n += add;
        at += len + 1;
    }
    name[n] = '\0';
    memcpy(out, name, n + 1);
    *ret_literal = is_number(stk_str_n(name + last, n - last));
    return 0;
}
