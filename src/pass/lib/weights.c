#include "pass/lib/weights.h"

#include <math.h>
#include <string.h>

#include "op/batchnorm.h"
#include "op/gemm.h"

#define HALF_KEEPS 0x1p-10               /* f16 weights that are all below have lost digits */
#define ROUNDED 4e-6F                    /* of a channel's largest weight: products of f32 are that near */
#define MOST_CHANNELS ((int64_t)1 << 24) /* beyond that it is no weight but an attack */

/* --- affine ------------------------------------------------------------------------------------------------------- */

void hn_affine_clear(HnAffine *a)
{
    g_clear_pointer(&a->scale, g_free);
    g_clear_pointer(&a->shift, g_free);
}

static gboolean is_arithmetic(const HnNode *n)
{
    return (n->op == &hn_op_add || n->op == &hn_op_sub || n->op == &hn_op_mul || n->op == &hn_op_div) &&
           n->version >= 7;
}

/* The number of n's constant input; -1: none, or all are. */
static int constant_input(const HnRewrite *r, const HnNode *n)
{
    gboolean a = hn_rw_known(r, hn_node_in(n, 0)) != NULL, b = hn_rw_known(r, hn_node_in(n, 1)) != NULL;
    return a == b ? -1 : a ? 0 : 1;
}

HnValue *hn_affine_data(const HnRewrite *r, const HnNode *n)
{
    HnValue *x = NULL;
    if (n->op == &hn_op_batchnormalization) {
        const HnBatchNorm *p = n->params;
        x = p->training || p->per_element || n->out->len != 1 ? NULL : hn_node_in(n, 0);
    } else if (is_arithmetic(n)) {
        int k = constant_input(r, n);
        x = k < 0 || (k == 0 && n->op == &hn_op_div) ? NULL : hn_node_in(n, 1 - k);
    }
    return x != NULL && hn_dtype_in(hn_rw_dtype(r, x), HN_T_FLOATS) ? x : NULL;
}

/*
 * The elements of t, broadcast to x of `rank` dimensions, as one for each of `channels` along `axis`. NULL: they differ
 * within a channel, or x is not known to have a size that t has.
 */
static double *vector_of(const HnRewrite *r, const HnValue *x, const HnTensor *t, int rank, int axis, int64_t channels)
{
    int64_t inner = 1, sizes = 1;
    if (t->n == 0 || t->ndim > rank || channels < 1 || channels > MOST_CHANNELS)
        return NULL;
    for (int i = 0; i < t->ndim; i++) {
        int a = rank - t->ndim + i;
        if (t->dims[i] != 1 && !(a == axis && t->dims[i] == channels) && !hn_dim_is(hn_rw_dim(r, x, a), t->dims[i]))
            return NULL;
        if (a == axis)
            sizes = t->dims[i];
        else if (a > axis)
            inner *= t->dims[i];
    }
    if (sizes != 1 && sizes != channels)
        return NULL;
    double *v = g_new(double, (gsize)channels);
    for (int64_t i = 0; i < t->n; i++) {
        int64_t c = i / inner % sizes;
        double e = hn_tensor_get_f64(t, i);
        if (i < sizes * inner && i % inner == 0) {
            v[c] = e;
        } else if (v[c] != e) {
            g_free(v);
            return NULL;
        }
    }
    for (int64_t c = sizes; c < channels; c++)
        v[c] = v[0];
    return v;
}

static double *list_of(const HnTensor *t)
{
    double *v = g_new(double, (gsize)t->n + 1);
    for (int64_t i = 0; i < t->n; i++)
        v[i] = hn_tensor_get_f64(t, i);
    return v;
}

static gboolean read_batchnorm(const HnRewrite *r, const HnNode *n, HnAffine *a)
{
    const HnBatchNorm *p = n->params;
    const HnTensor *s[4];
    for (int i = 0; i < 4; i++) {
        s[i] = hn_rw_known(r, hn_node_in(n, i + 1));
        if (s[i] == NULL || s[i]->n != a->n)
            return FALSE;
    }
    for (int64_t i = 0; i < a->n; i++) {
        a->scale[i] = hn_tensor_get_f64(s[0], i) / sqrt(hn_tensor_get_f64(s[3], i) + (double)p->epsilon);
        a->shift[i] = hn_tensor_get_f64(s[1], i) - hn_tensor_get_f64(s[2], i) * a->scale[i];
    }
    return TRUE;
}

static gboolean read_arithmetic(const HnRewrite *r, const HnNode *n, int rank, int axis, HnAffine *a)
{
    int k = constant_input(r, n);
    const HnTensor *t = k >= 0 ? hn_rw_known(r, hn_node_in(n, k)) : NULL;
    g_autofree double *v = t != NULL ? vector_of(r, hn_node_in(n, 1 - k), t, rank, axis, a->n) : NULL;
    if (v == NULL)
        return FALSE;
    for (int64_t i = 0; i < a->n; i++) {
        gboolean factor = n->op == &hn_op_mul || n->op == &hn_op_div;
        a->scale[i] = n->op == &hn_op_mul             ? v[i]
                      : n->op == &hn_op_div           ? 1 / v[i]
                      : n->op == &hn_op_sub && k == 0 ? -1
                                                      : 1;
        a->shift[i] = factor ? 0 : n->op == &hn_op_sub && k == 1 ? -v[i] : v[i];
    }
    return TRUE;
}

gboolean hn_affine_read(const HnRewrite *r, const HnNode *n, int rank, int axis, int64_t channels, HnAffine *a)
{
    gboolean norm = n->op == &hn_op_batchnormalization;
    *a = (HnAffine){ .n = channels };
    if (channels < 1 || channels > MOST_CHANNELS || rank < 1 || (norm && axis != 1))
        return FALSE;
    a->scale = g_new(double, (gsize)channels);
    a->shift = g_new(double, (gsize)channels);
    if (!(norm ? read_batchnorm(r, n, a) : read_arithmetic(r, n, rank, axis, a))) {
        hn_affine_clear(a);
        return FALSE;
    }
    for (int64_t i = 0; i < channels; i++) {
        a->scales |= a->scale[i] != 1;
        a->shifts |= a->shift[i] != 0;
    }
    return TRUE;
}

gboolean hn_affine_number(const HnRewrite *r, const HnNode *n, int64_t channels, HnAffine *a)
{
    HnValue *x = hn_affine_data(r, n);
    const HnTensor *t = x != NULL ? hn_rw_known(r, hn_rw_other(n, x)) : NULL;
    *a = (HnAffine){ .n = channels, .scales = TRUE };
    if (t == NULL || t->n != 1 || t->ndim > MAX(hn_rw_rank(r, x), 0) || (n->op != &hn_op_mul && n->op != &hn_op_div))
        return FALSE;
    a->scale = g_new(double, (gsize)channels);
    a->shift = g_new0(double, (gsize)channels);
    for (int64_t i = 0; i < channels; i++)
        a->scale[i] = n->op == &hn_op_mul ? hn_tensor_get_f64(t, 0) : 1 / hn_tensor_get_f64(t, 0);
    return a->scale[0] != 1;
}

gboolean hn_affine_uniform(const HnAffine *a)
{
    for (int64_t i = 1; i < a->n; i++)
        if (a->scale[i] != a->scale[0])
            return FALSE;
    return TRUE;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

void hn_linear_clear(HnLinear *l)
{
    g_clear_pointer(&l->bias, g_free);
}

static int64_t known(HnDim d)
{
    return d.known ? d.n : 0;
}

/* The rank of y, channels along l->axis: where the weights tell, by them. */
static void read_conv(const HnRewrite *r, HnLinear *l)
{
    HnValue *y = hn_node_out(l->node, 0);
    l->rank = l->w != NULL ? l->w->ndim : hn_rw_rank(r, y);
    l->axis = l->view.y_axis;
    l->channels = l->w != NULL && l->w->ndim > 2 ? hn_linear_channels(&l->view, l->w) : known(hn_rw_dim(r, y, l->axis));
}

/* Products with vectors have no channels, nor has the Gemm of old opsets that cannot broadcast its bias. */
static void read_matrices(const HnRewrite *r, HnLinear *l)
{
    const HnValue *x = l->view.x, *y = hn_node_out(l->node, 0);
    const HnGemmParams *gemm = l->node->op == &hn_op_gemm ? l->node->params : NULL;
    if (gemm != NULL ? gemm->exact : l->w == NULL || l->w->ndim < 2 || hn_rw_rank(r, x) < 2)
        return;
    l->rank = gemm != NULL ? 2 : MAX(l->w->ndim, hn_rw_rank(r, x));
    l->axis = hn_axis(l->view.y_axis, l->rank);
    l->channels = l->w != NULL && l->w->ndim >= 2 ? l->w->dims[hn_axis(l->view.out, l->w->ndim)]
                                                  : known(hn_rw_dim(r, y, l->axis));
}

/* The weights are input 1, or of a MatMul without known ones, input 0. FALSE: it is no such product. */
static gboolean read_view(const HnRewrite *r, HnNode *node, HnLinear *l)
{
    if (!hn_op_linear(node, &l->view) || hn_op_is_unpacked(l->view.w))
        return FALSE;
    l->w = hn_rw_known(r, l->view.w);
    if (!node->op->linear.either)
        return TRUE;
    if (hn_op_is_unpacked(l->view.x))
        return FALSE;
    if (l->w == NULL && hn_op_linear_first(node, &l->view))
        l->w = hn_rw_known(r, l->view.w);
    return TRUE;
}

static gboolean read_product(const HnRewrite *r, HnNode *node, HnLinear *l)
{
    *l = (HnLinear){ .node = node, .y = hn_node_out(node, 0), .rank = -1 };
    if (!read_view(r, node, l) || (l->w != NULL && l->w->n == 0))
        return FALSE;
    const gboolean conv = l->view.window != NULL;
    l->b = l->view.b;
    if (conv)
        read_conv(r, l);
    else
        read_matrices(r, l);
    if (l->rank < (conv ? 3 : 1) || l->channels < 1 || l->channels > MOST_CHANNELS ||
        !hn_dtype_in(hn_rw_dtype(r, l->y), HN_T_FLOATS))
        return FALSE;
    const HnTensor *b = hn_rw_known(r, l->b);
    if (b != NULL && (!conv || (b->ndim == 1 && b->n == l->channels)))
        l->bias = conv ? list_of(b) : vector_of(r, l->y, b, l->rank, l->axis, l->channels);
    return TRUE;
}

/* `add` adds a constant to what l's MatMul makes. */
static gboolean read_add(const HnRewrite *r, HnNode *add, HnLinear *l)
{
    if (add == NULL || !hn_rw_single(l->y) || hn_affine_data(r, add) != l->y)
        return FALSE;
    HnValue *b = hn_rw_other(add, l->y);
    double *bias = vector_of(r, l->y, hn_rw_known(r, b), l->rank, l->axis, l->channels);
    if (bias == NULL)
        return FALSE;
    l->add = add;
    l->b = b;
    l->bias = bias;
    l->y = hn_node_out(add, 0);
    return TRUE;
}

gboolean hn_linear_read(const HnRewrite *r, HnValue *y, HnLinear *l)
{
    HnNode *add = hn_rw_maker(y, &hn_op_add), *node = y->producer;
    *l = (HnLinear){ 0 };
    if (add != NULL) {
        HnValue *x = hn_affine_data(r, add);
        HnNode *product = hn_rw_maker(x, &hn_op_matmul);
        return product != NULL && read_product(r, product, l) && read_add(r, add, l);
    }
    return node != NULL && node->graph == y->graph && y->producer_out == 0 && read_product(r, node, l);
}

gboolean hn_linear_from(const HnRewrite *r, HnNode *node, HnLinear *l)
{
    if (!read_product(r, node, l))
        return FALSE;
    if (node->op == &hn_op_matmul)
        read_add(r, hn_rw_reader(l->y, &hn_op_add), l);
    return TRUE;
}

/* --- new weights -------------------------------------------------------------------------------------------------- */

HnWeightsView hn_weights_along(const HnTensor *w, int axis)
{
    HnWeightsView v = { 1, 1, w->dims[axis], 1 };
    for (int i = 0; i < w->ndim; i++)
        if (i < axis)
            v.a *= w->dims[i];
        else if (i > axis)
            v.inner *= w->dims[i];
    return v;
}

HnWeightsView hn_linear_weights(const HnLinear *l, int axis)
{
    const int at = hn_axis(axis, l->w->ndim);
    HnWeightsView v = hn_weights_along(l->w, at);
    if (at == 0) /* holds the channels of all groups */
        return v;
    v.g = l->view.groups;
    v.a /= v.g;
    return v;
}

HnTensor *hn_weights_scaled(const HnTensor *w, const HnWeightsView *v, const double *s, HnBudget *budget)
{
    HnTensor *t = hn_tensor_new_uninit(w->dtype, w->ndim, w->dims, budget, NULL);
    if (t == NULL)
        return NULL;
    int64_t e = 0;
    for (int64_t i = 0; i < v->g; i++)
        for (int64_t j = 0; j < v->a; j++)
            for (int64_t k = 0; k < v->b; k++) {
                const double f = s[i * v->b + k];
                for (int64_t end = e + v->inner; e < end; e++) {
                    if (w->dtype != HN_F32) {
                        hn_tensor_set_f64(t, e, hn_tensor_get_f64(w, e) * f);
                        continue;
                    }
                    float x;
                    memcpy(&x, (const char *)w->data + e * 4, 4); /* perhaps not aligned */
                    ((float *)t->data)[e] = (float)((double)x * f);
                }
            }
    return t;
}

double *hn_weights_dot(const HnTensor *w, const HnWeightsView *v, const double *s)
{
    double *sum = g_new0(double, (gsize)w->n + 1);
    int64_t e = 0;
    for (int64_t ij = 0; ij < v->g * v->a; ij++)
        for (int64_t k = 0; k < v->b; k++)
            for (int64_t m = 0; m < v->inner; m++)
                sum[ij * v->inner + m] += hn_tensor_get_f64(w, e++) * s[ij / v->a * v->b + k];
    return sum;
}

HnTensor *hn_weights_new(HnDtype dtype, int ndim, const int64_t *dims, const double *x, HnBudget *budget)
{
    HnTensor *t = hn_tensor_new(dtype, ndim, dims, budget, NULL);
    for (int64_t i = 0; t != NULL && i < t->n; i++)
        hn_tensor_set_f64(t, i, x[i]);
    return t;
}

gboolean hn_weights_good(const HnTensor *t, const HnTensor *before)
{
    double most = 0, was = 0;
    for (int64_t i = 0; i < t->n; i++) {
        double x = t->dtype == HN_F32 ? (double)((const float *)t->data)[i] : hn_tensor_get_f64(t, i);
        if (!isfinite(x))
            return FALSE;
        most = fmax(most, fabs(x));
    }
    if (t->dtype != HN_F16 || before == NULL || most >= HALF_KEEPS)
        return TRUE;
    for (int64_t i = 0; i < before->n; i++)
        was = fmax(was, fabs(hn_tensor_get_f64(before, i)));
    return was <= most || was == 0;
}

/* The file's elements need not be aligned. */
static float f32_at(const HnTensor *t, int64_t i)
{
    float x;
    memcpy(&x, (const char *)t->data + (gsize)i * sizeof x, sizeof x);
    return x;
}

/* That of channel k, by its largest element; 0: there is none. */
static float factor_of(const HnTensor *a, const HnTensor *b, const HnWeightsView *v, int64_t k)
{
    float largest = 0, f = 1;
    for (int64_t j = 0; j < v->a; j++)
        for (int64_t e = (j * v->b + k) * v->inner, end = e + v->inner; e < end; e++)
            if (fabsf(f32_at(a, e)) > largest) {
                largest = fabsf(f32_at(a, e));
                f = f32_at(b, e) / f32_at(a, e);
            }
    if (!(f > 0) || !isfinite(f))
        return 0;
    for (int64_t j = 0; j < v->a; j++)
        for (int64_t e = (j * v->b + k) * v->inner, end = e + v->inner; e < end; e++)
            if (!(fabsf(f32_at(b, e) - f32_at(a, e) * f) <= ROUNDED * largest * f))
                return 0;
    return f;
}

float *hn_weights_factors(const HnTensor *a, const HnTensor *b, int axis)
{
    const HnWeightsView v = axis >= 0 ? hn_weights_along(a, axis) : (HnWeightsView){ 1, 1, 1, a->n };
    g_autofree float *f = g_new(float, (gsize)v.b + 1);
    for (int64_t k = 0; k < v.b; k++) {
        f[k] = factor_of(a, b, &v, k);
        if (f[k] == 0)
            return NULL;
    }
    return g_steal_pointer(&f);
}

gboolean hn_weights_own(const HnRewrite *r, const HnValue *v)
{
    const HnTensor *t = hn_rw_known(r, v);
    return (v->users->len == 1 && !v->is_output) || (t != NULL && t->bytes <= HN_WEIGHTS_COPY);
}

HnTensor *hn_linear_bias(const HnRewrite *r, const HnLinear *l, const double *bias)
{
    const int64_t dims[2] = { l->channels, 1 };
    const gboolean rows = l->view.w_in == 0;
    return hn_weights_new(hn_rw_dtype(r, l->y), rows ? 2 : 1, dims, bias, hn_rw_budget(r));
}

void hn_linear_set_bias(HnRewrite *r, const HnLinear *l, HnTensor *bias)
{
    HnNode *n = l->add != NULL ? l->add : l->node;
    HnValue *b = hn_rw_weight(r, n->graph, l->b != NULL ? l->b->name : "bias", bias);
    hn_rw_set_in(r, n, l->add == NULL ? 2 : hn_node_in(n, 0) == l->b ? 0 : 1, b);
    if (n->op == &hn_op_gemm)
        hn_node_remove_attr(n, "beta");
}

/* n's result becomes the product's, or, with views between them, what n reads. */
static gboolean begin_absorb(HnRewrite *r, const HnNode *n, const HnLinear *l)
{
    HnValue *x = hn_affine_data(r, n);
    return x == l->y ? hn_rw_go(r, n) : hn_rw_bypass(r, n, hn_node_out(n, 0), x);
}

static gboolean end_absorb(HnRewrite *r, HnNode *n, const HnLinear *l)
{
    HnNode *last = l->add != NULL ? l->add : l->node;
    if (last != l->node)
        hn_rw_done(r, l->node);
    return n->out->len > 0 && hn_affine_data(r, n) == l->y ? hn_rw_take(r, last, n) : hn_rw_done(r, last);
}

/* The factors of a Gemm take one for all. */
static gboolean absorb_number(HnRewrite *r, HnNode *n, const HnLinear *l, const HnAffine *a)
{
    const float alpha = (float)(l->view.alpha * a->scale[0]), beta = (float)(l->view.beta * a->scale[0]);
    if (!isfinite(alpha) || !isfinite(beta))
        return hn_rw_miss(r, n, "a factor of '%s' would not be finite", hn_node_label(l->node));
    if (!begin_absorb(r, n, l))
        return FALSE;
    hn_node_set_float(l->node, "alpha", alpha);
    if (l->b != NULL)
        hn_node_set_float(l->node, "beta", beta);
    return end_absorb(r, n, l);
}

gboolean hn_linear_absorb(HnRewrite *r, HnNode *n, const HnLinear *l, const HnAffine *a)
{
    const char *label = hn_node_label(l->node);
    const gboolean gemm = l->node->op == &hn_op_gemm;
    HnValue *weight = l->view.w;
    g_autoptr(HnTensor) w = NULL, b = NULL;
    const gboolean open = l->w == NULL || (l->b != NULL && l->bias == NULL);
    if (!a->scales && (!a->shifts || (l->view.b_in < 0 && l->add == NULL)))
        return FALSE;
    if (gemm && !a->shifts && open && hn_affine_uniform(a))
        return absorb_number(r, n, l, a);
    if (a->scales && l->w == NULL)
        return hn_rw_miss(r, n, "the weights of '%s' are not constant", label);
    if (l->b != NULL && l->bias == NULL)
        return hn_rw_miss(r, n, "the bias of '%s' is not one constant for each channel", label);
    if (a->scales && !hn_weights_own(r, weight))
        return hn_rw_miss(r, n, "the weights of '%s' are used by others too", label);
    if (a->scales) {
        const HnWeightsView v = hn_linear_weights(l, l->view.out);
        w = hn_weights_scaled(l->w, &v, a->scale, hn_rw_budget(r));
        if (w == NULL || !hn_weights_good(w, l->w))
            return hn_rw_miss(r, n, "the weights of '%s' would not be finite, or lose digits", label);
    }
    if (l->b != NULL || a->shifts) {
        g_autofree double *sum = g_new(double, (gsize)l->channels);
        for (int64_t i = 0; i < l->channels; i++)
            sum[i] = (l->bias != NULL ? l->view.beta * l->bias[i] * a->scale[i] : 0) + a->shift[i];
        b = hn_linear_bias(r, l, sum);
        if (b == NULL || !hn_weights_good(b, NULL))
            return hn_rw_miss(r, n, "the bias of '%s' would not be finite", label);
    }
    if (!begin_absorb(r, n, l))
        return FALSE;
    if (w != NULL)
        hn_rw_set_in(r, l->node, l->view.w_in, hn_rw_weight(r, l->node->graph, weight->name, g_steal_pointer(&w)));
    if (b != NULL && l->view.b_in < 0 && l->add == NULL) {
        hn_rw_done(r, l->node);
        HnValue *sum = hn_rw_weight(r, n->graph, "bias", g_steal_pointer(&b));
        return hn_rw_take(r, hn_rw_add(r, n, "Add", HN_INS(l->y, sum)), n);
    }
    if (b != NULL)
        hn_linear_set_bias(r, l, g_steal_pointer(&b));
    return end_absorb(r, n, l);
}
