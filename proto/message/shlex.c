#include "proto/message/request.h"

/* The states of Python's shlex in POSIX mode: between words, in a word, in '…', in "…", after a backslash. */
typedef enum place { BETWEEN, WORD, SINGLE, DOUBLE, ESCAPE } place;

typedef struct splitter {
    place at;
    place back; /* where an escape returns to */
    stk_buf word;
    stk_strv *out;
} splitter;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int end_word(splitter *sp, stk_err *err)
{
    if (sp->out->n >= STK_ARGS_MAX)
        return stk_err_field(err, STK_E_TOO_LARGE, "", "more than %d arguments", STK_ARGS_MAX);
    stk_strv_add(sp->out, stk_buf_view(&sp->word));
    stk_buf_reset(&sp->word);
    sp->at = BETWEEN;
    return 0;
}

static place outside_quotes(char c, place otherwise)
{
    switch (c) {
    case '\'':
        return SINGLE;
    case '"':
        return DOUBLE;
    case '\\':
        return ESCAPE;
    default:
        return otherwise;
    }
}

static void escaped(splitter *sp, char c)
{
    /* Inside "…" a backslash is special before itself and the quote only. */
    if (sp->back == DOUBLE && c != '\\' && c != '"')
        stk_buf_byte(&sp->word, '\\');
    stk_buf_byte(&sp->word, c);
    sp->at = sp->back;
}

static int step(splitter *sp, char c, stk_err *err)
{
    switch (sp->at) {
    case ESCAPE:
        escaped(sp, c);
        return 0;
    case SINGLE:
    case DOUBLE:
        if (c == (sp->at == SINGLE ? '\'' : '"')) {
            sp->at = WORD;
        } else if (c == '\\' && sp->at == DOUBLE) {
            sp->back = DOUBLE;
            sp->at = ESCAPE;
        } else {
            stk_buf_byte(&sp->word, c);
        }
        return 0;
    case BETWEEN:
    case WORD:
        break;
    }
    if (is_space(c))
        return sp->at == WORD ? end_word(sp, err) : 0;
    sp->back = WORD;
    sp->at = outside_quotes(c, WORD);
    if (sp->at == WORD)
        stk_buf_byte(&sp->word, c);
    return 0;
}

static int split(splitter *sp, stk_str text, stk_err *err)
{
    for (size_t i = 0; i < text.n; i++) {
        int rc = step(sp, text.p[i], err);
        if (rc < 0)
            return rc;
    }
    if (sp->word.over)
        return stk_err_field(err, STK_E_TOO_LARGE, "", "longer than %d bytes", STK_ARG_MAX_ALL);
    if (sp->at == ESCAPE)
        return stk_err_field(err, STK_E_FIELD, "", "No escaped character");
    if (sp->at == SINGLE || sp->at == DOUBLE)
        return stk_err_field(err, STK_E_FIELD, "", "No closing quotation");
    return sp->at == WORD ? end_word(sp, err) : 0;
}

int stk_shlex_split(stk_str text, stk_strv *ret, stk_err *err)
{
    stk_strv words = {0};
    splitter sp = {.at = BETWEEN, .word = STK_BUF(STK_ARG_MAX_ALL), .out = &words};
    int rc = split(&sp, text, err);
    stk_buf_done(&sp.word);
    if (rc < 0)
        stk_strv_done(&words);
    else
        *ret = words;
    return rc;
}
