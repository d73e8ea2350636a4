#include "quant/units.h"

static double unit_of(const HnChannels *c, const double *s, int k)
{
    return hn_channels_locked(c, k) != NULL ? 1 : s[hn_channels_class(c, k)];
}

static int64_t step_of(const HnTensor *w, int axis)
{
    int64_t step = 1;
    for (int i = axis + 1; i < w->ndim; i++)
        step *= w->dims[i];
    return step;
}

static gboolean scale_weight(const HnChannels *c, HnModel *m, const HnChannelMember *f, const double *s,
                             HnBudget *budget, GError **error)
{
    const HnValue *y = g_hash_table_lookup(m->graph->values, f->node);
    HnValue *v = y != NULL && y->producer != NULL ? hn_node_in(y->producer, f->input) : NULL;
    if (v == NULL || v->weight == NULL)
        return TRUE;
    g_autoptr(HnTensor) t = hn_tensor_copy(v->weight, budget, error);
    if (t == NULL)
        return FALSE;
    const int64_t out_step = f->axis >= 0 ? step_of(t, f->axis) : 1;
    const int64_t in_step = f->in_axis >= 0 ? step_of(t, f->in_axis) : 1;
    float *x = t->data;
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t o = f->axis >= 0 ? i / out_step % t->dims[f->axis] : 0;
        double factor = 1;
        if (f->in_axis >= 0) { /* outputs are in the order of their groups */
            const int64_t g = f->groups > 1 ? o / (f->n / f->groups) : 0;
            factor = unit_of(c, s, f->in[g * f->in_n + i / in_step % f->in_n]);
        }
        if (f->out != NULL)
            factor /= unit_of(c, s, f->out[o]);
        x[i] = (float)((double)x[i] * factor);
    }
    if (v->users->len > 1 || v->is_output) {
        HnValue *own = hn_graph_new_value(m->graph, v->name);
        hn_value_set_type(own, v->type);
        hn_node_set_in(y->producer, f->input, own);
        v = own;
    }
    hn_graph_add_weight(m->graph, v, t);
    return hn_op_bind(y->producer, error);
}

gboolean hn_units_scale(const HnChannels *c, HnModel *m, const double *s, HnBudget *budget, GError **error)
{
    const GPtrArray *members = hn_channels_members(c);
    for (guint i = 0; i < members->len; i++)
        if (!scale_weight(c, m, members->pdata[i], s, budget, error))
            return FALSE;
    return TRUE;
}
