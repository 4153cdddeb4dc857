#include "workers/runtime/stream.h"

#define PIECE    24576
#define LINE_MAX 65536

static const char *const names[2] = {"stdout", "stderr"};

void stk_stream_init(stk_stream *stream)
{
    *stream = (stk_stream){.line = STK_BUF(LINE_MAX)};
}

static bool send_line(stk_stream *s, stk_http_x *x)
{
    stk_buf_byte(&s->line, '\n');
    bool room = stk_http_write(x, stk_buf_view(&s->line));
    stk_buf_reset(&s->line);
    return room;
}

/* Sends bytes from *sent to n; false when the client must be waited for. */
static bool send_bytes(stk_stream *s, stk_http_x *x, int which, const char *p, size_t n, size_t *sent)
{
    bool room = true;
    while (room && *sent < n) {
        size_t piece = stk_min(n - *sent, PIECE);
        stk_buf_fmt(&s->line, "{\"%s\":\"", names[which]);
        stk_base64_encode(&s->line, stk_str_n(p + *sent, piece));
        stk_buf_text(&s->line, "\"}");
        *sent += piece;
        room = send_line(s, x);
    }
    return room;
}

static bool send_gap(stk_stream *s, stk_http_x *x, int which)
{
    if (s->gap_sent[which] || !s->kept[which].gap)
        return true;
    s->gap_sent[which] = true;
    stk_buf_fmt(&s->line, "{\"gap\":\"%s\",\"bytes\":%llu}", names[which],
                (unsigned long long)s->kept[which].gap);
    return send_line(s, x);
}

static bool send_rest(stk_stream *s, stk_http_x *x, int which)
{
    const stk_kept *kept = &s->kept[which];
    return send_bytes(s, x, which, kept->head.p, kept->head.n, &s->sent[which]) && send_gap(s, x, which) &&
           send_bytes(s, x, which, kept->tail.p, kept->tail.n, &s->tail_sent[which]);
}

static void send_exit(stk_stream *s, stk_command *cmd, stk_http_x *x)
{
    stk_exec_end end = *stk_command_end(cmd);
    stk_jw w;
    end.truncated = s->kept[0].gap || s->kept[1].gap;
    stk_jw_init(&w, &s->line);
    stk_jw_object(&w);
    stk_jw_key(&w, "exit");
    stk_exec_end_write(&w, &end);
    stk_jw_close(&w, '}');
    send_line(s, x);
    stk_http_end(x);
    s->ended = true;
}

static void start(stk_stream *s, stk_http_x *x)
{
    if (!s->started)
        stk_http_start(x, 200, "application/x-ndjson", "", UINT64_MAX);
    s->started = true;
}

void stk_stream_pump(stk_stream *stream, stk_command *cmd, stk_http_x *x)
{
    if (stream->ended)
        return;
    start(stream, x);
    for (int which = 0; which < 2; which++) {
        if (stream->finished) {
            if (!send_rest(stream, x, which))
                return;
            continue;
        }
        const stk_output *out = stk_command_output(cmd, which);
        if (!send_bytes(stream, x, which, out->head, stk_output_ready(out), &stream->sent[which]))
            return;
    }
    if (stream->finished)
        send_exit(stream, cmd, x);
}

void stk_stream_finish(stk_stream *stream, stk_command *cmd, stk_http_x *x)
{
    for (int which = 0; which < 2; which++)
        stream->kept[which] = stk_output_finish(stk_command_output(cmd, which));
    stream->finished = true;
    stk_stream_pump(stream, cmd, x);
}

void stk_stream_done(stk_stream *stream)
{
    stk_buf_done(&stream->line);
}
