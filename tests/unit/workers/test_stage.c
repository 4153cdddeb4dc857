/* Files in and out against a runtime that answers as a script says, hostile ones too. The box and the end of
 * a job are this test's own. */
#include "tests/unit/workers/unit.h"
#include "workers/job_impl.h"

typedef struct answer {
    int status; /* 0: the link breaks */
    const char *headers;
    stk_str body;
} answer;

static struct {
    char requests[8][512];
    size_t n;
    stk_buf body; /* of the last request */
    const answer *script;
    stk_http_done done;
    void *arg;
    char refused[512], failed[512];
    int went_on;
} said;

int stk_box_call(stk_box *box, const char *method, const char *target, const char *headers, stk_str body,
                 uint64_t most, stk_span limit, stk_http_done done, void *arg, stk_err *err)
{
    assert_true(said.n < 8 && limit.ns > 0);
    snprintf(said.requests[said.n++], 512, "%s %s %s", method, target, headers);
    stk_buf_reset(&said.body);
    stk_buf_str(&said.body, body);
    said.done = done;
    said.arg = arg;
    return said.script ? 0 : stk_err_set(err, STK_E_CLOSED, "no link");
}

void stk_job_conclude(stk_job *job, stk_reason reason, const char *detail)
{
    assert_int_equal(reason, STK_REASON_REFUSED);
    job->ending = true;
    snprintf(said.refused, sizeof(said.refused), "%s", detail);
}

void stk_job_fail(stk_job *job, stk_reason reason, const char *why, bool count)
{
    assert_true(count);
    job->ending = true;
    snprintf(said.failed, sizeof(said.failed), "%s", why);
}

static void next(stk_job *job)
{
    said.went_on++;
}

/* Answers one request after another until none follows. */
static void play(void)
{
    while (said.done && said.script) {
        const answer *a = said.script++;
        stk_http_done done = STK_TAKE(said.done);
        stk_head head = {0};
        stk_head_fault fault;
        const char *why;
        size_t scan = 0;
        char text[1024];
        stk_err err;
        stk_err_set(&err, STK_E_CLOSED, "the link broke");
        int n = snprintf(text, sizeof(text), "HTTP/1.1 %d X\r\n%sContent-Length: 0\r\n\r\n", a->status,
                         a->headers ? a->headers : "");
        if (a->status)
            assert_true(stk_head_response(stk_str_n(text, (size_t)n), NULL, &scan, false, false, &head,
                                          &fault, &why) > 0);
        done(a->status ? NULL : &err, true, &head, a->body, said.arg);
    }
}

static stk_job *job_new(void)
{
    stk_buf_done(&said.body);
    memset(&said, 0, sizeof(said));
    said.body = STK_BUF(1 << 20);
    return stk_xcalloc(1, sizeof(stk_job));
}

static void job_drop(stk_job *job)
{
    stk_stage_done(&job->stage);
    stk_run_secret_done(&job->secret);
    free(job);
}

static void add_file(stk_job *job, const char *path, stk_str content, bool executable)
{
    stk_files *files = &job->secret.files;
    files->v = stk_xrealloc(files->v, (files->n + 1) * sizeof(*files->v));
    files->v[files->n] = (stk_file_in){.executable = executable};
    snprintf(files->v[files->n].path, sizeof(files->v->path), "%s", path);
    stk_bytes_set(&files->v[files->n++].content, content);
}

static void collect(stk_job *job, const char *path)
{
    stk_strv_add(&job->secret.collect, stk_str_of(path));
}

static const char *files_of(stk_job *job)
{
    static char text[8192];
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_stage_write(job, &out);
    if (stk_json_parse(stk_buf_view(&out), NULL, &doc, NULL) < 0)
        fail_msg("no JSON: %s", out.p);
    snprintf(text, sizeof(text), "%s", out.p);
    return text;
}

static void without_files_nothing_is_asked(void **state)
{
    stk_job *job = job_new();
    stk_stage_in(job, next);
    stk_stage_out(job, next);
    assert_int_equal(said.went_on, 2);
    assert_int_equal(said.n, 0);
    job_drop(job);
}

static void files_go_in_one_after_another(void **state)
{
    static const answer script[] = {{200, NULL, {"", 0}}, {200, NULL, {"", 0}}};
    stk_job *job = job_new();
    said.script = script;
    add_file(job, "a b/\xc3\xa9\"", STK_STR("one\0two"), false);
    add_file(job, "tool", STK_STR(""), true);
    stk_stage_in(job, next);
    play();
    assert_int_equal(said.went_on, 1);
    assert_int_equal(said.n, 2);
    assert_true(strncmp(said.requests[0], "POST /upload?mode=0644 ", 23) == 0);
    assert_true(strncmp(said.requests[1], "POST /upload?mode=0755 ", 23) == 0);
    assert_non_null(strstr(said.body.p, "filename*=UTF-8''tool\r\n"));
    job_drop(job);
}

static void a_refused_file_ends_the_run_and_a_broken_runtime_gives_it_back(void **state)
{
    static const struct {
        answer answer;
        const char *refused, *failed;
    } rows[] = {
        {{507, NULL, {"{\"detail\":\"No space left\"}", 26}}, "file f: No space left", ""},
        {{403, NULL, {"{\"detail\":\"the path leaves the root\"}", 37}},
         "file f: the path leaves the root",
         ""},
        {{422, NULL, {"{\"detail\":[{\"msg\":\"bad\"}]}", 26}}, "file f: bad", ""},
        {{302, NULL, {"<html>", 6}}, "file f: the runtime refused it (status 302)", ""},
        {{500, NULL, {"", 0}}, "", "files could not be put into the sandbox: the runtime failed"},
        {{0, NULL, {"", 0}}, "", "files could not be put into the sandbox: the link broke"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_job *job = job_new();
        answer script[] = {rows[i].answer, {200, NULL, {"", 0}}};
        said.script = script;
        add_file(job, "f", STK_STR("x"), false);
        add_file(job, "g", STK_STR("x"), false);
        stk_stage_in(job, next);
        play();
        assert_string_equal(said.refused, rows[i].refused);
        assert_string_equal(said.failed, rows[i].failed);
        assert_int_equal(said.went_on, 0);
        assert_int_equal(said.n, 1);
        job_drop(job);
    }
}

static void what_is_not_there_is_listed_between_what_is(void **state)
{
    static const answer script[] = {{206, "Content-Range: bytes 0-2/3\r\n", {"abc", 3}},
                                    {404, NULL, {"{\"detail\":\"No such file\"}", 25}},
                                    {200, NULL, {"", 0}}};
    stk_job *job = job_new();
    said.script = script;
    collect(job, "a");
    collect(job, "d/b c");
    collect(job, "e");
    stk_stage_out(job, next);
    assert_true(job->stage.collecting);
    play();
    assert_false(job->stage.collecting);
    assert_int_equal(said.went_on, 1);
    assert_string_equal(said.requests[0], "GET /download/a Range: bytes=0-262143\r\n");
    assert_string_equal(said.requests[1], "GET /download/d/b%20c Range: bytes=0-262140\r\n");
    assert_string_equal(files_of(job), "[{\"path\":\"a\",\"size\":3,\"content_base64\":\"YWJj\"},"
                                       "{\"path\":\"d/b c\",\"error\":\"No such file\"},"
                                       "{\"path\":\"e\",\"size\":0,\"content_base64\":\"\"}]");
    job_drop(job);
}

static void answers_that_make_no_sense_are_errors_of_their_file_alone(void **state)
{
    static const struct {
        answer answer;
        const char *says;
    } rows[] = {
        {{206, NULL, {"abc", 3}}, "makes no sense"},
        {{206, "Content-Range: bytes 0-2/*\r\n", {"abc", 3}}, "makes no sense"},
        {{206, "Content-Range: bytes 0-2/2\r\n", {"abc", 3}}, "makes no sense"},
        {{206, "Content-Range: bytes 0-2/99999999999999999999\r\n", {"abc", 3}}, "makes no sense"},
        {{206, "Content-Range: bytes 0-2/4\r\n", {"abc", 3}}, "changed while it was read"},
        {{206, "Content-Range: bytes 0-2/262145\r\n", {"abc", 3}},
         "too large: 262144 bytes are left of 262144"},
        {{301, "Location: http://169.254.169.254/\r\n", {"", 0}}, "status 301"},
        {{500, NULL, {"\xff", 1}}, "status 500"},
        {{404, NULL, {"{\"detail\":17}", 13}}, "status 404"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_job *job = job_new();
        answer script[] = {rows[i].answer, {200, NULL, {"ok", 2}}};
        said.script = script;
        collect(job, "a");
        collect(job, "b");
        stk_stage_out(job, next);
        play();
        assert_int_equal(said.went_on, 1);
        const char *files = files_of(job);
        if (!strstr(files, rows[i].says) || !strstr(files, "\"b2s=\""))
            fail_msg("row %zu: %s", i, files);
        job_drop(job);
    }
}

static void a_link_that_breaks_is_the_error_of_the_rest(void **state)
{
    static const answer script[] = {{200, NULL, {"ok", 2}}, {0, NULL, {"", 0}}};
    stk_job *job = job_new();
    said.script = script;
    collect(job, "a");
    collect(job, "b");
    collect(job, "c");
    stk_stage_out(job, next);
    play();
    assert_int_equal(said.went_on, 1);
    assert_int_equal(said.n, 2);
    assert_string_equal(files_of(job), "[{\"path\":\"a\",\"size\":2,\"content_base64\":\"b2s=\"},"
                                       "{\"path\":\"b\",\"error\":\"not collected: the link broke\"},"
                                       "{\"path\":\"c\",\"error\":\"not collected: the link broke\"}]");
    job_drop(job);
}

static void a_stopped_collection_goes_on_once_and_hears_no_more(void **state)
{
    static const answer script[] = {{200, NULL, {"ok", 2}}};
    stk_job *job = job_new();
    said.script = script;
    collect(job, "a");
    stk_stage_out(job, next);
    stk_stage_stop(job, "the sandbox is gone");
    assert_int_equal(said.went_on, 1);
    play();
    assert_int_equal(said.went_on, 1);
    assert_string_equal(files_of(job), "[{\"path\":\"a\",\"error\":\"not collected: the sandbox is gone\"}]");
    job_drop(job);
}

static void what_was_never_asked_for_is_listed_too(void **state)
{
    stk_job *job = job_new();
    collect(job, "a");
    assert_string_equal(files_of(job),
                        "[{\"path\":\"a\",\"error\":\"not collected: the command did not end by itself\"}]");
    job_drop(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_files_nothing_is_asked),
        cmocka_unit_test(files_go_in_one_after_another),
        cmocka_unit_test(a_refused_file_ends_the_run_and_a_broken_runtime_gives_it_back),
        cmocka_unit_test(what_is_not_there_is_listed_between_what_is),
        cmocka_unit_test(answers_that_make_no_sense_are_errors_of_their_file_alone),
        cmocka_unit_test(a_link_that_breaks_is_the_error_of_the_rest),
        cmocka_unit_test(a_stopped_collection_goes_on_once_and_hears_no_more),
        cmocka_unit_test(what_was_never_asked_for_is_listed_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
