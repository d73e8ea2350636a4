#include "pass/lib/forget_types.h"

static void forget(HnGraph *g, gboolean main)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, g->values);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        HnValue *v = value;
        v->has_info = FALSE;
        if (!hn_value_is_weight(v) && !(main && v->is_input))
            hn_value_set_type(v, NULL);
    }
    g_ptr_array_set_size(g->infos, 0);
    for (guint i = 0; i < g->inner->len; i++)
        forget(g->inner->pdata[i], FALSE);
}

void hn_pass_forget_types(HnGraph *g)
{
    forget(g, TRUE);
}
