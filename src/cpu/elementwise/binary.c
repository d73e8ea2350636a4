/*
 * Add, Sub, Mul, Div as loops over memory: operands of one shape in one layout, whichever it is; or one of them a
 * scalar or a value per channel. Other broadcasts stay with ref.
 */
#include "cpu/elementwise/broadcast.h"
#include "cpu/core/cpu_level.h"
#include "op/elementwise.h"

#define CHUNK ((int64_t)1 << 12) /* elements that a thread takes at a time */

/* m rows of n elements of z from x and y, of which one may be smaller */
typedef void (*BinaryFn)(const float *x, const float *y, float *z, int64_t m, int64_t n);

#define HN_LOOPS "cpu/elementwise/binary_loops.h"
#include "base/every_level.h"

typedef enum { SAME, RIGHT, LEFT, ROWS_RIGHT, ROWS_LEFT, WAYS } Way;

typedef struct {
    BinaryFn fn;
    int small;                /* operand with fewer elements; -1: none */
    int64_t outer, mid, tail; /* z[outer, mid, tail] from big[outer, mid, tail] and small[outer % repeat, tail] */
    int64_t repeat;
    int threads;
} Binary;

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
    if (hn_tensor_same_dims(x, z) && hn_tensor_same_dims(y, z))
        return NULL;
    *small = hn_tensor_same_dims(x, z) ? 1 : 0;
    if (!hn_tensor_same_dims(*small == 1 ? x : y, z))
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

/* Axes as the loops see them, for z plain or channels last. */
static void place(Binary *b, const HnTensor *z, const HnTensor *t, gboolean last)
{
    const int64_t n = z->dims[0], c = z->ndim > 1 ? z->dims[1] : 1;
    if (t->n == 1) {
        b->outer = b->tail = b->repeat = 1;
        b->mid = z->n;
        return;
    }
    b->outer = last ? n : n * c;
    b->mid = z->n / (n * c);
    b->tail = last ? c : 1;
    b->repeat = t->n / b->tail;
}

static BinaryFn choose(const HnStep *s, const Binary *b)
{
#define WAYS_OF(name)                                                                                       \
    {                                                                                                       \
        HN_TABLE_OF_LEVELS(name##_same), HN_TABLE_OF_LEVELS(name##_right), HN_TABLE_OF_LEVELS(name##_left), \
            HN_TABLE_OF_LEVELS(name##_rows_right), HN_TABLE_OF_LEVELS(name##_rows_left)                     \
    }
    static const BinaryFn fns[][WAYS][HN_LEVELS] = { WAYS_OF(add), WAYS_OF(sub), WAYS_OF(mul), WAYS_OF(div) };
#undef WAYS_OF
    static const HnOp *const ops[] = { &hn_op_add, &hn_op_sub, &hn_op_mul, &hn_op_div };
    guint op = 0;
    while (ops[op] != s->op)
        op++;
    const Way way = b->small < 0    ? SAME
                    : b->tail == 1  ? (b->small == 1 ? RIGHT : LEFT)
                    : b->small == 1 ? ROWS_RIGHT
                                    : ROWS_LEFT;
    return fns[op][way][hn_cpu_level()];
}

/* Operands of one shape, in a layout of one of them: channels last rather than another. */
static void prepare_same(HnStep *s)
{
    const gboolean keeps_zero = s->op != &hn_op_div;
    HnLayout *l = NULL;
    for (int i = 1; i >= 0; i--) {
        HnLayout *of = s->in[i].slot->layout;
        if (of != NULL && !hn_layout_is_last(l) && (keeps_zero || !hn_layout_padded(of)))
            l = of;
    }
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
    (void)small_of(s, &b->small);
    b->threads = hn_cpu_threads_for(s, 0);
    if (b->small < 0) {
        prepare_same(s);
        b->outer = b->repeat = b->tail = 1;
        b->mid = hn_slot_elements(s->out[0].slot);
    } else {
        HnPort *big = &s->in[1 - b->small];
        const HnTensor *z = s->out[0].slot->tensor, *t = hn_cpu_in(s, b->small);
        HnLayout *l = big->slot->layout;
        const gboolean last = hn_layout_is_last(l);
        place(b, z, t, last);
        if (last || (l != NULL && t->n == 1 && !hn_layout_padded(l))) {
            big->any = TRUE;
            s->out[0].slot->layout = hn_layout_ref(l);
        }
    }
    b->fn = choose(s, b);
    return TRUE;
}

/* Rows [lo, hi) of `tail` elements, counted over all pieces. */
static void run_rows(const HnStep *s, int64_t lo, int64_t hi)
{
    const Binary *b = s->state;
    const float *x = hn_cpu_data(&s->in[0]), *y = hn_cpu_data(&s->in[1]);
    float *z = hn_cpu_data(&s->out[0]);
    for (int64_t m; lo < hi; lo += m) {
        const int64_t outer = lo / b->mid, at = lo * b->tail, small = outer % b->repeat * b->tail;
        m = MIN(hi, (outer + 1) * b->mid) - lo;
        b->fn(x + (b->small == 0 ? small : at), y + (b->small == 1 ? small : at), z + at, m, b->tail);
    }
}

static gboolean binary_run(HnStep *s, GError **error)
{
    (void)error;
    const Binary *b = s->state;
    const int64_t rows = b->outer * b->mid, chunk = MAX(CHUNK / b->tail, 1);
    if (b->threads == 1) {
        run_rows(s, 0, rows);
        return TRUE;
    }
#pragma omp parallel for num_threads(b->threads)
    for (int64_t i = 0; i < rows; i += chunk)
        run_rows(s, i, MIN(rows, i + chunk));
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
