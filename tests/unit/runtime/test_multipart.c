#include "workers/runtime/multipart.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define TYPE "multipart/form-data; boundary=XyZ"
#define FORM(content)                                                                                        \
    "--XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n" content "\r\n--XyZ--"

typedef struct reading {
    stk_multipart form;
    int parts, ended;
    bool bad;
    stk_buf data, heads;
} reading;

static void begin(reading *r, const char *type)
{
    stk_err err;
    *r = (reading){.data = STK_BUF(1 << 20), .heads = STK_BUF(1 << 20)};
    assert_int_equal(stk_multipart_init(&r->form, stk_str_of(type), &err), 0);
}

static void feed(reading *r, stk_str in)
{
    while (in.n && !r->bad) {
        stk_str data;
        stk_multipart_event event = stk_multipart_feed(&r->form, &in, &data);
        if (event == STK_PART_DATA && r->parts > r->ended)
            stk_buf_str(&r->data, data);
        if (event == STK_PART_BEGIN) {
            r->parts++;
            stk_buf_str(&r->heads, stk_multipart_head(&r->form));
        }
        r->ended += event == STK_PART_END;
        r->bad = event == STK_PART_BAD;
    }
}

static void end(reading *r)
{
    stk_multipart_done(&r->form);
    stk_buf_done(&r->data);
    stk_buf_done(&r->heads);
}

static void check_step(stk_str body, stk_str content, size_t step)
{
    reading r;
    begin(&r, TYPE);
    for (size_t at = 0; at < body.n; at += step)
        feed(&r, stk_str_n(body.p + at, stk_min(step, body.n - at)));
    assert_false(r.bad);
    assert_true(r.form.whole);
    assert_int_equal(r.parts, 1);
    assert_int_equal(r.ended, 1);
    assert_true(stk_str_eq(stk_buf_view(&r.data), content));
    end(&r);
}

static void size_of_the_pieces_makes_no_difference(void **state)
{
    static const struct {
        stk_str body, content;
    } rows[] = {
#define ROW(content) {STK_STR(FORM(content)), STK_STR(content)}
        ROW(""),
        ROW("hello"),
        ROW("\r\n"),
        ROW("\r"),
        ROW("\r\n--XyY"),
        ROW("\r\r\n\r\n--\r\n--X\r\n--Xy\r\r\n--"),
        ROW("a\0b\xff--XyZ--"),
        ROW("\n--XyZ\r\n"),
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        for (size_t step = 1; step <= rows[i].body.n; step++)
            check_step(rows[i].body, rows[i].content, step);
}

static void what_stands_around_the_parts_is_skipped(void **state)
{
    reading r;
    begin(&r, TYPE);
    feed(&r, STK_STR("hello --XyZ\r\n" FORM("one") "\r\nepilogue\r\n--XyZ\r\nmore"));
    assert_false(r.bad);
    assert_int_equal(r.parts, 1);
    assert_true(stk_str_eq(stk_buf_view(&r.data), STK_STR("one")));
    end(&r);
}

static void parts_follow_each_other(void **state)
{
    reading r;
    begin(&r, TYPE);
    feed(&r, STK_STR("--XyZ  \t\r\nA: 1\r\n\r\none\r\n--XyZ\r\n\r\ntwo\r\n--XyZ--"));
    assert_true(r.form.whole);
    assert_int_equal(r.parts, 2);
    assert_true(stk_str_eq(stk_buf_view(&r.data), STK_STR("onetwo")));
    assert_true(stk_str_eq(stk_buf_view(&r.heads), STK_STR("A: 1\r\n")));
    end(&r);
}

static void a_boundary_is_followed_by_its_line_end_or_two_dashes(void **state)
{
    static const char *const rows[] = {"--XyZa", "--XyZ-\r", "--XyZ\n", "--XyZ\r\r", "--XyZ \n", "--XyZ -"};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        reading r;
        begin(&r, TYPE);
        feed(&r, stk_str_of(rows[i]));
        assert_true(r.bad);
        assert_false(r.form.whole);
        end(&r);
    }
}

static void a_part_head_is_bounded(void **state)
{
    reading r;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    stk_buf_text(&body, "--XyZ\r\nA: ");
    while (body.n < STK_PART_HEAD_MAX + 10)
        stk_buf_byte(&body, 'a');
    begin(&r, TYPE);
    feed(&r, stk_buf_view(&body));
    assert_true(r.bad);
    end(&r);
}

static void a_content_type_needs_a_proper_boundary(void **state)
{
    static const struct {
        const char *type;
        bool good;
    } rows[] = {
        {"multipart/form-data; boundary=a", true},
        {"Multipart/Form-Data;charset=utf-8; Boundary=\"a b?:=\"", true},
        {"multipart/form-data ;boundary=----WebKitFormBoundary7MA4", true},
        {"multipart/form-data", false},
        {"multipart/form-data; boundary=", false},
        {"multipart/form-data; boundary=\"\"", false},
        {"multipart/form-data; boundary=\"a \"", false},
        {"multipart/form-data; boundary=a\x01", false},
        {"multipart/form-data; boundary="
         "12345678901234567890123456789012345678901234567890123456789012345678901",
         false},
        {"multipart/mixed; boundary=a", false},
        {"", false},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_multipart form;
        stk_err err;
        int rc = stk_multipart_init(&form, stk_str_of(rows[i].type), &err);
        assert_int_equal(rc, rows[i].good ? 0 : -STK_E_FIELD);
        stk_multipart_done(&form);
    }
}

static void the_file_name_of_a_part_is_read_once(void **state)
{
    static const struct {
        const char *value, *filename;
        int rc;
    } rows[] = {
        {"form-data; name=file; filename=plain", "plain", 0},
        {"form-data; name=\"file\"; filename=\"a b;c\"", "a b;c", 0},
        {"Form-Data;NAME=file;FileName=\"x\"", "x", 0},
        {"form-data; name=file; filename=\"q\\\"b\\\\s\\x\"", "q\"b\\s\\x", 0},
        {"form-data; name=file; filename=\"100%25\"", "100%25", 0},
        {"form-data; name=file; filename*=UTF-8''100%25%20%C3%A9", "100% \xc3\xa9", 0},
        {"form-data; name=file; filename=no; filename*=utf-8'en'yes", "yes", 0},
        {"form-data; name=file; filename*=utf-8''yes; filename=no", "yes", 0},
        {"form-data; name=file; filename*=utf-8''%ff", NULL, -STK_E_HTTP},
        {"form-data; name=file; filename*=utf-8''%2", NULL, -STK_E_HTTP},
        {"form-data; name=file; filename*=\"utf-8''x\"", NULL, -STK_E_HTTP},
        {"form-data; name=file; filename*=x", NULL, -STK_E_HTTP},
        {"form-data; name=file; filename*=utf-8''a%00", NULL, -STK_E_FIELD},
        {"form-data; name=file; filename=a; filename=b", NULL, -STK_E_HTTP},
        {"form-data; name=file; name=file", NULL, -STK_E_HTTP},
        {"form-data; name=file; filename=\"a", NULL, -STK_E_HTTP},
        {"form-data; name=file; filename=", NULL, -STK_E_HTTP},
        {"form-data; name=file; filename=a b", NULL, -STK_E_HTTP},
        {"form-data; name=file;", NULL, -STK_E_HTTP},
        {"form-data; filename=a", NULL, -STK_E_HTTP},
        {"attachment; name=file; filename=a", NULL, -STK_E_HTTP},
        {"", NULL, -STK_E_HTTP},
    };
    static stk_part part;
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_err err;
        stk_buf head STK_AUTO(stk_buf_done) = STK_BUF(4096);
        stk_buf_fmt(&head, "Content-Type: text/plain\r\ncontent-disposition:%s\r\n", rows[i].value);
        int rc = stk_part_parse(stk_buf_view(&head), &part, &err);
        if (rc != rows[i].rc || (rc == 0 && strcmp(part.filename, rows[i].filename) != 0))
            fail_msg("%s: %d, %s", rows[i].value, rc, part.filename);
    }
}

static void a_part_head_without_one_disposition_is_malformed(void **state)
{
    static const char *const rows[] = {"",
                                       "A: b\r\n",
                                       "A\r\n",
                                       ": x\r\n",
                                       "A: b\n",
                                       "Content-Disposition: form-data; name=a\r\n"
                                       "Content-Disposition: form-data; name=a\r\n"};
    static stk_part part;
    stk_err err;
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        assert_int_equal(stk_part_parse(stk_str_of(rows[i]), &part, &err), -STK_E_HTTP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_of_the_pieces_makes_no_difference),
        cmocka_unit_test(what_stands_around_the_parts_is_skipped),
        cmocka_unit_test(parts_follow_each_other),
        cmocka_unit_test(a_boundary_is_followed_by_its_line_end_or_two_dashes),
        cmocka_unit_test(a_part_head_is_bounded),
        cmocka_unit_test(a_content_type_needs_a_proper_boundary),
        cmocka_unit_test(the_file_name_of_a_part_is_read_once),
        cmocka_unit_test(a_part_head_without_one_disposition_is_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
