#include "api-gateway/cli/call.h"
#include "proto/base/tree.h"
#include <curl/curl.h>
#include <stdio.h>

#define BODY_MAX ((size_t)64 << 20)

typedef struct transfer {
    stk_cli_answer *answer; /* collecting, or … */
    bool (*fn)(stk_str data, void *arg);
    void *arg;
    bool ended_by_us;
} transfer;

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
    transfer *t = arg;
    if (t->fn) {
        t->ended_by_us = !t->fn(stk_str_n(data, size * n), t->arg);
        return t->ended_by_us ? 0 : size * n;
    }
    return stk_buf_add(&t->answer->body, data, size * n) < 0 ? 0 : size * n;
}

static void take_header(stk_str line, const char *name, char *out, size_t size)
{
    size_t n = strlen(name);
    if (line.n <= n || !stk_str_ieq(stk_str_n(line.p, n), stk_str_of(name)))
        return;
    stk_str value = stk_str_n(line.p + n, line.n - n);
    while (value.n && (value.p[value.n - 1] == '\n' || value.p[value.n - 1] == '\r'))
        value.n--;
    while (value.n && *value.p == ' ')
        value = stk_str_n(value.p + 1, value.n - 1);
    stk_str_copy(value, out, size);
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
    transfer *t = arg;
    stk_str line = stk_str_n(data, size * n);
    if (t->answer) {
        take_header(line, "Location:", t->answer->location, sizeof(t->answer->location));
        take_header(line, "ETag:", t->answer->etag, sizeof(t->answer->etag));
    }
    return size * n;
}

static CURL *handle_of(void)
{
    static CURL *handle;
    if (!handle) {
        curl_global_init(CURL_GLOBAL_DEFAULT);
        handle = curl_easy_init();
    }
    curl_easy_reset(handle);
    return handle;
}

static struct curl_slist *headers_of(const stk_cli_args *args, bool body, const char *const *more)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    char line[600];
    if (args->token && *args->token) {
        snprintf(line, sizeof(line), "Authorization: Bearer %s", args->token);
        list = curl_slist_append(list, line);
    }
    if (body)
        list = curl_slist_append(list, "Content-Type: application/json");
    for (size_t i = 0; more && more[i]; i++)
        list = curl_slist_append(list, more[i]);
    return list;
}

/* "unix:/path" is a socket; everything else a base URL. */
static void set_target(CURL *curl, const stk_cli_args *args, const char *path)
{
    stk_buf url STK_AUTO(stk_buf_done) = STK_BUF(65536);
    if (strncmp(args->url, "unix:", 5) == 0) {
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, args->url + 5);
        stk_buf_text(&url, "http://localhost");
    } else {
        size_t n = strlen(args->url);
        while (n && args->url[n - 1] == '/')
            n--;
        stk_buf_add(&url, args->url, n);
    }
    stk_buf_text(&url, path);
    curl_easy_setopt(curl, CURLOPT_URL, url.p);
}

static int perform(const stk_cli_args *args, const char *method, const char *path, stk_str body,
                   const char *const *more, transfer *t)
{
    char error[CURL_ERROR_SIZE] = "";
    long status = 0;
    CURL *curl = handle_of();
    struct curl_slist *headers = headers_of(args, body.p != NULL, more);
    set_target(curl, args, path);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
    if (body.p) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.p);
    }
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    if (code != CURLE_OK && !t->ended_by_us) {
        stk_cli_fail(args, 1, "no answer from %s: %s; is `stockade up` running?", args->url,
                     *error ? error : curl_easy_strerror(code));
        return -1;
    }
    return (int)status;
}

int stk_cli_call(const stk_cli_args *args, const char *method, const char *path, stk_str body,
                 const char *const *headers, stk_cli_answer *ret)
{
    *ret = (stk_cli_answer){.body = STK_BUF(BODY_MAX)};
    transfer t = {.answer = ret};
    ret->status = perform(args, method, path, body, headers, &t);
    if (ret->status < 0)
        return -1;
    stk_err ignored;
    const stk_json_limits limits = {.depth = 64, .values = 10000000};
    if (ret->body.n && stk_json_parse(stk_buf_view(&ret->body), &limits, &ret->doc, &ignored) < 0)
        ret->doc = NULL;
    return 0;
}

int stk_cli_stream(const stk_cli_args *args, const char *path, bool (*fn)(stk_str data, void *arg), void *arg)
{
    transfer t = {.fn = fn, .arg = arg};
    return perform(args, "GET", path, (stk_str){0}, NULL, &t);
}

void stk_cli_answer_done(stk_cli_answer *answer)
{
    stk_json_free(answer->doc);
    stk_buf_done(&answer->body);
}

/* What the user could do about it. */
static const char *hint(int status, stk_str code)
{
    if (status == 401)
        return "; give a token by $STOCKADE_TOKEN or --token-file (stockade token create)";
    if (stk_str_eq(code, STK_STR("not_sandboxed")))
        return "; list the agent with stockade config set";
    return "";
}

int stk_cli_problem(const stk_cli_args *args, const stk_cli_answer *answer)
{
    stk_jv root = stk_json_root(answer->doc);
    char detail[1024], pointer[256];
    stk_str code = stk_jv_str(stk_jv_get(root, "code"));
    if (!answer->doc)
        return stk_cli_fail(args, 1, "the gateway answered %d", answer->status);
    stk_cli_text(root, "detail", detail, sizeof(detail));
    stk_cli_text(root, "pointer", pointer, sizeof(pointer));
    bool has_pointer = stk_jv_str(stk_jv_get(root, "pointer")).n > 0;
    return stk_cli_fail(args, 1, "%s (%.*s%s%s)%s", detail, (int)code.n, code.n ? code.p : "",
                        has_pointer ? " at " : "", has_pointer ? pointer : "", hint(answer->status, code));
}

void stk_cli_encode(stk_buf *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (const char *p = text; *p; p++)
        if (strchr(plain, *p))
            stk_buf_byte(out, *p);
        else
            stk_buf_fmt(out, "%%%02X", (unsigned char)*p);
}

void stk_cli_print_json(stk_jv v)
{
    cJSON *tree STK_AUTO(stk_tree_freep) = NULL;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(BODY_MAX);
    stk_err ignored;
    if (stk_tree_from(v, &tree, &ignored) == 0 && stk_tree_pretty(&text, tree, &ignored) == 0) {
        printf("%s\n", text.p);
        return;
    }
    stk_str raw = stk_jv_raw(v); /* a string with NUL inside: a tree can't hold it */
    printf("%.*s\n", (int)raw.n, raw.p);
}

const char *stk_cli_text(stk_jv object, const char *key, char *out, size_t size)
{
    stk_jv v = stk_jv_get(object, key);
    stk_jtype type = stk_jv_type(v);
    stk_str text = type == STK_J_STRING                       ? stk_jv_str(v)
                   : type == STK_J_NONE || type == STK_J_NULL ? STK_STR("-")
                                                              : stk_jv_raw(v);
    size_t n = 0, step, width;
    for (; text.n; text = stk_str_n(text.p + step, text.n - step), n += width) {
        bool good;
        step = stk_utf8_step(text, &good);
        bool shown = good && !stk_utf8_acts(stk_str_n(text.p, step));
        width = shown ? step : 4 * step;
        if (n + width >= size)
            break;
        if (shown)
            memcpy(out + n, text.p, step);
        else
            for (size_t i = 0; i < step; i++)
                snprintf(out + n + 4 * i, 5, "\\x%02x", (unsigned char)text.p[i]);
    }
    out[n] = '\0';
    return out;
}
