/*
 * Arithmetic, comparison and logic of two or more plain operands that broadcast: rows as long as the shapes allow, in
 * f32, f64, i32, i64, u8, bool; f16 and bf16 in f32.
 */
#include "cpu/elementwise/broadcast.h"

#include <math.h>

#include "cpu/core/half_rows.h"
#include "cpu/elementwise/short_rows.h"
#include "cpu/elementwise/unary.h"
#include "op/activation.h"
#include "op/elementwise.h"
#include "op/index.h"

#define HN_LOOPS "cpu/elementwise/broadcast_loops.h"
#include "base/every_level.h"

#define CHUNK ((int64_t)1 << 12) /* elements of a row that a thread takes at a time */
#define PART 512                 /* elements that are converted, or laid out, at a time */
#define SHORT 64                 /* rows below it are computed several at a time */
#define MAX_IN 8

enum { F32, F64, I32, I64, U8, BOOL, TYPES };

typedef struct {
    const HnOp *op;
    HnRowFn fns[TYPES][HN_LEVELS];
} Rows;

#define T(name) HN_TABLE_OF_LEVELS(name)
#define NUMBERS(name) [F32] = T(name##_f32), [F64] = T(name##_f64), [I32] = T(name##_i32), [I64] = T(name##_i64)
#define BITS(name) [I32] = T(name##_i32), [I64] = T(name##_i64), [U8] = T(name##_u8)
static const Rows rows_of[] = {
    { &hn_op_add, { NUMBERS(add) } },
    { &hn_op_sum, { NUMBERS(add) } },
    { &hn_op_sub, { NUMBERS(sub) } },
    { &hn_op_mul, { NUMBERS(mul) } },
    { &hn_op_div, { NUMBERS(div) } },
    { &hn_op_max, { NUMBERS(max) } },
    { &hn_op_min, { NUMBERS(min) } },
    { &hn_op_prelu, { [F32] = T(prelu_f32) } },
    { &hn_op_pow, { [F32] = T(pow_f32) } },
    { &hn_op_gelugrad, { [F32] = T(gelugrad_f32) } },
    { &hn_op_equal, { NUMBERS(equal), [U8] = T(equal_u8), [BOOL] = T(equal_bool) } },
    { &hn_op_greater, { NUMBERS(greater), [U8] = T(greater_u8) } },
    { &hn_op_greaterorequal, { NUMBERS(greaterorequal), [U8] = T(greaterorequal_u8) } },
    { &hn_op_less, { NUMBERS(less), [U8] = T(less_u8) } },
    { &hn_op_lessorequal, { NUMBERS(lessorequal), [U8] = T(lessorequal_u8) } },
    { &hn_op_and, { [BOOL] = T(and_bool) } },
    { &hn_op_or, { [BOOL] = T(or_bool) } },
    { &hn_op_xor, { [BOOL] = T(xor_bool) } },
    { &hn_op_not, { [BOOL] = T(not_bool) } },
    { &hn_op_bitwiseand, { BITS(bits_and) } },
    { &hn_op_bitwiseor, { BITS(bits_or) } },
    { &hn_op_bitwisexor, { BITS(bits_xor) } },
};
/* Mod is two operators, by its attribute, and the gradient of Gelu, too. Floor of floats is ref's. */
static const Rows mod_rows = { &hn_op_mod, { [I32] = T(mod_i32), [I64] = T(mod_i64) } };
static const Rows rem_rows = { &hn_op_mod, { NUMBERS(rem) } };
static const Rows tanh_rows = { &hn_op_gelugrad, { [F32] = T(gelugrad_tanh_f32) } };

HnRowFn hn_broadcast_pair(HnElementCode code)
{
#define HN_PAIR(name) [HN_DO_##name] = T(name##_f32),
    static const HnRowFn rows[HN_DO_CODES][HN_LEVELS] = {
#include "run/element_codes.def"
    };
    return rows[code][hn_cpu_level()];
}
#undef T

/* One pass: output = fn(left, right), where from the second pass on left is the output. */
typedef struct {
    HnBroadcast walk;
    int64_t rows;
    int left, right; /* inputs; left -1: the output */
} Pass;

typedef struct {
    HnRowFn fn;
    HnDtype half; /* HN_UNDEFINED: elements are computed in their own type */
    gsize in_size, out_size;
    int threads, n_pass;
    Pass pass[];
} Broadcast;

static int type_index(HnDtype d)
{
    switch (d) {
    case HN_F32:
    case HN_F16:
    case HN_BF16:
        return F32;
    case HN_F64:
        return F64;
    case HN_I32:
        return I32;
    case HN_I64:
        return I64;
    case HN_U8:
        return U8;
    case HN_BOOL:
        return BOOL;
    default:
        return -1;
    }
}

static const Rows *rows_for(const HnStep *s)
{
    if (s->op == &hn_op_mod)
        return ((const HnBinary *)s->params)->mode == 1 ? &rem_rows : &mod_rows;
    if (s->op == &hn_op_gelugrad && ((const HnActivation *)s->params)->tanh)
        return &tanh_rows;
    for (guint i = 0; i < G_N_ELEMENTS(rows_of); i++)
        if (s->op == rows_of[i].op)
            return &rows_of[i];
    return NULL;
}

static HnRowFn row_fn(const HnStep *s)
{
    const int type = type_index(hn_cpu_in(s, 0)->dtype);
    const Rows *rows = rows_for(s);
    return type < 0 || rows == NULL ? NULL : rows->fns[type][hn_cpu_level()];
}

/* Operators of old opsets and PRelu of them lay the second operand against other axes. */
static gboolean old_axes(const HnStep *s)
{
    if (s->op == &hn_op_max || s->op == &hn_op_min || s->op == &hn_op_sum || s->op == &hn_op_not)
        return FALSE;
    const HnTensor *y = hn_cpu_in(s, 1);
    return s->node->version < 7 && y->n != 1 && !hn_tensor_same_dims(y, s->out[0].slot->tensor);
}

static const char *broadcast_reject(const HnStep *s)
{
    const HnTensor *z = s->out[0].slot->tensor;
    if (row_fn(s) == NULL)
        return "a type without loops";
    if (z->n == 0)
        return "nothing to compute";
    if (s->op == &hn_op_sum && s->n_in != 2)
        return "not 2 inputs, the sum of which is rounded once";
    if (s->n_in > MAX_IN)
        return "more than 8 inputs";
    if (hn_dtype_is_half(hn_cpu_in(s, 0)->dtype) && s->n_in > 2)
        return "more than 2 inputs of a half type";
    for (int i = 0; i < s->n_in; i++)
        if (hn_cpu_in(s, i) == NULL || hn_cpu_in(s, i)->dtype != hn_cpu_in(s, 0)->dtype)
            return "inputs of different types";
        else if (!hn_broadcasts_to(hn_cpu_in(s, i), z))
            return "an input that does not broadcast as numpy's";
        else if (i > 1 && s->in[i].slot == s->in[0].slot) /* the first pass may be in its place */
            return "one tensor as first and later input";
    return old_axes(s) ? "axes as in old opsets" : NULL;
}

static void pass_start(Pass *p, const HnStep *s, int left, int right)
{
    const HnTensor *z = s->out[0].slot->tensor;
    int64_t strides[2][HN_MAX_RANK];
    p->left = left;
    p->right = right;
    hn_broadcast_strides(left < 0 ? z : hn_cpu_in(s, left), z->ndim, strides[0]);
    hn_broadcast_strides(hn_cpu_in(s, right), z->ndim, strides[1]);
    hn_broadcast_start(&p->walk, z->ndim, z->dims, 2, strides);
    p->rows = p->walk.total / p->walk.n;
}

static gboolean broadcast_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = hn_cpu_in(s, 0);
    int n_pass = MAX(s->n_in - 1, 1);
    Broadcast *b = g_malloc0(sizeof *b + (gsize)n_pass * sizeof *b->pass);
    s->state = b;
    b->fn = row_fn(s);
    b->half = hn_dtype_is_half(x->dtype) ? x->dtype : HN_UNDEFINED;
    b->in_size = hn_dtype_size(x->dtype);
    b->out_size = hn_dtype_size(s->out[0].slot->tensor->dtype);
    b->threads = hn_cpu_threads_for(s, 0);
    b->n_pass = n_pass;
    for (int i = 0; i < n_pass; i++)
        pass_start(&b->pass[i], s, i == 0 ? 0 : -1, s->n_in > 1 ? i + 1 : 0);
    return TRUE;
}

/* n elements of a row of half elements */
static void half_row(const Broadcast *b, void *z, const void *x, const void *y, int64_t n, int sx, int sy)
{
    const uint16_t *left = x, *right = y;
    for (int64_t at = 0; at < n; at += PART) {
        float p[PART], q[PART], r[PART];
        const int64_t m = MIN(PART, n - at);
        hn_cpu_half_to_f32(b->half, p, left + (sx != 0 ? at : 0), sx != 0 ? m : 1);
        hn_cpu_half_to_f32(b->half, q, right + (sy != 0 ? at : 0), sy != 0 ? m : 1);
        if (b->out_size == sizeof(uint16_t)) {
            b->fn(r, p, q, m, sx, sy);
            hn_cpu_half_from_f32(b->half, (uint16_t *)z + at, r, m);
        } else {
            b->fn((uint8_t *)z + at, p, q, m, sx, sy);
        }
    }
}

static void one_row(const Broadcast *b, const Pass *p, char *z, const char *x, const char *y, int64_t from, int64_t n)
{
    const int sx = p->walk.step[0], sy = p->walk.step[1];
    z += (gsize)from * b->out_size;
    x += (gsize)(sx * from) * b->in_size;
    y += (gsize)(sy * from) * b->in_size;
    if (b->half != HN_UNDEFINED)
        half_row(b, z, x, y, n, sx, sy);
    else
        b->fn(z, x, y, n, sx, sy);
}

/* Where operand j of so many rows along the last axis outside of them lies as one row: its own place, or `part`. */
static const char *as_row(const Broadcast *b, const HnBroadcast *w, int j, const char *x, int64_t rows, char *part,
                          int *step)
{
    const int64_t stride = w->strides[j][w->ndim - 1];
    *step = w->step[j] != 0 || stride != 0;
    if (stride == (w->step[j] != 0 ? w->n : 0))
        return x;
    hn_short_rows(part, x, b->in_size, rows, w->n, stride, w->step[j]);
    return part;
}

static void some_rows(const Broadcast *b, const HnBroadcast *w, char *z, const char *x, const char *y, int64_t rows)
{
    double left[PART], right[PART]; /* the largest of elements */
    int sx, sy;
    x = as_row(b, w, 0, x, rows, (char *)left, &sx);
    y = as_row(b, w, 1, y, rows, (char *)right, &sy);
    b->fn(z, x, y, rows * w->n, sx, sy);
}

/* Rows [from, to) */
static void run_rows(const Broadcast *b, const Pass *p, char *z, const char *x, const char *y, int64_t from, int64_t to)
{
    HnBroadcast w = p->walk;
    for (int j = 0; j < w.k; j++)
        w.rows[j] = w.strides[j];
    int64_t rest = from;
    for (int i = w.ndim - 1; i >= 0; i--) {
        w.idx[i] = rest % w.dims[i];
        rest /= w.dims[i];
        for (int j = 0; j < w.k; j++)
            w.off[j] += w.idx[i] * w.strides[j][i];
    }
    const int last = w.ndim - 1;
    const gboolean some = b->half == HN_UNDEFINED && w.n < SHORT && last >= 0;
    for (int64_t r = from, n = 1; r < to; r += n) {
        const char *left = x + (gsize)w.off[0] * b->in_size, *right = y + (gsize)w.off[1] * b->in_size;
        n = some ? MIN(MIN(to - r, PART / w.n), w.dims[last] - w.idx[last]) : 1;
        if (n > 1)
            some_rows(b, &w, z + (gsize)(r * w.n) * b->out_size, left, right, n);
        else
            one_row(b, p, z + (gsize)(r * w.n) * b->out_size, left, right, 0, w.n);
        for (int j = 0; j < w.k && n > 1; j++)
            w.off[j] += (n - 1) * w.strides[j][last];
        if (n > 1)
            w.idx[last] += n - 1;
        hn_broadcast_next(&w);
    }
}

static void run_pass(const Broadcast *b, const Pass *p, char *z, const char *x, const char *y)
{
    const int64_t n = p->walk.n;
    if (b->threads == 1) {
        run_rows(b, p, z, x, y, 0, p->rows);
    } else if (p->rows == 1) {
#pragma omp parallel for num_threads(b->threads)
        for (int64_t i = 0; i < n; i += CHUNK)
            one_row(b, p, z, x, y, i, MIN(CHUNK, n - i));
    } else {
#pragma omp parallel for num_threads(b->threads)
        for (int t = 0; t < b->threads; t++)
            run_rows(b, p, z, x, y, p->rows * t / b->threads, p->rows * (t + 1) / b->threads);
    }
}

static gboolean broadcast_run(HnStep *s, GError **error)
{
    (void)error;
    const Broadcast *b = s->state;
    char *z = hn_cpu_data(&s->out[0]);
    for (int i = 0; i < b->n_pass; i++) {
        const Pass *p = &b->pass[i];
        run_pass(b, p, z, p->left < 0 ? z : hn_cpu_data(&s->in[p->left]), hn_cpu_data(&s->in[p->right]));
    }
    return TRUE;
}

static void broadcast_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

const HnKernel hn_cpu_broadcast = {
    .name = "cpu.broadcast",
    .reject = broadcast_reject,
    .prepare = broadcast_prepare,
    .run = broadcast_run,
    .release = broadcast_release,
    .inplace = TRUE,
};

#define KERNELS(symbol) const HnKernel *const hn_cpu_##symbol[] = { &hn_cpu_broadcast, NULL };
KERNELS(and)
KERNELS(bitwiseand)
KERNELS(bitwiseor)
KERNELS(bitwisexor)
KERNELS(equal)
KERNELS(gelugrad)
KERNELS(greater)
KERNELS(greaterorequal)
KERNELS(less)
KERNELS(lessorequal)
KERNELS(max)
KERNELS(min)
KERNELS(mod)
KERNELS(not )
KERNELS(or)
KERNELS(prelu)
KERNELS(xor)
const HnKernel *const hn_cpu_pow[] = { &hn_cpu_unary, &hn_cpu_broadcast, NULL };
