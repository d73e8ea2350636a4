/*
 * Planning, part 2a: what a file spells out as several nodes and is one operator: LayerNormalization, RMSNormalization,
 * Softmax, RowLookup, and Slice for channels that are shuffled and then picked. Element-wise functions are recognised
 * inside of groups instead.
 *
 * The nodes become a group of the operator's record, with parameters of its own; the model stays as it is. Where no
 * kernel takes that, each node gets its own step again.
 */
#include <math.h>
#include <string.h>

#include "op/gather.h"
#include "op/layernorm.h"
#include "op/ops.h"
#include "op/reduce.h"
#include "op/slice.h"
#include "op/softmax.h"
#include "op/transpose.h"
#include "run/plan.h"

#define MOST 16 /* nodes of a pattern */

typedef struct {
    HnPlan *p;
    GHashTable *index; /* live nodes of the plan that no pattern has yet -> 1 + index */
    const HnNode *node[MOST];
    int n;
} Match;

/* --- steps from node to node; each that leads to a node notes it ----------------------------------------------------
 */

static gboolean note(Match *m, const HnNode *n)
{
    for (int i = 0; i < m->n; i++)
        if (m->node[i] == n)
            return TRUE;
    if (m->n == MOST || !g_hash_table_contains(m->index, n))
        return FALSE;
    m->node[m->n++] = n;
    return TRUE;
}

/* The node that makes v, an `op`. */
static const HnNode *made_by(Match *m, const HnValue *v, const HnOp *op)
{
    const HnNode *n = v != NULL ? v->producer : NULL;
    return n != NULL && n->op == op && note(m, n) ? n : NULL;
}

/* The only node that reads v, an `op`. */
static const HnNode *only_reader(Match *m, const HnValue *v, const HnOp *op)
{
    const HnNode *n = v != NULL && v->users->len == 1 && !v->is_output ? v->users->pdata[0] : NULL;
    return n != NULL && n->op == op && n->graph == v->graph && note(m, n) ? n : NULL;
}

static HnValue *other_input(const HnNode *n, const HnValue *v)
{
    return hn_node_in(n, 0) == v ? hn_node_in(n, 1) : hn_node_in(n, 0);
}

static gboolean number_of(const Match *m, const HnValue *v, double *number)
{
    const HnTensor *t = v != NULL ? hn_types_value(m->p->types, v) : NULL;
    if (t == NULL || t->n != 1)
        return FALSE;
    *number = hn_tensor_get_f64(t, 0);
    return TRUE;
}

/* The value as [outer, n, inner] around the axes that r, which keeps them, reduces. */
static gboolean rows_of(const Match *m, const HnNode *r, int64_t rows[3])
{
    const HnReduce *params = r->params;
    const HnValue *axes = hn_node_in(r, 1), *x = hn_node_in(r, 0);
    const HnType *t = hn_types_get(m->p->types, x);
    const HnTensor *known = axes != NULL ? hn_types_value(m->p->types, axes) : NULL;
    int64_t dims[HN_MAX_RANK];
    if (!params->keepdims || t == NULL || t->dtype != HN_F32 || !hn_type_is_fixed(t, dims) ||
        (axes != NULL && known == NULL))
        return FALSE;
    HnTensor *like = hn_tensor_new_borrowed(HN_F32, t->rank, dims, NULL);
    gboolean ok = hn_reduce_rows(params, like, known, rows) && like->n > 0;
    hn_tensor_unref(like);
    return ok;
}

static gboolean same_rows(const Match *m, const HnNode *a, const HnNode *b)
{
    int64_t x[3], y[3];
    return rows_of(m, a, x) && rows_of(m, b, y) && memcmp(x, y, sizeof x) == 0;
}

/* Nobody but the pattern's nodes reads what they make, the last one's result apart. */
static gboolean is_closed(const Match *m, const HnNode *last)
{
    for (int i = 0; i < m->n; i++) {
        const HnValue *v = hn_node_out(m->node[i], 0);
        if (m->node[i] == last)
            continue;
        if (v->is_output || hn_plan_needed_behind(m->p, v))
            return FALSE;
        for (guint u = 0; u < v->users->len; u++) {
            gboolean inside = FALSE;
            for (int k = 0; k < m->n && !inside; k++)
                inside = m->node[k] == v->users->pdata[u];
            if (!inside)
                return FALSE;
        }
    }
    return TRUE;
}

static gint by_index(gconstpointer a, gconstpointer b, gpointer index)
{
    return GPOINTER_TO_INT(g_hash_table_lookup(index, *(gpointer const *)a)) -
           GPOINTER_TO_INT(g_hash_table_lookup(index, *(gpointer const *)b));
}

/* The nodes become one, of up to three inputs; takes params. */
static void found(Match *m, const HnOp *op, gpointer params, HnValue *x, HnValue *scale, HnValue *bias)
{
    GPtrArray *group = g_ptr_array_new();
    for (int i = 0; i < m->n; i++)
        g_ptr_array_add(group, (gpointer)m->node[i]);
    g_ptr_array_sort_with_data(group, by_index, m->index);
    HnLowered *l = g_new0(HnLowered, 1);
    *l = (HnLowered){ .op = op,
                      .params = params,
                      .in = { x, scale, bias },
                      .n_in = bias != NULL    ? 3
                              : scale != NULL ? 2
                                              : 1 };
    g_hash_table_insert(m->p->lowered, group->pdata[group->len - 1], l);
    for (guint i = 0; i < group->len; i++) {
        g_hash_table_remove(m->index, group->pdata[i]);
        g_hash_table_insert(m->p->groups, group->pdata[i], g_ptr_array_ref(group));
    }
    g_ptr_array_unref(group);
}

void hn_lowered_free(gpointer data)
{
    HnLowered *l = data;
    g_free(l->params);
    g_free(l);
}

/* --- normalisations --------------------------------------------------------------------------------------------------
 */

/* v is d^2: d. */
static HnValue *root_of_square(Match *m, const HnValue *v)
{
    double exponent;
    const HnNode *n = made_by(m, v, &hn_op_mul);
    if (n != NULL)
        return hn_node_in(n, 0) == hn_node_in(n, 1) ? hn_node_in(n, 0) : NULL;
    n = made_by(m, v, &hn_op_pow);
    return n != NULL && number_of(m, hn_node_in(n, 1), &exponent) && exponent == 2 ? hn_node_in(n, 0) : NULL;
}

/* From the variance to the product of 1 / sqrt(variance + epsilon) with something, which is *numerator. */
static const HnNode *normalised(Match *m, const HnNode *variance, double *epsilon, HnValue **numerator)
{
    double number;
    const HnValue *v = hn_node_out(variance, 0);
    const HnNode *sum = only_reader(m, v, &hn_op_add), *n;
    if (sum == NULL || !number_of(m, other_input(sum, v), epsilon))
        return NULL;
    v = hn_node_out(sum, 0);
    if ((n = only_reader(m, v, &hn_op_sqrt)) != NULL) {
        v = hn_node_out(n, 0);
        const HnNode *inverse = only_reader(m, v, &hn_op_reciprocal);
        const HnNode *quotient = inverse == NULL ? only_reader(m, v, &hn_op_div) : NULL;
        if (quotient != NULL && hn_node_in(quotient, 1) == v) {
            if (!number_of(m, hn_node_in(quotient, 0), &number)) {
                *numerator = hn_node_in(quotient, 0);
                return quotient;
            }
            inverse = number == 1 ? quotient : NULL;
        }
        if (inverse == NULL)
            return NULL;
        v = hn_node_out(inverse, 0);
    } else if ((n = only_reader(m, v, &hn_op_pow)) != NULL) {
        if (hn_node_in(n, 0) != v || !number_of(m, hn_node_in(n, 1), &number) || number != -0.5)
            return NULL;
        v = hn_node_out(n, 0);
    } else {
        return NULL;
    }
    if ((n = only_reader(m, v, &hn_op_mul)) != NULL)
        *numerator = other_input(n, v);
    return n;
}

/* v is a constant with an element for each of the last `cols` of a row, which is several axes long: at most axes. */
static gboolean is_row(const Match *m, const HnValue *v, const HnType *x, int axis)
{
    const HnTensor *t = v != NULL ? hn_types_value(m->p->types, v) : NULL;
    if (t == NULL || t->dtype != HN_F32 || t->ndim > x->rank || t->ndim < x->rank - axis)
        return FALSE;
    for (int i = 1; i <= t->ndim; i++)
        if (t->dims[t->ndim - i] != (i <= x->rank - axis ? x->dims[x->rank - i].n : 1))
            return FALSE;
    return TRUE;
}

/* A node behind `last`, reading nothing but its result and a constant row: *row. `last` itself where there is none. */
static const HnNode *with_row(Match *m, const HnNode *last, const HnOp *op, const HnType *x, int axis, HnValue **row)
{
    const int n = m->n;
    const HnValue *v = hn_node_out(last, 0);
    const HnNode *next = only_reader(m, v, op);
    if (next != NULL && is_row(m, other_input(next, v), x, axis)) {
        *row = other_input(next, v);
        return next;
    }
    m->n = n;
    return last;
}

/* `variance` may be the mean of the squares of something. */
static void match_norm(Match *m, const HnNode *variance)
{
    double epsilon;
    int64_t rows[3];
    HnValue *numerator = NULL, *x, *scale = NULL, *bias = NULL;
    if (!note(m, variance) || !rows_of(m, variance, rows) || rows[2] != 1)
        return;
    HnValue *d = root_of_square(m, hn_node_in(variance, 0));
    const HnNode *last = d != NULL ? normalised(m, variance, &epsilon, &numerator) : NULL;
    if (last == NULL)
        return;
    /* d = x - mean: centred, where the mean is over the same; d may be spelled out twice */
    const int n = m->n;
    const HnNode *sub = made_by(m, d, &hn_op_sub);
    const HnNode *mean = sub != NULL ? made_by(m, hn_node_in(sub, 1), &hn_op_reducemean) : NULL;
    const gboolean centred = mean != NULL && hn_node_in(mean, 0) == hn_node_in(sub, 0) && same_rows(m, mean, variance);
    if (!centred)
        m->n = n;
    x = centred ? hn_node_in(sub, 0) : d;
    if (numerator != d) {
        const HnNode *again = centred ? made_by(m, numerator, &hn_op_sub) : NULL;
        if (again == NULL || hn_node_in(again, 0) != x || hn_node_in(again, 1) != hn_node_in(sub, 1))
            return;
    }
    const HnType *t = hn_types_get(m->p->types, x);
    int axis = t->rank - 1;
    for (int64_t cols = t->dims[axis].n; axis > 0 && cols < rows[1]; axis--)
        cols *= t->dims[axis - 1].n;
    last = with_row(m, last, &hn_op_mul, t, axis, &scale);
    if (centred && scale != NULL)
        last = with_row(m, last, &hn_op_add, t, axis, &bias);
    if (!is_closed(m, last))
        return;
    HnLayerNorm *params = g_new0(HnLayerNorm, 1);
    *params = (HnLayerNorm){ .axis = axis, .epsilon = (float)epsilon, .stash = HN_F32 };
    found(m, centred ? &hn_op_layernormalization : &hn_op_rmsnormalization, params, x, scale, bias);
}

/* --- softmax ---------------------------------------------------------------------------------------------------------
 */

/* `most` may be the largest number of each row. */
static void match_softmax(Match *m, const HnNode *most)
{
    int64_t rows[3], again[3];
    if (!note(m, most) || !rows_of(m, most, rows))
        return;
    HnValue *x = hn_node_in(most, 0);
    const HnNode *sub = only_reader(m, hn_node_out(most, 0), &hn_op_sub);
    const HnNode *e = sub != NULL && hn_node_in(sub, 0) == x ? only_reader(m, hn_node_out(sub, 0), &hn_op_exp) : NULL;
    if (e == NULL)
        return;
    const HnValue *v = hn_node_out(e, 0);
    const HnNode *sum = NULL, *last = NULL;
    for (guint i = 0; i < v->users->len && v->users->len == 2; i++) {
        const HnNode *u = v->users->pdata[i];
        if (u->op == &hn_op_reducesum && note(m, u))
            sum = u;
    }
    last = sum != NULL ? only_reader(m, hn_node_out(sum, 0), &hn_op_div) : NULL;
    if (last == NULL || hn_node_in(last, 0) != v || !rows_of(m, sum, again) || memcmp(rows, again, sizeof rows) != 0 ||
        !is_closed(m, last))
        return;
    /* one axis has all the row's elements */
    const HnType *t = hn_types_get(m->p->types, x);
    int axis = 0;
    int64_t before = 1;
    while (axis < t->rank && (before != rows[0] || t->dims[axis].n != rows[1]))
        before *= t->dims[axis++].n;
    if (axis == t->rank)
        return;
    HnSoftmax *params = g_new0(HnSoftmax, 1);
    params->axis = axis;
    found(m, &hn_op_softmax, params, x, NULL, NULL);
}

/* --- channel shuffles ------------------------------------------------------------------------------------------------
 *
 * [N, C, S...] seen as [N * C/g, g, S], turned into [g, N * C/g, S] and seen as [g, N, C/g, S...], of which Gather k
 * takes channels k, k + g, ... */

/* Dims of a value of f32; 0: of another type or not fixed. */
static int dims_of(const Match *m, const HnValue *v, int64_t *dims)
{
    const HnType *t = v != NULL ? hn_types_get(m->p->types, v) : NULL;
    return t != NULL && t->dtype == HN_F32 && hn_type_is_fixed(t, dims) ? t->rank : 0;
}

/* n takes piece k < g of axis 0 of v, which is what it makes: every g-th channel of x. */
static gboolean picks(const Match *m, const HnNode *n, const HnValue *v, int rank, const int64_t *x, int64_t g,
                      int64_t *k)
{
    double index;
    int64_t dims[HN_MAX_RANK], whole[HN_MAX_RANK];
    if (n->op != &hn_op_gather || hn_node_in(n, 0) != v || ((const HnGather *)n->params)->axis != 0 ||
        !number_of(m, hn_node_in(n, 1), &index) || dims_of(m, v, whole) != rank + 1 || whole[0] != g ||
        dims_of(m, hn_node_out(n, 0), dims) != rank || index < (double)-g || index >= (double)g)
        return FALSE;
    *k = (int64_t)index + (index < 0 ? g : 0);
    gboolean ok = TRUE;
    for (int i = 0; i < rank && ok; i++)
        ok = dims[i] == (i == 1 ? x[1] / g : x[i]) && whole[i + 1] == dims[i];
    return ok;
}

static HnSlice *every(int64_t first, int64_t step)
{
    HnSlice *s = g_malloc0(sizeof *s + 4 * sizeof(int64_t));
    int64_t *bounds = (int64_t *)(void *)(s + 1);
    bounds[0] = first;
    bounds[1] = G_MAXINT64;
    bounds[2] = 1;
    bounds[3] = step;
    s->starts = bounds;
    s->ends = bounds + 1;
    s->axes = bounds + 2;
    s->steps = bounds + 3;
    s->n = s->n_ends = s->n_axes = 1;
    return s;
}

/* Nobody outside the plan reads what n makes. */
static gboolean inner(const Match *m, const HnNode *n)
{
    const HnValue *v = hn_node_out(n, 0);
    return !v->is_output && !hn_plan_needed_behind(m->p, v);
}

/* `turn` may be the turning. Each Gather becomes a Slice; the last takes the nodes before it along. */
static void match_shuffle(Match *m, const HnNode *turn)
{
    const HnTranspose *p = turn->params;
    int64_t x[HN_MAX_RANK], split[HN_MAX_RANK], k, spatial = 1;
    if (p->perm == NULL || !note(m, turn))
        return;
    const HnNode *before = made_by(m, hn_node_in(turn, 0), &hn_op_reshape);
    const HnNode *behind = only_reader(m, hn_node_out(turn, 0), &hn_op_reshape);
    const int rank = before != NULL ? dims_of(m, hn_node_in(before, 0), x) : 0;
    if (rank < 3 || rank > 5 || behind == NULL || dims_of(m, hn_node_in(turn, 0), split) != 3 || p->perm[0] != 1 ||
        p->perm[1] != 0)
        return;
    for (int i = 2; i < rank; i++)
        spatial *= x[i];
    const int64_t g = split[1];
    const HnValue *v = hn_node_out(behind, 0);
    if (split[2] != spatial || g < 2 || x[1] % g != 0 || x[1] == 0 || v->users->len == 0)
        return;
    const HnNode *last = NULL;
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *n = v->users->pdata[i];
        if (!picks(m, n, v, rank, x, g, &k) || !note(m, n))
            return;
        if (last == NULL || by_index(&n, &last, m->index) > 0)
            last = n;
    }
    if (!inner(m, before) || !inner(m, turn) || !inner(m, behind) || hn_node_out(before, 0)->users->len != 1)
        return;
    m->n = 3; /* turn, before, behind */
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *n = v->users->pdata[i];
        Match one = { .p = m->p, .index = m->index, .node = { n }, .n = 1 };
        (void)picks(m, n, v, rank, x, g, &k);
        if (n != last)
            found(&one, &hn_op_slice, every(k, g), hn_node_in(before, 0), NULL, NULL);
    }
    (void)picks(m, last, v, rank, x, g, &k);
    (void)note(m, last);
    found(m, &hn_op_slice, every(k, g), hn_node_in(before, 0), NULL, NULL);
}

/* --- rows of a table -------------------------------------------------------------------------------------------------
 */

/* v is 0, 1, 2, ... along its last axis, the others are of size 1. */
static gboolean counts_up(const Match *m, const HnValue *v, int64_t n)
{
    const HnTensor *t = v != NULL ? hn_types_value(m->p->types, v) : NULL;
    if (t == NULL || t->ndim == 0 || t->n != n || t->dims[t->ndim - 1] != n)
        return FALSE;
    for (int64_t i = 0; i < n; i++)
        if (hn_tensor_get_i64(t, i) != i)
            return FALSE;
    return TRUE;
}

static gboolean is_finite(const HnTensor *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if (!isfinite(hn_tensor_get_f64(t, i)))
            return FALSE;
    return TRUE;
}

/* The elements of v where they are constant, be it as integers that have not been unpacked. */
static HnTensor *constant(const Match *m, const HnValue *v)
{
    HnTensor *t = v != NULL ? hn_types_value(m->p->types, v) : NULL;
    return t != NULL ? hn_tensor_ref(t) : v != NULL ? hn_plan_deferred(m->p, v, NULL, NULL) : NULL;
}

/* `product` may be that of a one-hot matrix, compared and cast, with constant rows. */
static void match_lookup(Match *m, const HnNode *product)
{
    HnValue *rows = hn_node_in(product, 1);
    if (!note(m, product))
        return;
    const HnNode *cast = made_by(m, hn_node_in(product, 0), &hn_op_cast);
    const HnNode *equal = cast != NULL ? made_by(m, hn_node_in(cast, 0), &hn_op_equal) : NULL;
    g_autoptr(HnTensor) table = equal != NULL ? constant(m, rows) : NULL;
    if (table == NULL || table->ndim != 2 || table->dtype != HN_F32 || table->n == 0)
        return;
    const int k = counts_up(m, hn_node_in(equal, 0), table->dims[0]) ? 1 : 0;
    HnValue *x = hn_node_in(equal, k);
    const HnType *t = x != NULL ? hn_types_get(m->p->types, x) : NULL;
    if (!counts_up(m, hn_node_in(equal, 1 - k), table->dims[0]) || t == NULL || !hn_type_is_fixed(t, NULL) ||
        (t->dtype != HN_I32 && t->dtype != HN_I64) || t->rank < 1 || t->dims[t->rank - 1].n != 1 ||
        hn_types_value(m->p->types, hn_node_in(equal, 1 - k))->ndim > t->rank || !is_closed(m, product) ||
        !is_finite(table))
        return;
    found(m, &hn_op_rowlookup, NULL, rows, x, NULL);
}

void hn_plan_lower(HnPlan *p, const gboolean *live)
{
    const HnBackend *b = p->exec->env->backend;
    g_autoptr(GHashTable) index = g_hash_table_new(NULL, NULL);
    for (int i = p->start; i < p->end; i++) {
        HnNode *n = p->exec->graph->nodes->pdata[i];
        const HnValue *v = hn_node_out(n, 0);
        if (live[i - p->start] && n->op != NULL && v != NULL && hn_types_value(p->types, v) == NULL)
            g_hash_table_insert(index, n, GINT_TO_POINTER(i + 1));
    }
    for (int i = p->start; i < p->end; i++) {
        const HnNode *n = p->exec->graph->nodes->pdata[i];
        Match m = { .p = p, .index = index };
        if (n->op == &hn_op_reducemean && b->kernels(&hn_op_layernormalization) != NULL)
            match_norm(&m, n);
        else if (n->op == &hn_op_reducemax && b->kernels(&hn_op_softmax) != NULL)
            match_softmax(&m, n);
        else if (n->op == &hn_op_matmul && b->kernels(&hn_op_rowlookup) != NULL)
            match_lookup(&m, n);
        else if (n->op == &hn_op_transpose && b->kernels(&hn_op_slice) != NULL)
            match_shuffle(&m, n);
    }
}

gboolean hn_plan_is_lowered(const HnPlan *p, const HnNode *n)
{
    const GPtrArray *group = g_hash_table_lookup(p->groups, n);
    return group != NULL && g_hash_table_contains(p->lowered, group->pdata[group->len - 1]);
}

HnStep *hn_plan_lowered_step(HnPlan *p, const HnLowered *l, const HnNode *last, GError **error)
{
    const HnValue *v = hn_node_out(last, 0);
    HnStep *s = hn_step_new(p, last, l->n_in, 0, 1);
    s->op = l->op;
    s->params = l->params;
    gboolean ok = TRUE;
    ok = (s->out[0].slot = hn_plan_result_slot(p, v, hn_types_get(p->types, v), error)) != NULL;
    const gboolean bytes = ok && hn_plan_bytes_through(p, l->op, l->in[0], v, s->out[0].slot);
    for (int i = 0; i < l->n_in && ok; i++) {
        ok = l->in[i] == NULL || (s->in[i].slot = hn_plan_slot(p, l->in[i], error)) != NULL;
        if (ok && l->in[i] != NULL && (i > 0 || !bytes))
            ok = (s->in[i].slot = hn_plan_numbers(p, l->in[i], s->in[i].slot, error)) != NULL;
    }
    s->refusals = g_ptr_array_new();
    if (ok && (s->kernel = hn_plan_ask_kernels(p, s)) != NULL)
        return s;
    if (bytes)
        g_hash_table_remove(p->held, v);
    hn_step_free(s);
    return NULL;
}
