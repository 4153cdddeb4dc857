/* Arguments and columns in the server's binary form. */
#include "proto/store/store_postgres_impl.h"
#include <endian.h>

/* pg_type.h: oids of built-in types never change. */
enum { OID_BOOL = 16, OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_TEXT = 25, OID_TEXTS = 1009 };

static void add(stk_pg_args *args, Oid type, const void *p, size_t n)
{
    int i = args->n++;
    args->types[i] = type;
    args->values[i] = p;
    args->lengths[i] = (int)n;
    args->formats[i] = 1;
}

void stk__pg_text(stk_pg_args *args, const char *text)
{
    add(args, OID_TEXT, text, strlen(text));
}

void stk__pg_int4(stk_pg_args *args, int32_t n)
{
    uint32_t net = htobe32((uint32_t)n);
    uint64_t *at = &args->numbers[args->n];
    memcpy(at, &net, sizeof(net));
    add(args, OID_INT4, at, sizeof(net));
}

void stk__pg_int8(stk_pg_args *args, int64_t n)
{
    uint64_t *at = &args->numbers[args->n];
    *at = htobe64((uint64_t)n);
    add(args, OID_INT8, at, sizeof(*at));
}

void stk__pg_bool(stk_pg_args *args, bool on)
{
    uint64_t *at = &args->numbers[args->n];
    memcpy(at, &(uint8_t){on}, 1);
    add(args, OID_BOOL, at, 1);
}

void stk__pg_bytes(stk_pg_args *args, stk_str s)
{
    add(args, OID_BYTEA, s.n ? s.p : "", s.n);
}

void stk__pg_texts(stk_pg_args *args, stk_str binary_array)
{
    add(args, OID_TEXTS, binary_array.p, binary_array.n);
}

int64_t stk__pg_get_int(const PGresult *res, int row, int column)
{
    stk_str s = stk__pg_get(res, row, column);
    uint64_t n = 0;
    for (size_t i = 0; i < s.n && i < 8; i++)
        n = n << 8 | (uint8_t)s.p[i];
    return s.n == 4 ? (int32_t)n : (int64_t)n;
}

stk_str stk__pg_get(const PGresult *res, int row, int column)
{
    return stk_str_n(PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column));
}
