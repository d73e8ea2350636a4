#include "perf/step_facts.h"

/* --- cost ------------------------------------------------------------------------------------------------- */

static gsize slot_bytes(const HnSlot *s)
{
    return !s || !s->tensor ? 0 : s->layout ? s->layout->bytes : s->tensor->bytes;
}

static HnType *type_of(const HnSlot *s)
{
    return s && s->tensor ? hn_type_fixed(s->tensor->dtype, s->tensor->ndim, s->tensor->dims) : NULL;
}

/* What the record says of the node with the step's shapes. */
static void node_cost(const HnStep *s, HnCost *c)
{
    HnNode as = *s->node; /* of what it is computed by, which may be an operator with other inputs */
    as.op = s->op;
    const int most = s->op == s->node->op ? (int)s->node->in->len : s->n_in;
    int n_in = MIN(s->n_in, most), n_out = MIN(s->n_out, (int)s->node->out->len);
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    g_autofree HnTensor **value = g_new0(HnTensor *, n_in + 1);
    g_autofree HnContents **contents = g_new0(HnContents *, n_in + 1), **out = g_new0(HnContents *, n_out + 1);
    for (int i = 0; i < n_in; i++) {
        const HnSlot *slot = s->in[i].slot;
        g_ptr_array_add(types, type_of(slot));
        value[i] = slot && slot->constant && slot->tensor->data ? slot->tensor : NULL; /* packed ones are gone */
    }
    for (int k = 0; k < n_out; k++)
        g_ptr_array_add(types, type_of(s->out[k].slot));
    g_ptr_array_add(types, NULL);
    HnInfer x = { .node = &as,
                  .params = s->params,
                  .n_in = n_in,
                  .n_out = n_out,
                  .in = (HnType **)types->pdata,
                  .value = value,
                  .contents = contents,
                  .out = (HnType **)types->pdata + n_in,
                  .out_contents = out };
    hn_op_cost(&x, c);
}

gboolean hn_step_has_types(const HnStep *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i].slot && !s->in[i].slot->tensor)
            return FALSE;
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot && !s->out[k].slot->tensor)
            return FALSE;
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot)
            return TRUE;
    return FALSE;
}

void hn_step_cost(const HnStep *s, HnCost *c)
{
    if (!s->node) {
        *c = (HnCost){ 0, (double)(slot_bytes(s->in[0].slot) + slot_bytes(s->out[0].slot)) };
        return;
    }
    if (s->group) {
        *c = (HnCost){ (double)s->group->n * (double)s->out[0].slot->tensor->n, (double)slot_bytes(s->out[0].slot) };
        for (int i = 0; i < s->n_in; i++)
            c->bytes += (double)slot_bytes(s->in[i].slot);
        return;
    }
    node_cost(s, c);
    for (int i = 0; i < s->n_in + s->n_out; i++) { /* what lies in its place already is neither read nor written */
        const HnPort *p = i < s->n_in ? &s->in[i] : &s->out[i - s->n_in];
        if (p->joined)
            c->bytes = MAX(0, c->bytes - 2 * (double)slot_bytes(p->slot));
    }
    for (int i = 0; i < s->n_fused; i++) {
        c->flops += (double)s->out[0].slot->tensor->n;
        if (s->fused_port[i] >= 0)
            c->bytes += (double)slot_bytes(s->in[s->fused_port[i]].slot);
    }
}

/* --- names ------------------------------------------------------------------------------------------------ */

#define SHOWN 4 /* operators of a group */

/* All nodes of the model that n stands for are added. */
static void add_parts(const HnStep *s, const HnNode *n, GPtrArray *all)
{
    const GPtrArray *parts = hn_lowered_parts(s->low, n);
    for (guint i = 0; i < parts->len; i++)
        g_ptr_array_add(all, parts->pdata[i]);
}

/* "Mul+Add", "Mul+Tanh+Add+5 more"; most: operators that are named. */
static char *joined_name(const GPtrArray *nodes, guint most)
{
    GString *name = g_string_new(((const HnNode *)nodes->pdata[0])->op_type);
    const guint n = nodes->len, shown = n <= most ? n : most - 1;
    for (guint i = 1; i < shown; i++)
        g_string_append_printf(name, "+%s", ((const HnNode *)nodes->pdata[i])->op_type);
    if (shown < n)
        g_string_append_printf(name, "+%u more", n - shown);
    return g_string_free(name, FALSE);
}

char *hn_step_operators(const HnStep *s)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new(), along = g_ptr_array_new();
    for (int i = 0; s->group && i < s->group->n; i++)
        add_parts(s, s->group->node[i], nodes);
    if (!s->group)
        add_parts(s, s->node, nodes);
    for (int i = 0; i < s->n_fused; i++)
        add_parts(s, s->fused[i], along);
    char *name = joined_name(nodes, SHOWN);
    if (along->len == 0)
        return name;
    g_autofree char *first = name, *rest = joined_name(along, along->len);
    return g_strconcat(first, "+", rest, NULL);
}

gboolean hn_step_is_int8(const HnStep *s)
{
    for (int i = 0; i < MIN(s->n_in, 2); i++) {
        const HnTensor *t = s->in[i].slot ? s->in[i].slot->tensor : NULL;
        if (t && (t->dtype == HN_I8 || t->dtype == HN_U8))
            return TRUE;
    }
    return FALSE;
}

gboolean hn_step_is_half(const HnStep *s)
{
    const HnTensor *t = s->n_out > 0 && s->out[0].slot ? s->out[0].slot->tensor : NULL;
    return t && (t->dtype == HN_F16 || t->dtype == HN_BF16);
}

static char *shape_of(const HnPort *p)
{
    const HnTensor *t = p->slot ? p->slot->tensor : NULL;
    return t ? hn_tensor_describe(t) : g_strdup("");
}

char **hn_step_shapes(const HnPort *ports, int n)
{
    GPtrArray *out = g_ptr_array_new();
    for (int i = 0; i < n; i++)
        g_ptr_array_add(out, shape_of(&ports[i]));
    g_ptr_array_add(out, NULL);
    return (char **)g_ptr_array_free(out, FALSE);
}
