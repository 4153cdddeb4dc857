#include "workers/runtime/exec_request.h"
#include "workers/runtime/paths.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define INPUT_MAX     (4u << 20)
#define OUTPUT_LEAST  16
#define TIMEOUT_LEAST 0.001
#define TIMEOUT_MOST  86400.0

typedef struct decoder {
    stk_exec_request *req;
    const stk_exec_defaults *defaults;
    stk_jv command;
    bool has_command;
} decoder;

static int take_command(decoder *d, stk_jv v, stk_err *err)
{
    d->command = v;
    d->has_command = true;
    return 0;
}

static int take_env(decoder *d, stk_jv v, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_OBJECT))
        return stk_err_field(err, STK_E_FIELD, "/env", "must be an object of strings");
    for (stk_jv m = stk_jv_first(v); m.doc; m = stk_jv_next(m)) {
        stk_str key = stk_jv_key(m);
        if (!stk_jv_is(m, STK_J_STRING))
            return stk_err_field(err, STK_E_FIELD, "/env", "the value of '%.*s' must be a string",
                                 (int)stk_min(key.n, 64), key.p);
        stk_map_add(&d->req->env, key, stk_jv_str(m));
    }
    return 0;
}

static int take_cwd(decoder *d, stk_jv v, stk_err *err)
{
    char path[STK_CWD_MAX];
    if (!stk_jv_is(v, STK_J_STRING) || !stk_str_copy(stk_jv_str(v), path, sizeof(path)))
        return stk_err_field(err, STK_E_FIELD, "/cwd", "must be a path of at most %d bytes", STK_CWD_MAX - 1);
    int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    int fd = path[0] == '/' ? open(path, flags) : stk_open_beneath(d->defaults->root, path, flags, 0);
    if (fd >= 0 && faccessat(fd, ".", X_OK, 0) < 0) {
        int errnum = errno;
        close(fd);
        errno = errnum;
        fd = -1;
    }
    if (fd < 0)
        return stk_err_field(err, STK_E_FIELD, "/cwd", "cwd '%.200s': %s", path,
                             errno == EXDEV ? "leaves the root" : strerrordesc_np(errno));
    d->req->cwd = fd;
    return 0;
}

static int take_timeout(decoder *d, stk_jv v, stk_err *err)
{
    double s = stk_jv_double(v);
    if (!stk_jv_is(v, STK_J_NUMBER) || !(s >= TIMEOUT_LEAST && s <= TIMEOUT_MOST))
        return stk_err_field(err, STK_E_FIELD, "/timeout_seconds", "must be a number from %g to %g",
                             TIMEOUT_LEAST, TIMEOUT_MOST);
    d->req->timeout = stk_ns((int64_t)(s * 1e9));
    return 0;
}

static int add_input(decoder *d, const char *pointer, stk_jv v, bool base64, stk_err *err)
{
    if (d->req->has_input)
        return stk_err_field(err, STK_E_FIELD, pointer, "stdin and stdin_base64 exclude each other");
    if (!stk_jv_is(v, STK_J_STRING))
        return stk_err_field(err, STK_E_FIELD, pointer, "must be a string");
    d->req->has_input = true;
    if (!base64)
        return stk_buf_str(&d->req->input, stk_jv_str(v));
    if (stk_base64_decode(&d->req->input, stk_jv_str(v)) < 0)
        return stk_err_field(err, STK_E_FIELD, pointer, "is not base64");
    return 0;
}

static int take_stdin(decoder *d, stk_jv v, stk_err *err)
{
    return add_input(d, "/stdin", v, false, err);
}

static int take_stdin_base64(decoder *d, stk_jv v, stk_err *err)
{
    return add_input(d, "/stdin_base64", v, true, err);
}

static int take_base64(decoder *d, stk_jv v, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_BOOL))
        return stk_err_field(err, STK_E_FIELD, "/base64", "must be true or false");
    d->req->base64 = stk_jv_bool(v);
    return 0;
}

static int take_max_output(decoder *d, stk_jv v, stk_err *err)
{
    int64_t n, most = (int64_t)d->defaults->max_output;
    if (!stk_jv_is(v, STK_J_NUMBER) || !stk_jv_int(v, &n) || n < OUTPUT_LEAST || n > most)
        return stk_err_field(err, STK_E_FIELD, "/max_output_bytes", "must be a whole number from %d to %lld",
                             OUTPUT_LEAST, (long long)most);
    d->req->max_output = (size_t)n;
    return 0;
}

static const struct {
    const char *name;
    int (*take)(decoder *d, stk_jv v, stk_err *err);
    bool null_refused; /* else null means absent */
} fields[] = {
    {"command", take_command, true}, {"env", take_env, false},
    {"cwd", take_cwd, false},        {"timeout_seconds", take_timeout, false},
    {"stdin", take_stdin, false},    {"stdin_base64", take_stdin_base64, false},
    {"base64", take_base64, false},  {"max_output_bytes", take_max_output, false},
};

static int take_member(decoder *d, stk_jv m, stk_err *err)
{
    stk_str key = stk_jv_key(m);
    for (size_t i = 0; i < STK_COUNT(fields); i++) {
        if (!stk_str_eq(key, stk_str_of(fields[i].name)))
            continue;
        bool absent = stk_jv_is(m, STK_J_NULL) && !fields[i].null_refused;
        return absent ? 0 : fields[i].take(d, m, err);
    }
    if (d->defaults->ignore_unknown)
        return 0;
    char pointer[80];
    snprintf(pointer, sizeof(pointer), "/%.*s", (int)stk_min(key.n, 64), key.p);
    return stk_err_field(err, STK_E_UNKNOWN_FIELD, pointer, "unknown field");
}

static void make_argv(stk_exec_request *req)
{
    req->argv = stk_xcalloc(req->command.n + 1, sizeof(*req->argv));
    for (size_t i = 0; i < req->command.n; i++)
        req->argv[i] = req->command.v[i].p;
}

static int decode(decoder *d, stk_jv root, stk_err *err)
{
    stk_exec_request *req = d->req;
    if (!stk_jv_is(root, STK_J_OBJECT))
        return stk_err_field(err, STK_E_FIELD, "", "the body must be a JSON object");
    for (stk_jv m = stk_jv_first(root); m.doc; m = stk_jv_next(m)) {
        int rc = take_member(d, m, err);
        if (rc < 0)
            return rc;
    }
    if (!d->has_command)
        return stk_err_field(err, STK_E_MISSING_FIELD, "/command", "Field required");
    int rc = stk_command_decode(d->command, &req->env, &req->command, err);
    if (rc == -STK_E_TOO_LARGE)
        snprintf(err->detail + strlen(err->detail), sizeof(err->detail) - strlen(err->detail),
                 "; send it as a file with POST /upload");
    if (rc < 0)
        return rc;
    if (req->cwd < 0 && (req->cwd = openat(d->defaults->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return stk_err_errno(err, errno, "open the root");
    req->envp = stk_environ_build(d->defaults, &req->env);
    const char *path = stk_environ_get(req->envp, "PATH");
    req->path = path ? path : "";
    make_argv(req);
    return 0;
}

int stk_exec_request_decode(stk_str body, const stk_exec_defaults *defaults, stk_exec_request *ret,
                            stk_err *err)
{
    *ret = (stk_exec_request){
        .cwd = -1,
        .input = STK_BUF(INPUT_MAX),
        .timeout = stk_ns(STK_TIMEOUT_DEF_NS),
        .max_output = defaults->max_output,
    };
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    int rc = stk_json_parse(body, NULL, &doc, err);
    if (rc < 0)
        return rc;
    decoder d = {.req = ret, .defaults = defaults};
    return decode(&d, stk_json_root(doc), err);
}

void stk_exec_request_done(stk_exec_request *req)
{
    stk_strv_done(&req->command);
    stk_map_done(&req->env);
    free(req->argv);
    free(req->envp);
    stk_closep(&req->cwd);
    stk_buf_done(&req->input);
}
