#include "proto/base/log.h"
#include "proto/base/buf.h"
#include "proto/base/time.h"
#include <stdarg.h>
#include <stdio.h>

/* A line holds the longest texts even when every byte of them is escaped (six for one). */
enum { LINE_MOST = 14 * 1024, MESSAGE_MOST = 1024, IDENTITY_MOST = 128 };

static struct {
    const char *program;
    bool json;
    stk_level least;
} setup = {.program = "stockade", .least = STK_LOG_INFO};

static const char *const names[] = {"debug", "info", "warn", "error"};

typedef struct line {
    char p[LINE_MOST];
    size_t n;
} line;

void stk_log_setup(const char *program, bool json, stk_level least)
{
    setup.program = program;
    setup.json = json;
    setup.least = least;
}

int stk_level_parse(const char *s, stk_level *ret)
{
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        if (strcmp(s, names[i]) == 0) {
            *ret = (stk_level)i;
            return 0;
        }
    }
    return -STK_E_FIELD;
}

static void put(line *l, const char *s, size_t n)
{
    if (n > LINE_MOST - l->n)
        n = 0;
    memcpy(l->p + l->n, s, n);
    l->n += n;
}

static void put_text(line *l, const char *s)
{
    put(l, s, strlen(s));
}

/* Length of the UTF-8 sequence at s (NUL-terminated) and its code point; 0 when there is none. */
static size_t decode(const unsigned char *s, uint32_t *ret_c)
{
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
               : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = n == 1 ? s[0] : n ? s[0] & (0x7fu >> n) : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (n && (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)))
        return 0;
    *ret_c = c;
    return n;
}

static void put_escape(line *l, uint32_t c)
{
    char esc[16];
    if (c < 0x10000)
        snprintf(esc, sizeof(esc), "\\u%04x", c);
    else
        snprintf(esc, sizeof(esc), "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                 0xdc00 + ((c - 0x10000) & 0x3ff));
    put_text(l, esc);
}

/* `spaces`: a space is escaped too, so that a value of the text form cannot pose as another field. */
static void put_value(line *l, const char *value, bool quotes, bool spaces)
{
    const unsigned char *s = (const unsigned char *)value;
    while (*s) {
        uint32_t c = 0xfffd;
        size_t n = decode(s, &c);
        if (n == 0 || stk_utf8_acts(stk_str_n((const char *)s, n)) || (spaces && c == ' '))
            put_escape(l, c);
        else if (c == '\\' || (quotes && c == '"'))
            put(l, (char[]){'\\', (char)c}, 2);
        else
            put(l, (const char *)s, n);
        s += n ? n : 1;
    }
}

static void put_field(line *l, const char *key, const char *value, size_t most)
{
    if (!value)
        return;
    char cut[MESSAGE_MOST];
    snprintf(cut, stk_min(most, sizeof(cut)), "%s", value);
    put_text(l, setup.json ? ",\"" : " ");
    put_text(l, key);
    put_text(l, setup.json ? "\":\"" : "=");
    put_value(l, cut, setup.json, !setup.json);
    if (setup.json)
        put(l, "\"", 1);
}

static void put_head(line *l, stk_level level, const stk_who *who)
{
    char when[STK_WALL_TEXT];
    stk_wall_format(stk_wall_now(), when);
    put_text(l, setup.json ? "{\"time\":\"" : "");
    put_text(l, when);
    put_text(l, setup.json ? "\",\"level\":\"" : " ");
    put_text(l, names[level]);
    put_text(l, setup.json ? "\",\"program\":\"" : " ");
    put_value(l, setup.program, setup.json, !setup.json);
    if (setup.json)
        put(l, "\"", 1);
    if (!who)
        return;
    put_field(l, "run", who->run, IDENTITY_MOST);
    put_field(l, "tenant", who->tenant, IDENTITY_MOST);
    put_field(l, "assignment", who->assignment, IDENTITY_MOST);
    put_field(l, "sandbox", who->sandbox, IDENTITY_MOST);
}

static void emit(stk_level level, const stk_who *who, const stk_err *err, const char *message)
{
    line l = {.n = 0};
    put_head(&l, level, who);
    if (err)
        put_field(&l, "code", stk_code_text(err->code), IDENTITY_MOST);
    put_text(&l, setup.json ? ",\"message\":\"" : " ");
    put_value(&l, message, setup.json, false);
    if (err && err->detail[0]) {
        put_text(&l, setup.json ? "\",\"detail\":\"" : ": ");
        put_value(&l, err->detail, setup.json, false);
    }
    put_text(&l, setup.json ? "\"}\n" : "\n");
    ssize_t ignored = write(STDERR_FILENO, l.p, l.n);
    (void)ignored;
}

void stk_log(stk_level level, const stk_who *who, const char *fmt, ...)
{
    if (level < setup.least)
        return;
    char message[MESSAGE_MOST];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    emit(level, who, NULL, message);
}

void stk_log_err(stk_level level, const stk_who *who, const stk_err *err, const char *fmt, ...)
{
    if (level < setup.least)
        return;
    char message[MESSAGE_MOST];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    emit(level, who, err, message);
}
