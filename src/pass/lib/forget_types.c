#include "pass/lib/forget_types.h"

/* What goes into a body keeps its rank: it tells a Loop whether its counter is a scalar. */
static void open_sizes(HnValue *v)
{
    HnDim dims[HN_MAX_RANK];
    const int rank = hn_type_rank(v->type);
    if (rank < 0 || rank > HN_MAX_RANK)
        return;
    for (int a = 0; a < rank; a++)
        dims[a] = hn_dim_unknown();
    g_autoptr(HnType) type = hn_type_tensor(v->type->dtype, rank, dims);
    hn_value_set_type(v, type);
}

static void forget(HnGraph *g, gboolean main)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, g->values);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        HnValue *v = value;
        v->has_info = FALSE;
        if (hn_value_is_weight(v) || (main && v->is_input))
            continue;
        if (v->is_input && hn_type_is_tensor(v->type))
            open_sizes(v);
        else
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
