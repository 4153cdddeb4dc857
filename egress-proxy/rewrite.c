#include "egress-proxy/rewrite.h"

#define VIA "Via: 1.1 stockade\r\n"

static const char *const one_hop[] = {"connection",     "keep-alive",       "te",
                                      "trailer",        "upgrade",          "http2-settings",
                                      "content-length", "transfer-encoding"};
static const char *const not_of_requests[] = {"host", "expect", "x-upstream-https-proxy"};
static const char *const one_hop_prefixes[] = {"proxy-"};
static const char *const request_prefixes[] = {"x-smokescreen-"};

static bool is_in(const char *const *names, size_t n, stk_str name)
{
    for (size_t i = 0; i < n; i++)
        if (stk_str_ieq(name, stk_str_of(names[i])))
            return true;
    return false;
}

static bool begins_with(const char *const *prefixes, size_t n, stk_str name)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(prefixes[i]);
        if (name.n >= len && stk_str_ieq(stk_str_n(name.p, len), stk_str_n(prefixes[i], len)))
            return true;
    }
    return false;
}

static bool is_named_by_connection(const stk_head *head, stk_str name)
{
    char text[128];
    return stk_str_copy(name, text, sizeof(text)) && stk_head_has_token(head, "connection", text);
}

static bool is_kept(const stk_head *head, stk_str name, bool request, bool has_connection)
{
    if (is_in(one_hop, STK_COUNT(one_hop), name) ||
        begins_with(one_hop_prefixes, STK_COUNT(one_hop_prefixes), name))
        return false;
    if (request && (is_in(not_of_requests, STK_COUNT(not_of_requests), name) ||
                    begins_with(request_prefixes, STK_COUNT(request_prefixes), name)))
        return false;
    return !has_connection || !is_named_by_connection(head, name);
}

static void copy_fields(const stk_head *head, bool request, stk_buf *out)
{
    bool has_connection = stk_head_get(head, "connection") != NULL;
    for (size_t i = 0; i < head->nfields; i++) {
        const stk_head_field *field = &head->fields[i];
        if (!is_kept(head, field->name, request, has_connection))
            continue;
        stk_buf_str(out, field->name);
        stk_buf_str(out, STK_STR(": "));
        stk_buf_str(out, field->value);
        stk_buf_str(out, STK_STR("\r\n"));
    }
}

bool stk_method_bodyless(stk_str method)
{
    return stk_str_eq(method, STK_STR("GET")) || stk_str_eq(method, STK_STR("HEAD")) ||
           stk_str_eq(method, STK_STR("TRACE"));
}

static void write_path(const stk_head *head, const stk_target *target, stk_buf *out)
{
    if (!target->path.n && stk_str_eq(head->method, STK_STR("OPTIONS")))
        stk_buf_byte(out, '*');
    else if (!target->path.n || target->path.p[0] == '?')
        stk_buf_byte(out, '/');
    stk_buf_str(out, target->path);
}

static void write_framing(stk_framing framing, uint64_t length, stk_buf *out)
{
    if (framing == STK_FRAMING_CHUNKED)
        stk_buf_str(out, STK_STR("Transfer-Encoding: chunked\r\n"));
    else if (framing != STK_FRAMING_CLOSE)
        stk_buf_fmt(out, "Content-Length: %llu\r\n", (unsigned long long)length);
}

void stk_request_rewrite(const stk_head *head, const stk_target *target, stk_buf *out)
{
    stk_buf_str(out, head->method);
    stk_buf_byte(out, ' ');
    write_path(head, target, out);
    stk_buf_fmt(out, " HTTP/1.1\r\nHost: %s", target->host);
    if (target->port != 80)
        stk_buf_fmt(out, ":%u", target->port);
    stk_buf_str(out, STK_STR("\r\n"));
    copy_fields(head, true, out);
    if (head->framing != STK_FRAMING_NONE || !stk_method_bodyless(head->method))
        write_framing(head->framing, head->length, out);
    if (head->expect_continue)
        stk_buf_str(out, STK_STR("Expect: 100-continue\r\n"));
    stk_buf_str(out, STK_STR(VIA "Connection: close\r\n\r\n"));
}

stk_framing stk_response_rewrite(const stk_head *head, const stk_response_how *how, stk_buf *out)
{
    stk_framing framing = head->framing;
    if (framing == STK_FRAMING_CHUNKED || framing == STK_FRAMING_CLOSE)
        framing = how->to_1_0 ? STK_FRAMING_CLOSE : STK_FRAMING_CHUNKED;
    stk_buf_fmt(out, "HTTP/1.1 %d ", head->status);
    stk_buf_str(out, head->reason);
    stk_buf_str(out, STK_STR("\r\n"));
    copy_fields(head, false, out);
    const stk_head_field *length = stk_head_get(head, "content-length");
    if (framing != STK_FRAMING_NONE)
        write_framing(framing, head->length, out);
    else if (how->to_head || head->status == 304) {
        if (length)
            write_framing(STK_FRAMING_LENGTH, head->length, out);
    } else if (head->status != 204) {
        write_framing(STK_FRAMING_LENGTH, 0, out);
    }
    stk_buf_str(out, STK_STR(VIA));
    if (!how->keep_alive || framing == STK_FRAMING_CLOSE)
        stk_buf_str(out, STK_STR("Connection: close\r\n"));
    stk_buf_str(out, STK_STR("\r\n"));
    return framing;
}
