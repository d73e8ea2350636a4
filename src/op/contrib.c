/*
 * Finding the form of a node, and what the forms share.
 */
#include "op/contrib_forms.h"

#include <string.h>

#define FOLD_BYTES 4096 /* shapes and scalars */

static const HnContrib *const tables[] = { hn_contrib_simple, hn_contrib_layers, hn_contrib_integers,
                                           hn_contrib_attention };

static gboolean is_of(const HnContrib *c, const HnNode *n)
{
    if (strcmp(c->name, n->op_type) != 0)
        return FALSE;
    return c->below == 0 ? g_strcmp0(n->domain, HN_DOMAIN_CONTRIB) == 0
                         : hn_domain_equal(n->domain, NULL) && n->version < c->below;
}

static const HnContrib *find(const HnNode *n)
{
    for (guint t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const HnContrib *c = tables[t]; c->name != NULL; c++)
            if (is_of(c, n))
                return c;
    return NULL;
}

gboolean hn_contrib_knows(const HnNode *n)
{
    return find(n) != NULL;
}

gboolean hn_contrib_runs(const HnNode *n)
{
    const HnOp *op = find(n) != NULL ? hn_op_find(n->domain, n->op_type) : NULL;
    return op != NULL && op->domain != NULL;
}

/* Outputs that are left: nobody reads them, or that is a refusal. */
static void give_up(HnUnbind *u)
{
    for (guint k = 0; k < u->node->out->len && u->error == NULL; k++)
        if (hn_node_out(u->node, (int)k) != NULL && hn_unbind_wants(u, (int)k))
            hn_unbind_refuse(u, "output %u is not supported", k);
    if (u->error == NULL)
        hn_unbind_give_up(u, 0);
}

gboolean hn_contrib_spell_out(HnNode *n, HnTypes *types, GError **error)
{
    const HnContrib *c = find(n);
    HnGraph *g = n->graph;
    const guint from = hn_graph_index(g, n), others = g->nodes->len - 1;
    g_autoptr(GPtrArray) made = g_ptr_array_new();
    HnUnbind u = { .node = n, .from = HN_OPSET_MAX, .to = HN_OPSET_MAX, .types = types, .made = made };
    c->spell(&u, c);
    if (u.error == NULL)
        give_up(&u);
    if (u.error != NULL) {
        g_propagate_prefixed_error(error, u.error, "node '%s' (%s%s%s): ", hn_node_label(n),
                                   c->below == 0 ? n->domain : "", c->below == 0 ? "." : "", n->op_type);
        return FALSE;
    }
    hn_graph_remove_node(g, n);
    for (guint i = from; i < from + g->nodes->len - others; i++)
        hn_types_node(types, g->nodes->pdata[i], FOLD_BYTES, NULL); /* what fails says so when it runs */
    return TRUE;
}

/* --- attributes ------------------------------------------------------------------------------------------------------
 */

static void settle(HnUnbind *u, HnBind *b)
{
    if (b->error != NULL)
        hn_unbind_refuse(u, "%s", b->error->message);
    g_clear_error(&b->error);
}

int64_t hn_form_int(HnUnbind *u, const char *name, int64_t def)
{
    HnBind b = { .node = u->node };
    const int64_t v = hn_bind_int(&b, name, def);
    settle(u, &b);
    return v;
}

double hn_form_float(HnUnbind *u, const char *name, double def)
{
    HnBind b = { .node = u->node };
    const double v = hn_bind_has(&b, name) ? (double)hn_bind_float(&b, name, 0) : def;
    settle(u, &b);
    return v;
}

const char *hn_form_word(HnUnbind *u, const char *name, const char *def)
{
    HnBind b = { .node = u->node };
    const char *v = hn_bind_string(&b, name, def);
    settle(u, &b);
    return v;
}

void hn_form_only_zero(HnUnbind *u, const char *name)
{
    if (hn_form_int(u, name, 0) != 0)
        hn_unbind_refuse(u, "attribute '%s' is not supported", name);
}

void hn_form_absent(HnUnbind *u, int i, const char *name)
{
    if (hn_unbind_in(u, i) != NULL)
        hn_unbind_refuse(u, "input '%s' is not supported", name);
}

/* --- nodes -----------------------------------------------------------------------------------------------------------
 */

HnValue *hn_form_node(HnUnbind *u, const char *op, int n_in, HnValue *const *in)
{
    return hn_node_out(hn_unbind_node(u, op, n_in, in, 1), 0);
}

HnValue *hn_form_axis(HnUnbind *u, const char *op, HnValue *x, int64_t axis)
{
    HnValue *y = hn_form_node(u, op, 1, &x);
    hn_node_set_int(y->producer, "axis", axis);
    return y;
}

HnValue *hn_form_unsqueeze(HnUnbind *u, HnValue *v, int64_t axis)
{
    return hn_unbind_op2(u, "Unsqueeze", v, hn_unbind_int(u, axis));
}

HnValue *hn_form_add(HnUnbind *u, HnValue *a, HnValue *b)
{
    return b != NULL ? hn_unbind_op2(u, "Add", a, b) : a;
}

HnValue *hn_form_number(HnUnbind *u, HnValue *v)
{
    return hn_unbind_reshape(u, v, NULL, 0);
}

HnValue *hn_form_count(HnUnbind *u, HnValue *n)
{
    HnValue *limit = hn_unbind_op1(u, "Squeeze", n);
    return hn_unbind_op3(u, "Range", hn_unbind_scalar(u, HN_I64, 0), limit, hn_unbind_scalar(u, HN_I64, 1));
}

void hn_form_split(HnUnbind *u, HnValue *v, const int64_t *sizes, int n, HnValue **parts)
{
    HnNode *s =
        hn_unbind_node(u, "Split", 2, (HnValue *[]){ v, sizes != NULL ? hn_unbind_list(u, sizes, n) : NULL }, n);
    hn_node_set_int(s, "axis", -1);
    if (sizes == NULL)
        hn_node_set_int(s, "num_outputs", n);
    for (int i = 0; i < n; i++)
        parts[i] = hn_node_out(s, i);
}

HnValue *hn_form_layer_norm(HnUnbind *u, HnValue *x, HnValue *scale, HnValue *bias, double epsilon)
{
    HnValue *y = hn_form_node(u, "LayerNormalization", 3, (HnValue *[]){ x, scale, bias });
    hn_node_set_float(y->producer, "epsilon", (float)epsilon);
    return y;
}

/* Axes of a tensor like input 0, the last one moved to axis 1, or back. */
static HnValue *move_channels(HnUnbind *u, HnValue *v, gboolean first)
{
    const int rank = hn_unbind_rank(u, 0);
    int64_t perm[HN_MAX_RANK];
    if (rank < 3) {
        hn_unbind_refuse(u, "channels are the last axis, and the number of axes is not known");
        return v;
    }
    for (int i = 0; i < rank; i++)
        perm[i] = i == 0 ? 0 : first ? (i == 1 ? rank - 1 : i - 1) : (i == rank - 1 ? 1 : i + 1);
    return hn_unbind_transpose(u, v, perm, rank);
}

HnValue *hn_form_channels_first(HnUnbind *u, HnValue *v)
{
    return move_channels(u, v, TRUE);
}

HnValue *hn_form_channels_last(HnUnbind *u, HnValue *v)
{
    return move_channels(u, v, FALSE);
}

HnValue *hn_form_product(HnUnbind *u, HnValue *const in[4], HnValue *scale, HnValue *bias)
{
    HnValue *y = hn_form_node(u, "MatMulInteger", 4, in);
    y = hn_unbind_op1(u, "Cast", y);
    hn_node_set_int(y->producer, "to", HN_F32);
    return hn_form_add(u, hn_unbind_op2(u, "Mul", y, scale), bias);
}
