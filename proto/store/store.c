#include "proto/store/store.h"

void stk_store_append(stk_store *store, const stk_store_batch *batch, stk_store_done done, void *arg)
{
    store->ops->append(store, batch, done, arg);
}

void stk_store_offset(stk_store *store, const char *topic, int32_t partition, stk_store_done done, void *arg)
{
    store->ops->offset(store, topic, partition, done, arg);
}

void stk_store_query(stk_store *store, const stk_audit_query *query, stk_audit_rows done, void *arg)
{
    store->ops->query(store, query, done, arg);
}

void stk_store_result(stk_store *store, const char *tenant, const char *run, stk_result_got done, void *arg)
{
    store->ops->result(store, tenant, run, done, arg);
}

void stk_store_verify(stk_store *store, stk_verify_done done, void *arg)
{
    store->ops->verify(store, done, arg);
}

bool stk_store_ready(const stk_store *store)
{
    return store->ops->ready(store);
}

void stk_store_close(stk_store *store)
{
    store->ops->close(store);
}
