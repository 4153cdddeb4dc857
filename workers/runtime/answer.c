#include "workers/runtime/answer.h"
#include <stdio.h>

#define SMALL        65536 /* bytes of output that are answered with a length */
#define TEXT_PIECE   16384
#define BASE64_PIECE 24576 /* a multiple of 3 */
#define RAW_MAX      4096

static void begin_raw(stk_answer *a)
{
    if (a->n == 0 || a->pieces[a->n - 1].kind != STK_PIECE_RAW)
        a->pieces[a->n++] = (stk_piece){.kind = STK_PIECE_RAW, .raw_at = a->raw.n};
}

static void add_raw(stk_answer *a, const char *text)
{
    begin_raw(a);
    stk_buf_text(&a->raw, text);
    a->pieces[a->n - 1].bytes.n = a->raw.n - a->pieces[a->n - 1].raw_at;
}

static void add_bytes(stk_answer *a, stk_piece_kind kind, stk_str s)
{
    if (s.n > 0)
        a->pieces[a->n++] = (stk_piece){.kind = kind, .bytes = s};
    a->left += s.n;
}

static void add_text(stk_answer *a, const char *name, const stk_kept *kept)
{
    add_raw(a, name);
    add_bytes(a, STK_PIECE_TEXT, kept->head);
    if (kept->gap) {
        char marker[64];
        snprintf(marker, sizeof(marker), "\\n[... %llu bytes left out ...]\\n",
                 (unsigned long long)kept->gap);
        add_raw(a, marker);
        add_bytes(a, STK_PIECE_TEXT, kept->tail);
    }
}

/* A head that is followed by more must end on a whole group. */
static void add_base64(stk_answer *a, const char *name, const stk_kept *kept)
{
    add_raw(a, name);
    size_t head = kept->tail.n ? kept->head.n - kept->head.n % 3 : kept->head.n;
    add_bytes(a, STK_PIECE_BASE64, stk_str_n(kept->head.p, head));
    add_bytes(a, STK_PIECE_BASE64, kept->tail);
}

static void write_gap(stk_jw *w, const char *name, const stk_kept *kept, bool base64)
{
    if (!kept->gap)
        return;
    size_t cut = base64 && kept->tail.n ? kept->head.n % 3 : 0;
    stk_jw_key(w, name);
    stk_jw_object(w);
    stk_jw_kint(w, "at", (int64_t)(kept->head.n - cut));
    stk_jw_kint(w, "bytes", (int64_t)(kept->gap + cut));
    stk_jw_close(w, '}');
}

static void add_members(stk_answer *a, const stk_kept kept[2], const stk_exec_end *end, bool base64)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(RAW_MAX);
    stk_jw w;
    stk_jw_init(&w, &text);
    stk_jw_object(&w);
    stk_exec_end_write_members(&w, end);
    write_gap(&w, "stdout_gap", &kept[0], base64);
    write_gap(&w, "stderr_gap", &kept[1], base64);
    stk_jw_close(&w, '}');
    stk_jw_end(&w, NULL);
    add_raw(a, "\",");
    add_raw(a, text.p + 1); /* without its '{' */
}

void stk_answer_init(stk_answer *answer, const stk_kept kept[2], stk_exec_end *end, bool base64)
{
    *answer = (stk_answer){.raw = STK_BUF(RAW_MAX), .scratch = STK_BUF(8 * TEXT_PIECE)};
    end->truncated = kept[0].gap || kept[1].gap;
    add_text(answer, "{\"stdout\":\"", &kept[0]);
    add_text(answer, "\",\"stderr\":\"", &kept[1]);
    if (base64) {
        add_base64(answer, "\",\"stdout_base64\":\"", &kept[0]);
        add_base64(answer, "\",\"stderr_base64\":\"", &kept[1]);
    }
    add_members(answer, kept, end, base64);
}

/* The string's text without its quotes. */
static void encode_text(stk_buf *out, stk_str s)
{
    stk_jw w;
    size_t at = out->n;
    stk_jw_init(&w, out);
    stk_jw_str(&w, s);
    memmove(out->p + at, out->p + at + 1, out->n - at - 2);
    out->n -= 2;
}

/* The next few bytes of the answer, appended; false when there are none. */
static bool next(stk_answer *a, stk_buf *out)
{
    if (a->at == a->n)
        return false;
    stk_piece *p = &a->pieces[a->at];
    size_t n = p->bytes.n;
    if (p->kind == STK_PIECE_RAW) {
        stk_buf_add(out, a->raw.p + p->raw_at, n);
    } else if (p->kind == STK_PIECE_BASE64) {
        n = stk_min(n, BASE64_PIECE);
        stk_base64_encode(out, stk_str_n(p->bytes.p, n));
    } else {
        if (n > TEXT_PIECE)
            n = TEXT_PIECE - stk_utf8_unfinished(stk_str_n(p->bytes.p, TEXT_PIECE));
        encode_text(out, stk_str_n(p->bytes.p, n));
    }
    if (p->kind != STK_PIECE_RAW)
        p->bytes.p += n;
    p->bytes.n -= n;
    if (p->bytes.n == 0)
        a->at++;
    return true;
}

bool stk_answer_pump(stk_answer *answer, stk_http_x *x)
{
    if (!answer->started && answer->left <= SMALL) {
        stk_buf whole STK_AUTO(stk_buf_done) = STK_BUF(8 * SMALL + RAW_MAX);
        stk_answer_whole(answer, &whole);
        stk_http_answer(x, 200, "application/json", "", stk_buf_view(&whole));
        return true;
    }
    if (!answer->started)
        stk_http_start(x, 200, "application/json", "", UINT64_MAX);
    answer->started = true;
    bool room = true;
    while (room) {
        stk_buf_reset(&answer->scratch);
        if (!next(answer, &answer->scratch)) {
            stk_http_end(x);
            return true;
        }
        room = stk_http_write(x, stk_buf_view(&answer->scratch));
    }
    return false;
}

void stk_answer_whole(stk_answer *answer, stk_buf *out)
{
    while (next(answer, out))
        ;
}

void stk_answer_done(stk_answer *answer)
{
    stk_buf_done(&answer->raw);
    stk_buf_done(&answer->scratch);
}
