/*
 * Functions of one number as loops over memory, in whatever layout the source has, so that blocked regions do not end
 * at each of them. NaN comes through all of them. f16 and bf16 are computed in f32.
 */
#include "cpu/elementwise/unary.h"

#include "cpu/core/half_rows.h"

#define HN_LOOPS "cpu/elementwise/unary_loops.h"
#include "base/every_level.h"

#define CHUNK ((int64_t)1 << 12) /* elements that a thread takes at a time */
#define PART 1024                /* elements that are converted at a time */

typedef struct {
    HnUnary u;
    HnDtype type;
    int threads;
} Unary;

HnUnary hn_unary_fn(const HnElementFn *f)
{
#define HN_FUNCTION(name) [HN_DO_##name] = HN_TABLE_OF_LEVELS(do_##name),
    static const HnUnaryFn fns[HN_DO_CODES][HN_LEVELS] = {
#include "run/element_codes.def"
    };
    return (HnUnary){ fns[f->code][hn_cpu_level()], f->a, f->b };
}

const char *hn_unary_of(const HnOp *op, const void *params, const HnOperand *in, int n_in, HnUnary *u)
{
    HnElementFn f;
    const char *why = hn_element_fn(op, params, in, n_in, &f);
    *u = why == NULL ? hn_unary_fn(&f) : (HnUnary){ 0 };
    return why;
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
