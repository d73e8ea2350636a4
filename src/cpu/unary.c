/*
 * Functions of one number as loops over memory, in whatever layout the source has, so that blocked regions do not end
 * at each of them. NaN comes through all of them. f16 and bf16 are computed in f32.
 */
#include "cpu/unary.h"

#include <float.h>

#include "cpu/half.h"
#include "op/activation.h"
#include "op/clip.h"

#define HN_LEVEL plain
#include "cpu/unary_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/unary_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/unary_loops.h"
#undef HN_LEVEL

#define CHUNK ((int64_t)1 << 13) /* elements that a thread takes at a time */
#define PART 1024                /* elements that are converted at a time */

typedef void (*UnaryFn)(const float *x, float *y, int64_t n, float a, float b);

typedef struct {
    UnaryFn fn;
    float a, b;
    HnDtype type;
    int threads;
} Unary;

#define FNS(symbol) static const UnaryFn symbol##_fns[HN_LEVELS] = HN_TABLE_OF_LEVELS(do_##symbol);
FNS(abs)
FNS(ceil)
FNS(celu)
FNS(clip)
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
FNS(sigmoid)
FNS(sign)
FNS(sine)
FNS(softplus)
FNS(softsign)
FNS(sqrt)
FNS(square)
FNS(swish)
FNS(tanh)
FNS(thresholdedrelu)

/* Functions without parameters. */
static const struct {
    const HnOp *op;
    const UnaryFn *fns;
} simple[] = {
    { &hn_op_abs, abs_fns },           { &hn_op_ceil, ceil_fns },
    { &hn_op_erf, erf_fns },           { &hn_op_exp, exp_fns },
    { &hn_op_floor, floor_fns },       { &hn_op_hardswish, hardswish_fns },
    { &hn_op_log, log_fns },           { &hn_op_mish, mish_fns },
    { &hn_op_neg, neg_fns },           { &hn_op_reciprocal, reciprocal_fns },
    { &hn_op_relu, relu_fns },         { &hn_op_round, round_fns },
    { &hn_op_sigmoid, sigmoid_fns },   { &hn_op_sign, sign_fns },
    { &hn_op_sin, sine_fns },          { &hn_op_softplus, softplus_fns },
    { &hn_op_softsign, softsign_fns }, { &hn_op_sqrt, sqrt_fns },
    { &hn_op_tanh, tanh_fns },
};

/* A number that is there and does not change, or `absent`. */
static gboolean constant_of(const HnStep *s, int i, float absent, float *value)
{
    const HnTensor *t = hn_cpu_in(s, i);
    if (t != NULL && (!s->in[i].slot->constant || t->n != 1))
        return FALSE;
    *value = t != NULL ? (float)hn_tensor_get_f64(t, 0) : absent;
    return TRUE;
}

static const char *clip_of(const HnStep *s, Unary *u)
{
    const HnClip *c = s->params;
    u->fn = clip_fns[hn_cpu_level()];
    u->a = c->has_min ? c->min : -FLT_MAX;
    u->b = c->has_max ? c->max : FLT_MAX;
    return constant_of(s, 1, u->a, &u->a) && constant_of(s, 2, u->b, &u->b) ? NULL : "bounds that are not constant";
}

static const char *pow_of(const HnStep *s, Unary *u)
{
    if (hn_cpu_in(s, 0)->n != s->out[0].slot->tensor->n || !constant_of(s, 1, 1, &u->a))
        return "an exponent that is not one constant";
    const UnaryFn *fns = u->a == 2 ? square_fns : u->a == 3 ? cube_fns : u->a == -1 ? reciprocal_fns : power_fns;
    u->fn = fns[hn_cpu_level()];
    return NULL;
}

/* Those whose parameters come from attributes. */
static void activation_of(const HnStep *s, Unary *u)
{
    const HnActivation *p = s->params;
    const UnaryFn *fns = NULL;
    u->a = (float)p->a;
    u->b = (float)p->b;
    if (s->op == &hn_op_celu) {
        fns = celu_fns;
        u->b = (float)(1 / p->a);
    } else if (s->op == &hn_op_elu) {
        fns = elu_fns;
    } else if (s->op == &hn_op_gelu) {
        fns = p->tanh ? gelu_tanh_fns : gelu_fns;
    } else if (s->op == &hn_op_hardsigmoid) {
        fns = hardsigmoid_fns;
    } else if (s->op == &hn_op_leakyrelu) {
        fns = leakyrelu_fns;
    } else if (s->op == &hn_op_selu) {
        fns = selu_fns;
    } else if (s->op == &hn_op_swish) {
        fns = swish_fns;
    } else {
        fns = thresholdedrelu_fns;
    }
    u->fn = fns[hn_cpu_level()];
}

static const char *unary_of(const HnStep *s, Unary *u)
{
    *u = (Unary){ .type = hn_cpu_in(s, 0)->dtype };
    if (s->op == &hn_op_clip)
        return clip_of(s, u);
    if (s->op == &hn_op_pow)
        return pow_of(s, u);
    for (guint i = 0; i < G_N_ELEMENTS(simple); i++)
        if (s->op == simple[i].op)
            u->fn = simple[i].fns[hn_cpu_level()];
    if (s->op == &hn_op_cos) {
        u->fn = sine_fns[hn_cpu_level()];
        u->b = 1;
    }
    if (u->fn == NULL)
        activation_of(s, u);
    return NULL;
}

static const char *unary_reject(const HnStep *s)
{
    Unary u;
    HnDtype d = hn_cpu_in(s, 0)->dtype;
    return d != HN_F32 && !hn_cpu_is_half(d) ? "only f32, f16, bf16" : unary_of(s, &u);
}

/* The padding of a blocked layout has to stay 0. */
static gboolean keeps_zero(const Unary *u)
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
    (void)unary_of(s, u);
    u->threads = hn_cpu_threads_for(s, 0);
    HnSlot *from = s->in[0].slot;
    s->in[0].any = from->layout != NULL && from->tensor->ndim == s->out[0].slot->tensor->ndim &&
                   (keeps_zero(u) || !hn_layout_padded(from->layout));
    if (s->in[0].any)
        s->out[0].slot->layout = hn_layout_ref(from->layout);
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = s->in[i].slot != NULL;
    return TRUE;
}

/* Elements [from, from + n) */
static void run_range(const Unary *u, const void *x, void *y, int64_t from, int64_t n)
{
    if (u->type == HN_F32) {
        u->fn((const float *)x + from, (float *)y + from, n, u->a, u->b);
        return;
    }
    const uint16_t *half = (const uint16_t *)x + from;
    uint16_t *to = (uint16_t *)y + from;
    for (int64_t i = 0; i < n; i += PART) {
        float part[PART];
        int64_t m = MIN(PART, n - i);
        hn_cpu_half_to_f32(u->type, part, half + i, m);
        u->fn(part, part, m, u->a, u->b);
        hn_cpu_half_from_f32(u->type, to + i, part, m);
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
KERNELS(ceil)
KERNELS(celu)
KERNELS(clip)
KERNELS(cos)
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
KERNELS(sigmoid)
KERNELS(sign)
KERNELS(sin)
KERNELS(softplus)
KERNELS(softsign)
KERNELS(sqrt)
KERNELS(swish)
KERNELS(tanh)
KERNELS(thresholdedrelu)
