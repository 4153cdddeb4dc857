#include "proto/base/id.h"
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
enum { ID_CHARS = 26, TIME_CHARS = 10, LABEL_MOST = 63, HASH_TAIL = 9 };

void stk_random(void *p, size_t n)
{
    uint8_t *at = p;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort(); /* no kernel we run on refuses; ids and keys without randomness must not exist */
        at += got;
        n -= (size_t)got;
    }
}

/* 130 bits in 26 characters: two zero bits first, so that the text sorts as the bytes do. */
void stk_id_from(const char *prefix, const uint8_t bytes[16], char out[STK_ID_SIZE])
{
    unsigned __int128 v = 0;
    for (int i = 0; i < 16; i++)
        v = v << 8 | bytes[i];
    char text[ID_CHARS + 1];
    for (int i = ID_CHARS - 1; i >= 0; i--, v >>= 5)
        text[i] = alphabet[(unsigned)v & 31];
    text[ID_CHARS] = '\0';
    snprintf(out, STK_ID_SIZE, "%.12s-%s", prefix, text);
}

void stk_id_new(const char *prefix, stk_wall now, char out[STK_ID_SIZE])
{
    uint8_t bytes[16];
    uint64_t ms = now.ns > 0 ? (uint64_t)now.ns / 1000000 : 0;
    for (int i = 5; i >= 0; i--, ms >>= 8)
        bytes[i] = (uint8_t)ms;
    stk_random(bytes + 6, 10);
    stk_id_from(prefix, bytes, out);
}

static int digit_of(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

static bool text_valid(stk_str s)
{
    if (s.n != ID_CHARS || digit_of(s.p[0]) > 7)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (digit_of(s.p[i]) < 0)
            return false;
    return true;
}

bool stk_id_valid(const char *prefix, stk_str s)
{
    size_t n = strlen(prefix);
    if (s.n != n + 1 + ID_CHARS || memcmp(s.p, prefix, n) != 0 || s.p[n] != '-')
        return false;
    return text_valid(stk_str_n(s.p + n + 1, ID_CHARS));
}

stk_wall stk_id_time(stk_str id)
{
    if (id.n < ID_CHARS + 1 || !text_valid(stk_str_n(id.p + id.n - ID_CHARS, ID_CHARS)))
        return (stk_wall){0};
    int64_t ms = 0;
    for (size_t i = id.n - ID_CHARS; i < id.n - ID_CHARS + TIME_CHARS; i++)
        ms = ms << 5 | digit_of(id.p[i]);
    return (stk_wall){ms > INT64_MAX / 1000000 ? INT64_MAX : ms * 1000000};
}

/* FNV-1a, folded to 32 bits. Static programs link this file, so no OpenSSL here. */
static uint32_t hash_of(stk_str s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}

static bool ends_like_a_hash(stk_str s)
{
    if (s.n < HASH_TAIL || s.p[s.n - HASH_TAIL] != '-')
        return false;
    for (size_t i = s.n - HASH_TAIL + 1; i < s.n; i++)
        if (!strchr("0123456789abcdef", s.p[i]) || !s.p[i])
            return false;
    return true;
}

static bool alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static char label_char(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return alnum(c) ? c : '-';
}

void stk_name_label(stk_str any, char out[64])
{
    size_t n = 0;
    /* "a-01234567" itself could meet the label made of another name, so it counts as changed. */
    bool changed = any.n == 0 || any.n > LABEL_MOST || ends_like_a_hash(any);
    for (size_t i = 0; i < any.n && n < LABEL_MOST; i++) {
        char c = label_char(any.p[i]);
        changed |= c != any.p[i];
        if (n > 0 || c != '-')
            out[n++] = c;
    }
    changed |= n == 0 || n != any.n || !alnum(out[n - 1]);
    if (changed)
        n = stk_min(n, LABEL_MOST - HASH_TAIL);
    while (n > 0 && out[n - 1] == '-')
        n--;
    if (n == 0)
        out[n++] = 'x';
    out[n] = '\0';
    if (changed)
        snprintf(out + n, 64 - n, "-%08x", hash_of(any));
}
