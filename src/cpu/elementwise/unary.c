/*
 * Functions of one number as loops over memory, in whatever layout the source has, so that blocked regions do not end
 * at each of them. NaN comes through all of them. f16 and bf16 are computed in f32.
 */
#include "cpu/elementwise/unary.h"

#include <float.h>

#include "cpu/core/half_rows.h"
#include "op/activation.h"
#include "op/clip.h"

#define HN_LEVEL plain
#include "cpu/elementwise/unary_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/elementwise/unary_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/elementwise/unary_loops.h"
#undef HN_LEVEL

#define CHUNK ((int64_t)1 << 12) /* elements that a thread takes at a time */
#define PART 1024                /* elements that are converted at a time */

typedef struct {
    HnUnary u;
    HnDtype type;
    int threads;
} Unary;

#define FNS(symbol) static const HnUnaryFn symbol##_fns[HN_LEVELS] = HN_TABLE_OF_LEVELS(do_##symbol);
FNS(abs)
FNS(acos)
FNS(acosh)
FNS(asin)
FNS(asinh)
FNS(atan)
FNS(atanh)
FNS(ceil)
FNS(celu)
FNS(clip)
FNS(cosh)
FNS(cube)
FNS(elu)
FNS(erf)
FNS(exp)
FNS(floor)
FNS(gelu)
FNS(gelu_tanh)
FNS(hardsigmoid)
FNS(hardswish)
FNS(leakyrelu)
FNS(log)
FNS(mish)
FNS(neg)
FNS(power)
FNS(reciprocal)
FNS(relu)
FNS(round)
FNS(selu)
FNS(shrink)
FNS(sigmoid)
FNS(sign)
FNS(sine)
FNS(sinh)
FNS(softplus)
FNS(softsign)
FNS(sqrt)
FNS(square)
FNS(swish)
FNS(tan)
FNS(tanh)
FNS(thresholdedrelu)

/* Functions without parameters, and those whose parameters are the operator's attributes. */
static const struct {
    const HnOp *op;
    const HnUnaryFn *fns;
    gboolean attrs; /* params is an HnActivation */
} functions[] = {
    { &hn_op_abs, abs_fns, FALSE },
    { &hn_op_acos, acos_fns, FALSE },
    { &hn_op_acosh, acosh_fns, FALSE },
    { &hn_op_asin, asin_fns, FALSE },
    { &hn_op_asinh, asinh_fns, FALSE },
    { &hn_op_atan, atan_fns, FALSE },
    { &hn_op_atanh, atanh_fns, FALSE },
    { &hn_op_ceil, ceil_fns, FALSE },
    { &hn_op_celu, celu_fns, TRUE },
    { &hn_op_cos, sine_fns, FALSE },
    { &hn_op_cosh, cosh_fns, FALSE },
    { &hn_op_elu, elu_fns, TRUE },
    { &hn_op_erf, erf_fns, FALSE },
    { &hn_op_exp, exp_fns, FALSE },
    { &hn_op_floor, floor_fns, FALSE },
    { &hn_op_gelu, gelu_fns, TRUE },
    { &hn_op_hardsigmoid, hardsigmoid_fns, TRUE },
    { &hn_op_hardswish, hardswish_fns, FALSE },
    { &hn_op_leakyrelu, leakyrelu_fns, TRUE },
    { &hn_op_log, log_fns, FALSE },
    { &hn_op_mish, mish_fns, FALSE },
    { &hn_op_neg, neg_fns, FALSE },
    { &hn_op_reciprocal, reciprocal_fns, FALSE },
    { &hn_op_relu, relu_fns, FALSE },
    { &hn_op_round, round_fns, FALSE },
    { &hn_op_selu, selu_fns, TRUE },
    { &hn_op_shrink, shrink_fns, TRUE },
    { &hn_op_sigmoid, sigmoid_fns, FALSE },
    { &hn_op_sign, sign_fns, FALSE },
    { &hn_op_sin, sine_fns, FALSE },
    { &hn_op_sinh, sinh_fns, FALSE },
    { &hn_op_softplus, softplus_fns, FALSE },
    { &hn_op_softsign, softsign_fns, FALSE },
    { &hn_op_sqrt, sqrt_fns, FALSE },
    { &hn_op_swish, swish_fns, TRUE },
    { &hn_op_tan, tan_fns, FALSE },
    { &hn_op_tanh, tanh_fns, FALSE },
    { &hn_op_thresholdedrelu, thresholdedrelu_fns, TRUE },
};

/* A number that is there and does not change, or `absent`. */
static gboolean constant_of(const HnOperand *in, int n_in, int i, float absent, float *value)
{
    const gboolean present = i < n_in && in[i].present;
    if (present && (in[i].known == NULL || in[i].known->n != 1))
        return FALSE;
    *value = present ? (float)hn_tensor_get_f64(in[i].known, 0) : absent;
    return TRUE;
}

typedef struct {
    const HnOperand *in;
    int n_in;
} Reader;

static gboolean read_bound(gconstpointer of, int i, double *x)
{
    const Reader *r = of;
    float value;
    if (!constant_of(r->in, r->n_in, i, (float)*x, &value))
        return FALSE;
    *x = (double)value;
    return TRUE;
}

static const char *clip_of(const HnClip *c, const HnOperand *in, int n_in, HnUnary *u)
{
    double lo = (double)-FLT_MAX, hi = (double)FLT_MAX;
    if (!hn_op_bounds(&hn_op_clip, c, read_bound, &(Reader){ in, n_in }, &lo, &hi))
        return "bounds that are not constant numbers";
    *u = (HnUnary){ .fn = clip_fns[hn_cpu_level()], .a = (float)lo, .b = (float)hi };
    return NULL;
}

static const char *pow_of(const HnOperand *in, int n_in, HnUnary *u)
{
    if (!constant_of(in, n_in, 1, 1, &u->a))
        return "an exponent that is not one constant";
    const HnUnaryFn *fns = u->a == 2 ? square_fns : u->a == 3 ? cube_fns : u->a == -1 ? reciprocal_fns : power_fns;
    u->fn = fns[hn_cpu_level()];
    return NULL;
}

const char *hn_unary_of(const HnOp *op, const void *params, const HnOperand *in, int n_in, HnUnary *u)
{
    guint i = 0;
    *u = (HnUnary){ 0 };
    if (op == &hn_op_clip)
        return clip_of(params, in, n_in, u);
    if (op == &hn_op_pow)
        return pow_of(in, n_in, u);
    while (i < G_N_ELEMENTS(functions) && op != functions[i].op)
        i++;
    if (i == G_N_ELEMENTS(functions))
        return "no function of one number";
    const HnActivation *p = functions[i].attrs ? params : NULL;
    if (p != NULL) {
        u->a = (float)p->a;
        u->b = (float)(op == &hn_op_celu ? 1 / p->a : p->b);
    } else if (op == &hn_op_cos) {
        u->b = 1;
    }
    const HnUnaryFn *fns = p != NULL && op == &hn_op_gelu && p->tanh ? gelu_tanh_fns : functions[i].fns;
    u->fn = fns[hn_cpu_level()];
    return NULL;
}

static const char *unary_of(const HnStep *s, HnUnary *u)
{
    HnOperand in[3] = { { 0 } };
    const int n_in = MIN(s->n_in, 3);
    for (int i = 0; i < n_in; i++) {
        const HnSlot *slot = s->in[i].slot;
        in[i] = (HnOperand){ .known = slot != NULL && slot->constant ? slot->tensor : NULL, .present = slot != NULL };
    }
    if (s->op == &hn_op_pow && hn_cpu_in(s, 0)->n != s->out[0].slot->tensor->n)
        return "an exponent that is not one constant";
    return hn_unary_of(s->op, s->params, in, n_in, u);
}

static const char *unary_reject(const HnStep *s)
{
    HnUnary u;
    HnDtype d = hn_cpu_in(s, 0)->dtype;
    return d != HN_F32 && !hn_dtype_is_half(d) ? "only f32, f16, bf16" : unary_of(s, &u);
}

/* The padding of a blocked layout has to stay 0. */
static gboolean keeps_zero(const HnUnary *u)
{
    const float zero = 0;
    float y = 1;
    u->fn(&zero, &y, 1, u->a, u->b);
    return y == 0;
}

static gboolean unary_prepare(HnStep *s, GError **error)
{
    (void)error;
    Unary *u = g_new0(Unary, 1);
    s->state = u;
    u->type = hn_cpu_in(s, 0)->dtype;
    (void)unary_of(s, &u->u);
    u->threads = hn_cpu_threads_for(s, 0);
    HnSlot *from = s->in[0].slot;
    s->in[0].any = from->layout != NULL && from->tensor->ndim == s->out[0].slot->tensor->ndim &&
                   (keeps_zero(&u->u) || !hn_layout_padded(from->layout));
    if (s->in[0].any)
        s->out[0].slot->layout = hn_layout_ref(from->layout);
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = s->in[i].slot != NULL;
    return TRUE;
}

/* Elements [from, from + n) */
static void run_range(const Unary *k, const void *x, void *y, int64_t from, int64_t n)
{
    const HnUnary *u = &k->u;
    if (k->type == HN_F32) {
        u->fn((const float *)x + from, (float *)y + from, n, u->a, u->b);
        return;
    }
    const uint16_t *half = (const uint16_t *)x + from;
    uint16_t *to = (uint16_t *)y + from;
    for (int64_t i = 0; i < n; i += PART) {
        float part[PART];
        int64_t m = MIN(PART, n - i);
        hn_cpu_half_to_f32(k->type, part, half + i, m);
        u->fn(part, part, m, u->a, u->b);
        hn_cpu_half_from_f32(k->type, to + i, part, m);
    }
}

static gboolean unary_run(HnStep *s, GError **error)
{
    (void)error;
    const Unary *u = s->state;
    const void *x = hn_cpu_data(&s->in[0]);
    void *y = hn_cpu_data(&s->out[0]);
    int64_t n = hn_slot_elements(s->out[0].slot);
    if (u->threads == 1) {
        run_range(u, x, y, 0, n);
        return TRUE;
    }
#pragma omp parallel for num_threads(u->threads)
    for (int64_t i = 0; i < n; i += CHUNK)
        run_range(u, x, y, i, MIN(CHUNK, n - i));
    return TRUE;
}

static void unary_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

const HnKernel hn_cpu_unary = {
    .name = "cpu.unary",
    .reject = unary_reject,
    .prepare = unary_prepare,
    .run = unary_run,
    .release = unary_release,
    .inplace = TRUE,
};

#define KERNELS(symbol) const HnKernel *const hn_cpu_##symbol[] = { &hn_cpu_unary, NULL };
KERNELS(abs)
KERNELS(acos)
KERNELS(acosh)
KERNELS(asin)
KERNELS(asinh)
KERNELS(atan)
KERNELS(atanh)
KERNELS(ceil)
KERNELS(celu)
KERNELS(clip)
KERNELS(cos)
KERNELS(cosh)
KERNELS(elu)
KERNELS(erf)
KERNELS(exp)
KERNELS(floor)
KERNELS(gelu)
KERNELS(hardsigmoid)
KERNELS(hardswish)
KERNELS(leakyrelu)
KERNELS(log)
KERNELS(mish)
KERNELS(neg)
KERNELS(reciprocal)
KERNELS(relu)
KERNELS(round)
KERNELS(selu)
KERNELS(shrink)
KERNELS(sigmoid)
KERNELS(sign)
KERNELS(sin)
KERNELS(sinh)
KERNELS(softplus)
KERNELS(softsign)
KERNELS(sqrt)
KERNELS(swish)
KERNELS(tan)
KERNELS(tanh)
KERNELS(thresholdedrelu)
