/* POST /upload: one file of a form, streamed to its place. ?mode=0755 is ours: permission bits in octal. */
#include "workers/runtime/incoming.h"
#include "workers/runtime/multipart.h"
#include "workers/runtime/problem.h"
#include "workers/runtime/target.h"

#define PATIENCE ((uint64_t)1 << 20) /* bytes of a refused body that are read on, to keep the connection */

typedef struct upload {
    stk_exchange *ex;
    stk_multipart form;
    stk_incoming in;
    stk_part *part; /* the file's, once it was seen */
    mode_t mode;
    bool inside; /* … and its bytes are coming */
    bool failed, answered;
    uint64_t left; /* bytes of a refused body that are still read */
    stk_err err;
} upload;

static int read_mode(stk_str query, mode_t *ret, stk_err *err)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(8);
    mode_t mode = 0;
    *ret = STK_MODE_KEEP;
    if (!stk_query_get(query, "mode", &text))
        return text.over ? stk_err_field(err, STK_E_FIELD, "/mode", "mode is too long") : 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '7')
            text.n = 0;
        else
            mode = mode * 8 + (mode_t)(text.p[i] - '0');
    }
    if (text.n < 3 || text.n > 4 || mode > 0777)
        return stk_err_field(err, STK_E_FIELD, "/mode", "mode must be octal permission bits like 0644");
    *ret = mode;
    return 0;
}

static upload *state_of(stk_exchange *ex)
{
    if (ex->state)
        return ex->state;
    const stk_head *head = stk_http_head(ex->x);
    const stk_head_field *type = stk_head_get(head, "Content-Type");
    upload *up = stk_xcalloc(1, sizeof(*up));
    up->ex = ex;
    up->in = STK_INCOMING_NONE;
    ex->state = up;
    int rc = stk_multipart_init(&up->form, type ? type->value : STK_STR(""), &up->err);
    if (rc == 0)
        rc = read_mode(stk_http_query(ex->x), &up->mode, &up->err);
    up->failed = rc < 0;
    up->left = PATIENCE;
    return up;
}

/* Not found is what a file to read is; the place of a new one is wrong. */
static void answer_failure(upload *up)
{
    if (up->answered)
        return;
    up->answered = true;
    stk_incoming_drop(&up->in);
    if (up->err.code == STK_E_NOT_FOUND)
        stk_err_field(&up->err, STK_E_FIELD, "/file", "filename: %s", up->err.detail);
    stk_rt_refuse(up->ex->x, &up->err);
}

static int begin_file(upload *up, stk_err *err)
{
    char path[PATH_MAX];
    stk_str name = stk_str_of(up->part->filename);
    if (!up->part->has_filename || name.n == 0 || name.p[name.n - 1] == '/')
        return stk_err_field(err, STK_E_FIELD, "/file", "the part 'file' needs the filename of a file");
    int rc = stk_target_relative(up->ex->rt, name, path, err);
    if (rc == 0)
        rc = stk_incoming_open(up->ex->rt->root, path, up->mode, &up->in, err);
    up->inside = rc == 0;
    return rc;
}

static int begin_part(upload *up, stk_err *err)
{
    stk_part *part STK_AUTO(stk_freep) = stk_xcalloc(1, sizeof(*part));
    int rc = stk_part_parse(stk_multipart_head(&up->form), part, err);
    if (rc < 0)
        return rc;
    if (strcmp(part->name, "file") != 0)
        return 0;
    if (up->part)
        return stk_err_field(err, STK_E_FIELD, "/file", "one file a request");
    up->part = STK_TAKE(part);
    return begin_file(up, err);
}

static int take_event(upload *up, stk_multipart_event event, stk_str data, stk_err *err)
{
    switch (event) {
    case STK_PART_BEGIN:
        return begin_part(up, err);
    case STK_PART_DATA:
        return up->inside ? stk_incoming_write(&up->in, data, err) : 0;
    case STK_PART_END:
        up->inside = false;
        return 0;
    case STK_PART_BAD:
        return stk_err_set(err, STK_E_HTTP, "the form is malformed");
    default:
        return 0;
    }
}

static void skip(upload *up, uint64_t n)
{
    const stk_head *head = stk_http_head(up->ex->x);
    bool short_enough = head->framing == STK_FRAMING_LENGTH && head->length <= PATIENCE;
    up->left -= n < up->left ? n : up->left;
    if (!short_enough || up->left == 0)
        answer_failure(up);
}

static void on_data(stk_exchange *ex, stk_str data)
{
    upload *up = state_of(ex);
    size_t n = data.n;
    while (data.n && !up->failed) {
        stk_str run;
        stk_multipart_event event = stk_multipart_feed(&up->form, &data, &run);
        up->failed = take_event(up, event, run, &up->err) < 0;
    }
    if (up->failed) {
        stk_incoming_drop(&up->in);
        skip(up, n);
    }
}

static int finish(upload *up, stk_err *err)
{
    if (!up->form.whole)
        return stk_err_set(err, STK_E_HTTP, "the form ends before its last boundary");
    if (!up->part)
        return stk_err_field(err, STK_E_MISSING_FIELD, "/file", "the part 'file' is missing");
    return stk_incoming_commit(&up->in, err);
}

static void answer_done(upload *up)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(8 * PATH_MAX);
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(2 * PATH_MAX);
    stk_buf_fmt(&text, "File '%s' uploaded successfully.", up->part->filename);
    stk_jw w;
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_kstr(&w, "message", stk_buf_view(&text));
    stk_jw_kint(&w, "size", (int64_t)up->in.size);
    stk_jw_close(&w, '}');
    stk_jw_end(&w, NULL);
    up->answered = true;
    stk_http_answer(up->ex->x, 200, "application/json", "", stk_buf_view(&body));
}

static void on_end(stk_exchange *ex)
{
    upload *up = state_of(ex);
    if (!up->failed)
        up->failed = finish(up, &up->err) < 0;
    if (up->failed)
        answer_failure(up);
    else
        answer_done(up);
}

static void on_done(stk_exchange *ex, bool gone)
{
    upload *up = ex->state;
    if (!up)
        return;
    stk_incoming_drop(&up->in);
    stk_multipart_done(&up->form);
    free(up->part);
    free(up);
}

const stk_call stk_call_upload = {.body = STK_BODY_UPLOAD, .data = on_data, .end = on_end, .done = on_done};
