/* Which rows of a group are new: a set of their ids, and one question to each month. */
#include "proto/store/store_postgres_impl.h"
#include <endian.h>
#include <stdio.h>

#define OID_TEXT 25

void stk__pg_ids_init(stk_pg_ids *set, size_t room)
{
    size_t slots = 16;
    while (slots < room * 2)
        slots *= 2;
    *set = (stk_pg_ids){.room = room, .mask = slots - 1};
    set->ids = stk_xcalloc(room, sizeof(*set->ids));
    set->repeated = stk_xcalloc(room, sizeof(*set->repeated));
    set->slots = stk_xcalloc(slots, sizeof(*set->slots)); /* index + 1 */
}

void stk__pg_ids_done(stk_pg_ids *set)
{
    free(set->ids);
    free(set->repeated);
    free(set->slots);
    free(set->months);
    *set = (stk_pg_ids){0};
}

/* Where an id is, or would be: its last characters are those of a hash already. */
static uint32_t *slot_of(const stk_pg_ids *set, const char *id, size_t n)
{
    uint64_t h = 0;
    for (size_t i = n > 12 ? n - 12 : 0; i < n; i++)
        h = h * 31 + (uint8_t)id[i];
    size_t at = (size_t)(h * 0x9e3779b97f4a7c15u >> 20) & set->mask;
    while (set->slots[at]) {
        const char *there = set->ids[set->slots[at] - 1];
        if (strncmp(there, id, n) == 0 && there[n] == '\0')
            break;
        at = (at + 1) & set->mask;
    }
    return &set->slots[at];
}

static void note_month(stk_pg_ids *set, int32_t month)
{
    for (size_t i = set->nmonths; i-- > 0;)
        if (set->months[i] == month)
            return;
    if ((set->nmonths & (set->nmonths - 1)) == 0)
        set->months = stk_xrealloc(set->months, (set->nmonths ? set->nmonths * 2 : 1) * sizeof(*set->months));
    set->months[set->nmonths++] = month;
}

void stk__pg_ids_add(stk_pg_ids *set, const char *id)
{
    uint32_t *slot = slot_of(set, id, strlen(id));
    set->repeated[set->n] = *slot != 0;
    set->ids[set->n++] = id;
    if (*slot == 0) {
        *slot = (uint32_t)set->n;
        note_month(set, stk__pg_month_of(id));
    }
}

int stk__pg_ids_ensure(stk_pg_link *link, const stk_pg_ids *set, stk_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < set->nmonths; i++)
        rc = stk__pg_month_ensure(link, set->months[i], err);
    return rc;
}

static void add_number(stk_buf *buf, uint32_t n)
{
    n = htobe32(n);
    (void)!stk_buf_add(buf, &n, sizeof(n));
}

/* text[] in binary: dimensions, has nulls, type; length and lower bound; values. */
static void write_array(const stk_pg_ids *set, int32_t month, stk_buf *array)
{
    add_number(array, 1);
    add_number(array, 0);
    add_number(array, OID_TEXT);
    add_number(array, 0);
    add_number(array, 1);
    uint32_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->repeated[i] || (set->nmonths > 1 && stk__pg_month_of(set->ids[i]) != month))
            continue;
        stk_str id = stk_str_of(set->ids[i]);
        add_number(array, (uint32_t)id.n);
        (void)!stk_buf_str(array, id);
        n++;
    }
    n = htobe32(n);
    memcpy(array->p + 12, &n, sizeof(n));
}

static int look_in_month(stk_pg_link *link, stk_pg_ids *set, int32_t month, stk_err *err)
{
    stk_buf array STK_AUTO(stk_buf_done) = STK_BUF(set->n * (STK_ID_SIZE + 4) + 32);
    PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
    stk_pg_args args = {0};
    char name[32], sql[96];
    stk__pg_month_name(month, name);
    snprintf(sql, sizeof(sql), "SELECT id FROM %s WHERE id = ANY($1)", name);
    write_array(set, month, &array);
    stk__pg_texts(&args, stk_buf_view(&array));
    int rc = stk__pg_ask(link, sql, &args, &res, err);
    for (int i = 0; rc == 0 && i < PQntuples(res); i++) {
        stk_str id = stk__pg_get(res, i, 0);
        uint32_t slot = *slot_of(set, id.p, id.n);
        if (slot)
            set->repeated[slot - 1] = true;
    }
    return rc;
}

int stk__pg_ids_look(stk_pg_link *link, stk_pg_ids *set, stk_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < set->nmonths; i++)
        rc = look_in_month(link, set, set->months[i], err);
    return rc;
}
