#include "workers/frames.h"
#include <stdio.h>

#define LINE_MAX_BYTES ((size_t)1 << 20)

void stk_frames_begin(stk_frames *frames, int status)
{
    stk_frames_done(frames);
    *frames =
        (stk_frames){.status = status, .line = STK_BUF(LINE_MAX_BYTES), .clear = STK_BUF(LINE_MAX_BYTES)};
}

static int bad(stk_err *err, const char *what)
{
    return stk_err_set(err, STK_E_PROTOCOL, "the runtime sent %s", what);
}

static int output_frame(stk_frames *frames, stk_jv value, bool stderr_, stk_frame *ret, stk_err *err)
{
    stk_buf_reset(&frames->clear);
    if (!stk_jv_is(value, STK_J_STRING) || stk_base64_decode(&frames->clear, stk_jv_str(value)) < 0)
        return bad(err, "output that is not base64");
    *ret = (stk_frame){.kind = STK_FRAME_OUTPUT, .stderr_ = stderr_, .data = stk_buf_view(&frames->clear)};
    return 0;
}

static int gap_frame(stk_jv root, stk_frame *ret, stk_err *err)
{
    stk_str name = stk_jv_str(stk_jv_get(root, "gap"));
    *ret = (stk_frame){.kind = STK_FRAME_GAP, .stderr_ = stk_str_eq(name, STK_STR("stderr"))};
    if ((!ret->stderr_ && !stk_str_eq(name, STK_STR("stdout"))) ||
        !stk_jv_int(stk_jv_get(root, "bytes"), &ret->bytes) || ret->bytes < 0)
        return bad(err, "a gap of no stream");
    return 0;
}

static int read_frame(stk_frames *frames, stk_jv root, stk_frame *ret, stk_err *err)
{
    stk_jv first = stk_jv_first(root);
    if (!stk_jv_is(root, STK_J_OBJECT) || frames->ended)
        return bad(err, frames->ended ? "frames behind the exit status" : "a frame that is no object");
    stk_str key = stk_jv_key(first);
    if (stk_str_eq(key, STK_STR("stdout")) || stk_str_eq(key, STK_STR("stderr")))
        return output_frame(frames, first, key.p[3] == 'e', ret, err);
    if (stk_str_eq(key, STK_STR("gap")))
        return gap_frame(root, ret, err);
    if (!stk_str_eq(key, STK_STR("exit")))
        return bad(err, "a frame of unknown kind");
    *ret = (stk_frame){.kind = STK_FRAME_EXIT};
    frames->ended = true;
    return stk_exec_end_decode(first, &ret->end, err);
}

static int take_line(stk_frames *frames, stk_frame_fn fn, void *arg, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_frame frame = {0};
    int rc = stk_json_parse(stk_buf_view(&frames->line), NULL, &doc, err);
    if (rc == 0)
        rc = read_frame(frames, stk_json_root(doc), &frame, err);
    stk_buf_reset(&frames->line);
    if (rc == 0)
        fn(&frame, arg);
    return rc;
}

int stk_frames_feed(stk_frames *frames, stk_str data, stk_frame_fn fn, void *arg, stk_err *err)
{
    while (data.n) {
        const char *end = frames->status == 200 ? memchr(data.p, '\n', data.n) : NULL;
        size_t n = end ? (size_t)(end - data.p) : data.n;
        if (stk_buf_add(&frames->line, data.p, n) < 0)
            return frames->status == 200 ? bad(err, "a line that is too long") : 0;
        int rc = end ? take_line(frames, fn, arg, err) : 0;
        if (rc < 0)
            return rc;
        n += end != NULL;
        data = stk_str_n(data.p + n, data.n - n);
    }
    return 0;
}

void stk_frames_refusal(const stk_frames *frames, char *out, size_t size)
{
    stk_refusal_text(frames->status, stk_buf_view(&frames->line), out, size);
}

void stk_refusal_text(int status, stk_str body, char *out, size_t size)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_err err;
    snprintf(out, size, "the runtime refused it (status %d)", status);
    if (stk_json_parse(body, NULL, &doc, &err) < 0)
        return;
    stk_jv detail = stk_jv_get(stk_json_root(doc), "detail");
    if (stk_jv_is(detail, STK_J_ARRAY))
        detail = stk_jv_get(stk_jv_first(detail), "msg");
    if (stk_jv_is(detail, STK_J_STRING))
        snprintf(out, size, "%.*s", (int)stk_min(stk_jv_str(detail).n, size - 1), stk_jv_str(detail).p);
}

void stk_frames_done(stk_frames *frames)
{
    stk_buf_done(&frames->line);
    stk_buf_done(&frames->clear);
}
