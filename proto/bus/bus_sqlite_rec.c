#include "proto/bus/bus_sqlite_impl.h"

/* Headers are stored as: name length (1), name, NUL, value length (4, little-endian), value. */
#define HEADER_FIXED 6

size_t stk__bus_headers_size(const stk_bus_header *headers, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += HEADER_FIXED + strlen(headers[i].name) + headers[i].value.n;
    return size;
}

static char *put(char *at, const void *p, size_t n)
{
    if (n)
        memcpy(at, p, n);
    return at + n;
}

static char *put_header(char *at, const stk_bus_header *header)
{
    size_t n = strlen(header->name);
    uint32_t len = (uint32_t)header->value.n;
    uint8_t le[4] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16), (uint8_t)(len >> 24)};
    *at++ = (char)n;
    at = put(at, header->name, n + 1);
    at = put(at, le, sizeof(le));
    return put(at, header->value.p, header->value.n);
}

static stk_bus_rec *rec_alloc(const stk_bus_topic_state *topic, int32_t partition, size_t nkey,
                              size_t nheaders, size_t nvalue)
{
    stk_bus_rec *rec = malloc(sizeof(*rec) + nkey + nheaders + nvalue);
    if (!rec)
        return stk_xrealloc(NULL, SIZE_MAX);
    *rec = (stk_bus_rec){
        .topic = topic, .partition = partition, .nkey = nkey, .nheaders = nheaders, .nvalue = nvalue};
    atomic_init(&rec->refs, 1);
    return rec;
}

stk_bus_rec *stk__bus_rec_new(const stk_bus_topic_state *topic, int32_t partition, stk_str key,
                              const stk_bus_header *headers, size_t nheaders, stk_str value)
{
    stk_bus_rec *rec = rec_alloc(topic, partition, key.n, stk__bus_headers_size(headers, nheaders), value.n);
    rec->time = stk_wall_now();
    char *at = put(rec->data, key.p, key.n);
    for (size_t i = 0; i < nheaders; i++)
        at = put_header(at, &headers[i]);
    put(at, value.p, value.n);
    return rec;
}

stk_bus_rec *stk__bus_rec_load(const stk_bus_topic_state *topic, int32_t partition, int64_t offset,
                               stk_wall time, stk_str key, stk_str headers, stk_str value)
{
    stk_bus_rec *rec = rec_alloc(topic, partition, key.n, headers.n, value.n);
    rec->offset = offset;
    rec->time = time;
    put(put(put(rec->data, key.p, key.n), headers.p, headers.n), value.p, value.n);
    return rec;
}

void stk__bus_rec_unref(stk_bus_rec *rec)
{
    if (rec && atomic_fetch_sub_explicit(&rec->refs, 1, memory_order_acq_rel) == 1)
        free(rec);
}

/* Takes one header off the front of *in. */
static bool take_header(stk_str *in, stk_bus_header *header)
{
    if (in->n < HEADER_FIXED)
        return false;
    size_t n = (uint8_t)in->p[0];
    if (in->n < HEADER_FIXED + n || in->p[1 + n] != '\0')
        return false;
    const uint8_t *le = (const uint8_t *)in->p + 2 + n;
    size_t len = (size_t)le[0] | (size_t)le[1] << 8 | (size_t)le[2] << 16 | (size_t)le[3] << 24;
    if (in->n - HEADER_FIXED - n < len)
        return false;
    *header = (stk_bus_header){in->p + 1, {in->p + HEADER_FIXED + n, len}};
    *in = (stk_str){in->p + HEADER_FIXED + n + len, in->n - HEADER_FIXED - n - len};
    return true;
}

bool stk__bus_rec_msg(const stk_bus_rec *rec, stk_bus_msg *msg)
{
    *msg = (stk_bus_msg){.topic = rec->topic->name,
                         .partition = rec->partition,
                         .offset = rec->offset,
                         .time = rec->time,
                         .key = stk__bus_rec_key(rec),
                         .value = stk__bus_rec_value(rec)};
    stk_str rest = stk__bus_rec_headers(rec);
    for (; rest.n; msg->nheaders++)
        if (msg->nheaders == STK_BUS_HEADERS || !take_header(&rest, &msg->headers[msg->nheaders]))
            return false;
    return true;
}
