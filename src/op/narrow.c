#include "op/narrow.h"

static const HnKept *kept(const HnNarrow *x, const HnValue *v)
{
    return v != NULL ? x->kept(x->data, v) : NULL;
}

const HnKept *hn_narrow_in(const HnNarrow *x, int i)
{
    return kept(x, hn_node_in(x->node, i));
}

const HnKept *hn_narrow_out(const HnNarrow *x, int i)
{
    return kept(x, hn_node_out(x->node, i));
}

int64_t hn_kept_before(const HnKept *k, int64_t place)
{
    int64_t n = 0;
    for (int64_t i = 0; i < MIN(place, k->n); i++)
        n += k->stays[i];
    return n;
}

HnTensor *hn_narrow_constant(const HnNarrow *x, int i)
{
    const HnValue *v = hn_node_in(x->node, i);
    return v != NULL && v->weight != NULL && !v->is_input ? hn_tensor_ref(v->weight) : NULL;
}

void hn_narrow_set(const HnNarrow *x, int i, HnTensor *t)
{
    HnGraph *g = x->node->graph;
    const HnValue *old = hn_node_in(x->node, i);
    HnValue *v = hn_graph_new_value(g, old != NULL ? old->name : "narrow");
    hn_graph_add_weight(g, v, t);
    hn_tensor_unref(t);
    hn_node_set_in(x->node, i, v);
}

void hn_narrow_set_number(const HnNarrow *x, int i, int64_t at, int64_t number)
{
    g_autoptr(HnTensor) old = hn_narrow_constant(x, i);
    if (old == NULL || at < 0 || at >= old->n || hn_tensor_get_i64(old, at) == number)
        return;
    HnTensor *t = hn_tensor_copy(old, NULL, NULL);
    if (t == NULL)
        return;
    hn_tensor_set_i64(t, at, number);
    hn_narrow_set(x, i, t);
}

gboolean hn_narrow_groups(const HnNarrow *x, const char *attr, int64_t groups)
{
    const HnKept *k = hn_narrow_in(x, 0);
    int64_t whole = 0, least = G_MAXINT64, most = 0;
    if (k == NULL || groups == 1)
        return TRUE;
    if (groups < 1 || k->n % groups != 0)
        return FALSE;
    for (int64_t g = 0; g < groups; g++) {
        const int64_t each = k->n / groups;
        int64_t left = 0;
        for (int64_t i = 0; i < each; i++)
            left += k->stays[g * each + i];
        whole += left == each;
        least = MIN(least, left);
        most = MAX(most, left);
    }
    if (least == most)
        return TRUE;
    if (whole * (k->n / groups) != k->left)
        return FALSE;
    hn_node_set_int(x->node, attr, whole);
    return TRUE;
}
