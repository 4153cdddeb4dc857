#include "proto/base/log.h"
#include "proto/base/json.h"
#include "tests/unit/base/test.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

static char text[64 * 1024];

/* Runs `say` with standard error going to a memory file and returns what was written. */
static const char *said(void (*say)(void))
{
    int file = memfd_create("log", MFD_CLOEXEC);
    int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    assert_true(file >= 0 && saved >= 0 && fcntl(file, F_SETFL, O_APPEND) == 0);
    dup2(file, STDERR_FILENO);
    say();
    dup2(saved, STDERR_FILENO);
    ssize_t n = pread(file, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(file);
    close(saved);
    return text;
}

static size_t count(const char *s, char c)
{
    size_t n = 0;
    for (; *s; s++)
        n += *s == c;
    return n;
}

static const stk_who who = {.run = "run-1", .tenant = "acme", .sandbox = "sbx-1"};

static void say_plain(void)
{
    stk_log_warn(&who, "lease lost after %d ms", 5);
}

static void a_line_carries_time_level_program_and_identity(void **state)
{
    stk_log_setup("worker", false, STK_LOG_INFO);
    const char *line = said(say_plain) + 24;
    assert_string_equal(line, " warn worker run=run-1 tenant=acme sandbox=sbx-1 lease lost after 5 ms\n");
    stk_log_setup("worker", true, STK_LOG_INFO);
    line = said(say_plain);
    assert_int_equal(strncmp(line, "{\"time\":\"20", 11), 0);
    assert_string_equal(line + 33,
                        "\",\"level\":\"warn\",\"program\":\"worker\",\"run\":\"run-1\",\"tenant\":\"acme\","
                        "\"sandbox\":\"sbx-1\",\"message\":\"lease lost after 5 ms\"}\n");
}

static void say_levels(void)
{
    stk_log_debug(NULL, "d");
    stk_log_info(NULL, "i");
    stk_log_warn(NULL, "w");
    stk_log(STK_LOG_ERROR, NULL, "e");
}

static void lines_below_the_level_are_not_written(void **state)
{
    static const size_t lines[] = {
        [STK_LOG_DEBUG] = 4, [STK_LOG_INFO] = 3, [STK_LOG_WARN] = 2, [STK_LOG_ERROR] = 1};
    for (size_t i = 0; i < STK_COUNT(lines); i++) {
        stk_log_setup("x", false, (stk_level)i);
        assert_int_equal(count(said(say_levels), '\n'), lines[i]);
    }
}

static void say_error(void)
{
    stk_err err;
    stk_err_set(&err, STK_E_CORRUPT, "page 5 \"x\"");
    stk_log_err(STK_LOG_ERROR, NULL, &err, "open store");
}

static void an_error_adds_code_and_detail(void **state)
{
    stk_log_setup("x", false, STK_LOG_INFO);
    assert_string_equal(said(say_error) + 24, " error x code=corrupt open store: page 5 \"x\"\n");
    stk_log_setup("x", true, STK_LOG_INFO);
    assert_non_null(
        strstr(said(say_error),
               "\"code\":\"corrupt\",\"message\":\"open store\",\"detail\":\"page 5 \\\"x\\\"\"}\n"));
}

static const char *forged;

static void say_forged(void)
{
    stk_who bad = {.run = forged, .tenant = forged};
    stk_log_info(&bad, "%s", forged);
}

static const char *const forgeries[] = {
    "a\nerror worker run=run-2 forged",
    "a\r\nb",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\xe2\x80\xa8"
    "b", /* U+2028 line separator */
    "a\xe2\x80\xa9"
    "b", /* U+2029 paragraph separator */
    "a\xc2\x85"
    "b", /* U+0085 next line */
    "a\xc2\x9b"
    "31mred", /* U+009B, one-character CSI */
    "a\xe2\x80\xae"
    "b", /* U+202E right-to-left override */
    "a\xe2\x81\xa6"
    "b", /* U+2066 isolate */
    "a\xe2\x80\x8b"
    "b", /* U+200B zero width space */
    "a\xef\xbb\xbf"
    "b", /* U+FEFF */
    "a\xf3\xa0\x80\x81"
    "b", /* U+E0001 language tag */
    "a\x7f\x08\x08"
    "b",
    "\xff\xfe\x80\xc0\xaf\xed\xa0\x80\xf8\x88\x80\x80\x80",
    "\",\"level\":\"error\",\"x\":\"",
    "\\",
    "a\\\"",
    "cut \xe2\x80",
};

static bool is_tame(const char *line)
{
    for (const unsigned char *p = (const unsigned char *)line; *p; p++)
        if ((*p < 0x20 && !(*p == '\n' && !p[1])) || *p >= 0x7f)
            return false;
    return true;
}

static void no_value_forges_a_line_or_drives_a_terminal(void **state)
{
    for (int json = 0; json < 2; json++) {
        stk_log_setup("x", json, STK_LOG_INFO);
        for (size_t i = 0; i < STK_COUNT(forgeries); i++) {
            forged = forgeries[i];
            const char *line = said(say_forged);
            assert_int_equal(count(line, '\n'), 1);
            if (!is_tame(line))
                fail_msg("row %zu: %s", i, line);
        }
    }
}

static void a_value_of_the_text_form_poses_as_no_other_field(void **state)
{
    stk_log_setup("x", false, STK_LOG_INFO);
    forged = "r1 tenant=root";
    const char *line = said(say_forged);
    assert_non_null(strstr(line, " run=r1\\u0020tenant=root tenant=r1"));
}

static void letters_beyond_ascii_stay(void **state)
{
    stk_log_setup("x", true, STK_LOG_INFO);
    forged = "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80";
    assert_non_null(strstr(said(say_forged), "\"run\":\"caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80\""));
}

static void every_json_line_is_valid_json_however_long(void **state)
{
    stk_log_setup("x", true, STK_LOG_INFO);
    static const char fills[] = {'x', '\x01', '"', '\\', (char)0xff};
    for (size_t i = 0; i < sizeof(fills) + STK_COUNT(forgeries); i++) {
        static char big[5000];
        memset(big, fills[i % sizeof(fills)], sizeof(big) - 1);
        forged = i < sizeof(fills) ? big : forgeries[i - sizeof(fills)];
        const char *line = said(say_forged);
        size_t n = strlen(line);
        assert_true(n > 2 && line[n - 1] == '\n');
        stk_err err;
        stk_json *doc STK_AUTO(stk_json_freep) = NULL;
        if (stk_json_parse(stk_str_n(line, n - 1), NULL, &doc, &err) < 0)
            fail_msg("%s: %s", err.detail, line);
    }
}

static void *say_many(void *arg)
{
    for (int i = 0; i < 200; i++)
        stk_log_info(NULL, "line of %s end", (const char *)arg);
    return NULL;
}

static void say_at_once(void)
{
    static const char *const names[] = {"aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, say_many, (void *)(uintptr_t)names[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void lines_of_threads_do_not_mix(void **state)
{
    stk_log_setup("x", false, STK_LOG_INFO);
    const char *at = said(say_at_once);
    size_t lines = 0;
    for (; *at; lines++) {
        const char *nl = strchr(at, '\n');
        assert_non_null(nl);
        assert_int_equal(nl - at, 24 + strlen(" info x line of aaaaaaaa end"));
        at = nl + 1;
    }
    assert_int_equal(lines, 800);
}

static void levels_are_read_by_name(void **state)
{
    stk_level level = STK_LOG_ERROR;
    assert_int_equal(stk_level_parse("debug", &level), 0);
    assert_int_equal(level, STK_LOG_DEBUG);
    assert_true(stk_level_parse("Debug", &level) < 0);
    assert_true(stk_level_parse("", &level) < 0);
    assert_int_equal(level, STK_LOG_DEBUG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_carries_time_level_program_and_identity),
        cmocka_unit_test(lines_below_the_level_are_not_written),
        cmocka_unit_test(an_error_adds_code_and_detail),
        cmocka_unit_test(no_value_forges_a_line_or_drives_a_terminal),
        cmocka_unit_test(a_value_of_the_text_form_poses_as_no_other_field),
        cmocka_unit_test(letters_beyond_ascii_stay),
        cmocka_unit_test(every_json_line_is_valid_json_however_long),
        cmocka_unit_test(lines_of_threads_do_not_mix),
        cmocka_unit_test(levels_are_read_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
