#include "proto/base/json_tape.h"

typedef struct walk {
    stk_jw *w;
    const stk_json *doc;
    uint32_t at;
    uint32_t end[STK_JW_DEPTH_MAX]; /* of the containers that are open */
    char bracket[STK_JW_DEPTH_MAX];
    size_t depth;
} walk;

static bool is_key(const walk *k)
{
    return k->at + 1 < k->doc->n && k->doc->node[k->at + 1].bits & STK__NODE_MEMBER;
}

static void open_container(walk *k, const stk__node *node)
{
    bool object = stk__node_type(node) == STK_J_OBJECT;
    if (object)
        stk_jw_object(k->w);
    else
        stk_jw_array(k->w);
    if (k->depth == STK_JW_DEPTH_MAX) {
        k->w->bad = true;
        return;
    }
    k->end[k->depth] = node->link;
    k->bracket[k->depth++] = object ? '}' : ']';
}

static void write_node(walk *k)
{
    const stk__node *node = &k->doc->node[k->at];
    unsigned type = stk__node_type(node);
    if (type >= STK_J_ARRAY)
        open_container(k, node);
    else if (type != STK_J_STRING)
        stk_jw_raw(k->w, stk_str_n(k->doc->text + node->start, node->end - node->start));
    else if (is_key(k))
        stk_jw_key_str(k->w, stk__json_string(k->doc, node));
    else
        stk_jw_str(k->w, stk__json_string(k->doc, node));
}

void stk_jw_value(stk_jw *w, stk_jv v)
{
    if (!v.doc) {
        stk_jw_null(w);
        return;
    }
    walk k = {.w = w, .doc = v.doc, .at = v.at};
    do {
        write_node(&k);
        k.at++;
        while (k.depth > 0 && k.at == k.end[k.depth - 1])
            stk_jw_close(w, k.bracket[--k.depth]);
    } while (k.depth > 0 && !w->bad);
}
