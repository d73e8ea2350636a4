/*
 * TreeEnsembleRegressor, TreeEnsembleClassifier (ids of trees and nodes; version 3 has tensors of double beside lists)
 * and TreeEnsemble (version 5, indices). Comparisons are made in double, integers as the f32 next to them, sums in
 * double and in the order of the trees.
 *
 * Classes. With more than two the largest score wins, of those that some leaf gave a weight or that have a base value.
 * Of two where all weights are of one class there is one score, which is a probability of the second class where no
 * weight is negative, and signed otherwise. Where both have weights, the second class wins if its score is above 0,
 * which is what ONNX Runtime does.
 */
#include "op/trees.h"

#include <math.h>
#include <string.h>

#include "op/ops.h"
#include "op/trees_read.h"

void hn_trees_free(HnTrees *t)
{
    if (t == NULL)
        return;
    g_free(t->nodes);
    g_free(t->roots);
    g_free(t->weights);
    g_free(t->members);
    g_free(t->base);
    g_free(t);
}

/* --- attributes -------------------------------------------------------------------------------------------------- */

static void read_base(HnBind *b, HnTrees *t)
{
    const HnTreeNumbers v = hn_tree_numbers(b, "base_values", "base_values_as_tensor");
    if (v.n != 0 && v.n != t->n_targets && !(t->kind.classes && t->n_targets == 2 && v.n == 1))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "%" PRId64 " base values do not fit to %" PRId64 " targets", v.n,
                     t->n_targets);
    if (b->error != NULL)
        return;
    t->n_base = v.n;
    t->base = g_new0(double, (gsize)v.n + 1);
    for (int64_t i = 0; i < v.n; i++)
        t->base[i] = hn_tree_number(&v, i);
}

static void read_class_labels(HnBind *b, HnTrees *t, HnMlLabels *labels)
{
    hn_ml_bind_labels(b, "classlabels_strings", "classlabels_int64s", labels);
    t->n_targets = labels->n;
    t->kind.classes = TRUE;
    if (labels->n == 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "there are no labels of classes");
}

static void read_targets(HnBind *b, HnTrees *t)
{
    t->n_targets = hn_bind_int(b, "n_targets", 0);
    if (t->n_targets <= 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'n_targets' is %" PRId64, t->n_targets);
}

/* Of every form. */
static HnTrees *read_trees(HnBind *b, const HnOp *op, HnMlLabels *labels)
{
    static const char *const words[] = { "AVERAGE", "SUM", "MIN", "MAX", NULL };
    HnTrees *t = g_new0(HnTrees, 1);
    t->aggregate = HN_TREES_SUM;
    const gboolean classes = op == &hn_op_treeensembleclassifier;
    if (classes)
        read_class_labels(b, t, labels);
    else
        read_targets(b, t);
    if (op == &hn_op_treeensemble) {
        const int64_t how = hn_bind_int(b, "aggregate_function", HN_TREES_SUM);
        const int64_t transform = hn_bind_int(b, "post_transform", HN_ML_NONE);
        if (how < 0 || how > HN_TREES_MAX || transform < 0 || transform > HN_ML_PROBIT)
            hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "aggregate function %" PRId64 " or transform %" PRId64 " is not known",
                         how, transform);
        t->aggregate = (HnTreesAggregate)how;
        t->transform = (HnMlTransform)transform;
    } else {
        t->transform = hn_ml_bind_transform(b);
        if (!classes)
            t->aggregate = (HnTreesAggregate)hn_bind_word(b, "aggregate_function", words, HN_TREES_SUM);
        read_base(b, t);
    }
    if (b->error == NULL && op == &hn_op_treeensemble)
        hn_trees_read_indices(b, t);
    else if (b->error == NULL)
        hn_trees_read_ids(b, t, classes);
    return t;
}

HnTrees *hn_trees_new(const HnNode *n, GError **error)
{
    HnBind b = { .node = (HnNode *)n, .version = n->version };
    HnMlLabels labels;
    g_autoptr(HnTrees) t = read_trees(&b, n->op, &labels);
    if (b.error == NULL)
        return g_steal_pointer(&t);
    g_propagate_error(error, b.error);
    return NULL;
}

static int64_t tests_of(const HnTreeNode *n)
{
    return n->mode == HN_TREE_MEMBER ? 2 * (int64_t)n->n + 2 : n->mode == HN_TREE_EQ || n->mode == HN_TREE_NEQ ? 2 : 1;
}

/* Leaves that a root leads to, and how far they are from it, as if a tree's were equally far. */
static void count_leaves(HnTrees *t, HnTreesParams *p)
{
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_autofree uint8_t *seen = g_new0(uint8_t, (gsize)t->n_nodes + 1);
    for (int64_t i = 0; i < t->n_trees; i++) {
        const int64_t before = t->n_leaves, tests = p->tests;
        g_array_append_val(stack, t->roots[i]);
        while (stack->len > 0) {
            const int32_t at = g_array_index(stack, int32_t, stack->len - 1);
            const HnTreeNode *n = &t->nodes[at];
            g_array_set_size(stack, stack->len - 1);
            if (seen[at] || n->mode == HN_TREE_LEAF) {
                t->n_leaves += !seen[at];
                seen[at] = 1;
                continue;
            }
            seen[at] = 1;
            p->tests += tests_of(n);
            g_array_append_val(stack, n->yes);
            g_array_append_val(stack, n->no);
        }
        p->tests_most = MAX(p->tests_most, p->tests - tests);
        p->steps += log2((double)MAX(t->n_leaves - before, 1));
    }
}

static void bind_as(HnBind *b, HnTreesParams *p, const HnOp *op)
{
    g_autoptr(HnTrees) t = read_trees(b, op, &p->labels);
    if (b->error != NULL)
        return;
    count_leaves(t, p);
    p->n_targets = t->n_targets;
    p->n_trees = t->n_trees;
    p->n_leaves = t->n_leaves;
    p->features = t->features;
}

static void classifier_bind(HnBind *b, void *params)
{
    bind_as(b, params, &hn_op_treeensembleclassifier);
}

static void regressor_bind(HnBind *b, void *params)
{
    bind_as(b, params, &hn_op_treeensembleregressor);
}

static void ensemble_bind(HnBind *b, void *params)
{
    bind_as(b, params, &hn_op_treeensemble);
}

/* --- shapes ------------------------------------------------------------------------------------------------------ */

static void check_features(HnInfer *x)
{
    const HnTreesParams *p = x->params;
    const int rank = hn_infer_rank(x, 0);
    const HnDim d = rank > 0 ? hn_infer_dim(x, 0, rank - 1) : hn_dim_unknown();
    if (d.known && d.n < p->features)
        hn_infer_fail(x, HN_ERROR_SHAPE, "feature %" PRId64 " is tested of rows of %" PRId64, p->features - 1, d.n);
}

static void classifier_infer(HnInfer *x)
{
    const HnTreesParams *p = x->params;
    check_features(x);
    hn_ml_infer_labels(x, 0, &p->labels);
    if (x->n_out > 1)
        hn_ml_infer_scores(x, 1, HN_F32, p->n_targets);
}

static void regressor_infer(HnInfer *x)
{
    check_features(x);
    hn_ml_infer_scores(x, 0, HN_F32, ((const HnTreesParams *)x->params)->n_targets);
}

static void ensemble_infer(HnInfer *x)
{
    check_features(x);
    hn_ml_infer_scores(x, 0, hn_infer_dtype(x, 0), ((const HnTreesParams *)x->params)->n_targets);
}

static void trees_held(const void *params, HnHeld held[HN_HELD_MAX])
{
    const HnTreesParams *p = params;
    held[0] = (HnHeld){ "trees", p->n_trees };
    held[1] = (HnHeld){ "leaves", p->n_leaves };
}

/* A comparison and a step each. */
static void trees_cost(const HnInfer *x, HnCost *c)
{
    const HnTreesParams *p = x->params;
    const double features = hn_type_rank(x->in[0]) > 0 ? (double)x->in[0]->dims[x->in[0]->rank - 1].n : 0;
    const double rows = features > 0 ? hn_type_count(x->in[0]) / features : 0;
    c->flops = rows * (2 * p->steps + (double)p->n_trees);
}

/* --- values ------------------------------------------------------------------------------------------------------ */

static gboolean is_member(const HnTrees *t, const HnTreeNode *n, double x)
{
    for (int32_t i = 0; i < n->n; i++)
        if (t->members[n->first + i] == x)
            return TRUE;
    return FALSE;
}

int32_t hn_trees_next(const HnTrees *t, const HnTreeNode *n, double x)
{
    gboolean yes = n->missing && isnan(x);
    switch ((HnTreeMode)n->mode) {
    case HN_TREE_LEQ:
        yes = yes || x <= n->value;
        break;
    case HN_TREE_LT:
        yes = yes || x < n->value;
        break;
    case HN_TREE_GEQ:
        yes = yes || x >= n->value;
        break;
    case HN_TREE_GT:
        yes = yes || x > n->value;
        break;
    case HN_TREE_EQ:
        yes = yes || x == n->value;
        break;
    case HN_TREE_NEQ:
        yes = yes || x != n->value;
        break;
    case HN_TREE_MEMBER:
        yes = yes || is_member(t, n, x);
        break;
    case HN_TREE_LEAF:
        break;
    }
    return yes ? n->yes : n->no;
}

/* Of one score; sum[0] and sum[1] are written. */
static int64_t finish_binary(const HnTrees *t, double *sum)
{
    const HnTreesClasses *k = &t->kind;
    const int64_t class = sum[0] > (k->binary && k->positive ? 0.5 : 0);
    sum[1] = 0;
    hn_ml_second(sum, k->binary && k->positive ? HN_ML_COMPLEMENT : HN_ML_SIGNED, t->transform);
    return class;
}

static int64_t finish_pair(const HnTrees *t, double *sum, const uint8_t *has)
{
    if (!has[1] && t->n_base < 2) {
        sum[0] += t->n_base == 1 ? t->base[0] : 0;
        return finish_binary(t, sum);
    }
    if (t->n_base == 1)
        sum[0] += t->base[0];
    if (t->n_base == 2 && has[1]) { /* as there, base value 0 is left out, and the score is that of class 0 */
        sum[1] = t->base[1] + sum[0];
        sum[0] = -sum[1];
    } else if (t->n_base == 2) {
        sum[0] += t->base[0];
        sum[1] += t->base[1];
    }
    const double decides = has[1] ? sum[1] : sum[0];
    const int64_t class = decides > (t->kind.binary && t->kind.positive ? 0.5 : 0);
    hn_ml_transform(sum, 2, t->transform);
    return class;
}

static int64_t finish_many(const HnTrees *t, double *sum, const uint8_t *has)
{
    int64_t best = -1;
    for (int64_t k = 0; k < t->n_targets; k++) {
        sum[k] += t->n_base > 0 ? t->base[k] : 0;
        if ((has[k] || t->n_base > 0) && (best < 0 || sum[k] > sum[best]))
            best = k;
    }
    if (t->n_targets > 1)
        hn_ml_transform(sum, t->n_targets, t->transform);
    else
        hn_ml_second(sum, HN_ML_ONE, t->transform);
    return MAX(best, 0);
}

static void finish_targets(const HnTrees *t, double *sum)
{
    const double n = t->aggregate == HN_TREES_AVERAGE ? (double)MAX(t->n_trees, 1) : 1;
    for (int64_t k = 0; k < t->n_targets; k++)
        sum[k] = sum[k] / n + (t->n_base > 0 ? t->base[k] : 0);
    if (t->n_targets > 1)
        hn_ml_transform(sum, t->n_targets, t->transform);
    else
        hn_ml_second(sum, HN_ML_ONE, t->transform);
}

int64_t hn_trees_finish(const HnTrees *t, double *sum, const uint8_t *has)
{
    if (t->kind.classes)
        return t->n_targets == 2 ? finish_pair(t, sum, has) : finish_many(t, sum, has);
    finish_targets(t, sum);
    return 0;
}

static double feature_of(const HnTensor *x, int64_t i)
{
    const double v = hn_tensor_get_f64(x, i);
    return hn_dtype_in(x->dtype, HN_T_INTS) ? (double)(float)v : v;
}

static void add_trees(const HnTrees *t, const HnTensor *x, int64_t row, double *sum, uint8_t *has)
{
    for (int64_t i = 0; i < t->n_trees; i++) {
        const HnTreeNode *n = &t->nodes[t->roots[i]];
        while (n->mode != HN_TREE_LEAF)
            n = &t->nodes[hn_trees_next(t, n, feature_of(x, row + n->feature))];
        for (int32_t k = n->first; k < n->first + n->n; k++) {
            const int32_t target = t->weights[k].target;
            hn_trees_add(t->aggregate, &sum[target], &has[target], t->weights[k].value);
        }
    }
}

/* Scores go to output `k` of type `dtype`, labels to output 0 where k is 1. */
static void eval_rows(HnEval *e, const HnTrees *t, int k, HnDtype dtype, int64_t rows, int64_t features)
{
    const HnTreesParams *p = e->params;
    const int64_t dims[] = { rows, t->n_targets };
    double *sum = hn_eval_scratch(e, MAX(t->n_targets, 2), sizeof *sum);
    uint8_t *has = hn_eval_scratch(e, MAX(t->n_targets, 2), sizeof *has);
    if (k < e->n_out && has != NULL)
        hn_eval_out(e, k, dtype, 2, dims);
    if (t->kind.classes && has != NULL)
        hn_ml_labels_out(e, 0, &p->labels, rows);
    for (int64_t i = 0; i < rows && e->error == NULL; i++) {
        memset(sum, 0, (size_t)MAX(t->n_targets, 2) * sizeof *sum);
        memset(has, 0, (size_t)MAX(t->n_targets, 2));
        add_trees(t, e->in[0], i * features, sum, has);
        const int64_t class = hn_trees_finish(t, sum, has);
        if (t->kind.classes)
            hn_ml_label(e->out[0], i, &p->labels, class);
        for (int64_t j = 0; k < e->n_out && j < t->n_targets; j++)
            hn_tensor_set_f64(e->out[k], i * t->n_targets + j, sum[j]);
    }
    hn_eval_scratch_free(e, sum);
    hn_eval_scratch_free(e, has);
}

static void eval_as(HnEval *e, int k, HnDtype dtype)
{
    int64_t rows, features;
    if (!hn_ml_rows(e, e->in[0], &rows, &features))
        return;
    g_autoptr(HnTrees) t = hn_trees_new(e->node, &e->error);
    if (t == NULL)
        return;
    if (features < t->features)
        hn_eval_fail(e, HN_ERROR_SHAPE, "feature %" PRId64 " is tested of rows of %" PRId64, t->features - 1, features);
    else
        eval_rows(e, t, k, dtype, rows, features);
}

static void classifier_ref(HnEval *e)
{
    eval_as(e, 1, HN_F32);
}

static void regressor_ref(HnEval *e)
{
    eval_as(e, 0, HN_F32);
}

static void ensemble_ref(HnEval *e)
{
    eval_as(e, 0, e->in[0]->dtype);
}

const HnOp hn_op_treeensemble = {
    .name = "TreeEnsemble",
    .domain = HN_DOMAIN_ML,
    .flags = HN_OP_HALF_VIA_F32,
    .since = { 5 },
    .in = "T",
    .out = "T",
    .T = HN_BIT(HN_F16) | HN_BIT(HN_F32) | HN_BIT(HN_F64),
    .params_size = sizeof(HnTreesParams),
    .bind = ensemble_bind,
    .infer = ensemble_infer,
    .cost = trees_cost,
    .held = trees_held,
    .ref = ensemble_ref,
};

const HnOp hn_op_treeensembleclassifier = {
    .name = "TreeEnsembleClassifier",
    .domain = HN_DOMAIN_ML,
    .since = { 1, 3 },
    .in = "T",
    .out = "Uf",
    .T = HN_ML_NUMBERS,
    .U = HN_ML_LABEL_TYPES,
    .params_size = sizeof(HnTreesParams),
    .bind = classifier_bind,
    .infer = classifier_infer,
    .cost = trees_cost,
    .held = trees_held,
    .ref = classifier_ref,
};

const HnOp hn_op_treeensembleregressor = {
    .name = "TreeEnsembleRegressor",
    .domain = HN_DOMAIN_ML,
    .since = { 1, 3 },
    .in = "T",
    .out = "f",
    .T = HN_ML_NUMBERS,
    .params_size = sizeof(HnTreesParams),
    .bind = regressor_bind,
    .infer = regressor_infer,
    .cost = trees_cost,
    .held = trees_held,
    .ref = regressor_ref,
};
