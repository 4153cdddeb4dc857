#include "audit-consumer/lane.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static stk_audit_lane lane_with(int64_t first, size_t n)
{
    stk_audit_lane lane = {.kind = STK_LANE_AUDIT, .topic = STK_TOPIC_AUDIT, .partition = 2, .next = first};
    for (size_t i = 0; i < n; i++) {
        stk_lane_item *item = stk_lane_push(&lane, first + (int64_t)i);
        snprintf(item->row.id, sizeof(item->row.id), "aud-%zu", i);
    }
    return lane;
}

static void what_lies_below_the_stores_offset_is_repeated(void **state)
{
    stk_audit_lane lane = lane_with(10, 5);
    lane.next = 13;
    assert_int_equal(stk_lane_repeated(&lane), 3);
    lane.next = 99;
    assert_int_equal(stk_lane_repeated(&lane), 5);
    lane.next = 0;
    assert_int_equal(stk_lane_repeated(&lane), 0);
    stk_lane_done(&lane);
}

static void a_batch_covers_offsets_and_rows_in_order(void **state)
{
    stk_audit_lane lane = lane_with(7, 4);
    stk_store_batch batch;
    void *array STK_AUTO(stk_freep) = NULL;
    assert_int_equal(stk_lane_storable(&lane, 3), 3);
    stk_lane_batch(&lane, 3, &batch, &array);
    assert_int_equal(batch.from, 7);
    assert_int_equal(batch.to, 10);
    assert_int_equal(batch.nrows, 3);
    assert_string_equal(batch.rows[2].id, "aud-2");
    assert_int_equal(batch.partition, 2);
    stk_lane_done(&lane);
}

static void a_condemned_record_stops_the_batch_until_it_is_buried(void **state)
{
    stk_audit_lane lane = lane_with(0, 4);
    stk_lane_condemn(&lane, &lane.items[1], STK_STR("garbage"), "no JSON");
    assert_int_equal(stk_lane_storable(&lane, 100), 1);
    lane.items[1].state = STK_ITEM_BURYING;
    assert_int_equal(stk_lane_storable(&lane, 100), 1);
    lane.items[1].state = STK_ITEM_BURIED;
    assert_int_equal(stk_lane_storable(&lane, 100), 4);
    stk_store_batch batch;
    void *array STK_AUTO(stk_freep) = NULL;
    stk_lane_batch(&lane, 4, &batch, &array);
    assert_int_equal(batch.nrows, 3);
    assert_int_equal(batch.to, 4);
    assert_string_equal(stk_lane_row(&lane, 1)->row.id, "aud-2");
    stk_lane_done(&lane);
}

static void items_are_found_by_offset_and_dropped_from_the_front(void **state)
{
    stk_audit_lane lane = lane_with(100, 40);
    stk_lane_drop(&lane, 30);
    assert_null(stk_lane_find(&lane, 129));
    assert_string_equal(stk_lane_find(&lane, 130)->row.id, "aud-30");
    stk_lane_pop_last(&lane);
    assert_null(stk_lane_find(&lane, 139));
    stk_lane_done(&lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_below_the_stores_offset_is_repeated),
        cmocka_unit_test(a_batch_covers_offsets_and_rows_in_order),
        cmocka_unit_test(a_condemned_record_stops_the_batch_until_it_is_buried),
        cmocka_unit_test(items_are_found_by_offset_and_dropped_from_the_front),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
