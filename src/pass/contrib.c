#include "pass/contrib.h"

#include <string.h>

#define DOMAIN "com.microsoft"

typedef struct {
    const char *name, *op;
    int operands; /* each with its scale and zero point; 0: as many as there are, behind those of the result */
} Contrib;

static const Contrib contribs[] = {
    { "QLinearAdd", "Add", 2 },
    { "QLinearMul", "Mul", 2 },
    { "QLinearSigmoid", "Sigmoid", 1 },
    { "QLinearLeakyRelu", "LeakyRelu", 1 },
    { "QLinearAveragePool", "AveragePool", 1 },
    { "QLinearGlobalAveragePool", "GlobalAveragePool", 1 },
    { "QLinearConcat", "Concat", 0 },
};

typedef struct {
    HnNode *n;
    HnGraph *g;
    int at; /* where the next node goes */
} Site;

static HnNode *add(Site *s, const char *op)
{
    return hn_graph_add_node(s->g, s->at++, op, NULL, NULL);
}

/* DequantizeLinear of x; axis < 0: of the whole. */
static HnValue *numbers(Site *s, HnValue *x, HnValue *scale, HnValue *zero, int64_t axis)
{
    HnNode *d = add(s, "DequantizeLinear");
    HnValue *v = hn_graph_new_value(s->g, x->name);
    hn_node_add_in(d, x);
    hn_node_add_in(d, scale);
    if (zero != NULL)
        hn_node_add_in(d, zero);
    hn_node_add_out(d, v);
    if (axis >= 0)
        hn_node_set_int(d, "axis", axis);
    return v;
}

/* The operator's result becomes that of s->n, quantized where there is a scale; s->n goes. */
static void finish(Site *s, HnNode *core, HnValue *scale, HnValue *zero)
{
    HnNode *n = s->n, *last = core;
    HnValue *y = hn_node_out(n, 0);
    if (scale != NULL) {
        HnValue *v = hn_graph_new_value(s->g, y->name);
        hn_node_add_out(core, v);
        last = add(s, "QuantizeLinear");
        hn_node_add_in(last, v);
        hn_node_add_in(last, scale);
        hn_node_add_in(last, zero);
    }
    last->name = g_steal_pointer(&n->name);
    hn_node_set_out(last, 0, y);
    hn_graph_remove_node(s->g, n);
}

static void move_attributes(HnNode *from, HnNode *to)
{
    hn_node_remove_attr(from, "channels_last");
    hn_node_take_attrs(to, from);
}

static gboolean all_present(const HnNode *n, int from, int to)
{
    for (int i = from; i < to; i++)
        if (hn_node_in(n, i) == NULL)
            return FALSE;
    return TRUE;
}

static gboolean is_set(const HnNode *n, const char *name)
{
    const HnAttr *a = hn_node_attr(n, name);
    return a != NULL && (a->kind != HN_ATTR_INT || a->i != 0);
}

static gboolean spell_out(Site *s, const Contrib *c)
{
    HnNode *n = s->n;
    const int inputs = (int)n->in->len, first = c->operands == 0 ? 2 : 0;
    const int operands = c->operands == 0 ? (inputs - 2) / 3 : c->operands,
              result = c->operands == 0 ? 0 : 3 * operands;
    if (operands < 1 || inputs != 3 * operands + 2 || !all_present(n, 0, inputs) || is_set(n, "channels_last") ||
        hn_node_out(n, 0) == NULL)
        return FALSE;
    HnValue *x[64];
    if (operands > (int)G_N_ELEMENTS(x))
        return FALSE;
    for (int i = 0; i < operands; i++) {
        const int at = first + 3 * i;
        x[i] = numbers(s, hn_node_in(n, at), hn_node_in(n, at + 1), hn_node_in(n, at + 2), -1);
    }
    HnValue *scale = hn_node_in(n, result), *zero = hn_node_in(n, result + 1);
    HnNode *core = add(s, c->op);
    for (int i = 0; i < operands; i++)
        hn_node_add_in(core, x[i]);
    move_attributes(n, core);
    finish(s, core, scale, zero);
    return TRUE;
}

/* --- QGemm: a, a_scale, a_zero, b, b_scale, b_zero, c in steps of both scales, y_scale, y_zero ----------------------
 */

/* The scale of c: a new weight. NULL: an error. */
static HnValue *scale_of_sum(Site *s, GError **error)
{
    const HnNode *n = s->n;
    const HnTensor *a = hn_node_in(n, 1)->weight, *b = hn_node_in(n, 4)->weight;
    const HnAttr *alpha = hn_node_attr(n, "alpha");
    HnTensor *t = hn_tensor_new(HN_F32, b->n > 1 ? 1 : 0, &b->n, NULL, error);
    for (int64_t i = 0; t != NULL && i < b->n; i++)
        hn_tensor_set_f64(t, i,
                          hn_tensor_get_f64(a, 0) * hn_tensor_get_f64(b, i) *
                              (alpha != NULL && alpha->kind == HN_ATTR_FLOAT ? (double)alpha->f : 1));
    if (t == NULL)
        return NULL;
    HnValue *v = hn_graph_new_value(s->g, hn_node_in(n, 6)->name);
    hn_graph_add_weight(s->g, v, t);
    hn_tensor_unref(t);
    return v;
}

/* Both scales are known: one of a, and one, or with an opset that has them one for each column, of b. */
static gboolean scales_are_known(const Site *s)
{
    const HnTensor *a = hn_node_in(s->n, 1)->weight, *b = hn_node_in(s->n, 4)->weight;
    if (a == NULL || b == NULL || a->dtype != HN_F32 || b->dtype != HN_F32)
        return FALSE;
    return a->n == 1 && (b->n == 1 || (b->ndim == 1 && hn_model_opset(s->g->model, "") >= 13));
}

static gboolean spell_out_gemm(Site *s, GError **error)
{
    HnNode *n = s->n;
    HnValue *c = hn_node_in(n, 6), *y_scale = hn_node_in(n, 7), *y_zero = hn_node_in(n, 8), *of_sum = NULL;
    const HnAttr *turned = hn_node_attr(n, "transB");
    if (!all_present(n, 0, 6) || (y_scale != NULL && y_zero == NULL) || hn_node_out(n, 0) == NULL)
        return FALSE;
    if (!scales_are_known(s) || (c != NULL && (of_sum = scale_of_sum(s, error)) == NULL))
        return FALSE;
    const gboolean each = hn_node_in(n, 4)->weight->n > 1;
    HnValue *a = numbers(s, hn_node_in(n, 0), hn_node_in(n, 1), hn_node_in(n, 2), -1);
    HnValue *b = numbers(s, hn_node_in(n, 3), hn_node_in(n, 4), hn_node_in(n, 5),
                         !each                                                             ? -1
                         : turned != NULL && turned->kind == HN_ATTR_INT && turned->i != 0 ? 0
                                                                                           : 1);
    HnValue *sum = c != NULL ? numbers(s, c, of_sum, NULL, each ? 0 : -1) : NULL;
    HnNode *core = add(s, "Gemm");
    hn_node_add_in(core, a);
    hn_node_add_in(core, b);
    if (sum != NULL)
        hn_node_add_in(core, sum);
    move_attributes(n, core);
    finish(s, core, y_scale, y_zero);
    return TRUE;
}

/* --- all -----------------------------------------------------------------------------------------------------------
 */

static gboolean spell_out_graph(HnGraph *g, GError **error)
{
    GError *failure = NULL;
    for (guint i = 0; i < g->nodes->len && failure == NULL; i++) {
        Site s = { g->nodes->pdata[i], g, (int)i };
        if (g_strcmp0(s.n->domain, DOMAIN) != 0)
            continue;
        gboolean done = strcmp(s.n->op_type, "QGemm") == 0 && spell_out_gemm(&s, &failure);
        for (guint k = 0; k < G_N_ELEMENTS(contribs) && !done; k++)
            done = strcmp(s.n->op_type, contribs[k].name) == 0 && spell_out(&s, &contribs[k]);
        if (done)
            i = (guint)s.at - 1;
    }
    for (guint i = 0; i < g->inner->len && failure == NULL; i++)
        spell_out_graph(g->inner->pdata[i], &failure);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}

gboolean hn_spell_out_contrib(HnModel *m, GError **error)
{
    /* DequantizeLinear came with opset 10 */
    return hn_model_opset(m, DOMAIN) == 0 || hn_model_opset(m, "") < 10 || spell_out_graph(m->graph, error);
}
