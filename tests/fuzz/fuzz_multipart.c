/* A form reads the same in one piece and byte by byte, its data are no more than its bytes and never hold a
 * whole delimiter, and a part's name is a name. First byte: 0 = the rest is a form with the boundary "b",
 * else a Content-Type up to the first line end and a form after it. */
#include "workers/runtime/multipart.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

typedef struct sum {
    size_t bytes;
    uint32_t hash;
    int begun, ended;
    bool bad, whole;
} sum;

static void take(sum *sum, stk_str data)
{
    for (size_t i = 0; i < data.n; i++)
        sum->hash = sum->hash * 31 + (uint8_t)data.p[i];
    sum->bytes += data.n;
}

static void read_part(stk_str head)
{
    static stk_part part;
    stk_err err;
    if (stk_part_parse(head, &part, &err) == 0)
        check(strlen(part.filename) < sizeof(part.filename) && strlen(part.name) < sizeof(part.name));
}

static sum read_form(stk_str type, stk_str in, size_t step)
{
    stk_multipart form;
    sum sum = {0};
    stk_err err;
    sum.bad = stk_multipart_init(&form, type, &err) < 0;
    for (size_t at = 0; at < in.n && !sum.bad; at += step) {
        stk_str piece = stk_str_n(in.p + at, stk_min(step, in.n - at)), data;
        while (piece.n && !sum.bad) {
            stk_multipart_event event = stk_multipart_feed(&form, &piece, &data);
            if (event == STK_PART_DATA)
                take(&sum, data);
            if (event == STK_PART_BEGIN)
                read_part(stk_multipart_head(&form));
            sum.begun += event == STK_PART_BEGIN;
            sum.ended += event == STK_PART_END;
            sum.bad = event == STK_PART_BAD;
        }
    }
    sum.whole = form.whole;
    stk_multipart_done(&form);
    check(sum.bytes <= in.n && sum.ended <= sum.begun && (!sum.whole || sum.ended == sum.begun));
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    stk_str in = stk_str_n(data + 1, size - 1), type = STK_STR("multipart/form-data; boundary=b");
    const char *end = data[0] && in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (end) {
        type = stk_str_n(in.p, (size_t)(end - in.p));
        in = stk_str_n(end + 1, in.n - type.n - 1);
    }
    sum whole = read_form(type, in, in.n ? in.n : 1), bytes = read_form(type, in, 1);
    check(whole.bad == bytes.bad && whole.whole == bytes.whole && whole.begun == bytes.begun);
    check(whole.bad || (whole.bytes == bytes.bytes && whole.hash == bytes.hash));
    return 0;
}
