#include "proto/base/tree.h"
#include <math.h>

#define TREE_DEPTH_MAX STK_JW_DEPTH_MAX

static cJSON *must(cJSON *item)
{
    if (!item) {
        static const char line[] = "stockade: out of memory\n";
        ssize_t ignored = write(2, line, sizeof(line) - 1);
        (void)ignored;
        abort();
    }
    return item;
}

static bool has_nul(stk_str s)
{
    return s.n && memchr(s.p, '\0', s.n);
}

/* cJSON frees valuestring with free() whatever the type is. */
static cJSON *text_item(int type, stk_str s)
{
    cJSON *item = must(cJSON_CreateNull());
    item->type = type;
    item->valuestring = stk_xmemdup(s.p, s.n);
    return item;
}

/* A whole number that a double cannot hold keeps its text beside it, for our writer. */
static cJSON *number_item(stk_jv v)
{
    int64_t n = 0;
    double d = stk_jv_double(v);
    cJSON *item = must(cJSON_CreateNumber(d));
    if (fabs(d) >= 9007199254740992.0 && stk_jv_int(v, &n))
        item->valuestring = stk_xmemdup(stk_jv_raw(v).p, stk_jv_raw(v).n);
    return item;
}

static int item_from(stk_jv v, unsigned depth, cJSON **ret, stk_err *err);

static int add_children(stk_jv v, cJSON *parent, unsigned depth, stk_err *err)
{
    if (depth == TREE_DEPTH_MAX)
        return stk_err_set(err, STK_E_JSON, "nesting too deep");
    for (stk_jv child = stk_jv_first(v); child.doc; child = stk_jv_next(child)) {
        cJSON *item = NULL;
        stk_str key = stk_jv_key(child);
        if (has_nul(key))
            return stk_err_set(err, STK_E_JSON, "a key holds a NUL byte");
        int rc = item_from(child, depth + 1, &item, err);
        if (rc < 0)
            return rc;
        if (cJSON_IsObject(parent))
            item->string = stk_xmemdup(key.p, key.n);
        cJSON_AddItemToArray(parent, item);
    }
    return 0;
}

static int item_from(stk_jv v, unsigned depth, cJSON **ret, stk_err *err)
{
    cJSON *item STK_AUTO(stk_tree_freep) = NULL;
    int rc = 0;
    switch (stk_jv_type(v)) {
    case STK_J_STRING:
        if (has_nul(stk_jv_str(v)))
            return stk_err_set(err, STK_E_JSON, "a string holds a NUL byte");
        item = text_item(cJSON_String, stk_jv_str(v));
        break;
    case STK_J_NUMBER:
        item = number_item(v);
        break;
    case STK_J_BOOL:
        item = must(cJSON_CreateBool(stk_jv_bool(v)));
        break;
    case STK_J_ARRAY:
    case STK_J_OBJECT:
        item = must(stk_jv_is(v, STK_J_ARRAY) ? cJSON_CreateArray() : cJSON_CreateObject());
        rc = add_children(v, item, depth, err);
        break;
    default:
        item = must(cJSON_CreateNull());
    }
    if (rc < 0)
        return rc;
    *ret = STK_TAKE(item);
    return 0;
}

int stk_tree_from(stk_jv v, cJSON **ret, stk_err *err)
{
    return item_from(v, 0, ret, err);
}

static void write_number(stk_jw *w, const cJSON *item)
{
    if (item->valuestring && strtod(item->valuestring, NULL) == item->valuedouble)
        stk_jw_raw(w, stk_str_of(item->valuestring));
    else
        stk_jw_double(w, item->valuedouble);
}

static void write_member(stk_jw *w, const cJSON *member, bool canonical)
{
    stk_jw_key(w, member->string ? member->string : "");
    stk_tree_write(w, member, canonical);
}

static int by_key(const void *a, const void *b)
{
    const cJSON *const *ia = a, *const *ib = b;
    const char *ka = (*ia)->string ? (*ia)->string : "", *kb = (*ib)->string ? (*ib)->string : "";
    return strcmp(ka, kb);
}

static void write_sorted(stk_jw *w, const cJSON *object)
{
    size_t n = 0;
    const cJSON *member = NULL;
    const cJSON **all STK_AUTO(stk_freep) = stk_xcalloc((size_t)cJSON_GetArraySize(object), sizeof(*all));
    cJSON_ArrayForEach(member, object) all[n++] = member;
    qsort(all, n, sizeof(cJSON *), by_key);
    for (size_t i = 0; i < n && !w->bad; i++)
        write_member(w, all[i], true);
}

static void write_container(stk_jw *w, const cJSON *tree, bool canonical)
{
    const cJSON *child = NULL;
    bool object = cJSON_IsObject(tree);
    if (object)
        stk_jw_object(w);
    else
        stk_jw_array(w);
    /* Too deep, or over the cap: no further, so that the recursion is bounded as well. */
    if (w->bad || w->out->over)
        return;
    if (object && canonical)
        write_sorted(w, tree);
    else
        for (child = tree->child; child && !w->bad; child = child->next) {
            if (object)
                write_member(w, child, canonical);
            else
                stk_tree_write(w, child, canonical);
        }
    stk_jw_close(w, object ? '}' : ']');
}

void stk_tree_write(stk_jw *w, const cJSON *tree, bool canonical)
{
    if (cJSON_IsArray(tree) || cJSON_IsObject(tree))
        write_container(w, tree, canonical);
    else if (cJSON_IsString(tree))
        stk_jw_str(w, stk_str_of(tree->valuestring));
    else if (cJSON_IsNumber(tree))
        write_number(w, tree);
    else if (cJSON_IsBool(tree))
        stk_jw_bool(w, cJSON_IsTrue(tree));
    else if (cJSON_IsRaw(tree))
        stk_jw_raw(w, stk_str_of(tree->valuestring));
    else
        stk_jw_null(w);
}

int stk_tree_text(stk_buf *out, const cJSON *tree, bool canonical, stk_err *err)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_tree_write(&w, tree, canonical);
    return stk_jw_end(&w, err);
}

cJSON *stk_tree_set_str(cJSON *object, const char *key, stk_str value)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(SIZE_MAX - 1);
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i])
            stk_buf_byte(&text, value.p[i]);
        else
            stk_buf_text(&text, "\xef\xbf\xbd");
    }
    cJSON *item = text_item(cJSON_String, stk_buf_view(&text));
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    item->string = stk_xstrdup(key);
    cJSON_AddItemToArray(object, item);
    return item;
}
