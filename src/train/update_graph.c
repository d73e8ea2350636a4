#include "train/update_graph.h"

#include <math.h>

static void add_variable(GArray *variables, const HnValue *v, const HnValue *next, HnTensor *elements)
{
    const HnVariable variable = { v->name, next->name, elements };
    g_array_append_val(variables, variable);
}

/* A new weight like `like`, zeros or its elements, called after w and `what`. */
static HnValue *weight_like(HnGraph *g, const HnValue *w, const char *what, const HnTensor *like, gboolean zeros,
                            GError **error)
{
    HnTensor *t = zeros ? hn_tensor_new(like->dtype, like->ndim, like->dims, g->model->budget, error)
                        : hn_tensor_copy(like, g->model->budget, error);
    if (t == NULL)
        return NULL;
    g_autofree char *stem = g_strdup_printf("%s/%s", w->name, what);
    HnValue *v = hn_graph_new_value(g, stem);
    hn_graph_add_weight(g, v, t);
    hn_tensor_unref(t);
    return v;
}

static gboolean add_average(HnGraph *g, const HnBuild *b, const HnUpdateRule *rule, HnValue *w, HnValue *next,
                            HnValue *numbers, const HnTensor *now, GArray *variables, char **name, GError **error)
{
    HnValue *average = weight_like(g, w, "average", now, FALSE, error);
    if (average == NULL)
        return FALSE;
    HnNode *n = hn_build_node(b, "MovingAverage", HN_DOMAIN_INTERNAL, 3, (HnValue *[]){ average, next, numbers }, 1);
    hn_node_set_float(n, "decay", (float)rule->ema);
    hn_graph_add_output(g, hn_node_out(n, 0));
    add_variable(variables, average, hn_node_out(n, 0), NULL);
    *name = g_strdup(average->name);
    return TRUE;
}

/* The numbers for a scale: an optimizer whose steps are as long as the rate is given the rate in units of the scale, so
 * that it changes by as large a part of itself as weights of about 1. */
static HnValue *numbers_of_scale(const HnBuild *b, const HnUpdateRule *rule, const HnTensor *now, HnValue *numbers)
{
    const int64_t four = 4;
    double squares = 0;
    if (!rule->op->optimizer.even)
        return numbers;
    for (int64_t i = 0; i < now->n; i++)
        squares += pow(hn_tensor_get_f64(now, i), 2);
    HnTensor *t = hn_tensor_new(HN_F32, 1, &four, NULL, NULL);
    for (int64_t i = 0; i < four; i++)
        hn_tensor_set_f64(t, i, i == 0 ? sqrt(squares / (double)MAX(now->n, 1)) : 1);
    const HnBuild ordinary = { .graph = b->graph, .before = b->before, .version = HN_OPSET_MAX };
    HnValue *own = hn_build_op2(&ordinary, "Mul", numbers, hn_build_constant(b, "rate", t));
    g_free(own->producer->name);
    own->producer->name = g_strdup(HN_UPDATE_NAME);
    return own;
}

HnValue *hn_update_build(HnGraph *g, const HnNode *before, const HnUpdateRule *rule, HnValue *w, const HnTensor *now,
                         gboolean scale, HnValue *gradient, HnValue *numbers, GArray *variables, char **average,
                         GError **error)
{
    const int states = rule->op->optimizer.states;
    const HnBuild b = { .graph = g, .before = before, .version = 1 };
    HnValue *in[HN_RULE_STATES + 3] = { w };
    for (int i = 1; i <= states; i++) {
        g_autofree char *what = g_strdup_printf("%s/%d", rule->op->optimizer.name, i);
        if ((in[i] = weight_like(g, w, what, now, TRUE, error)) == NULL)
            return NULL;
    }
    in[states + 1] = gradient;
    in[states + 2] = scale ? numbers_of_scale(&b, rule, now, numbers) : numbers;
    HnNode *n = hn_update_rule_build(rule, &b, in, scale || now->ndim < 2);
    for (int i = 0; i <= states; i++) {
        hn_graph_add_output(g, hn_node_out(n, i));
        add_variable(variables, in[i], hn_node_out(n, i), NULL);
    }
    if (rule->ema > 0 && !add_average(g, &b, rule, w, hn_node_out(n, 0), numbers, now, variables, average, error))
        return NULL;
    return hn_node_out(n, 0);
}

HnValue *hn_update_clip(HnGraph *g, const HnUpdateRule *rule, HnValue *numbers, HnValue *const *gradients, guint n,
                        HnValue **norm)
{
    const HnBuild b = { .graph = g, .version = 1 };
    g_autofree HnValue **in = g_new(HnValue *, n + 1);
    in[0] = numbers;
    for (guint i = 0; i < n; i++)
        in[1 + i] = gradients[i];
    HnNode *clip = hn_build_node(&b, "ClipByNorm", HN_DOMAIN_INTERNAL, (int)n + 1, in, 2);
    hn_node_set_float(clip, "limit", (float)rule->clip);
    *norm = hn_node_out(clip, 1);
    hn_graph_add_output(g, *norm);
    return hn_node_out(clip, 0);
}

static HnValue *add_input(HnGraph *g, const char *stem, int ndim, const int64_t *dims)
{
    g_autoptr(HnType) type = hn_type_fixed(HN_F32, ndim, dims);
    HnValue *v = hn_graph_new_value(g, stem);
    hn_value_set_type(v, type);
    hn_graph_add_input(g, v);
    return v;
}

HnModel *hn_update_graph_new(const HnUpdateRule *rule, HnUpdatedWeight *weights, guint n, HnBudget *budget,
                             GArray **variables, GError **error)
{
    g_autoptr(HnModel) m = hn_model_new();
    g_autofree HnValue **gradients = g_new0(HnValue *, n + 1);
    const int64_t four = 4;
    HnValue *norm;
    hn_model_set_budget(m, budget);
    hn_model_set_opset(m, "", HN_OPSET_MAX);
    hn_model_set_opset(m, HN_DOMAIN_INTERNAL, 1);
    *variables = g_array_new(TRUE, TRUE, sizeof(HnVariable));
    for (guint i = 0; i < n; i++)
        gradients[i] = add_input(m->graph, "gradient", weights[i].elements->ndim, weights[i].elements->dims);
    HnValue *numbers = add_input(m->graph, "numbers", 1, &four);
    if (rule->clip > 0)
        numbers = hn_update_clip(m->graph, rule, numbers, gradients, n, &norm);
    for (guint i = 0; i < n; i++) {
        HnValue *w = hn_graph_value(m->graph, weights[i].name);
        const guint first = (*variables)->len;
        hn_graph_add_weight(m->graph, w, weights[i].elements);
        if (hn_update_build(m->graph, NULL, rule, w, weights[i].elements, weights[i].scale, gradients[i], numbers,
                            *variables, &weights[i].average, error) == NULL)
            return NULL;
        g_array_index(*variables, HnVariable, first).elements = weights[i].elements;
    }
    return g_steal_pointer(&m);
}
