#include "workers/stage.h"
#include "workers/frames.h"
#include "workers/job_impl.h"
#include <stdio.h>

#define IN_LIMIT    stk_sec(60) /* for all files together */
#define OUT_LIMIT   stk_sec(20)
#define ANSWER_MAX  65536
#define NOT_WHOLE   "files could not be put into the sandbox"
#define FORM_AROUND 8192

static stk_span time_left(const stk_stage *stage)
{
    return stk_mono_sub(stage->until, stk_mono_now());
}

static void go_on(stk_job *job)
{
    stk_stage_next next = STK_TAKE(job->stage.next);
    job->stage.collecting = false;
    if (next)
        next(job);
}

/* --- in --- */

static void next_in(stk_job *job);

static void on_uploaded(const stk_err *err, bool sent, const stk_head *head, stk_str body, void *arg)
{
    stk_job *job = arg;
    char why[256], detail[512];
    if (job->ending)
        return;
    if (err || (head->status >= 500 && head->status != 507)) {
        snprintf(detail, sizeof(detail), NOT_WHOLE ": %.400s", err ? err->detail : "the runtime failed");
        stk_job_fail(job, STK_REASON_SANDBOX_FAILED, detail, true);
    } else if (head->status != 200) {
        stk_refusal_text(head->status, body, why, sizeof(why));
        snprintf(detail, sizeof(detail), "file %.200s: %s", job->secret.files.v[job->stage.at].path, why);
        stk_job_conclude(job, STK_REASON_REFUSED, detail);
    } else {
        job->stage.at++;
        next_in(job);
    }
}

static int make_form(const stk_file_in *file, const char *boundary, stk_buf *out)
{
    stk_buf_fmt(out, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename*=UTF-8''", boundary);
    stk_percent_encode(stk_str_of(file->path), true, out);
    stk_buf_text(out, "\r\n\r\n");
    stk_buf_str(out, stk_bytes_view(&file->content));
    stk_buf_fmt(out, "\r\n--%s--\r\n", boundary);
    return out->over ? -1 : 0;
}

static int send_file(stk_job *job, const stk_file_in *file, stk_err *err)
{
    uint8_t random[16];
    char boundary[33], header[96];
    stk_buf form STK_AUTO(stk_buf_done) = STK_BUF(file->content.n + FORM_AROUND);
    stk_random(random, sizeof(random));
    stk_hex(random, sizeof(random), boundary);
    snprintf(header, sizeof(header), "Content-Type: multipart/form-data; boundary=%s\r\n", boundary);
    if (make_form(file, boundary, &form) < 0)
        return stk_err_set(err, STK_E_TOO_LARGE, "file %.200s is too large", file->path);
    return stk_box_call(job->box, "POST", file->executable ? "/upload?mode=0755" : "/upload?mode=0644",
                        header, stk_buf_view(&form), ANSWER_MAX, time_left(&job->stage), on_uploaded, job,
                        err);
}

static void next_in(stk_job *job)
{
    stk_err err;
    if (job->stage.at == job->secret.files.n)
        go_on(job);
    else if (time_left(&job->stage).ns <= 0)
        stk_job_fail(job, STK_REASON_SANDBOX_FAILED, NOT_WHOLE " in time", true);
    else if (send_file(job, &job->secret.files.v[job->stage.at], &err) < 0)
        stk_job_fail(job, STK_REASON_SANDBOX_FAILED, err.detail, true);
}

void stk_stage_in(stk_job *job, stk_stage_next next)
{
    job->stage.at = 0;
    job->stage.next = next;
    job->stage.until = stk_mono_add(stk_mono_now(), IN_LIMIT);
    next_in(job);
}

/* --- out --- */

static void next_out(stk_job *job);

static void write_entry(stk_buf *out, stk_str path, int64_t size, const stk_str *content, const char *error)
{
    stk_buf base64 STK_AUTO(stk_buf_done) = STK_BUF(2 * STK_COLLECT_MAX);
    stk_jw w;
    if (out->n)
        stk_buf_byte(out, ',');
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_kstr(&w, "path", path);
    if (size >= 0)
        stk_jw_kint(&w, "size", size);
    if (content) {
        stk_base64_encode(&base64, *content);
        stk_jw_kstr(&w, "content_base64", stk_buf_view(&base64));
    } else {
        stk_jw_ktext(&w, "error", error);
    }
    stk_jw_close(&w, '}');
}

static stk_str path_of(const stk_job *job)
{
    return stk_bytes_view(&job->secret.collect.v[job->stage.at]);
}

static void not_collected(stk_job *job, int64_t size, const char *error)
{
    write_entry(&job->stage.files, path_of(job), size, NULL, error);
    job->stage.at++;
    next_out(job);
}

/* The size from "bytes 0-99/1234"; -1 when there is none. */
static int64_t whole_size(const stk_head *head)
{
    const stk_head_field *field = stk_head_get(head, "Content-Range");
    const char *slash = field && field->value.n ? memchr(field->value.p, '/', field->value.n) : NULL;
    uint64_t n = 0;
    if (!slash)
        return -1;
    stk_str rest = {slash + 1, (size_t)(field->value.p + field->value.n - slash - 1)};
    return stk_str_u64(rest, INT64_MAX, &n) ? (int64_t)n : -1;
}

static void take_answer(stk_job *job, const stk_head *head, stk_str body)
{
    char error[256];
    int64_t size = head->status == 206 ? whole_size(head) : (int64_t)body.n;
    if (head->status != 200 && head->status != 206) {
        stk_refusal_text(head->status, body, error, sizeof(error));
        not_collected(job, -1, error);
    } else if (size < 0 || (uint64_t)size < body.n) {
        not_collected(job, -1, "the runtime's answer makes no sense");
    } else if ((uint64_t)size > job->stage.left) {
        snprintf(error, sizeof(error), "too large: %zu bytes are left of %d for all files of a run",
                 job->stage.left, STK_COLLECT_MAX);
        not_collected(job, size, error);
    } else if ((uint64_t)size != body.n) {
        not_collected(job, size, "it changed while it was read");
    } else {
        write_entry(&job->stage.files, path_of(job), size, &body, NULL);
        job->stage.left -= body.n;
        job->stage.at++;
        next_out(job);
    }
}

static void on_downloaded(const stk_err *err, bool sent, const stk_head *head, stk_str body, void *arg)
{
    stk_job *job = arg;
    if (job->ending || !job->stage.collecting)
        return;
    if (err)
        stk_stage_stop(job, err->detail);
    else
        take_answer(job, head, body);
}

/* One byte more than there is room for is asked for never, but the first byte always: it tells the size. */
static int ask(stk_job *job, stk_err *err)
{
    size_t most = job->stage.left ? job->stage.left : 1;
    char range[48];
    stk_buf target STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_buf_text(&target, "/download/");
    stk_percent_encode(path_of(job), true, &target);
    snprintf(range, sizeof(range), "Range: bytes=0-%zu\r\n", most - 1);
    if (target.over)
        return stk_err_set(err, STK_E_LIMIT, "the path is too long");
    return stk_box_call(job->box, "GET", target.p, range, (stk_str){NULL, 0}, most + ANSWER_MAX,
                        time_left(&job->stage), on_downloaded, job, err);
}

static void next_out(stk_job *job)
{
    stk_err err;
    if (job->stage.at == job->secret.collect.n)
        go_on(job);
    else if (time_left(&job->stage).ns <= 0)
        stk_stage_stop(job, "there was no time left for it");
    else if (ask(job, &err) < 0)
        stk_stage_stop(job, err.detail);
}

void stk_stage_out(stk_job *job, stk_stage_next next)
{
    job->stage.at = 0;
    job->stage.next = next;
    job->stage.collecting = true;
    job->stage.left = STK_COLLECT_MAX;
    job->stage.until = stk_mono_add(stk_mono_now(), OUT_LIMIT);
    job->stage.files = STK_BUF(STK_RECORD_MAX);
    next_out(job);
}

void stk_stage_stop(stk_job *job, const char *why)
{
    snprintf(job->stage.why, sizeof(job->stage.why), "%.159s", why);
    go_on(job);
}

void stk_stage_write(stk_job *job, stk_buf *out)
{
    size_t at = job->stage.files.cap ? job->stage.at : 0;
    stk_buf rest STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    char error[224];
    snprintf(error, sizeof(error), "not collected: %s",
             *job->stage.why ? job->stage.why : "the command did not end by itself");
    for (; at < job->secret.collect.n; at++)
        write_entry(&rest, stk_bytes_view(&job->secret.collect.v[at]), -1, NULL, error);
    stk_buf_byte(out, '[');
    stk_buf_str(out, stk_buf_view(&job->stage.files));
    if (job->stage.files.n && rest.n)
        stk_buf_byte(out, ',');
    stk_buf_str(out, stk_buf_view(&rest));
    stk_buf_byte(out, ']');
}

void stk_stage_done(stk_stage *stage)
{
    stk_buf_done(&stage->files);
}
