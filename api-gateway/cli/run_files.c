#include "api-gateway/cli/run_files.h"
#include "api-gateway/cli/call.h"
#include "proto/base/fd.h"
#include <stdio.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)1 << 20) /* a request's own limit */

/* --- in --- */

/* LOCAL[:PATH]: the last colon parts them. */
static int split(const stk_cli_args *args, const char *value, char local[4096], const char **ret_path)
{
    const char *colon = strrchr(value, ':'), *slash = strrchr(value, '/');
    size_t n = colon ? (size_t)(colon - value) : strlen(value);
    if (!stk_str_copy(stk_str_n(value, n), local, 4096) || n == 0 || (colon && !colon[1]))
        return stk_cli_fail(args, 2, "--file needs LOCAL or LOCAL:PATH, not \"%s\"", value);
    *ret_path = colon ? colon + 1 : slash ? slash + 1 : value;
    return 0;
}

static int write_file(const stk_cli_args *args, const char *value, stk_jw *w)
{
    char local[4096];
    const char *path = NULL;
    struct stat st;
    stk_err err;
    stk_buf data STK_AUTO(stk_buf_done) = STK_BUF(FILE_MAX);
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(2 * FILE_MAX);
    int status = split(args, value, local, &path);
    if (status)
        return status;
    if (stk_file_read(local, &data, &err) < 0)
        return stk_cli_fail(args, 2, "--file %s can't be sent: %s", local, err.detail);
    stk_base64_encode(&text, stk_buf_view(&data));
    stk_jw_object(w);
    stk_jw_ktext(w, "path", path);
    stk_jw_kstr(w, "content_base64", text.n ? stk_buf_view(&text) : STK_STR(""));
    if (stat(local, &st) == 0 && (st.st_mode & 0111))
        stk_jw_kbool(w, "executable", true);
    stk_jw_close(w, '}');
    return 0;
}

int stk_cli_files_write(const stk_cli_args *args, stk_jw *w)
{
    int status = 0;
    size_t at = 0;
    if (stk_cli_opt_get(args, "file")) {
        stk_jw_key(w, "files");
        stk_jw_array(w);
        for (const char *v; status == 0 && (v = stk_cli_opt_next(args, "file", &at));)
            status = write_file(args, v, w);
        stk_jw_close(w, ']');
    }
    at = 0;
    if (stk_cli_opt_get(args, "collect")) {
        stk_jw_key(w, "collect");
        stk_jw_array(w);
        for (const char *v; (v = stk_cli_opt_next(args, "collect", &at));)
            stk_jw_text(w, v);
        stk_jw_close(w, ']');
    }
    return status;
}

/* --- out --- */

static bool was_asked_for(const stk_cli_args *args, stk_str path)
{
    size_t at = 0;
    for (const char *v; (v = stk_cli_opt_next(args, "collect", &at));)
        if (stk_str_eq(path, stk_str_of(v)))
            return true;
    return false;
}

/* The gateway refuses such paths; a gateway that does not is not believed. */
static bool stays_below(const char *path)
{
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += part != path;
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 2 && part[0] == '.' && part[1] == '.'))
            return false;
    }
    return true;
}

static bool save(const stk_cli_args *args, const char *out, const char *path, stk_str base64)
{
    char place[8192], folder[8192];
    stk_err err;
    stk_buf data STK_AUTO(stk_buf_done) = STK_BUF(FILE_MAX);
    int rc = stk_path(place, sizeof(place), &err, "%s/%s", out, path);
    if (rc == 0 && stk_base64_decode(&data, base64) < 0)
        rc = stk_err_set(&err, STK_E_PROTOCOL, "its content is not base64");
    if (rc == 0) {
        memcpy(folder, place, sizeof(folder));
        *strrchr(folder, '/') = '\0';
        rc = stk_mkdirs(folder, 0777, &err);
    }
    if (rc == 0)
        rc = stk_file_replace(place, 0644, data.n ? stk_buf_view(&data) : STK_STR(""), &err);
    if (rc < 0)
        stk_cli_fail(args, 0, "%s was not written: %s", path, err.detail);
    return rc == 0;
}

bool stk_cli_files_save(const stk_cli_args *args, stk_jv result)
{
    const char *out = stk_cli_opt_get(args, "out");
    bool all = true;
    for (stk_jv one = stk_jv_first(stk_jv_get(result, "files")); !stk_jv_is(one, STK_J_NONE);
         one = stk_jv_next(one)) {
        char path[4096], error[600];
        stk_jv content = stk_jv_get(one, "content_base64");
        bool good = stk_str_copy(stk_jv_str(stk_jv_get(one, "path")), path, sizeof(path)) &&
                    was_asked_for(args, stk_str_of(path)) && stays_below(path);
        if (!good) {
            all = false;
            continue;
        }
        if (stk_jv_is(content, STK_J_STRING)) {
            all = save(args, out ? out : ".", path, stk_jv_str(content)) && all;
        } else {
            stk_cli_fail(args, 0, "%s: %s", path, stk_cli_text(one, "error", error, sizeof(error)));
            all = false;
        }
    }
    return all;
}
