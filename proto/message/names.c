#include "proto/message/check.h"
#include "proto/message/request.h"

static bool lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool alnum(char c)
{
    return lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

bool stk_env_name_ok(stk_str name)
{
    if (name.n == 0 || (name.p[0] >= '0' && name.p[0] <= '9'))
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!alnum(name.p[i]) && name.p[i] != '_')
            return false;
    return true;
}

bool stk_tenant_ok(stk_str tenant)
{
    if (tenant.n == 0 || tenant.n >= STK_TENANT_MAX)
        return false;
    for (size_t i = 0; i < tenant.n; i++)
        if (!lower_alnum(tenant.p[i]) && tenant.p[i] != '-')
            return false;
    return tenant.p[0] != '-' && tenant.p[tenant.n - 1] != '-';
}

bool stk_agent_ok(stk_str agent)
{
    if (agent.n == 0 || agent.n >= STK_AGENT_MAX || agent.p[0] == '.' || agent.p[0] == '-')
        return false;
    for (size_t i = 0; i < agent.n; i++)
        if (!alnum(agent.p[i]) && agent.p[i] != '.' && agent.p[i] != '_' && agent.p[i] != '-')
            return false;
    return true;
}

bool stk__word_ok(const char *words, stk_str text)
{
    while (*words) {
        size_t n = strcspn(words, "|");
        if (stk_str_eq(stk_str_n(words, n), text))
            return true;
        words += n + (words[n] == '|');
    }
    return false;
}

static bool hex_span(stk_str s, size_t from, size_t n)
{
    bool some = false;
    for (size_t i = from; i < from + n; i++) {
        char c = s.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        some |= c != '0';
    }
    return some;
}

/* W3C Trace Context, section 3.2: version, trace-id, parent-id, flags; all-zero ids and version ff are
 * invalid. */
bool stk__trace_ok(stk_str s)
{
    if (s.n != 55 || s.p[2] != '-' || s.p[35] != '-' || s.p[52] != '-')
        return false;
    bool flags = hex_span(s, 53, 2) || (s.p[53] == '0' && s.p[54] == '0');
    return s.p[0] == '0' && s.p[1] == '0' && hex_span(s, 3, 32) && hex_span(s, 36, 16) && flags;
}

void stk__pointer_add(char out[192], stk_str key)
{
    size_t at = strlen(out);
    if (at < 191)
        out[at++] = '/';
    for (size_t i = 0; i < key.n && at < 191; i++) {
        char c = key.p[i];
        if ((c == '~' || c == '/') && at < 190) {
            out[at++] = '~';
            out[at++] = c == '~' ? '0' : '1';
        } else {
            out[at++] = (unsigned char)c < 0x20 || c == 0x7f ? '?' : c;
        }
    }
    out[at] = '\0';
}

const char *stk__path_bad(stk_str path, size_t max)
{
    if (path.n == 0)
        return "must not be empty";
    if (path.n > max)
        return "is too long";
    if (path.p[0] == '/')
        return "must be relative to /workspace";
    if (memchr(path.p, '\0', path.n))
        return "must not hold NUL";
    for (size_t from = 0; from <= path.n;) {
        const char *slash = from < path.n ? memchr(path.p + from, '/', path.n - from) : NULL;
        size_t end = slash ? (size_t)(slash - path.p) : path.n;
        stk_str part = stk_str_n(path.p + from, end - from);
        if (part.n == 0 || stk_str_eq(part, STK_STR(".")) || stk_str_eq(part, STK_STR("..")))
            return "must not have empty, \".\" or \"..\" parts";
        if (part.n > 255)
            return "has a part longer than 255 bytes";
        from = end + 1;
    }
    return NULL;
}
