#include "api-gateway/cli/cli.h"
#include "api-gateway/cli/table.h"
#include "proto/base/fd.h"
#include "proto/base/id.h"
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>

#define RETRIES     60 /* of one line, when the server is busy or away */
#define RETRY_AFTER stk_ms(500)
#define BODY_MAX    ((size_t)16 << 20)
#define WAIT        "60s"

const stk_cli_verb stk_cli_submit = {
    .name = "submit",
    .arguments = "FILE.jsonl",
    .about = "Sends one run per line (each any run request) and prints one JSON line for each: its id, or "
             "with --wait its result, in the\n"
             "order they end. A line that was sent twice is one run (idempotency keys). Exit status 1 when a "
             "line was refused.",
    .opts = {{"wait", NULL, "wait for every run and print its result", 0},
             {"concurrency", "N", "requests at once; default 32", 0},
             {"key", "TEXT",
              "prefix of the idempotency keys: the same file sent again under it runs nothing twice", 0}},
    .least = 1,
    .most = 1};

typedef struct line {
    size_t number;
    stk_str text; /* inside the file's bytes */
    int tries;
    stk_mono not_before;
    stk_buf body;
    struct curl_slist *headers;
    CURL *curl;
    bool done;
} line;

typedef struct submission {
    const stk_cli_args *args;
    bool wait, bar;
    char key[128];
    line *lines;
    size_t n, next, finished, refused, good;
    size_t concurrency, running;
    CURLM *multi;
} submission;

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
    line *l = arg;
    return stk_buf_add(&l->body, data, size * n) < 0 ? 0 : size * n;
}

static void set_target(submission *s, line *l)
{
    char url[1024];
    const char *base = s->args->url;
    if (strncmp(base, "unix:", 5) == 0) {
        curl_easy_setopt(l->curl, CURLOPT_UNIX_SOCKET_PATH, base + 5);
        base = "http://localhost";
    }
    snprintf(url, sizeof(url), "%s/v1/runs%s", base, s->wait ? "?wait=" WAIT : "");
    curl_easy_setopt(l->curl, CURLOPT_URL, url);
}

static void start(submission *s, line *l)
{
    char header[640];
    l->curl = curl_easy_init();
    l->body = STK_BUF(BODY_MAX);
    l->headers = curl_slist_append(NULL, "Content-Type: application/json");
    l->headers = curl_slist_append(l->headers, "Expect:");
    snprintf(header, sizeof(header), "Idempotency-Key: %s-%zu", s->key, l->number);
    l->headers = curl_slist_append(l->headers, header);
    if (s->args->token && *s->args->token) {
        snprintf(header, sizeof(header), "Authorization: Bearer %s", s->args->token);
        l->headers = curl_slist_append(l->headers, header);
    }
    set_target(s, l);
    curl_easy_setopt(l->curl, CURLOPT_HTTPHEADER, l->headers);
    curl_easy_setopt(l->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(l->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(l->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)l->text.n);
    curl_easy_setopt(l->curl, CURLOPT_POSTFIELDS, l->text.p);
    curl_easy_setopt(l->curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(l->curl, CURLOPT_WRITEDATA, l);
    curl_easy_setopt(l->curl, CURLOPT_PRIVATE, l);
    curl_multi_add_handle(s->multi, l->curl);
    s->running++;
}

static void print_bar(const submission *s)
{
    char bar[41];
    size_t full = s->n ? s->finished * 40 / s->n : 40;
    if (!s->bar)
        return;
    memset(bar, '.', 40);
    memset(bar, '#', full);
    bar[40] = '\0';
    fprintf(stderr, "\r[%s] %zu/%zu%s%zu%s", bar, s->finished, s->n,
            s->wait ? ", exit 0: " : ", refused: ", s->wait ? s->good : s->refused,
            s->finished == s->n ? "\n" : "");
}

/* {"line":N, …the answer's members}. */
static void print_answer(submission *s, line *l, const char *failure)
{
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(2 * BODY_MAX);
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_err ignored;
    stk_jw w;
    stk_jw_init(&w, &out);
    stk_jw_object(&w);
    stk_jw_kint(&w, "line", (int64_t)l->number);
    if (failure)
        stk_jw_ktext(&w, "error", failure);
    else if (stk_json_parse(stk_buf_view(&l->body), NULL, &doc, &ignored) < 0)
        stk_jw_ktext(&w, "error", "the answer is not JSON");
    stk_jv root = stk_json_root(doc);
    for (stk_jv v = stk_jv_first(root); doc && !stk_jv_is(v, STK_J_NONE); v = stk_jv_next(v)) {
        stk_jw_key_str(&w, stk_jv_key(v));
        stk_jw_value(&w, v);
    }
    stk_jw_close(&w, '}');
    printf("%s\n", out.p);
    int64_t code = -1;
    stk_jv_int(stk_jv_get(root, "exit_code"), &code);
    s->good += doc && code == 0 && stk_str_eq(stk_jv_str(stk_jv_get(root, "reason")), STK_STR("exited"));
}

static void release(submission *s, line *l)
{
    curl_multi_remove_handle(s->multi, l->curl);
    curl_easy_cleanup(l->curl);
    curl_slist_free_all(l->headers);
    stk_buf_done(&l->body);
    l->curl = NULL;
    s->running--;
}

static bool retry(line *l, CURLcode code, long status, bool wait)
{
    if (code == CURLE_OK && status == 202 && wait)
        l->tries = 0; /* it still runs: the same key asks for the same run */
    else if (code == CURLE_OK && status != 429 && status != 503)
        return false;
    else if (++l->tries > RETRIES)
        return false;
    else
        l->not_before = stk_mono_add(stk_mono_now(), RETRY_AFTER);
    return true;
}

static void ended(submission *s, CURL *curl, CURLcode code)
{
    line *l = NULL;
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_PRIVATE, (char **)&l);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    bool again = retry(l, code, status, s->wait);
    if (!again) {
        l->done = true;
        s->finished++;
        s->refused += code != CURLE_OK || status >= 300;
        print_answer(s, l, code != CURLE_OK ? curl_easy_strerror(code) : NULL);
        print_bar(s);
    }
    release(s, l);
}

static void fill(submission *s)
{
    stk_mono now = stk_mono_now();
    while (s->next < s->n && s->lines[s->next].done)
        s->next++;
    for (size_t i = s->next; i < s->n && s->running < s->concurrency; i++)
        if (!s->lines[i].done && !s->lines[i].curl && !stk_mono_before(now, s->lines[i].not_before))
            start(s, &s->lines[i]);
}

static void drive(submission *s)
{
    print_bar(s);
    while (s->finished < s->n) {
        int running, left;
        fill(s);
        curl_multi_perform(s->multi, &running);
        for (CURLMsg *msg; (msg = curl_multi_info_read(s->multi, &left));)
            if (msg->msg == CURLMSG_DONE)
                ended(s, msg->easy_handle, msg->data.result);
        if (s->finished < s->n)
            curl_multi_poll(s->multi, NULL, 0, 100, NULL);
    }
}

/* One line each; empty ones are passed over but counted, so that numbers are those of an editor. */
static void split(submission *s, stk_str text)
{
    size_t number = 0;
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        number++;
        if (n && (n > 1 || text.p[0] != '\r')) {
            if ((s->n & (s->n - 1)) == 0)
                s->lines = stk_xrealloc(s->lines, (s->n ? 2 * s->n : 1) * sizeof(*s->lines));
            s->lines[s->n++] = (line){.number = number, .text = stk_str_n(text.p, n)};
        }
        n += end != NULL;
        text = stk_str_n(text.p + n, text.n - n);
    }
}

int stk_verb_submit(int argc, char **argv)
{
    stk_cli_args args;
    stk_err err;
    int status = stk_cli_parse(&stk_cli_submit, argc, argv, &args);
    if (status >= 0)
        return status;
    const char *n = stk_cli_opt_get(&args, "concurrency"), *key = stk_cli_opt_get(&args, "key");
    uint64_t concurrency = 32;
    if (n && (!stk_str_u64(stk_str_of(n), 1000, &concurrency) || concurrency == 0))
        return stk_cli_fail(&args, 2, "--concurrency needs a number from 1 to 1000");
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF((size_t)1 << 30);
    if (stk_file_read(args.v[0], &text, &err) < 0)
        return stk_cli_fail(&args, 2, "%s", err.detail);
    submission s = {.args = &args,
                    .wait = stk_cli_opt_get(&args, "wait") != NULL,
                    .bar = isatty(2) == 1,
                    .concurrency = concurrency};
    if (key && strlen(key) > 100)
        return stk_cli_fail(&args, 2, "--key is longer than 100 bytes");
    if (key)
        snprintf(s.key, sizeof(s.key), "%s", key);
    else
        stk_id_new("sub", stk_wall_now(), s.key);
    split(&s, stk_buf_view(&text));
    curl_global_init(CURL_GLOBAL_DEFAULT);
    s.multi = curl_multi_init();
    drive(&s);
    curl_multi_cleanup(s.multi);
    free(s.lines);
    fflush(stdout);
    if (s.refused)
        return stk_cli_fail(&args, 1, "%zu of %zu lines were refused; their lines above say why", s.refused,
                            s.n);
    return 0;
}
