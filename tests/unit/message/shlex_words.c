/* For shlex_as_python.py: reads lines, each a JSON string, and answers each with a JSON array or a JSON
 * string that is the error. */
#include "proto/message/request.h"
#include <stdio.h>

static void answer(stk_str text, stk_jw *w)
{
    stk_strv words = {0};
    stk_err err = {0};
    if (stk_shlex_split(text, &words, &err) < 0) {
        stk_jw_text(w, err.detail);
        return;
    }
    stk_jw_array(w);
    for (size_t i = 0; i < words.n; i++)
        stk_jw_str(w, stk_bytes_view(&words.v[i]));
    stk_jw_close(w, ']');
    stk_strv_done(&words);
}

int main(void)
{
    char *line STK_AUTO(stk_freep) = NULL;
    size_t size = 0;
    ssize_t n;
    while ((n = getline(&line, &size, stdin)) > 0) {
        stk_json *doc STK_AUTO(stk_json_freep) = NULL;
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1048576);
        stk_jw w;
        if (stk_json_parse(stk_str_n(line, (size_t)n), NULL, &doc, NULL) < 0)
            return 1;
        stk_jw_init(&w, &out);
        answer(stk_jv_str(stk_json_root(doc)), &w);
        if (stk_jw_end(&w, NULL) < 0)
            return 1;
        printf("%s\n", out.p);
    }
    return 0;
}
