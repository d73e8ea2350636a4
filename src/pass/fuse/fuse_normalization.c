/*
 * LayerNormalization (opset 17), RMSNormalization (23) and InstanceNormalization where they are spelled out:
 *     d = x - mean(x); y = d / sqrt(mean(d * d) + epsilon) * scale + bias
 * over the last axes, the same without a mean, and over all axes behind the channels. Scale and bias may be absent; the
 * division may be a product with the reciprocal of the root, and the scale may be multiplied with that first.
 */
#include <string.h>

#include "op/reduce.h"
#include "pass/pattern.h"
#include "pass/shapes.h"

#define MOST 16 /* nodes of the formula */

typedef struct {
    HnRewrite *r;
    HnGraph *g;
    HnNode *node[MOST];
    int n;
    HnValue *x, *scale, *bias;
    HnNode *last;
    double epsilon;
    gboolean mark[HN_MAX_RANK]; /* axes that are reduced */
    gboolean centred;
    int rank, axis; /* of x; the first of the reduced axes */
} Norm;

static HnNode *note(Norm *m, HnNode *n)
{
    for (int i = 0; i < m->n; i++)
        if (m->node[i] == n)
            return n;
    if (n == NULL || m->n == MOST || n->graph != m->g)
        return NULL;
    return m->node[m->n++] = n;
}

static HnNode *made_by(Norm *m, const HnValue *v, const HnOp *op)
{
    return note(m, hn_rw_maker(v, op));
}

static HnNode *only_reader(Norm *m, const HnValue *v, const HnOp *op)
{
    return note(m, hn_rw_reader(v, op));
}

/* Nobody else reads what the nodes make, the last one's result apart. */
static gboolean is_closed(const Norm *m)
{
    for (int i = 0; i < m->n; i++) {
        const HnValue *v = hn_node_out(m->node[i], 0);
        if (m->node[i] == m->last)
            continue;
        if (v->is_output)
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

/* v is d^2: d. */
static HnValue *root_of_square(Norm *m, const HnValue *v)
{
    double exponent;
    const HnNode *n = made_by(m, v, &hn_op_mul);
    if (n != NULL)
        return hn_node_in(n, 0) == hn_node_in(n, 1) ? hn_node_in(n, 0) : NULL;
    n = made_by(m, v, &hn_op_pow);
    return n != NULL && hn_pattern_number(m->r, hn_node_in(n, 1), hn_node_in(n, 0), &exponent) && exponent == 2
               ? hn_node_in(n, 0)
               : NULL;
}

/* v behind the root: 1 / v, or *quotient where that divides something else by v. */
static HnValue *inverse_of(Norm *m, HnValue *v, HnNode **quotient)
{
    double one;
    HnNode *n = only_reader(m, v, &hn_op_reciprocal);
    if (n != NULL)
        return hn_node_out(n, 0);
    n = only_reader(m, v, &hn_op_div);
    if (n == NULL || hn_node_in(n, 1) != v || hn_node_in(n, 0) == v)
        return NULL;
    if (hn_pattern_number(m->r, hn_node_in(n, 0), v, &one) && one == 1)
        return hn_node_out(n, 0);
    *quotient = n;
    return NULL;
}

/* From the variance to the node that divides by its root: what it divides. */
static HnValue *numerator_of(Norm *m, const HnNode *variance)
{
    double number;
    HnNode *quotient = NULL, *sum = only_reader(m, hn_node_out(variance, 0), &hn_op_add), *n;
    if (sum == NULL || hn_pattern_with_number(m->r, sum, &m->epsilon) != hn_node_out(variance, 0))
        return NULL;
    HnValue *v = hn_node_out(sum, 0);
    if ((n = only_reader(m, v, &hn_op_sqrt)) != NULL) {
        v = inverse_of(m, hn_node_out(n, 0), &quotient);
    } else if ((n = only_reader(m, v, &hn_op_pow)) != NULL && hn_node_in(n, 0) == v &&
               hn_pattern_number(m->r, hn_node_in(n, 1), v, &number) && (number == -0.5 || number == 0.5)) {
        v = number < 0 ? hn_node_out(n, 0) : inverse_of(m, hn_node_out(n, 0), &quotient);
    } else {
        return NULL;
    }
    if (quotient != NULL) {
        m->last = quotient;
        return hn_node_in(quotient, 0);
    }
    n = v != NULL ? only_reader(m, v, &hn_op_mul) : NULL;
    if (n == NULL || hn_node_in(n, 0) == hn_node_in(n, 1))
        return NULL;
    m->last = n;
    if (hn_rw_const(m->r, hn_rw_other(n, v)) == NULL)
        return hn_rw_other(n, v);
    m->scale = hn_rw_other(n, v);
    v = hn_node_out(n, 0);
    n = only_reader(m, v, &hn_op_mul);
    if (n == NULL || hn_node_in(n, 0) == hn_node_in(n, 1))
        return NULL;
    m->last = n;
    return hn_rw_other(n, v);
}

/* What is the mean of d * d over: x, and whether d is x without its mean. */
static gboolean find_x(Norm *m, HnValue *d, HnValue *numerator)
{
    const int before = m->n;
    gboolean mark[HN_MAX_RANK];
    const HnNode *sub = made_by(m, d, &hn_op_sub);
    const HnNode *mean = sub != NULL ? made_by(m, hn_node_in(sub, 1), &hn_op_reducemean) : NULL;
    m->rank = hn_rw_rank(m->r, d);
    m->centred = mean != NULL && hn_node_in(mean, 0) == hn_node_in(sub, 0) &&
                 ((const HnReduce *)mean->params)->keepdims && hn_shapes_reduced(m->r, mean, mark) &&
                 memcmp(mark, m->mark, (gsize)m->rank * sizeof *mark) == 0;
    if (!m->centred)
        m->n = before;
    m->x = m->centred ? hn_node_in(sub, 0) : d;
    if (numerator == d)
        return TRUE;
    const HnNode *again = m->centred ? made_by(m, numerator, &hn_op_sub) : NULL;
    return again != NULL && hn_node_in(again, 0) == m->x && hn_node_in(again, 1) == hn_node_in(sub, 1);
}

/* --- scale and bias ----------------------------------------------------------------------------------------------- */

/* v has the shape of x from the first reduced axis on; a constant may have axes of 1 in front. */
static gboolean is_row(const Norm *m, const HnValue *v)
{
    const int have = hn_rw_rank(m->r, v), want = m->rank - m->axis;
    if (have < want || have > m->rank || (have > want && hn_rw_const(m->r, v) == NULL))
        return FALSE;
    for (int i = 1; i <= have; i++)
        if (i <= want ? !hn_rw_same_dim(m->r, v, -i, m->x, -i) : !hn_dim_is(hn_rw_dim(m->r, v, -i), 1))
            return FALSE;
    return TRUE;
}

/* v is constant and has one element for each channel, [C,1...] or [1,C,1...]. */
static gboolean is_channels(const Norm *m, const HnValue *v)
{
    const HnTensor *t = hn_rw_const(m->r, v);
    const int at = t != NULL ? t->ndim - (m->rank - 1) : -1;
    if (at < 0 || at > 1 || !hn_dim_is(hn_rw_dim(m->r, m->x, 1), t->dims[at]))
        return FALSE;
    return t->n == t->dims[at];
}

static gboolean fits(const Norm *m, const HnValue *v, gboolean channels)
{
    return hn_rw_dtype(m->r, v) == hn_rw_dtype(m->r, m->x) && (channels ? is_channels(m, v) : is_row(m, v));
}

static void take_rows(Norm *m, gboolean channels)
{
    int before = m->n;
    HnValue *v = hn_node_out(m->last, 0);
    HnNode *n = m->scale == NULL ? only_reader(m, v, &hn_op_mul) : NULL;
    if (n != NULL && hn_rw_other(n, v) != v && fits(m, hn_rw_other(n, v), channels)) {
        m->scale = hn_rw_other(n, v);
        m->last = n;
        before = m->n;
    }
    m->n = before;
    v = hn_node_out(m->last, 0);
    n = m->centred ? only_reader(m, v, &hn_op_add) : NULL;
    if (n != NULL && hn_rw_other(n, v) != v && fits(m, hn_rw_other(n, v), channels)) {
        m->bias = hn_rw_other(n, v);
        m->last = n;
        before = m->n;
    }
    m->n = before;
}

/* v as [dims...], of ones or zeros where v is NULL. */
static HnValue *row(const Norm *m, HnValue *v, int ndim, const int64_t *dims, double fill)
{
    if (v != NULL && hn_rw_rank(m->r, v) == ndim)
        return v;
    HnTensor *t = v != NULL ? hn_rw_const(m->r, v) : NULL;
    if (t != NULL)
        return hn_rw_weight(m->r, m->g, v->name, hn_tensor_reshaped(t, ndim, dims));
    t = hn_tensor_new(hn_rw_dtype(m->r, m->x), ndim, dims, hn_rw_budget(m->r), NULL);
    for (int64_t i = 0; t != NULL && i < t->n; i++)
        hn_tensor_set_f64(t, i, fill);
    return hn_rw_weight(m->r, m->g, fill == 0 ? "bias" : "scale", t);
}

/* --- the three ---------------------------------------------------------------------------------------------------- */

static gboolean becomes(Norm *m, const char *op, HnValue *scale, HnValue *bias)
{
    HnNode *n = hn_rw_add(m->r, m->last, op, HN_INS(m->x, scale, bias));
    if (strcmp(op, "InstanceNormalization") != 0)
        hn_node_set_int(n, "axis", m->axis == m->rank - 1 ? -1 : m->axis);
    hn_node_set_float(n, "epsilon", (float)m->epsilon);
    return hn_rw_take(m->r, n, m->last);
}

static gboolean over_last_axes(Norm *m)
{
    const HnOp *op = m->centred ? &hn_op_layernormalization : &hn_op_rmsnormalization;
    const int64_t version = m->centred ? 17 : 23;
    int64_t dims[HN_MAX_RANK];
    gboolean fixed = TRUE;
    for (int i = m->axis; i < m->rank; i++) {
        HnDim d = hn_rw_dim(m->r, m->x, i);
        fixed = fixed && d.known;
        dims[i - m->axis] = d.n;
    }
    if (!hn_rw_can(m->g, op, version))
        return hn_rw_miss(m->r, m->last, "%s needs opset %" PRId64 ", and the model has %" PRId64, op->name, version,
                          hn_rw_opset(m->g));
    if (m->scale == NULL && !fixed)
        return hn_rw_miss(m->r, m->last, "there is no scale, and the size of its axes is not known");
    if (!hn_rw_go(m->r, m->last))
        return FALSE;
    HnValue *scale = row(m, m->scale, m->rank - m->axis, dims, 1);
    HnValue *bias = m->bias != NULL ? row(m, m->bias, m->rank - m->axis, dims, 0) : NULL;
    return becomes(m, op->name, scale, bias);
}

static gboolean over_space(Norm *m)
{
    const HnDim c = hn_rw_dim(m->r, m->x, 1);
    if (!c.known)
        return hn_rw_miss(m->r, m->last, "the number of channels is not known");
    if (!hn_rw_can(m->g, &hn_op_instancenormalization, 6) || !hn_rw_go(m->r, m->last))
        return FALSE;
    return becomes(m, "InstanceNormalization", row(m, m->scale, 1, &c.n, 1), row(m, m->bias, 1, &c.n, 0));
}

/* The reduced axes are the last ones, from m->axis on. */
static gboolean are_last(Norm *m)
{
    m->axis = m->rank;
    while (m->axis > 0 && m->mark[m->axis - 1])
        m->axis--;
    gboolean any = FALSE;
    for (int i = 0; i < m->axis; i++)
        any = any || m->mark[i];
    return m->axis < m->rank && !any;
}

static gboolean fuse_normalization(HnRewrite *r, HnNode *n)
{
    if (n->op != &hn_op_reducemean || !((const HnReduce *)n->params)->keepdims)
        return FALSE;
    Norm m = { .r = r, .g = n->graph };
    note(&m, n);
    HnValue *d = root_of_square(&m, hn_node_in(n, 0));
    HnValue *numerator = d != NULL ? numerator_of(&m, n) : NULL;
    if (numerator == NULL)
        return FALSE;
    if (hn_rw_rank(r, d) < 1 || !hn_shapes_reduced(r, n, m.mark))
        return hn_rw_miss(r, n, "the rank of '%s', or the axes, are not known", d->name);
    if (!find_x(&m, d, numerator))
        return FALSE;
    if (!hn_pattern_is_float(r, m.x))
        return hn_rw_miss(r, n, "'%s' is neither f32 nor f16", m.x->name);
    if (!are_last(&m))
        return hn_rw_miss(r, n, "the axes are not the last ones");
    const Norm core = m;
    const gboolean by_row = m.scale == NULL || fits(&m, m.scale, FALSE);
    const gboolean space = m.centred && m.axis == 2 && m.rank >= 3;
    if (by_row)
        take_rows(&m, FALSE);
    if (space && (!by_row || (m.scale == NULL && (m.rank > 3 || !hn_rw_can(m.g, &hn_op_layernormalization, 17))))) {
        Norm other = core; /* perhaps scaled by channel */
        if (other.scale == NULL || fits(&other, other.scale, TRUE)) {
            take_rows(&other, TRUE);
            if (is_closed(&other))
                return over_space(&other);
        }
    }
    if (!by_row)
        return hn_rw_miss(r, n, "the scale has not the shape of a row");
    if (!is_closed(&m))
        return hn_rw_miss(r, n, "a part of the formula is used elsewhere");
    return over_last_axes(&m);
}

const HnPass hn_pass_fuse_normalization = {
    .name = "fuse-normalization",
    .summary = "LayerNormalization, RMSNormalization, InstanceNormalization where they are spelled out",
    .level = 2,
    .node = fuse_normalization,
};
