#include "train/step_graph.h"

#include <string.h>

#include "lower/lower.h"
#include "op/training.h"
#include "pass/inline_functions.h"
#include "pass/opset.h"
#include "pass/pass.h"
#include "pass/precision/precision.h"
#include "train/order.h"
#include "train/recompute.h"
#include "train/reverse.h"
#include "train/update_graph.h"

/* What makes a graph smaller and leaves it what it is: shapes become constants, branches that are known are taken, and
 * norms and activations that are spelled out become operators, whose gradients are fused. */
static const char *const passes[] = {
    "eliminate-dead",     "fold-constants",           "inline-if",          "unroll-loop",
    "eliminate-sequence", "eliminate-identity",       "eliminate-nop",      "eliminate-unit",
    "simplify-shapes",    "eliminate-expand",         "fuse-normalization", "fuse-gelu",
    "fuse-mish",          "fuse-hard-sigmoid",        "fuse-swish",         "fuse-softmax",
    "merge-casts",        "fuse-group-normalization", "expand-einsum",      NULL
};

typedef struct {
    const HnStepGraphOptions *o;
    HnStepGraph *g;
    HnGraph *graph;
    GPtrArray *elements; /* HnTensor * of g->trained, which are inputs for now */
    GPtrArray *replaced; /* HnTensor * of g->statistics, the same */
    HnTypes *types;
    GHashTable *names;      /* HnTensor * -> char *: what weights are called in the model */
    guint factors;          /* the first of the inputs that sums are multiplied by */
    gboolean straight;      /* HnReverse.straight */
    const HnNode *integers; /* computes with such; NULL: none does */
} Making;

void hn_step_graph_free(HnStepGraph *g)
{
    if (g == NULL)
        return;
    for (guint i = 0; i < g->trained->len; i++) {
        g_free(g_array_index(g->trained, HnTrained, i).name);
        g_free(g_array_index(g->trained, HnTrained, i).origin);
        g_free(g_array_index(g->trained, HnTrained, i).average);
    }
    for (guint i = 0; i < g->n_objectives; i++)
        hn_type_unref(g->compared[i]);
    g_free(g->compared);
    g_array_unref(g->trained);
    g_array_unref(g->variables);
    g_ptr_array_unref(g->statistics);
    g_ptr_array_unref(g->products);
    hn_in_place_free(g->in_place);
    hn_model_free(g->model);
    g_free(g);
}

HnPhase hn_step_graph_phase(const HnNode *n)
{
    if ((n->op != NULL && n->op->optimizer.name != NULL) || g_strcmp0(n->name, HN_UPDATE_NAME) == 0)
        return HN_PHASE_UPDATE;
    const gboolean backward = n->name != NULL && (g_str_has_suffix(n->name, HN_GRADIENT_SUFFIX) || hn_is_again(n));
    return backward ? HN_PHASE_BACKWARD : HN_PHASE_FORWARD;
}

/* --- the model's copy: newest opset, weights that are trained as inputs --------------------------------------------
 */

static void bind_first_failure(HnNode *n, gpointer data)
{
    GError **error = data;
    if (*error == NULL)
        hn_op_bind(n, error);
}

static void find_quantized(HnNode *n, gpointer data)
{
    Making *k = data;
    k->straight = k->straight || (n->op->flags & (HN_OP_STEPS | HN_OP_UNPACK)) != 0;
    if ((n->op->flags & HN_OP_INTEGERS) != 0 && k->integers == NULL)
        k->integers = n;
}

/* Models that are quantized are trained straight through; not those whose nodes compute with integers. */
static gboolean look_for_integers(Making *k, GError **error)
{
    k->straight = k->o->straight;
    hn_graph_foreach_node(k->graph, find_quantized, k);
    if (k->integers != NULL)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "node '%s' computes with integers (%s), which has no gradient: the form with QuantizeLinear and "
                    "DequantizeLinear nodes, which 'hone-quantize --format qdq' writes, is trained",
                    hn_node_label(k->integers), k->integers->op_type);
    return k->integers == NULL;
}

static gboolean bind(HnModel *m, GError **error)
{
    GError *failure = NULL;
    hn_graph_foreach_node(m->graph, bind_first_failure, &failure);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}

static gboolean run_passes(Making *k, const HnPassOptions *o, GError **error)
{
    HnPassLog log;
    HnPassOptions all = *o;
    all.level = 2;
    all.budget = k->g->model->budget;
    hn_pass_log_init(&log);
    const gboolean ok = hn_pass_run(k->g->model, &all, &log, error);
    hn_pass_log_clear(&log);
    return ok && bind(k->g->model, error);
}

static gboolean simplify(Making *k, const char *const *only, GError **error)
{
    return run_passes(k, &(HnPassOptions){ .only = only, .fold_bytes = HN_FOLD_BYTES, .unroll = TRUE }, error);
}

/* Rows of tables that are trained are looked up, and what is done to each of them is done to the table. */
static gboolean look_up_rows(Making *k, GError **error)
{
    static const char *const only[] = { "row-lookup", "table-rows", NULL };
    const HnPassOptions o = { .only = only, .passes = hn_lower_passes, .lowering = TRUE, .trains = TRUE };
    return run_passes(k, &o, error);
}

/* A constant node's result becomes a weight of that name. */
static HnValue *as_weight(HnGraph *g, const char *name)
{
    HnValue *v = g_hash_table_lookup(g->values, name);
    if (v == NULL || v->weight != NULL)
        return v;
    g_autoptr(HnTensor) t = hn_tensor_ref(hn_trainable_elements(v));
    HnNode *n = v->producer;
    hn_node_set_out(n, 0, NULL);
    hn_graph_remove_node(g, n);
    hn_graph_add_weight(g, v, t);
    return v;
}

/* The weight is an input for as long as nobody may compute with its elements; they are added to `kept`. */
static void set_aside(HnGraph *g, HnValue *v, GPtrArray *kept)
{
    HnTensor *t = v->weight;
    g_autoptr(HnType) type = hn_type_fixed(t->dtype, t->ndim, t->dims);
    g_ptr_array_add(kept, hn_tensor_ref(t));
    hn_graph_remove_weight(g, v);
    hn_value_set_type(v, type);
    hn_graph_add_input(g, v);
}

static void put_back(HnGraph *g, const char *name, HnTensor *t)
{
    HnValue *v = g_hash_table_lookup(g->values, name);
    guint i;
    if (v == NULL || !g_ptr_array_find(g->inputs, v, &i))
        return;
    hn_graph_remove_input(g, (int)i);
    hn_graph_add_weight(g, v, t);
}

/* Elements keep their tensor when the graph that they are in becomes part of another one. */
static void note_names(const HnGraph *g, GHashTable *names)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, g->values);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        HnTensor *t = hn_trainable_elements(value);
        if (t != NULL && !g_hash_table_contains(names, t))
            g_hash_table_insert(names, hn_tensor_ref(t), g_strdup(((HnValue *)value)->name));
    }
    for (guint i = 0; i < g->inner->len; i++)
        note_names(g->inner->pdata[i], names);
}

/* The name in the model of v, which holds t. */
static const char *origin_of(const Making *k, const HnValue *v, const HnTensor *t)
{
    const char *origin = g_hash_table_lookup(k->names, t);
    return origin != NULL ? origin : v->name;
}

static void add_weight(Making *k, HnValue *v, const char *origin)
{
    const HnInPlace *p = k->g->in_place;
    HnValue *master = hn_in_place_master(p, v);
    const HnTrained t = { .name = g_strdup(master->name),
                          .origin = g_strdup(origin),
                          .grid = hn_in_place_grid(p, master),
                          .least = hn_in_place_least(p, v) };
    g_array_append_val(k->g->trained, t);
}

/* list: HnTrainableWeight, of which none is trained. */
static const char *why_none(const GArray *list)
{
    gboolean frozen = FALSE, unnamed = FALSE;
    for (guint i = 0; i < list->len; i++) {
        frozen = frozen || g_array_index(list, HnTrainableWeight, i).why == HN_WHY_FROZEN;
        unnamed = unnamed || g_array_index(list, HnTrainableWeight, i).why == HN_WHY_UNNAMED;
    }
    return frozen    ? "the pattern of what is frozen matches all that could be"
           : unnamed ? "the pattern of what is trained matches none"
                     : "no float initializer reaches a weight, bias, scale or table";
}

/* What is quantized is trained in place: its integers become f32 weights. */
static gboolean add_trained(Making *k, GError **error)
{
    HnStepGraph *g = k->g;
    g_autoptr(GArray) list = hn_trainable_list(g->model, &k->o->trainable, error);
    if (list == NULL || (g->in_place = hn_in_place_new(k->graph, list, error)) == NULL)
        return FALSE;
    for (guint i = 0; i < list->len; i++) {
        const HnTrainableWeight *w = &g_array_index(list, HnTrainableWeight, i);
        if (w->why == HN_WHY_TRAINED)
            add_weight(k, w->v, origin_of(k, w->v, hn_trainable_elements(w->v)));
    }
    for (guint i = 0; i < hn_in_place_n_products(g->in_place); i++) {
        const char *name, *origin;
        const HnGrid *grid = hn_in_place_product(g->in_place, i, &name);
        origin = g_hash_table_lookup(k->names, grid->like);
        g_ptr_array_add(g->products, g_strdup(origin != NULL ? origin : name));
    }
    if (g->trained->len == 0)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "no weight can be trained: %s", why_none(list));
    return g->trained->len > 0 && bind(g->model, error);
}

static gboolean convert(Making *k, GError **error)
{
    HnModel *m = k->g->model;
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    GError *cause = NULL;
    if (hn_convert_opset(m, HN_OPSET_MAX, blocked, &cause))
        return bind(m, error);
    if (blocked->len > 0) {
        g_clear_error(&cause);
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "gradients are written for opset %d: %s", HN_OPSET_MAX,
                    (char *)blocked->pdata[0]);
        return FALSE;
    }
    g_propagate_error(error, cause);
    return FALSE;
}

static gboolean set_aside_trained(Making *k, GError **error)
{
    for (guint i = 0; i < k->g->trained->len; i++) {
        const HnTrained *t = &g_array_index(k->g->trained, HnTrained, i);
        HnValue *v = as_weight(k->graph, t->name);
        if (v == NULL || v->weight == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "weight '%s' is not left in opset %d", t->name,
                        HN_OPSET_MAX);
            return FALSE;
        }
        if (v->weight->dtype != HN_F32) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                        "weight '%s' is %s, only f32 is trained: hone-export --to f32 converts a model", t->name,
                        hn_dtype_name(v->weight->dtype));
            return FALSE;
        }
        set_aside(k->graph, v, k->elements);
    }
    return TRUE;
}

/* Inputs have the types of a batch; in the place of one that never differs nodes read its elements. */
static void fix_inputs(Making *k)
{
    HnGraph *g = k->graph;
    k->g->n_in = g->inputs->len;
    for (guint i = 0; i < g->inputs->len; i++) {
        HnValue *v = g->inputs->pdata[i];
        HnTensor *t = k->o->fixed != NULL ? k->o->fixed[i] : NULL;
        hn_value_set_type(v, k->o->in[i]);
        if (t == NULL || v->is_output)
            continue;
        HnValue *constant = hn_graph_new_value(g, v->name);
        hn_graph_add_weight(g, constant, t);
        hn_value_replace(v, constant);
    }
}

/* Branches that the shapes and fixed inputs decide, and bodies of loops whose runs they count, are part of the graph:
 * what they hold can be trained. Sequences, which have no gradient, become what they hold. */
static gboolean take_branches(Making *k, GError **error)
{
    static const char *const only[] = { "inline-if", "unroll-loop", "eliminate-sequence", NULL };
    note_names(k->graph, k->names);
    return simplify(k, only, error);
}

/* --- what nodes mean in training ---------------------------------------------------------------------------------- */

static const HnTensor *elements_of(const HnTraining *t, const HnValue *v)
{
    (void)t;
    return hn_trainable_elements(v);
}

static void add_statistics(Making *k, const HnTraining *t)
{
    for (guint i = 0; i < t->replaced->len; i++) {
        HnValue *v = t->replaced->pdata[i], *next = t->next->pdata[i];
        if (v->weight == NULL) /* computed, or shared with another node that replaces it */
            continue;
        g_ptr_array_add(k->g->statistics, g_strdup(v->name));
        set_aside(k->graph, v, k->replaced);
        hn_graph_add_output(k->graph, next);
    }
}

static gboolean set_training(Making *k, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new(), replaced = g_ptr_array_new(), next = g_ptr_array_new();
    const int64_t two = 2;
    g_autoptr(HnType) type = hn_type_fixed(HN_I64, 1, &two);
    HnValue *state = hn_graph_new_value(k->graph, "state");
    hn_value_set_type(state, type);
    hn_graph_add_input(k->graph, state);
    for (guint i = 0; i < k->graph->nodes->len; i++)
        if (((HnNode *)k->graph->nodes->pdata[i])->op->train != NULL)
            g_ptr_array_add(nodes, k->graph->nodes->pdata[i]);
    for (guint i = 0; i < nodes->len; i++) {
        HnNode *n = nodes->pdata[i];
        const HnBuild build = { .graph = k->graph, .before = n, .version = HN_OPSET_MAX };
        HnTraining t = { .node = n,
                         .params = n->params,
                         .build = &build,
                         .state = state,
                         .salt = (int64_t)i,
                         .keep_statistics = k->o->keep_statistics,
                         .elements = elements_of,
                         .replaced = replaced,
                         .next = next };
        n->op->train(&t);
        add_statistics(k, &t);
        g_ptr_array_set_size(replaced, 0);
        g_ptr_array_set_size(next, 0);
    }
    return bind(k->g->model, error);
}

static gboolean infer(Making *k, GError **error)
{
    g_clear_pointer(&k->types, hn_types_free);
    k->types = hn_types_new(k->g->model);
    return hn_types_enter(k->types, k->graph, TRUE, error) &&
           hn_types_graph(k->types, k->graph, HN_FOLD_BYTES, 0, error);
}

/* Weights and running moments are inputs and outputs by now, which stay f32; so do nodes that move such moments, by
 * less than halves can tell. */
static gboolean to_halves(Making *k, GError **error)
{
    HnPrecisionLog log;
    const GPtrArray *out = k->graph->outputs;
    const guint n = k->g->statistics->len;
    if (!hn_dtype_is_half(k->o->half))
        return TRUE;
    g_autofree const char **keep = g_new0(const char *, n + 1);
    for (guint i = 0; i < n; i++)
        keep[i] = hn_node_out(((const HnValue *)out->pdata[out->len - n + i])->producer, 0)->name;
    const HnPrecisionOptions o = { .to = k->o->half, .keep_io = TRUE, .keep = keep, .budget = k->g->model->budget };
    hn_precision_log_init(&log);
    const gboolean ok = hn_convert_precision(k->g->model, &o, &log, error);
    hn_precision_log_clear(&log);
    return ok && bind(k->g->model, error) && infer(k, error);
}

/* --- losses ------------------------------------------------------------------------------------------------------- */

static HnValue *add_scalar_input(HnGraph *g, const char *stem, int ndim, int64_t n)
{
    g_autoptr(HnType) type = hn_type_fixed(HN_F32, ndim, &n);
    HnValue *v = hn_graph_new_value(g, stem);
    hn_value_set_type(v, type);
    hn_graph_add_input(g, v);
    return v;
}

/* Results are the losses' sums first; what were the model's are none any more. */
static gboolean add_losses(Making *k, GError **error)
{
    HnStepGraph *g = k->g;
    const GPtrArray *objectives = k->o->objectives;
    g_autoptr(GPtrArray) sums = g_ptr_array_new(), others = g_ptr_array_new();
    const guint n_stats = g->statistics->len, n_own = k->graph->outputs->len - n_stats;
    g->compared = g_new0(HnType *, objectives->len + 1);
    for (guint i = 0; i < objectives->len; i++) {
        HnObjectiveNode made;
        hn_objective_place(objectives->pdata[i], k->graph, k->types, k->o->labels);
        if (!hn_objective_build(objectives->pdata[i], k->graph, k->types, &made, error))
            return FALSE;
        g->compared[g->n_objectives++] = hn_type_ref(hn_types_get(k->types, made.value));
        g_ptr_array_add(sums, made.sum);
    }
    k->factors = k->graph->inputs->len;
    for (guint i = 0; i < objectives->len; i++)
        add_scalar_input(k->graph, "factor", 0, 0);
    for (guint i = 0; i < n_stats; i++)
        g_ptr_array_add(others, k->graph->outputs->pdata[n_own + i]);
    while (k->graph->outputs->len > 0)
        hn_graph_remove_output(k->graph, (int)k->graph->outputs->len - 1);
    for (guint i = 0; i < sums->len; i++)
        hn_graph_add_output(k->graph, sums->pdata[i]);
    for (guint i = 0; i < others->len; i++)
        hn_graph_add_output(k->graph, others->pdata[i]);
    return bind(g->model, error);
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

static gboolean add_gradients(Making *k, GError **error)
{
    HnStepGraph *g = k->g;
    const guint n = g->trained->len, forward = k->graph->nodes->len;
    g_autofree HnValue **wanted = g_new0(HnValue *, n + 1), **gradients = g_new0(HnValue *, n + 1);
    gboolean any = FALSE;
    for (guint i = 0; i < n; i++)
        wanted[i] = g_hash_table_lookup(k->graph->values, g_array_index(g->trained, HnTrained, i).name);
    const HnReverse r = { .graph = k->graph,
                          .types = k->types,
                          .n = (int)g->n_objectives,
                          .of = (HnValue *const *)k->graph->outputs->pdata,
                          .dy = (HnValue *const *)k->graph->inputs->pdata + k->factors,
                          .n_wanted = (int)n,
                          .wanted = wanted,
                          .straight = k->straight };
    if (!hn_reverse(&r, gradients, error) || !bind(g->model, error) || !infer(k, error))
        return FALSE;
    hn_order_backward(k->graph, k->types, forward);
    for (guint i = 0; i < n; i++) {
        g_array_index(g->trained, HnTrained, i).gradient = gradients[i];
        any = any || gradients[i] != NULL;
    }
    if (!any)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "no loss depends on a weight that is trained");
    return any;
}

/* --- updates ------------------------------------------------------------------------------------------------------ */

/* The numbers with a factor that keeps the norm of all gradients below the limit. */
static HnValue *add_clipping(Making *k, HnValue *numbers)
{
    g_autoptr(GPtrArray) gradients = g_ptr_array_new();
    HnValue *norm;
    for (guint i = 0; i < k->g->trained->len; i++)
        if (g_array_index(k->g->trained, HnTrained, i).gradient != NULL)
            g_ptr_array_add(gradients, g_array_index(k->g->trained, HnTrained, i).gradient);
    k->g->norm_out = (int)k->graph->outputs->len;
    return hn_update_clip(k->graph, k->o->rule, numbers, (HnValue *const *)gradients->pdata, gradients->len, &norm);
}

static void add_variable(Making *k, const HnValue *v, const HnValue *next)
{
    const HnVariable variable = { v->name, next != NULL ? next->name : NULL, NULL };
    g_array_append_val(k->g->variables, variable);
}

static HnNode *node_behind(const HnGraph *g, guint at)
{
    return at + 1 < g->nodes->len ? g->nodes->pdata[at + 1] : NULL;
}

/* The node in front of which nobody reads the old weight or makes its gradient any more; NULL: the end. */
static const HnNode *place_of_update(const HnGraph *g, const HnValue *w, const HnValue *gradient)
{
    guint at = hn_graph_index(g, gradient->producer);
    for (guint i = 0; i < w->users->len; i++) {
        const HnNode *user = w->users->pdata[i];
        while (user->graph != g)
            user = user->graph->holder;
        at = MAX(at, hn_graph_index(g, user));
    }
    return node_behind(g, at);
}

/* The node that makes v belongs to the update. */
static HnValue *of_update(HnValue *v)
{
    g_free(v->producer->name);
    v->producer->name = g_strdup(HN_UPDATE_NAME);
    return v;
}

/* The numbers plus 0 times each loss, in front of all gradients: updates skip a step whose loss is not finite. */
static HnValue *add_guard(Making *k, HnValue *numbers)
{
    guint at = 0;
    for (guint i = 0; i < k->g->n_objectives; i++) {
        const HnNode *n = ((HnValue *)k->graph->outputs->pdata[i])->producer;
        at = n != NULL ? MAX(at, hn_graph_index(k->graph, n)) : at;
    }
    const HnBuild b = { .graph = k->graph, .before = node_behind(k->graph, at), .version = HN_OPSET_MAX };
    HnValue *zero = hn_build_constant(&b, "zero", hn_tensor_scalar_f32(0));
    for (guint i = 0; i < k->g->n_objectives; i++) {
        HnValue *loss = of_update(hn_build_cast(&b, k->graph->outputs->pdata[i], HN_F32));
        loss = of_update(hn_build_op2(&b, "Mul", loss, zero));
        numbers = of_update(hn_build_op2(&b, "Add", numbers, loss));
    }
    return numbers;
}

static gboolean add_updates(Making *k, GError **error)
{
    HnStepGraph *g = k->g;
    HnValue *numbers = add_guard(k, add_scalar_input(k->graph, "numbers", 1, 4));
    if (k->o->rule->clip > 0)
        numbers = add_clipping(k, numbers);
    for (guint i = 0; i < g->trained->len; i++) {
        HnTrained *t = &g_array_index(g->trained, HnTrained, i);
        HnValue *w = g_hash_table_lookup(k->graph->values, t->name);
        if (t->gradient == NULL)
            continue;
        const HnNode *before = g->norm_out < 0 ? place_of_update(k->graph, w, t->gradient) : NULL;
        if (hn_update_build(k->graph, before, k->o->rule, w, k->elements->pdata[i], t->least != NULL, t->gradient,
                            numbers, g->variables, &t->average, error) == NULL)
            return FALSE;
    }
    return TRUE;
}

static void add_gradient_outputs(Making *k)
{
    HnStepGraph *g = k->g;
    g->gradient_out = (int)k->graph->outputs->len;
    for (guint i = 0; i < g->trained->len; i++) {
        const HnTrained *t = &g_array_index(g->trained, HnTrained, i);
        if (t->gradient == NULL)
            continue;
        hn_graph_add_output(k->graph, t->gradient);
        add_variable(k, g_hash_table_lookup(k->graph->values, t->name), NULL);
    }
}

/* What lowering would fuse with the gradient of another node is fused now: what it reads can be made again then (see
 * train/recompute.h) without taking its form apart. */
static gboolean fuse_gradients(Making *k, GError **error)
{
    static const char *const only[] = { "batchnorm-mask", NULL };
    HnModel *m = k->g->model;
    const HnPassOptions o = { .only = only, .passes = hn_lower_passes, .lowering = TRUE, .budget = m->budget };
    return infer(k, error) && hn_pass_apply(m, k->types, &o, error) && bind(m, error);
}

/* Weights are weights again, and move. */
static void finish(Making *k)
{
    HnStepGraph *g = k->g;
    g->state_in = (int)g->n_in;
    g->target_in = g->state_in + 1;
    g->factor_in = g->target_in + (int)g->n_objectives;
    g->numbers_in = k->o->rule != NULL ? g->factor_in + (int)g->n_objectives : -1;
    for (guint i = 0; i < g->trained->len; i++)
        put_back(k->graph, g_array_index(g->trained, HnTrained, i).name, k->elements->pdata[i]);
    for (guint i = 0; i < g->statistics->len; i++) {
        const char *name = g->statistics->pdata[i];
        put_back(k->graph, name, k->replaced->pdata[i]);
        add_variable(k, g_hash_table_lookup(k->graph->values, name), k->graph->outputs->pdata[g->n_objectives + i]);
    }
}

HnStepGraph *hn_step_graph_new(HnModel *work, const HnStepGraphOptions *o, GError **error)
{
    g_autoptr(HnStepGraph) g = g_new0(HnStepGraph, 1);
    g->model = work;
    g->numbers_in = g->gradient_out = g->norm_out = -1;
    g->trained = g_array_new(FALSE, TRUE, sizeof(HnTrained));
    g->variables = g_array_new(TRUE, TRUE, sizeof(HnVariable));
    g->statistics = g_ptr_array_new_with_free_func(g_free);
    g->products = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) elements = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autoptr(GPtrArray) replaced = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autoptr(GHashTable) names = g_hash_table_new_full(NULL, NULL, (GDestroyNotify)hn_tensor_unref, g_free);
    Making k = { .o = o, .g = g, .graph = work->graph, .elements = elements, .replaced = replaced, .names = names };
    hn_model_drop_defaults(work);
    gboolean ok =
        hn_inline_functions(work, error) && bind(work, error) && look_for_integers(&k, error) && convert(&k, error);
    if (ok)
        fix_inputs(&k);
    ok = ok && take_branches(&k, error) && add_trained(&k, error) && set_aside_trained(&k, error) &&
         set_training(&k, error) && infer(&k, error) && to_halves(&k, error) && add_losses(&k, error) &&
         simplify(&k, passes, error) && look_up_rows(&k, error) && infer(&k, error) && add_gradients(&k, error);
    if (ok && o->rule == NULL)
        add_gradient_outputs(&k);
    else
        ok = ok && add_updates(&k, error);
    ok = ok && fuse_gradients(&k, error);
    if (ok)
        finish(&k);
    hn_types_free(k.types);
    return ok && hn_graph_verify(k.graph, NULL, error) ? g_steal_pointer(&g) : NULL;
}
