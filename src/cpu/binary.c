/*
 * Add, Sub, Mul, Div as loops over memory: operands of one shape in one layout, whichever it is; or one of them a
 * scalar or a value per channel. Other broadcasts stay with ref.
 */
#include "cpu/broadcast.h"
#include "op/elementwise.h"

#define CHUNK ((int64_t)1 << 13) /* elements that a thread takes at a time */

/* n elements of z from x and y; either may be one number */
typedef void (*BinaryFn)(const float *x, const float *y, float *z, int64_t n);

typedef struct {
    BinaryFn same, right, left; /* right: y is one number, left: x is */
} Fns;

typedef struct {
    Fns fns;
    int small;                /* operand with fewer elements; -1: none */
    int64_t outer, mid, tail; /* z[outer, mid, tail] from big[outer, mid, tail] and small[outer % repeat, tail] */
    int64_t repeat;
    int threads;
} Binary;

#define DEFINE_FNS(name, OP)                                                      \
    static void name##_same(const float *x, const float *y, float *z, int64_t n)  \
    {                                                                             \
        for (int64_t i = 0; i < n; i++)                                           \
            z[i] = x[i] OP y[i];                                                  \
    }                                                                             \
    static void name##_right(const float *x, const float *y, float *z, int64_t n) \
    {                                                                             \
        const float b = *y;                                                       \
        for (int64_t i = 0; i < n; i++)                                           \
            z[i] = x[i] OP b;                                                     \
    }                                                                             \
    static void name##_left(const float *x, const float *y, float *z, int64_t n)  \
    {                                                                             \
        const float a = *x;                                                       \
        for (int64_t i = 0; i < n; i++)                                           \
            z[i] = a OP y[i];                                                     \
    }                                                                             \
    static const Fns name##_fns = { name##_same, name##_right, name##_left };

DEFINE_FNS(add, +)
DEFINE_FNS(sub, -)
DEFINE_FNS(mul, *)
DEFINE_FNS(divide, /)

static gboolean same_dims(const HnTensor *a, const HnTensor *b)
{
    gboolean same = a->ndim == b->ndim;
    for (int i = 0; i < a->ndim && same; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

/* t has a value for each channel of y, and for each sample or for all alike: axes [N or 1, C, 1, 1...] from the right.
 */
static gboolean per_channel(const HnTensor *t, const HnTensor *y)
{
    if (y->ndim < 3 || t->ndim < y->ndim - 1 || t->ndim > y->ndim)
        return FALSE;
    const int64_t *dims = t->dims + (t->ndim - y->ndim + 1); /* of the channels */
    for (int i = 1; i < y->ndim - 1; i++)
        if (dims[i] != 1)
            return FALSE;
    return dims[0] == y->dims[1] && (t->ndim < y->ndim || t->dims[0] == 1 || t->dims[0] == y->dims[0]);
}

/* The operand that broadcasts, -1: none. Or why there is no loop for it. */
static const char *small_of(const HnStep *s, int *small)
{
    const HnTensor *x = hn_cpu_in(s, 0), *y = hn_cpu_in(s, 1), *z = s->out[0].slot->tensor;
    *small = -1;
    if (same_dims(x, z) && same_dims(y, z))
        return NULL;
    *small = same_dims(x, z) ? 1 : 0;
    if (!same_dims(*small == 1 ? x : y, z))
        return "both operands broadcast";
    const HnTensor *t = *small == 1 ? y : x;
    if (t->n == 1 || (!((const HnBinary *)s->params)->limited && per_channel(t, z)))
        return NULL;
    return "an operand broadcasts, and not along channels";
}

static const char *binary_reject(const HnStep *s)
{
    int small;
    for (int i = 0; i < 2; i++)
        if (hn_cpu_in(s, i)->dtype != HN_F32)
            return "only f32";
    return s->out[0].slot->tensor->n == 0 ? "nothing to compute" : small_of(s, &small);
}

/* Axes as the loops see them, for z in layout l. FALSE: the loops cannot work in it. */
static gboolean place(Binary *b, const HnTensor *z, const HnTensor *t, const HnLayout *l)
{
    int64_t n = z->dims[0], c = z->ndim > 1 ? z->dims[1] : 1, block;
    if (hn_layout_padded(l))
        return FALSE;
    if (t->n == 1) {
        b->outer = b->tail = 1;
        b->mid = z->n;
        b->repeat = 1;
        return TRUE;
    }
    switch (l != NULL ? (int)hn_layout_tag(l) : -1) {
    case -1:
        block = 1;
        break;
    case dnnl_nCw8c:
    case dnnl_nChw8c:
    case dnnl_nCdhw8c:
        block = 8;
        break;
    case dnnl_nCw16c:
    case dnnl_nChw16c:
    case dnnl_nCdhw16c:
        block = 16;
        break;
    case dnnl_nwc:
    case dnnl_nhwc:
    case dnnl_ndhwc:
        block = c;
        break;
    default:
        return FALSE;
    }
    b->outer = n * (c / block);
    b->mid = z->n / (n * c);
    b->tail = block;
    b->repeat = t->n / block;
    return TRUE;
}

static void prepare_same(HnStep *s)
{
    gboolean keeps_zero = s->op != &hn_op_div;
    HnLayout *l = NULL;
    for (int i = 1; i >= 0; i--)
        if (s->in[i].slot->layout != NULL && (keeps_zero || !hn_layout_padded(s->in[i].slot->layout)))
            l = s->in[i].slot->layout;
    if (l == NULL)
        return;
    s->in[0].want = hn_layout_ref(l);
    s->in[1].want = hn_layout_ref(l);
    s->out[0].slot->layout = hn_layout_ref(l);
}

static gboolean binary_prepare(HnStep *s, GError **error)
{
    (void)error;
    Binary *b = g_new0(Binary, 1);
    s->state = b;
    b->fns = s->op == &hn_op_add ? add_fns : s->op == &hn_op_sub ? sub_fns : s->op == &hn_op_mul ? mul_fns : divide_fns;
    (void)small_of(s, &b->small);
    b->threads = hn_cpu_threads_for(s, 0);
    if (b->small < 0) {
        prepare_same(s);
        return TRUE;
    }
    HnPort *big = &s->in[1 - b->small];
    const HnTensor *z = s->out[0].slot->tensor, *t = hn_cpu_in(s, b->small);
    if (!place(b, z, t, big->slot->layout)) {
        place(b, z, t, NULL);
    } else if (big->slot->layout != NULL) {
        big->any = TRUE;
        s->out[0].slot->layout = hn_layout_ref(big->slot->layout);
    }
    return TRUE;
}

static void run_same(const HnStep *s, const Binary *b)
{
    const float *x = hn_cpu_data(&s->in[0]), *y = hn_cpu_data(&s->in[1]);
    float *z = hn_cpu_data(&s->out[0]);
    int64_t n = hn_slot_elements(s->out[0].slot);
    if (b->threads == 1) {
        b->fns.same(x, y, z, n);
        return;
    }
#pragma omp parallel for num_threads(b->threads)
    for (int64_t i = 0; i < n; i += CHUNK)
        b->fns.same(x + i, y + i, z + i, MIN(CHUNK, n - i));
}

/* One block of channels of one sample. */
static void run_outer(const Binary *b, const float *big, const float *t, float *z)
{
    if (b->tail == 1) {
        if (b->small == 1)
            b->fns.right(big, t, z, b->mid);
        else
            b->fns.left(t, big, z, b->mid);
        return;
    }
    for (int64_t i = 0; i < b->mid * b->tail; i += b->tail)
        if (b->small == 1)
            b->fns.same(big + i, t, z + i, b->tail);
        else
            b->fns.same(t, big + i, z + i, b->tail);
}

static gboolean binary_run(HnStep *s, GError **error)
{
    (void)error;
    const Binary *b = s->state;
    if (b->small < 0) {
        run_same(s, b);
        return TRUE;
    }
    const float *big = hn_cpu_data(&s->in[1 - b->small]), *t = hn_cpu_data(&s->in[b->small]);
    float *z = hn_cpu_data(&s->out[0]);
    int64_t step = b->mid * b->tail;
    if (b->threads == 1) {
        for (int64_t i = 0; i < b->outer; i++)
            run_outer(b, big + i * step, t + i % b->repeat * b->tail, z + i * step);
        return TRUE;
    }
#pragma omp parallel for num_threads(b->threads)
    for (int64_t i = 0; i < b->outer; i++)
        run_outer(b, big + i * step, t + i % b->repeat * b->tail, z + i * step);
    return TRUE;
}

static void binary_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

static const HnKernel binary_loop = {
    .name = "cpu.binary",
    .reject = binary_reject,
    .prepare = binary_prepare,
    .run = binary_run,
    .release = binary_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_add[] = { &binary_loop, &hn_cpu_broadcast, NULL };
const HnKernel *const hn_cpu_sub[] = { &binary_loop, &hn_cpu_broadcast, NULL };
const HnKernel *const hn_cpu_mul[] = { &binary_loop, &hn_cpu_broadcast, NULL };
const HnKernel *const hn_cpu_div[] = { &binary_loop, &hn_cpu_broadcast, NULL };
