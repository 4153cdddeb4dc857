#include "proto/policy/policy.h"
#include <stdio.h>

#define ENTRY_LONGEST 1100

static int split_port(stk_str *text, uint16_t *ret_port, stk_err *err)
{
    const char *colon = memchr(text->p, ':', text->n);
    *ret_port = 0;
    if (!colon)
        return 0;
    stk_str digits = stk_str_n(colon + 1, text->n - (size_t)(colon + 1 - text->p));
    uint64_t port;
    if (!stk_str_u64(digits, 65535, &port) || !port)
        return stk_err_set(err, STK_E_FIELD, "the port must be 1 to 65535, written plainly");
    *ret_port = (uint16_t)port;
    text->n = (size_t)(colon - text->p);
    return 0;
}

static int refuse_shape(stk_str text, stk_err *err)
{
    if (!text.n)
        return stk_err_set(err, STK_E_FIELD, "an entry is empty");
    if (text.n > ENTRY_LONGEST)
        return stk_err_set(err, STK_E_FIELD, "an entry is too long");
    if (stk_str_eq(text, STK_STR("*")))
        return stk_err_set(err, STK_E_FIELD, "'*' would match everything; name hosts or \"*.suffix\"");
    if (memchr(text.p, '/', text.n))
        return stk_err_set(err, STK_E_FIELD,
                           "an entry is a host name with an optional port, no URL, path or network");
    if (memchr(text.p, '@', text.n))
        return stk_err_set(err, STK_E_FIELD, "an entry has no user name");
    if (text.p[0] == '[')
        return stk_err_set(err, STK_E_FIELD, "an entry is a name, not an address");
    return 0;
}

int stk_entry_parse(stk_str text, stk_entry *ret, stk_err *err)
{
    stk_entry entry = {.wildcard = false};
    if (refuse_shape(text, err) < 0 || split_port(&text, &entry.port, err) < 0)
        return -STK_E_FIELD;
    if (stk_str_starts(text, STK_STR("*."))) {
        entry.wildcard = true;
        text.p += 2;
        text.n -= 2;
    }
    if (text.n && memchr(text.p, '*', text.n))
        return stk_err_set(err, STK_E_FIELD, "'*' stands only in front, as \"*.suffix\"");
    bool literal;
    if (stk_host_canonical(text, entry.name, &literal, err) < 0)
        return -STK_E_FIELD;
    if (literal)
        return stk_err_set(err, STK_E_FIELD, "an entry is a name, not an address");
    if (entry.wildcard && !strchr(entry.name, '.'))
        return stk_err_set(err, STK_E_FIELD, "\"*.%s\" is too wide: at least two labels must follow \"*.\"",
                           entry.name);
    *ret = entry;
    return 0;
}

void stk_entry_text(const stk_entry *entry, char out[STK_NAME_MAX + 8])
{
    const char *front = entry->wildcard ? "*." : "";
    if (entry->port)
        snprintf(out, STK_NAME_MAX + 8, "%s%.253s:%u", front, entry->name, entry->port);
    else
        snprintf(out, STK_NAME_MAX + 8, "%s%.253s", front, entry->name);
}

/* `name` lies below `suffix`, not at it. */
static bool below(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m + 1 && name[n - m - 1] == '.' && memcmp(name + n - m, suffix, m) == 0;
}

static bool port_in(uint16_t of_entry, uint16_t port)
{
    return of_entry ? of_entry == port : port == 80 || port == 443;
}

bool stk_entry_matches(const stk_entry *entry, const char *host, uint16_t port)
{
    if (!port_in(entry->port, port))
        return false;
    return entry->wildcard ? below(host, entry->name) : strcmp(host, entry->name) == 0;
}

bool stk_entry_covers(const stk_entry *a, const stk_entry *b)
{
    if (a->port != b->port && (a->port || !port_in(0, b->port)))
        return false;
    if (!a->wildcard)
        return !b->wildcard && strcmp(a->name, b->name) == 0;
    return below(b->name, a->name) || (b->wildcard && strcmp(a->name, b->name) == 0);
}

/* Suffixes below which strangers register names; the common ones of the public suffix list, for a warning
 * only. */
static const char *const public_suffixes[] = {
    "co.uk",
    "org.uk",
    "ac.uk",
    "gov.uk",
    "me.uk",
    "com.au",
    "net.au",
    "org.au",
    "co.jp",
    "ne.jp",
    "or.jp",
    "co.nz",
    "co.za",
    "com.br",
    "com.cn",
    "com.mx",
    "com.ar",
    "com.tr",
    "com.tw",
    "com.sg",
    "com.hk",
    "com.ua",
    "co.kr",
    "co.in",
    "co.il",
    "co.id",
    "github.io",
    "gitlab.io",
    "herokuapp.com",
    "appspot.com",
    "cloudfront.net",
    "amazonaws.com",
    "s3.amazonaws.com",
    "azurewebsites.net",
    "azureedge.net",
    "cloudapp.net",
    "windows.net",
    "core.windows.net",
    "blob.core.windows.net",
    "pages.dev",
    "workers.dev",
    "r2.dev",
    "vercel.app",
    "netlify.app",
    "web.app",
    "firebaseapp.com",
    "run.app",
    "fly.dev",
    "onrender.com",
    "ngrok.io",
    "ngrok.app",
    "ngrok-free.app",
    "duckdns.org",
    "trycloudflare.com",
    "blogspot.com",
    "fastly.net",
    "akamaized.net",
    "b-cdn.net",
    "repl.co",
    "glitch.me",
    "readthedocs.io",
    "myshopify.com",
    "dyndns.org",
    "no-ip.org",
    "translate.goog",
    "googleusercontent.com",
};

bool stk_entry_over_public_suffix(const stk_entry *entry)
{
    for (size_t i = 0; entry->wildcard && i < STK_COUNT(public_suffixes); i++)
        if (strcmp(entry->name, public_suffixes[i]) == 0)
            return true;
    return false;
}
