/*
 * FakeQuantize(x, scale, zero) (domain "hone"): y = s * (clip(round(x / s) + z, lowest, highest) - z), integers that
 * stand for x, as numbers again. FakeQuantizeGrad(dy, x, scale, zero): its gradients, straight through the rounding and
 * 0 where it is clipped; with v = x / s held within [lowest - z, highest - z]:
 *
 *     dx = dy * inside,  ds = sum dy * (round(v) - inside * x / s)
 *
 * S. K. Esser et al., "Learned step size quantization", 2020, equations 3 and 5. With attribute `gain` ds is multiplied
 * by 1 / sqrt(elements * levels), as in section 2.2 there. NaN stays NaN. Sums are in double.
 */
#include "op/fakequantize.h"

#include <math.h>
#include <string.h>

#include "op/index.h"
#include "op/ops.h"
#include "op/tape.h"

enum { X, SCALE, ZERO };

static void fake_bind(HnBind *b, void *params)
{
    HnFakeQuantize *p = params;
    p->axis = hn_bind_int(b, "axis", 1);
    p->block = hn_bind_int(b, "block_size", 0);
    hn_bind_require(b, "lowest");
    hn_bind_require(b, "highest");
    p->lowest = (double)hn_bind_float(b, "lowest", 0);
    p->highest = (double)hn_bind_float(b, "highest", 0);
    p->smooth = hn_bind_bool(b, "smooth", FALSE);
    p->gain = hn_bind_bool(b, "gain", FALSE);
    p->samples = hn_bind_bool(b, "samples", FALSE);
    p->stays = hn_bind_bool(b, "stays", FALSE);
    if (p->block < 0 || !(p->lowest < p->highest))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "a block of %" PRId64 ", or a range from %g to %g", p->block, p->lowest,
                     p->highest);
}

/* --- which scale an element has ----------------------------------------------------------------------------------- */

gboolean hn_fake_grid(const HnFakeQuantize *p, const HnTensor *x, const HnTensor *scale, HnFakeGrid *g)
{
    *g = (HnFakeGrid){ 1, 1, x->n, 1, 1, FALSE };
    if (scale->n == 1)
        return TRUE;
    const int64_t axis = x->ndim == 1 ? 0 : p->axis + (p->axis < 0 ? x->ndim : 0);
    if (axis < 0 || axis >= x->ndim || (p->block != 0 && scale->ndim != x->ndim))
        return FALSE;
    *g = (HnFakeGrid){ hn_span(x->dims, 0, (int)axis),
                       x->dims[axis],
                       hn_span(x->dims, (int)axis + 1, x->ndim),
                       p->block == 0 ? scale->n : scale->dims[axis],
                       MAX(p->block, 1),
                       p->block != 0 };
    gboolean fits = g->size / g->block + (g->size % g->block != 0) == g->scales;
    for (int i = 0; i < x->ndim && g->blocked; i++)
        fits = fits && (i == axis || x->dims[i] == scale->dims[i]);
    return fits;
}

static int64_t scale_of(const HnFakeGrid *g, int64_t i)
{
    const int64_t o = i / (g->size * g->inner), k = i / g->inner % g->size / g->block;
    return g->scales == 1 && !g->blocked ? 0 : g->blocked ? (o * g->scales + k) * g->inner + i % g->inner : k;
}

double hn_fake_elements(const HnFakeQuantize *p, const HnTensor *x, const HnFakeGrid *g)
{
    const double samples = p->samples && x->ndim > 1 && !g->blocked ? (double)MAX(x->dims[0], 1) : 1;
    const double n = g->blocked ? (double)g->block : (double)g->outer * (double)g->size * (double)g->inner;
    return (g->blocked ? n : n / (double)MAX(g->scales, 1)) / samples;
}

double hn_fake_gain(const HnFakeQuantize *p, double zero, double n)
{
    const double levels = fmax(p->highest - zero, zero - p->lowest);
    return p->gain ? 1 / sqrt(fmax(n, 1) * fmax(levels, 1)) : 1;
}

/* --- FakeQuantize ------------------------------------------------------------------------------------------------- */

static void fake_infer(HnInfer *x)
{
    hn_infer_out_like(x, 0, X);
}

static void fake_cost(const HnInfer *x, HnCost *c)
{
    c->flops = 5 * hn_type_count(x->out[0]);
}

/* FALSE: failed. `first`: the input that is x. */
static gboolean grid_of(HnEval *e, int first, HnFakeGrid *g)
{
    const HnTensor *scale = hn_eval_in(e, first + SCALE), *zero = hn_eval_in(e, first + ZERO);
    const HnTensor *x = hn_eval_in(e, first);
    const gboolean fits = hn_fake_grid(e->params, x, scale, g) && (zero == NULL || zero->n == scale->n) &&
                          (first == 0 || hn_eval_in(e, 0)->n == x->n);
    if (!fits)
        hn_eval_fail(e, HN_ERROR_SHAPE, "scale, zero point or gradient do not fit the input");
    return fits;
}

/* One element: x / s, and what it is held within. */
typedef struct {
    double v, held, s;
    gboolean inside;
} Place;

/* In the precision of the type, as the two operators divide. */
static Place place_of(const HnFakeQuantize *p, HnDtype dtype, double x, double s, double zero)
{
    const double v = dtype == HN_F32 ? (double)((float)x / (float)s) : x / s;
    const double lo = p->lowest - zero, hi = p->highest - zero, held = v < lo ? lo : v > hi ? hi : v;
    return (Place){ v, p->smooth ? held : rint(held), s, v >= lo && v <= hi };
}

static Place place_at(const HnEval *e, int first, const HnFakeGrid *g, int64_t i)
{
    const HnTensor *x = hn_eval_in(e, first), *scale = hn_eval_in(e, first + SCALE),
                   *zero = hn_eval_in(e, first + ZERO);
    const int64_t k = scale_of(g, i);
    return place_of(e->params, x->dtype, hn_tensor_get_f64(x, i), hn_tensor_get_f64(scale, k),
                    zero != NULL ? hn_tensor_get_f64(zero, k) : 0);
}

static void fake_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, X);
    HnFakeGrid g;
    if (!grid_of(e, X, &g) || hn_eval_out_like(e, 0, x) == NULL)
        return;
    for (int64_t i = 0; i < x->n; i++) {
        const Place at = place_at(e, X, &g, i);
        hn_tensor_set_f64(e->out[0], i, at.held * at.s);
    }
}

static void fake_grad(HnTape *t)
{
    const HnFakeQuantize *p = t->params;
    HnValue *in[] = { hn_tape_dy(t, 0), hn_tape_in(t, X), hn_tape_in(t, SCALE), hn_tape_in(t, ZERO) };
    const gboolean both = hn_tape_needs(t, SCALE) && !p->stays;
    hn_tape_ends(t, ZERO);
    if (p->stays)
        hn_tape_ends(t, SCALE);
    if (!hn_tape_needs(t, X) && !both)
        return;
    HnNode *n = hn_tape_backward(t, "FakeQuantizeGrad", 4, in, both ? 2 : 1);
    hn_tape_give(t, X, hn_node_out(n, 0));
    if (both)
        hn_tape_give(t, SCALE, hn_node_out(n, 1));
}

/* --- FakeQuantizeGrad --------------------------------------------------------------------------------------------- */

static void fakegrad_infer(HnInfer *x)
{
    hn_infer_out_like(x, 0, 1 + X);
    if (x->n_out > 1)
        hn_infer_out_like(x, 1, 1 + SCALE);
}

static void fakegrad_cost(const HnInfer *x, HnCost *c)
{
    c->flops = (x->n_out > 1 ? 9 : 5) * hn_type_count(x->in[1]);
}

static void give_scales(HnEval *e, const HnFakeGrid *g, const double *sum)
{
    const HnFakeQuantize *p = e->params;
    const HnTensor *x = hn_eval_in(e, 1 + X), *scale = hn_eval_in(e, 1 + SCALE), *zero = hn_eval_in(e, 1 + ZERO);
    const double n = hn_fake_elements(p, x, g);
    if (hn_eval_out_like(e, 1, scale) == NULL)
        return;
    for (int64_t k = 0; k < scale->n; k++)
        hn_tensor_set_f64(e->out[1], k, sum[k] * hn_fake_gain(p, zero != NULL ? hn_tensor_get_f64(zero, k) : 0, n));
}

static void fakegrad_ref(HnEval *e)
{
    const HnTensor *dy = hn_eval_in(e, 0), *x = hn_eval_in(e, 1 + X), *scale = hn_eval_in(e, 1 + SCALE);
    HnFakeGrid g;
    if (!grid_of(e, 1, &g) || hn_eval_out_like(e, 0, x) == NULL)
        return;
    double *sum = hn_eval_scratch(e, scale->n, sizeof *sum);
    if (sum == NULL)
        return;
    memset(sum, 0, (gsize)scale->n * sizeof *sum);
    for (int64_t i = 0; i < x->n; i++) {
        const Place at = place_at(e, 1, &g, i);
        const double d = hn_tensor_get_f64(dy, i);
        hn_tensor_set_f64(e->out[0], i, at.inside ? d : 0);
        sum[scale_of(&g, i)] += d * (at.held - (at.inside ? at.v : 0));
    }
    if (e->n_out > 1)
        give_scales(e, &g, sum);
    hn_eval_scratch_free(e, sum);
}

/* --- for training ------------------------------------------------------------------------------------------------- */

void hn_int_range(HnDtype dtype, double *lowest, double *highest)
{
    const gboolean is_signed = dtype == HN_I2 || dtype == HN_I4 || dtype == HN_I8 || dtype == HN_I16 || dtype == HN_I32;
    const int bits = (int)hn_dtype_bits(dtype);
    *lowest = is_signed ? -ldexp(1, bits - 1) : 0;
    *highest = ldexp(1, bits - (is_signed ? 1 : 0)) - 1;
    if (dtype == HN_I32) { /* as f32 can say it */
        *highest = 2147483520;
        *lowest = -*highest;
    }
}

static HnFakeQuantize params_of(const HnFakeForm *form)
{
    HnFakeQuantize p = { .axis = MAX(form->axis, 0), .block = form->block };
    hn_int_range(form->dtype, &p.lowest, &p.highest);
    return p;
}

/* Zero points as f32. */
static HnTensor *zero_points(const HnTensor *zero)
{
    HnTensor *t = hn_tensor_new(HN_F32, zero->ndim, zero->dims, NULL, NULL);
    for (int64_t i = 0; t != NULL && i < t->n; i++)
        hn_tensor_set_f64(t, i, hn_tensor_get_f64(zero, i));
    return t;
}

HnValue *hn_build_fake_quantize(const HnBuild *b, const HnFakeForm *form, HnValue *x, HnValue *scale,
                                const HnTensor *zero)
{
    const HnFakeQuantize p = params_of(form);
    HnValue *in[] = { x, scale, NULL };
    if (zero != NULL)
        in[ZERO] = hn_build_constant(b, "zero", zero_points(zero));
    HnNode *n = hn_build_node(b, hn_op_fakequantize.name, HN_DOMAIN_INTERNAL, 3, in, 1);
    hn_node_set_int(n, "axis", p.axis);
    hn_node_set_int(n, "block_size", p.block);
    hn_node_set_float(n, "lowest", (float)p.lowest);
    hn_node_set_float(n, "highest", (float)p.highest);
    hn_node_set_int(n, "gain", 1);
    hn_node_set_int(n, "samples", form->samples);
    hn_node_set_int(n, "stays", form->stays);
    return hn_node_out(n, 0);
}

/* The grid of a tensor; FALSE: an error is set. */
static gboolean form_grid(const HnFakeQuantize *p, const HnTensor *x, const HnTensor *scale, HnFakeGrid *g,
                          GError **error)
{
    if (hn_fake_grid(p, x, scale, g))
        return TRUE;
    g_set_error_literal(error, HN_ERROR, HN_ERROR_SHAPE, "a scale does not fit the integers that it belongs to");
    return FALSE;
}

HnTensor *hn_fake_integers(const HnFakeForm *form, const HnTensor *x, const HnTensor *scale, const HnTensor *zero,
                           HnBudget *budget, GError **error)
{
    const HnFakeQuantize p = params_of(form);
    HnFakeGrid g;
    HnTensor *q =
        form_grid(&p, x, scale, &g, error) ? hn_tensor_new(form->dtype, x->ndim, x->dims, budget, error) : NULL;
    for (int64_t i = 0; q != NULL && i < x->n; i++) {
        const int64_t k = scale_of(&g, i);
        const double z = zero != NULL ? hn_tensor_get_f64(zero, k) : 0;
        const Place at = place_of(&p, HN_F32, hn_tensor_get_f64(x, i), hn_tensor_get_f64(scale, k), z);
        hn_tensor_set_i64(q, i, isnan(at.held) ? (int64_t)z : (int64_t)(at.held + z));
    }
    return q;
}

HnTensor *hn_fake_numbers(const HnFakeForm *form, const HnTensor *q, const HnTensor *scale, const HnTensor *zero,
                          HnBudget *budget, GError **error)
{
    const HnFakeQuantize p = params_of(form);
    HnFakeGrid g;
    HnTensor *x = form_grid(&p, q, scale, &g, error) ? hn_tensor_new(HN_F32, q->ndim, q->dims, budget, error) : NULL;
    for (int64_t i = 0; x != NULL && i < q->n; i++) {
        const int64_t k = scale_of(&g, i);
        const double z = zero != NULL ? hn_tensor_get_f64(zero, k) : 0;
        ((float *)x->data)[i] = (float)(hn_tensor_get_f64(q, i) - z) * (float)hn_tensor_get_f64(scale, k);
    }
    return x;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

const HnOp hn_op_fakequantize = {
    .name = "FakeQuantize",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32 | HN_OP_INPLACE | HN_OP_STRAIGHT,
    .since = { 1 },
    .in = "TTT",
    .out = "T",
    .T = HN_T_FLOATS,
    .min_in = 2,
    .params_size = sizeof(HnFakeQuantize),
    .bind = fake_bind,
    .infer = fake_infer,
    .cost = fake_cost,
    .ref = fake_ref,
    .grad = fake_grad,
};

const HnOp hn_op_fakequantizegrad = {
    .name = "FakeQuantizeGrad",
    .domain = HN_DOMAIN_INTERNAL,
    .flags = HN_OP_HALF_VIA_F32 | HN_OP_INPLACE,
    .since = { 1 },
    .in = "TTTT",
    .out = "TT",
    .T = HN_T_FLOATS,
    .min_in = 3,
    .params_size = sizeof(HnFakeQuantize),
    .bind = fake_bind,
    .infer = fakegrad_infer,
    .cost = fakegrad_cost,
    .ref = fakegrad_ref,
};
