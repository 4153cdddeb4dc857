/* Readers and writers of single values that the field table's own kinds do not cover. */
#include "proto/message/check.h"

int stk__base64_read(stk_jv v, void *at, stk_err *err)
{
    stk_bytes *bytes = at;
    if (!stk_jv_is(v, STK_J_STRING))
        return stk_err_field(err, STK_E_FIELD, "", "must be a base64 string, not %s",
                             stk_jtype_name(stk_jv_type(v)));
    stk_buf buf STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    if (stk_base64_decode(&buf, stk_jv_str(v)) < 0)
        return stk_err_field(err, STK_E_FIELD, "", "is not base64 (RFC 4648, with padding)");
    stk_bytes_set(bytes, stk_buf_view(&buf));
    return 0;
}

void stk__base64_write(stk_jw *w, const void *at)
{
    const stk_bytes *bytes = at;
    stk_buf buf STK_AUTO(stk_buf_done) = STK_BUF((size_t)STK_RECORD_MAX * 2);
    if (stk_base64_encode(&buf, stk_bytes_view(bytes)) < 0)
        w->bad = true;
    else
        stk_jw_str(w, stk_buf_view(&buf));
}

void stk__bytes_free(void *at)
{
    stk_bytes_done(at);
}

int stk__ms_read(stk_jv v, void *at, stk_err *err)
{
    int64_t ms = 0;
    if (!stk_jv_is(v, STK_J_NUMBER) || !stk_jv_int(v, &ms) || ms < 0 || ms > INT64_MAX / 1000000)
        return stk_err_field(err, STK_E_FIELD, "", "must be a whole number of milliseconds, not negative");
    *(stk_span *)at = stk_ms(ms);
    return 0;
}

void stk__ms_write(stk_jw *w, const void *at)
{
    stk_jw_int(w, stk_span_ms(*(const stk_span *)at));
}

static int seconds_read(stk_jv v, int64_t most_ns, stk_span *ret, stk_err *err)
{
    double seconds = stk_jv_double(v), most = (double)most_ns / 1e9;
    if (!stk_jv_is(v, STK_J_NUMBER))
        return stk_err_field(err, STK_E_FIELD, "", "must be a number of seconds from 0.001 to %.0f, not %s",
                             most, stk_jtype_name(stk_jv_type(v)));
    if (!(seconds >= (double)STK_TIMEOUT_MIN_NS / 1e9 && seconds <= most))
        return stk_err_field(err, STK_E_FIELD, "", "must be a number of seconds from 0.001 to %.0f", most);
    *ret = stk_ns((int64_t)(seconds * 1e9 + 0.5));
    return 0;
}

int stk__timeout_read(stk_jv v, void *at, stk_err *err)
{
    return seconds_read(v, STK_TIMEOUT_MAX_NS, at, err);
}

int stk__deadline_read(stk_jv v, void *at, stk_err *err)
{
    return seconds_read(v, STK_DEADLINE_MAX_NS, at, err);
}

void stk__seconds_write(stk_jw *w, const void *at)
{
    stk_jw_double(w, stk_span_sec(*(const stk_span *)at));
}
