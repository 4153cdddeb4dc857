#include "api-gateway/tokens.h"
#include "proto/base/fd.h"
#include <errno.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)1 << 20)

static int check_private(const char *path, stk_err *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return stk_err_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077))
        return stk_err_set(err, STK_E_CONFIG,
                           "%s: must be a regular file that nobody else can read: chmod 600 it", path);
    return 0;
}

int stk_tokens_load(const char *path, stk_tokens_doc *ret, stk_err *err)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(FILE_MAX);
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    *ret = (stk_tokens_doc){0};
    int rc = stk_file_read(path, &text, err);
    if (rc == -STK_E_NOT_FOUND)
        return 0;
    if (rc < 0 || (rc = check_private(path, err)) < 0)
        return rc;
    stk_err why;
    rc = stk_json_parse(stk_buf_view(&text), NULL, &doc, &why);
    if (rc == 0)
        rc = stk_tokens_decode(stk_json_root(doc), ret, &why);
    return rc < 0 ? stk_err_set(err, STK_E_CONFIG, "%s: %s %s", path, why.detail, why.pointer) : 0;
}

int stk_tokens_append(const char *path, const stk_token *token, stk_err *err)
{
    stk_tokens_doc doc = {0};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(FILE_MAX);
    stk_jw w;
    int rc = stk_tokens_load(path, &doc, err);
    if (rc == 0 && doc.n >= STK_TOKENS_MAX)
        rc = stk_err_set(err, STK_E_LIMIT, "%s holds %d tokens already", path, STK_TOKENS_MAX);
    if (rc == 0) {
        doc.v = stk_xrealloc(doc.v, (doc.n + 1) * sizeof(*doc.v));
        doc.v[doc.n++] = *token;
        stk_jw_init(&w, &text);
        stk_tokens_write(&w, &doc);
        rc = stk_jw_end(&w, err);
    }
    if (rc == 0)
        rc = stk_file_replace(path, 0600, stk_buf_view(&text), err);
    stk_tokens_done(&doc);
    return rc;
}
