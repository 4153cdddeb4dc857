/* The runtime's frames are an untrusted neighbour's words: each line is bounded and checked. */
#include "tests/unit/workers/unit.h"
#include "workers/frames.h"

typedef struct seen {
    char text[512];
    size_t frames;
    stk_exec_end end;
} seen;

static void on_frame(const stk_frame *frame, void *arg)
{
    seen *s = arg;
    size_t n = strlen(s->text);
    s->frames++;
    if (frame->kind == STK_FRAME_OUTPUT)
        snprintf(s->text + n, sizeof(s->text) - n, "%c:%.*s;", frame->stderr_ ? 'e' : 'o',
                 (int)stk_min(frame->data.n, 40), frame->data.p);
    else if (frame->kind == STK_FRAME_GAP)
        snprintf(s->text + n, sizeof(s->text) - n, "%c-%lld;", frame->stderr_ ? 'e' : 'o',
                 (long long)frame->bytes);
    else
        s->end = frame->end;
}

#define EXIT                                                                                                 \
    "{\"exit\":{\"exit_code\":3,\"signal\":0,\"timed_out\":false,\"oom_killed\":false,\"truncated\":false,"  \
    "\"duration_ms\":1,\"stdout_bytes\":2,\"stderr_bytes\":3}}\n"

static int feed(const char *text, size_t n, size_t piece, seen *s)
{
    stk_frames frames = {0};
    stk_err err;
    int rc = 0;
    stk_frames_begin(&frames, 200);
    for (size_t at = 0; rc == 0 && at < n; at += piece)
        rc = stk_frames_feed(&frames, stk_str_n(text + at, stk_min(piece, n - at)), on_frame, s, &err);
    stk_frames_done(&frames);
    return rc;
}

static void frames_are_the_same_however_they_are_cut(void **state)
{
    static const char text[] =
        "{\"stdout\":\"aGk=\"}\n{\"stderr\":\"\"}\n{\"gap\":\"stdout\",\"bytes\":9}\n{\"gap\":\"stderr\","
        "\"bytes\":0}\n{\"stderr\":\"eW8=\"}\n" EXIT;
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        seen s = {0};
        assert_int_equal(feed(text, sizeof(text) - 1, piece, &s), 0);
        assert_string_equal(s.text, "o:hi;e:;o-9;e-0;e:yo;");
        assert_int_equal(s.frames, 6);
        assert_int_equal(s.end.exit_code, 3);
    }
}

static void a_line_that_is_no_frame_is_refused(void **state)
{
    static const char *const lines[] = {
        "\n",
        "{}\n",
        "[]\n",
        "null\n",
        "\"stdout\"\n",
        "{\"stdout\":1}\n",
        "{\"stdout\":null}\n",
        "{\"stdout\":\"a\"}\n",
        "{\"stdout\":\"aGk\"}\n",
        "{\"stdout\":\"aGk= \"}\n",
        "{\"stdout\":[\"aGk=\"]}\n",
        "{\"STDOUT\":\"aGk=\"}\n",
        "{\"gap\":\"stdin\",\"bytes\":1}\n",
        "{\"gap\":\"stdout\"}\n",
        "{\"gap\":\"stdout\",\"bytes\":-1}\n",
        "{\"gap\":\"stdout\",\"bytes\":1.5}\n",
        "{\"gap\":\"stdout\",\"bytes\":99999999999999999999}\n",
        "{\"gap\":1,\"bytes\":1}\n",
        "{\"exit\":0}\n",
        "{\"exit\":{}}\n",
        "{\"exit\":[]}\n",
        "{\"exec\":{}}\n",
        "{\"stdout\":\"aGk=\"\n",
        "\xff\n",
        "{\"a\":1}\n",
        EXIT EXIT,
        EXIT "{\"stdout\":\"\"}\n",
    };
    for (size_t i = 0; i < STK_COUNT(lines); i++) {
        seen s = {0};
        if (feed(lines[i], strlen(lines[i]), 7, &s) != -STK_E_PROTOCOL &&
            feed(lines[i], strlen(lines[i]), 7, &s) >= 0)
            fail_msg("taken: %s", lines[i]);
    }
}

static void nul_and_deep_nesting_are_refused(void **state)
{
    static char deep[200002];
    seen s = {0};
    assert_true(feed("{\"stdout\":\"aGk=\"\0}\n", 19, 19, &s) < 0);
    memset(deep, '[', sizeof(deep) - 2);
    deep[sizeof(deep) - 2] = '\n';
    assert_true(feed(deep, sizeof(deep) - 1, 65536, &s) < 0);
    assert_int_equal(s.frames, 0);
}

static void a_line_without_an_end_is_bounded(void **state)
{
    static char block[65536];
    stk_frames frames = {0};
    stk_err err;
    seen s = {0};
    int rc = 0, pieces = 0;
    memset(block, 'x', sizeof(block));
    stk_frames_begin(&frames, 200);
    for (; rc == 0 && pieces < 64; pieces++)
        rc = stk_frames_feed(&frames, stk_str_n(block, sizeof(block)), on_frame, &s, &err);
    assert_int_equal(rc, -STK_E_PROTOCOL);
    assert_in_range(pieces, 16, 17);
    stk_frames_done(&frames);
}

static void an_answer_that_is_no_success_is_only_kept(void **state)
{
    static const struct {
        const char *body, *said;
    } rows[] = {
        {"{\"detail\":\"no such program\"}", "no such program"},
        {"{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"too long\",\"type\":\"x\"}]}", "too long"},
        {"{\"detail\":7}", "the runtime refused it (status 413)"},
        {"{\"detail\":[]}", "the runtime refused it (status 413)"},
        {"<html>\n", "the runtime refused it (status 413)"},
        {"", "the runtime refused it (status 413)"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_frames frames = {0};
        stk_err err;
        seen s = {0};
        char said[64];
        stk_frames_begin(&frames, 413);
        assert_int_equal(stk_frames_feed(&frames, stk_str_of(rows[i].body), on_frame, &s, &err), 0);
        stk_frames_refusal(&frames, said, sizeof(said));
        assert_string_equal(said, rows[i].said);
        assert_int_equal(s.frames, 0);
        stk_frames_done(&frames);
    }
}

static void a_second_answer_begins_afresh(void **state)
{
    stk_frames frames = {0};
    stk_err err;
    seen s = {0};
    stk_frames_begin(&frames, 200);
    assert_int_equal(stk_frames_feed(&frames, STK_STR(EXIT "{\"std"), on_frame, &s, &err), 0);
    assert_true(frames.ended);
    stk_frames_begin(&frames, 200);
    assert_int_equal(stk_frames_feed(&frames, STK_STR(EXIT), on_frame, &s, &err), 0);
    assert_int_equal(s.frames, 2);
    stk_frames_done(&frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_the_same_however_they_are_cut),
        cmocka_unit_test(a_line_that_is_no_frame_is_refused),
        cmocka_unit_test(nul_and_deep_nesting_are_refused),
        cmocka_unit_test(a_line_without_an_end_is_bounded),
        cmocka_unit_test(an_answer_that_is_no_success_is_only_kept),
        cmocka_unit_test(a_second_answer_begins_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
