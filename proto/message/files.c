#include "proto/message/secret.h"
#include <stdio.h>

typedef struct entry {
    stk_file_in file;
    stk_bytes text;
} entry;

#define F(m) STK_FIELD_AT(entry, m)
static const stk_field fields[] = {
    {"path", STK_F_TEXT, F(file.path), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"content", STK_F_BYTES, F(text)},
    {"content_base64", STK_F_CUSTOM, F(file.content), STK_FIELD_KEEP, .read = stk__base64_read,
     .write = stk__base64_write, .done = stk__bytes_free},
    {"executable", STK_F_BOOL, F(file.executable)},
    STK_FIELD_END,
};

static int entry_read(stk_jv v, entry *ret, stk_err *err)
{
    int rc = stk_fields_decode(fields, v, ret, err);
    if (rc < 0)
        return rc;
    const char *bad = stk__path_bad(stk_str_of(ret->file.path), sizeof(ret->file.path) - 1);
    if (bad)
        return stk_err_field(err, STK_E_FIELD, "/path", "the path %s", bad);
    if (ret->text.set && ret->file.content.set)
        return stk_err_field(err, STK_E_FIELD, "/content_base64", "give content or content_base64, not both");
    if (!ret->text.set && !ret->file.content.set)
        return stk_err_field(err, STK_E_MISSING_FIELD, "/content", "content or content_base64 is missing");
    if (ret->text.set) {
        ret->file.content = ret->text;
        ret->text = (stk_bytes){0};
    }
    return 0;
}

static int add(stk_files *files, entry *item, stk_err *err)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->v[i].path, item->file.path) == 0)
            return stk_err_field(err, STK_E_FIELD, "/path", "the path is given twice");
    files->v = stk_xrealloc(files->v, (files->n + 1) * sizeof(*files->v));
    files->v[files->n++] = item->file;
    item->file.content = (stk_bytes){0};
    return 0;
}

int stk__files_read(stk_jv v, void *at, stk_err *err)
{
    stk_files *files = at;
    if (!stk_jv_is(v, STK_J_ARRAY))
        return stk_err_field(err, STK_E_FIELD, "", "must be an array of {path, content}, not %s",
                             stk_jtype_name(stk_jv_type(v)));
    if (stk_jv_count(v) > STK_FILES_MAX)
        return stk_err_field(err, STK_E_FIELD, "", "at most %d files", STK_FILES_MAX);
    for (stk_jv item = stk_jv_first(v); !stk_jv_is(item, STK_J_NONE); item = stk_jv_next(item)) {
        entry one = {0};
        int rc = entry_read(item, &one, err);
        if (rc == 0)
            rc = add(files, &one, err);
        stk_fields_done(fields, &one);
        if (rc < 0) {
            char pointer[32];
            snprintf(pointer, sizeof(pointer), "/%zu", files->n);
            stk_err_prefix(err, pointer);
            return rc;
        }
    }
    return 0;
}

void stk__files_write(stk_jw *w, const void *at)
{
    const stk_files *files = at;
    stk_jw_array(w);
    for (size_t i = 0; i < files->n; i++) {
        entry one = {.file = files->v[i]};
        stk_fields_encode(fields, &one, w);
    }
    stk_jw_close(w, ']');
}

void stk__files_free(void *at)
{
    stk_files *files = at;
    for (size_t i = 0; i < files->n; i++)
        stk_bytes_done(&files->v[i].content);
    free(files->v);
    *files = (stk_files){0};
}

int stk__paths_check(const stk_strv *paths, const char *name, stk_err *err)
{
    for (size_t i = 0; i < paths->n; i++) {
        const char *bad = stk__path_bad(stk_bytes_view(&paths->v[i]), 1023);
        char pointer[64];
        snprintf(pointer, sizeof(pointer), "/%s/%zu", name, i);
        if (bad)
            return stk_err_field(err, STK_E_FIELD, pointer, "the path %s", bad);
    }
    return 0;
}
