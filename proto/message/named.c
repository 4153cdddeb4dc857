#include "proto/message/agent_config.h"

int stk__str_order(stk_str a, stk_str b)
{
    size_t n = stk_min(a.n, b.n);
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

void stk__strv_write(stk_jw *w, const char *key, const stk_strv *v)
{
    stk_jw_key(w, key);
    stk_jw_array(w);
    for (size_t i = 0; i < v->n; i++)
        stk_jw_str(w, stk_bytes_view(&v->v[i]));
    stk_jw_close(w, ']');
}

int stk__named_read(stk_jv v, bool (*ok)(stk_str), const char *rule,
                    int (*each)(stk_str name, stk_jv v, void *arg, stk_err *err), void *arg, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_OBJECT))
        return stk_err_field(err, STK_E_FIELD, "", "must be an object of names, not %s",
                             stk_jtype_name(stk_jv_type(v)));
    if (stk_jv_count(v) > STK__AGENTS_MAX)
        return stk_err_field(err, STK_E_FIELD, "", "at most %d names", STK__AGENTS_MAX);
    for (stk_jv item = stk_jv_first(v); !stk_jv_is(item, STK_J_NONE); item = stk_jv_next(item)) {
        stk_str name = stk_jv_key(item);
        int rc = ok(name) ? each(name, item, arg, err) : stk_err_field(err, STK_E_FIELD, "", "%s", rule);
        if (rc < 0) {
            char pointer[192] = "";
            stk__pointer_add(pointer, name);
            stk_err_prefix(err, pointer);
            return rc;
        }
    }
    return 0;
}
