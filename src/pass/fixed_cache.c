#include "pass/fixed_cache_private.h"

#include <math.h>
#include <string.h>

#include "ir/build.h"
#include "op/infer.h"
#include "op/concat.h"
#include "op/ops.h"
#include "pass/lib/forget_types.h"
#include "pass/opset.h"
#include "pass/pass.h"

#define CACHE_OPSET 24

gboolean hn_fix_refuse(HnFix *f, const HnNode *n, const char *why)
{
    if (f->error == NULL)
        g_set_error(&f->error, HN_ERROR, HN_ERROR_UNSUPPORTED, "node '%s' (%s): %s", hn_node_label(n), n->op_type, why);
    return FALSE;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* The only axis of v that grows, n + s long; HN_BAD_AXIS: something else is not a number. */
int hn_fix_grown(const HnFix *f, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(f->t, v) : NULL;
    int axis = HN_NO_AXIS;
    if (v == NULL)
        return HN_NO_AXIS;
    if (!hn_type_is_tensor(t) || t->rank < 0)
        return HN_BAD_AXIS;
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i].known)
            continue;
        if (axis != HN_NO_AXIS || !hn_dim_equal(t->dims[i], f->total))
            return HN_BAD_AXIS;
        axis = i;
    }
    return axis;
}

int hn_fix_rank_of(const HnFix *f, const HnValue *v)
{
    return hn_type_rank(hn_types_get(f->t, v));
}

HnDim hn_fix_dim_of(const HnFix *f, const HnValue *v, int axis)
{
    const HnType *t = hn_types_get(f->t, v);
    return hn_type_is_tensor(t) && axis >= 0 && axis < t->rank ? t->dims[axis] : hn_dim_unknown();
}

gboolean hn_fix_number_of(const HnFix *f, HnDim d, int64_t rows, int64_t *n)
{
    int64_t *place = g_hash_table_lookup(f->names, HN_PAST_ROWS);
    *place = rows;
    return hn_dim_eval(d, f->names, n);
}

int hn_fix_axis_of(int64_t axis, int rank)
{
    return hn_axis(axis, rank);
}

HnTail hn_fix_tail_of(const HnFix *f, const HnValue *v)
{
    return (HnTail)GPOINTER_TO_INT(g_hash_table_lookup(f->tails, v));
}

void hn_fix_set_tail(HnFix *f, const HnNode *n, HnTail tail)
{
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL)
            g_hash_table_insert(f->tails, n->out->pdata[k], GINT_TO_POINTER(tail));
}

/* --- integers that follow from n -----------------------------------------------------------------------------------
 */

/* v's elements follow from n, and not all of them are numbers. */
gboolean hn_fix_follows(const HnFix *f, const HnValue *v)
{
    const HnContents *c = v != NULL ? hn_types_contents(f->t, v) : NULL;
    gboolean known = TRUE;
    for (int i = 0; c != NULL && i < c->n; i++) {
        known = known && c->d[i].known;
        if (!c->d[i].known && c->d[i].sym == NULL)
            return FALSE;
    }
    return c != NULL && !known;
}

HnValue *hn_fix_list(HnFix *f, const int64_t *x, int n)
{
    return hn_build_list(&f->b, x, n);
}

/* x[i] = a[i] * n + b[i]; FALSE: it is something else. */
gboolean hn_fix_linear(const HnFix *f, HnDim d, int64_t *a, int64_t *b)
{
    int64_t at_1, far;
    if (!hn_fix_number_of(f, d, 0, b) || !hn_fix_number_of(f, d, 1, &at_1) || !hn_fix_number_of(f, d, 1000, &far))
        return FALSE;
    *a = at_1 - *b;
    return far == *b + 1000 * *a;
}

/* The integers c, of rank 1, as a value. NULL: they are no sums of multiples of n. */
static HnValue *compute(HnFix *f, const HnContents *c)
{
    int64_t a[HN_CONTENTS_MAX], b[HN_CONTENTS_MAX];
    for (int i = 0; i < c->n; i++)
        if (!hn_fix_linear(f, c->d[i], &a[i], &b[i]))
            return NULL;
    HnValue *x = f->length;
    if (c->n > 1 || a[0] != 1)
        x = hn_build_op2(&f->b, "Mul", x, hn_fix_list(f, a, c->n));
    return c->n > 1 || b[0] != 0 ? hn_build_op2(&f->b, "Add", x, hn_fix_list(f, b, c->n)) : x;
}

/* What stands for v, whose elements follow from n, in a calculation. */
HnValue *hn_fix_computed(HnFix *f, const HnValue *v)
{
    HnValue *x = g_hash_table_lookup(f->computed, v);
    const HnContents *c = hn_types_contents(f->t, v);
    const HnDtype dtype = hn_type_dtype(hn_types_get(f->t, v));
    if (x != NULL || (x = compute(f, c)) == NULL)
        return x;
    if (c->rank == 0)
        x = hn_build_reshape(&f->b, x, NULL, 0);
    if (dtype != HN_I64)
        x = hn_build_cast(&f->b, x, dtype);
    g_hash_table_insert(f->computed, (gpointer)v, x);
    return x;
}

/* Inputs from i on are shapes and bounds: what they are when the caches are full. */
gboolean hn_fix_settle_shape(HnFix *f, HnNode *n, int i)
{
    for (; i < (int)n->in->len; i++) {
        HnValue *v = hn_node_in(n, i);
        int64_t x[HN_CONTENTS_MAX];
        const HnContents *c = v != NULL ? hn_types_contents(f->t, v) : NULL;
        if (v == NULL || hn_types_value(f->t, v) != NULL)
            continue;
        if (c == NULL)
            return hn_fix_refuse(f, n, "a size is computed of something else than sizes");
        for (int k = 0; k < c->n; k++)
            if (!hn_fix_number_of(f, c->d[k], f->rows, &x[k]))
                return hn_fix_refuse(f, n, "a size is not known");
        hn_node_set_in(n, i, hn_fix_list(f, x, c->n));
    }
    return TRUE;
}

gboolean hn_fix_settle_numbers(HnFix *f, HnNode *n)
{
    for (int i = 0; i < (int)n->in->len; i++) {
        HnValue *v = hn_node_in(n, i), *x = hn_fix_follows(f, v) ? hn_fix_computed(f, v) : v;
        if (v != NULL && x == NULL)
            return hn_fix_refuse(f, n, "an integer that does not grow in even steps");
        if (x != v)
            hn_node_set_in(n, i, x);
    }
    return TRUE;
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

HnValue *hn_fix_counting(HnFix *f, HnDtype dtype, int64_t n, double start, double delta)
{
    HnTensor *t = hn_tensor_new(dtype, 1, &n, f->o->budget, &f->error);
    for (int64_t i = 0; t != NULL && i < n; i++)
        hn_tensor_set_f64(t, i, start + delta * (double)i);
    return t != NULL ? hn_build_constant(&f->b, "range", t) : NULL;
}

/* bool[capacity]: the rows that are filled behind the step. */
HnValue *hn_fix_filled(HnFix *f)
{
    if (f->filled == NULL) {
        HnValue *rows = hn_fix_counting(f, HN_I64, f->o->capacity, 0, 1);
        HnValue *end = hn_build_op2(&f->b, "Add", f->length, hn_fix_list(f, &f->o->step, 1));
        f->filled = rows != NULL ? hn_build_op2(&f->b, "Less", rows, end) : NULL;
    }
    return f->filled;
}

/* x, whose last axis grows, with -inf behind the filled part. */
HnValue *hn_fix_masked(HnFix *f, HnValue *x)
{
    HnValue *y = g_hash_table_lookup(f->masked, x);
    if (y != NULL)
        return y;
    HnTensor *t = hn_tensor_new(hn_type_dtype(hn_types_get(f->t, x)), 0, NULL, f->o->budget, &f->error);
    HnValue *rows = hn_fix_filled(f);
    if (t == NULL || rows == NULL) {
        hn_tensor_unref(t);
        return NULL;
    }
    hn_tensor_set_f64(t, 0, -INFINITY);
    y = hn_build_op3(&f->b, "Where", rows, x, hn_build_constant(&f->b, "masked", t));
    g_hash_table_insert(f->masked, x, y);
    return y;
}

/* --- the caches --------------------------------------------------------------------------------------------------- */

static const HnCachePair *pair_of(const HnFix *f, const HnNode *n)
{
    for (int i = 0; i < f->o->n_pairs; i++)
        if (hn_node_out(n, 0) != NULL && strcmp(hn_node_out(n, 0)->name, f->o->pairs[i].out) == 0)
            return &f->o->pairs[i];
    return NULL;
}

/* i64[batch], n for each of them */
static HnValue *places(HnFix *f, int64_t batch)
{
    return batch == 1 ? f->length : hn_build_op2(&f->b, "Expand", f->length, hn_fix_list(f, &batch, 1));
}

/* New rows are written into the cache instead of put behind it. */
static gboolean writes(HnFix *f, HnNode *n, const HnCachePair *pair)
{
    const HnConcat *p = n->params;
    HnValue *past = hn_node_in(n, 0), *rows = hn_node_in(n, 1), *present = hn_node_out(n, 0);
    if (n->op != &hn_op_concat || n->in->len != 2 || strcmp(past->name, pair->in) != 0 || !past->is_input)
        return hn_fix_refuse(f, n, "it is not the cache with new rows behind it");
    const int axis = hn_fix_axis_of(p->axis, hn_fix_rank_of(f, present));
    const HnDim batch = hn_fix_dim_of(f, present, 0);
    if (axis < 1 || hn_fix_grown(f, present) != axis || hn_fix_grown(f, rows) != HN_NO_AXIS || !batch.known)
        return hn_fix_refuse(f, n, "its rows are not where it grows");
    HnNode *write = hn_build_node(&f->b, "TensorScatter", NULL, 3,
                                  (HnValue *[]){ past, rows, batch.n == 1 ? f->length : places(f, batch.n) }, 0);
    hn_node_set_int(write, "axis", axis);
    hn_node_set_out(write, 0, present);
    g_hash_table_insert(f->tails, present, GINT_TO_POINTER(HN_TAIL_FINITE));
    return TRUE;
}

/* --- all nodes ---------------------------------------------------------------------------------------------------- */

static gboolean any_grown(const HnFix *f, const HnNode *n, gboolean *bad)
{
    gboolean any = FALSE;
    for (guint i = 0; i < n->in->len + n->out->len; i++) {
        const HnValue *v = i < n->in->len ? hn_node_in(n, (int)i) : hn_node_out(n, (int)(i - n->in->len));
        const int axis = hn_fix_grown(f, v);
        any = any || axis >= 0;
        *bad = *bad || axis == HN_BAD_AXIS;
    }
    return any;
}

static gboolean any_follows(const HnFix *f, const HnNode *n)
{
    g_autoptr(GPtrArray) reads = hn_node_reads(n);
    for (guint i = 0; i < reads->len; i++)
        if (hn_fix_follows(f, reads->pdata[i]))
            return TRUE;
    return FALSE;
}

/* Shapes and what is computed of them: whoever reads it reads something else. */
static gboolean all_follow(const HnFix *f, const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL && hn_types_contents(f->t, n->out->pdata[k]) == NULL)
            return FALSE;
    return TRUE;
}

/* Integers that follow from sizes, and are numbers: the sizes that they follow from may not stay. */
static gboolean settle_results(HnFix *f, HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++) {
        HnValue *v = hn_node_out(n, (int)k);
        const HnContents *c = v != NULL ? hn_types_contents(f->t, v) : NULL;
        if (c == NULL || hn_fix_follows(f, v) || v->is_output)
            continue;
        const int64_t size = c->n;
        HnTensor *t = hn_tensor_new(hn_type_dtype(hn_types_get(f->t, v)), c->rank, &size, f->o->budget, &f->error);
        gboolean known = t != NULL;
        for (int i = 0; known && i < c->n; i++) {
            known = c->d[i].known;
            hn_tensor_set_i64(t, i, c->d[i].n);
        }
        if (!known) {
            hn_tensor_unref(t);
            return hn_fix_refuse(f, n, "a size is not known");
        }
        HnValue *x = hn_build_constant(&f->b, "size", t);
        hn_types_set_value(f->t, x, t);
        hn_value_replace(v, x);
    }
    return TRUE;
}

static gboolean fix_node(HnFix *f, HnNode *n)
{
    gboolean bad = FALSE;
    const HnCachePair *pair = pair_of(f, n);
    f->b.before = n;
    if (n->op == NULL)
        return hn_fix_refuse(f, n, "its shapes are not known");
    if (pair != NULL)
        return writes(f, n, pair);
    if (all_follow(f, n))
        return n->in->len == 0 || settle_results(f, n);
    const gboolean any = any_grown(f, n, &bad), numbers = any_follows(f, n);
    if (bad)
        return hn_fix_refuse(f, n, "a size is neither a number nor that of the caches");
    if (!any && !numbers)
        return TRUE;
    const HnFixRule rule =
        any || n->op == &hn_op_range || n->op == &hn_op_slice ? hn_fix_rule_of(n) : hn_fix_settle_numbers;
    if (rule == NULL || (n->op->flags & HN_OP_CONTROL) != 0)
        return hn_fix_refuse(f, n, "it is not known what it does with an axis that grows");
    return rule(f, n);
}

static gboolean fix_nodes(HnFix *f)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    for (guint i = 0; i < f->g->nodes->len; i++)
        g_ptr_array_add(nodes, f->g->nodes->pdata[i]);
    for (guint i = 0; i < nodes->len; i++)
        if (!fix_node(f, nodes->pdata[i]))
            return FALSE;
    for (guint i = f->g->nodes->len; i-- > 0;)
        if (!hn_node_is_read(f->g->nodes->pdata[i]))
            hn_graph_remove_node(f->g, f->g->nodes->pdata[i]);
    return TRUE;
}

static gboolean is_cache(const HnFix *f, const char *name)
{
    for (int i = 0; i < f->o->n_pairs; i++)
        if (strcmp(f->o->pairs[i].in, name) == 0 || strcmp(f->o->pairs[i].out, name) == 0)
            return TRUE;
    return FALSE;
}

static gboolean check_outputs(HnFix *f)
{
    for (guint k = 0; k < f->g->outputs->len; k++) {
        const HnValue *v = f->g->outputs->pdata[k];
        if (is_cache(f, v->name) || (hn_fix_grown(f, v) == HN_NO_AXIS && !hn_fix_follows(f, v)))
            continue;
        g_set_error(&f->error, HN_ERROR, HN_ERROR_UNSUPPORTED, "output '%s' grows", v->name);
        return FALSE;
    }
    return TRUE;
}

/* The type with room for the whole capacity. */
static HnType *with_room(const HnFix *f, const HnType *t, gboolean cache)
{
    HnDim dims[HN_MAX_RANK];
    int64_t n;
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i].known                                         ? t->dims[i]
                  : cache                                                  ? hn_dim(f->o->capacity)
                  : hn_fix_number_of(f, t->dims[i], f->rows, &n) && n >= 0 ? hn_dim(n)
                                                                           : hn_dim_unknown();
    return hn_type_tensor(t->dtype, t->rank, dims);
}

static gboolean fix_inputs(HnFix *f)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new();
    for (guint i = 0; i < f->g->inputs->len; i++)
        g_ptr_array_add(inputs, f->g->inputs->pdata[i]);
    for (guint i = 0; i < inputs->len; i++) {
        HnValue *v = inputs->pdata[i];
        const HnType *t = hn_types_get(f->t, v);
        if (v == f->length || !hn_type_is_tensor(t) || t->rank < 0)
            continue;
        g_autoptr(HnType) room = with_room(f, t, is_cache(f, v->name));
        hn_value_set_type(v, room);
    }
    return TRUE;
}

/* Attention that is written out reads repeated heads as they are, and not what is behind the filled part. */
static gboolean fuse(HnModel *m, HnBudget *budget, GError **error)
{
    static const char *const only[] = { "eliminate-identity",   "eliminate-nop",
                                        "eliminate-expand",     "merge-views",
                                        "merge-transposes",     "fuse-attention",
                                        "fuse-rotary",          "simplify-shapes",
                                        "fold-constants",       "eliminate-unused-output",
                                        "transpose-to-reshape", "merge-matmuls",
                                        "merge-products",       NULL };
    HnPassLog log;
    hn_pass_log_init(&log);
    const HnPassOptions o = { .level = 2, .only = only, .fold_bytes = HN_FOLD_BYTES, .budget = budget };
    const gboolean ok = hn_pass_run(m, &o, &log, error);
    hn_pass_log_clear(&log);
    return ok;
}

/* Caches become weights, which nobody may take for constants before. */
static gboolean make_weights(HnModel *m, const HnFixedCache *o, GError **error)
{
    HnGraph *g = m->graph;
    for (int i = 0; i < o->n_pairs; i++) {
        HnValue *v = hn_graph_find(g, o->pairs[i].in);
        int64_t dims[HN_MAX_RANK];
        g_autoptr(HnTensor) zeros = hn_type_is_fixed(v->type, dims)
                                        ? hn_tensor_new(v->type->dtype, v->type->rank, dims, o->budget, error)
                                        : NULL;
        if (zeros == NULL)
            return FALSE;
        for (guint k = g->inputs->len; k-- > 0;)
            if (g->inputs->pdata[k] == v)
                hn_graph_remove_input(g, (int)k);
        hn_graph_add_weight(g, v, zeros);
    }
    return TRUE;
}

/* To the opset in which caches are written, and attention is one operator. */
static gboolean raise_opset(HnModel *m, GError **error)
{
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    return hn_model_opset(m, "") >= CACHE_OPSET || hn_convert_opset(m, CACHE_OPSET, blocked, error);
}

static gboolean infer(HnFix *f)
{
    hn_pass_forget_types(f->g);
    for (guint i = 0; i < f->g->inputs->len; i++) {
        HnValue *v = f->g->inputs->pdata[i];
        if (f->o->types[i] == NULL)
            continue;
        hn_value_set_type(v, f->o->types[i]);
        if (!is_cache(f, v->name))
            g_hash_table_insert(f->tails, v, GINT_TO_POINTER(HN_TAIL_ZERO));
    }
    return hn_types_graph(f->t, f->g, HN_TENSOR_SMALL, 0, &f->error);
}

gboolean hn_fix_cache(HnModel *m, const HnFixedCache *o, const char **length, GError **error)
{
    HnFix f = { .o = o, .g = m->graph, .t = hn_types_new(m), .rows = o->capacity - o->step };
    int64_t rows = 0;
    const HnDim one = hn_dim(1);
    f.b = (HnBuild){ .graph = f.g };
    f.past = hn_dim_symbol(HN_PAST_ROWS);
    f.total = hn_dim_add(f.past, hn_dim(o->step));
    f.names = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_insert(f.names, (gpointer)HN_PAST_ROWS, &rows);
    f.tails = g_hash_table_new(NULL, NULL);
    f.masked = g_hash_table_new(NULL, NULL);
    f.computed = g_hash_table_new(NULL, NULL);
    hn_types_set_budget(f.t, o->budget);
    gboolean ok = raise_opset(m, &f.error) && infer(&f);
    if (ok) {
        g_autoptr(HnType) t = hn_type_tensor(HN_I64, 1, &one);
        f.length = hn_graph_new_value(f.g, HN_PAST_ROWS);
        hn_value_set_type(f.length, t);
        hn_graph_add_input(f.g, f.length);
        *length = f.length->name;
        ok = check_outputs(&f) && fix_nodes(&f) && fix_inputs(&f) && fuse(m, o->budget, &f.error) &&
             make_weights(m, o, &f.error);
    }
    g_hash_table_unref(f.names);
    g_hash_table_unref(f.tails);
    g_hash_table_unref(f.masked);
    g_hash_table_unref(f.computed);
    hn_types_free(f.t);
    if (f.error != NULL)
        g_propagate_error(error, f.error);
    return ok;
}
