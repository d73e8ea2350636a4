/*
 * Groups of element-wise nodes in one pass over memory: a program runs over tiles that stay in the first cache.
 *
 * The result is rows of n elements, as long as the inputs' broadcasting allows. A tile is a piece of a row, or as many
 * short rows as it has room for. An input that lies in the tile as the result does, or is one number there, is read
 * where it is; others (of another type, or repeated in some other way) are laid out in a tile of their own first.
 */
#include "cpu/elementwise/fused_elementwise.h"

#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "cpu/core/half_rows.h"
#include "cpu/elementwise/elementwise_program.h"
#include "cpu/elementwise/short_rows.h"
#include "op/index.h"

#define TILE 1024        /* elements */
#define SHORT (TILE / 2) /* rows below it share a tile */

#define OPERANDS (HN_GROUP_PORTS + HN_GROUP_NODES + 1)

typedef struct {
    HnDtype type;
    gsize size;       /* of an element */
    int64_t *strides; /* of the axes outside the rows; behind the group's inputs */
    int step;         /* within a row */
    gboolean staged;  /* through a tile of its own */
    gboolean once;    /* which is the same for all tiles */
    gboolean number;  /* one for all of the result */
} Input;

typedef struct {
    HnElementwise *program;
    int n_in, n_operands, n_tiles; /* inputs; with registers and the result; tiles of scratch memory per thread */
    int ndim;                      /* axes outside the rows */
    int64_t dims[HN_MAX_RANK];
    int64_t rows, n, total;  /* rows, elements of one, of all */
    int64_t room, per, many; /* elements of a tile; rows in one (0: pieces of rows); tiles in all */
    HnDtype type;            /* of the result */
    int threads;
    int *step; /* of operands */
    Input in[];
} Fused;

/* --- preparing -------------------------------------------------------------------------------------------------------
 */

/* Can the step be computed with the inputs of the result's shape, and the result, in this layout? */
static gboolean fits(const HnStep *s, const HnLayout *l)
{
    const HnTensor *z = s->out[0].slot->tensor;
    gboolean ok = hn_layout_is_last(l) || (!hn_layout_padded(l) && z->dtype == HN_F32);
    for (int i = 0; i < s->n_in && ok && !hn_layout_is_last(l); i++) {
        const HnTensor *x = s->in[i].slot->tensor;
        ok = hn_tensor_same_dims(x, z) ? x->dtype == HN_F32 : x->n == 1;
    }
    return ok;
}

/* A layout that inputs of the result's shape lie in, as many as are plain at least; NULL: plain. */
static HnLayout *common_layout(const HnStep *s)
{
    HnLayout *l = NULL;
    int votes = 0;
    for (int i = 0; i < s->n_in; i++) {
        const HnSlot *slot = s->in[i].slot;
        if (!hn_tensor_same_dims(slot->tensor, s->out[0].slot->tensor))
            continue;
        l = l == NULL ? slot->layout : l;
        votes += slot->layout == NULL ? -1 : 1;
    }
    return l != NULL && votes >= 0 && fits(s, l) ? l : NULL;
}

/* Axes as the result's elements lie in layout l; those of one element are left out. */
static int axes_of(const HnTensor *z, const HnLayout *l, int *axis)
{
    const gboolean last = hn_layout_is_last(l);
    int n = 0;
    for (int i = 0; i < z->ndim; i++) {
        const int k = !last || i == 0 ? i : i < z->ndim - 1 ? i + 1 : 1;
        if (z->dims[k] != 1)
            axis[n++] = k;
    }
    return n;
}

/* Strides of an input along these axes. */
static void strides_of(const HnTensor *x, const HnTensor *z, const HnLayout *l, int n, const int *axis,
                       int64_t *strides)
{
    int64_t plain[HN_MAX_RANK], at = 1;
    hn_broadcast_strides(x, z->ndim, plain);
    for (int k = n - 1; k >= 0; k--) {
        strides[k] = l != NULL && hn_tensor_same_dims(x, z) ? at : plain[axis[k]];
        at *= z->dims[axis[k]];
    }
}

typedef int64_t Strides[HN_MAX_RANK];

/* Makes one axis of those that all inputs walk through as one: how many are left. */
static int merge_axes(int n, int64_t *dims, int n_in, Strides *strides)
{
    for (int k = n - 2; k >= 0; k--) {
        gboolean one = TRUE;
        for (int i = 0; i < n_in && one; i++)
            one = strides[i][k] == strides[i][k + 1] * dims[k + 1];
        if (!one)
            continue;
        dims[k + 1] *= dims[k];
        memmove(dims + k, dims + k + 1, (gsize)(n - 1 - k) * sizeof *dims);
        for (int i = 0; i < n_in; i++)
            memmove(strides[i] + k, strides[i] + k + 1, (gsize)(n - 1 - k) * sizeof *dims);
        n--;
    }
    return n;
}

/* Rows and the axes around them for a layout. FALSE: within a row some input would advance by more than 1. */
static gboolean find_rows(Fused *r, const HnStep *s, const HnLayout *l)
{
    const HnTensor *z = s->out[0].slot->tensor;
    int axis[HN_MAX_RANK], n = axes_of(z, l, axis);
    int64_t dims[HN_MAX_RANK];
    g_autofree Strides *strides = g_new0(Strides, (gsize)r->n_in + 1);
    for (int k = 0; k < n; k++)
        dims[k] = z->dims[axis[k]];
    for (int i = 0; i < r->n_in; i++)
        strides_of(s->in[i].slot->tensor, z, l, n, axis, strides[i]);
    n = merge_axes(n, dims, r->n_in, strides);
    r->ndim = MAX(n - 1, 0);
    r->n = n > 0 ? dims[n - 1] : 1;
    memcpy(r->dims, dims, (gsize)r->ndim * sizeof *dims);
    for (int i = 0; i < r->n_in; i++) {
        const int64_t step = n > 0 ? strides[i][n - 1] : 0;
        if (step != 0 && step != 1)
            return FALSE;
        r->in[i].step = (int)step;
        memcpy(r->in[i].strides, strides[i], (gsize)r->ndim * sizeof(int64_t));
    }
    return TRUE;
}

static HnLayout *as_in(HnLayout *l, const HnTensor *t)
{
    return hn_layout_is_last(l) ? hn_layout_last(t) : hn_layout_ref(l);
}

/* How each input gets into a tile. */
static void place_inputs(Fused *r)
{
    int64_t whole[HN_MAX_RANK];
    hn_strides(r->ndim, r->dims, whole);
    for (int i = 0; i < r->n_in; i++) {
        Input *in = &r->in[i];
        gboolean fixed = TRUE, full = in->step == 1 || r->n == 1;
        for (int k = 0; k < r->ndim; k++) {
            fixed = fixed && in->strides[k] == 0;
            full = full && in->strides[k] == whole[k] * r->n;
        }
        const gboolean number = fixed && in->step == 0, as_it_is = r->per == 0 || full || number;
        in->staged = in->type != HN_F32 || !as_it_is;
        in->once = in->staged && fixed && (r->per > 0 || number);
        in->number = number;
        r->step[i] = !number && (in->staged || r->per > 0 || in->step != 0);
    }
}

static gboolean fused_prepare(HnStep *s, GError **error)
{
    (void)error;
    const gsize ndim = (gsize)s->out[0].slot->tensor->ndim;
    Fused *r = g_malloc0(sizeof *r + (gsize)s->n_in * (sizeof(Input) + ndim * sizeof(int64_t)));
    s->state = r;
    for (int i = 0; i < s->n_in; i++)
        r->in[i].strides = (int64_t *)(void *)&r->in[s->n_in] + (gsize)i * ndim;
    r->program = hn_elementwise_new(s);
    r->n_in = s->n_in;
    r->n_operands = s->n_in + hn_elementwise_registers(r->program) + 1;
    r->step = g_new(int, r->n_operands);
    for (int i = 0; i < r->n_operands; i++)
        r->step[i] = 1;
    HnSlot *z = s->out[0].slot;
    HnLayout *l = common_layout(s);
    if (!find_rows(r, s, l)) {
        l = NULL;
        find_rows(r, s, l);
    }
    if (l != NULL) {
        z->layout = as_in(l, z->tensor);
        for (int i = 0; i < s->n_in; i++)
            if (hn_tensor_same_dims(s->in[i].slot->tensor, z->tensor))
                s->in[i].want = as_in(l, s->in[i].slot->tensor);
    }
    r->type = z->tensor->dtype;
    r->total = z->tensor->n;
    r->rows = r->n > 0 ? r->total / r->n : 0;
    r->per = r->rows > 1 && r->n < SHORT ? MIN(TILE / MAX(r->n, 1), r->rows) : 0;
    r->many = r->total == 0 ? 0 : r->per > 0 ? (r->rows + r->per - 1) / r->per : r->rows * ((r->n + TILE - 1) / TILE);
    r->room = (MIN(TILE, r->total) + 15) / 16 * 16;
    r->n_tiles = hn_elementwise_registers(r->program) + (r->type != HN_F32);
    for (int i = 0; i < s->n_in; i++) {
        r->in[i].type = s->in[i].slot->tensor->dtype;
        r->in[i].size = hn_dtype_size(r->in[i].type);
    }
    place_inputs(r);
    for (int i = 0; i < s->n_in; i++)
        r->n_tiles += r->in[i].staged;
    r->threads = (int)MIN(hn_cpu_threads_for(s, hn_elementwise_flops(r->program) * (double)r->total), MAX(r->many, 1));
    s->scratch_bytes = (gsize)(r->room * r->n_tiles * r->threads) * sizeof(float);
    return TRUE;
}

/* --- running ---------------------------------------------------------------------------------------------------------
 */

#define CONVERT(T, EXPR)                  \
    {                                     \
        const T *from = x;                \
        for (int64_t i = 0; i < n; i++) { \
            const T v = from[i];          \
            y[i] = (float)(EXPR);         \
        }                                 \
        break;                            \
    }

/* n elements of any type that a program takes */
static void to_f32(float *y, HnDtype type, const void *x, int64_t n)
{
    switch (type) {
    case HN_F32:
        memcpy(y, x, (gsize)n * sizeof *y);
        break;
    case HN_F16:
    case HN_BF16:
        hn_cpu_half_to_f32(type, y, x, n);
        break;
    case HN_F64:
        CONVERT(double, v)
    case HN_BOOL:
        CONVERT(uint8_t, v != 0)
    case HN_U8:
        CONVERT(uint8_t, v)
    case HN_I8:
        CONVERT(int8_t, v)
    case HN_I32:
        CONVERT(int32_t, v)
    default: /* HN_I64 */
        CONVERT(int64_t, v)
    }
}

static void from_f32(HnDtype type, void *z, const float *x, int64_t n)
{
    uint8_t *truth = z;
    if (type != HN_BOOL) {
        hn_cpu_half_from_f32(type, z, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        truth[i] = x[i] != 0;
}

/* m elements of a row that begins at x: as they are, or one number. */
static void stage_row(const Input *in, float *y, const char *x, int64_t m)
{
    if (in->step != 0) {
        to_f32(y, in->type, x, m);
        return;
    }
    to_f32(y, in->type, x, 1);
    const float v = *y;
    for (int64_t k = 1; k < m; k++)
        y[k] = v;
}

/* Where row `row` of an input begins, in elements; idx: its index. */
static int64_t row_start(const Fused *r, const Input *in, int64_t row, int64_t *idx)
{
    int64_t at = 0;
    for (int k = r->ndim - 1; k >= 0; k--) {
        idx[k] = row % r->dims[k];
        row /= r->dims[k];
        at += idx[k] * in->strides[k];
    }
    return at;
}

/* Some rows, which begin `stride` elements apart. */
static void stage_some(const Input *in, float *y, const char *x, int64_t stride, int64_t n, int64_t rows)
{
    if (in->type == HN_F32)
        hn_short_rows(y, x, in->size, rows, n, stride, in->step);
    else if (in->step != 0 && stride == n)
        to_f32(y, in->type, x, rows * n);
    else
        for (int64_t i = 0; i < rows; i++)
            stage_row(in, y + i * n, x + (gsize)(i * stride) * in->size, n);
}

/* What an input's tile holds: rows along the last axis outside of them, from this element on. */
typedef struct {
    int64_t start, rows; /* rows 0: nothing that is known */
} Held;

/* `rows` whole rows from row `row` on, those along the last axis outside of them at a time, and where they lie: in the
 * input where they are side by side there as they are, or in the tile. */
static const float *stage_rows(const Fused *r, const Input *in, float *tile, const char *x, int64_t row, int64_t rows,
                               Held *held)
{
    const int last = r->ndim - 1;
    float *y = tile;
    int64_t idx[HN_MAX_RANK], at = row_start(r, in, row, idx), some;
    const gboolean one_axis = rows <= r->dims[last] - idx[last];
    if (one_axis && in->type == HN_F32 && in->step != 0 && in->strides[last] == r->n)
        return (const float *)(const void *)x + at;
    if (one_axis && held->rows >= rows && held->start == at)
        return tile;
    *held = (Held){ at, one_axis ? rows : 0 };
    for (int64_t i = 0; i < rows; i += some, y += some * r->n) {
        some = MIN(rows - i, r->dims[last] - idx[last]);
        stage_some(in, y, x + (gsize)at * in->size, in->strides[last], r->n, some);
        at += some * in->strides[last];
        idx[last] += some;
        for (int k = last; k > 0 && idx[k] == r->dims[k]; k--) {
            at += in->strides[k - 1] - in->strides[k] * r->dims[k];
            idx[k] = 0;
            idx[k - 1]++;
        }
    }
    return tile;
}

/* The same row as often as a tile has room for it. */
static void stage_once(const Fused *r, const Input *in, float *y, const char *x)
{
    const int64_t all = r->per * r->n;
    stage_row(in, y, x, r->n);
    for (int64_t n = r->n; n < all; n *= 2)
        memcpy(y + n, y, (gsize)MIN(n, all - n) * sizeof *y);
}

/* Operands of tile t; the number of its elements. */
static int64_t lay_out(const Fused *r, const HnStep *s, int64_t t, float **at, float *const *tile, Held *held,
                       gboolean first)
{
    const int64_t pieces = (r->n + TILE - 1) / TILE;
    const int64_t row = r->per > 0 ? t * r->per : t / pieces, col = r->per > 0 ? 0 : t % pieces * TILE;
    const int64_t rows = r->per > 0 ? MIN(r->per, r->rows - row) : 1;
    const int64_t n = r->per > 0 ? rows * r->n : MIN(TILE, r->n - col);
    int64_t idx[HN_MAX_RANK];
    for (int i = 0; i < r->n_in; i++) {
        const Input *in = &r->in[i];
        const char *x = hn_cpu_data(&s->in[i]);
        if (in->once && !first)
            continue;
        const float *here = tile[i];
        if (in->staged && in->number)
            to_f32(tile[i], in->type, x, 1);
        else if (in->once)
            stage_once(r, in, tile[i], x);
        else if (in->staged && r->per > 0)
            here = stage_rows(r, in, tile[i], x, row, rows, &held[i]);
        else if (in->staged)
            stage_row(in, tile[i], x + (gsize)(row_start(r, in, row, idx) + in->step * col) * in->size, n);
        if (in->staged)
            at[i] = (float *)(void *)here;
        else if (r->per > 0)
            at[i] = (float *)(void *)x + (r->step[i] != 0 ? row * r->n : 0);
        else
            at[i] = (float *)(void *)x + row_start(r, in, row, idx) + in->step * col;
    }
    float *z = hn_cpu_data(&s->out[0]);
    if (r->type == HN_F32)
        at[r->n_operands - 1] = z + row * r->n + col;
    return n;
}

/* Tiles [from, to). */
static void run_tiles(gpointer step, int thread, int64_t from, int64_t to)
{
    const HnStep *s = step;
    const Fused *r = s->state;
    float *scratch = s->scratch;
    float *at[OPERANDS], *tile[OPERANDS];
    Held held[HN_GROUP_PORTS] = { 0 };
    int64_t used = r->n_tiles * thread;
    for (int i = 0; i < r->n_in; i++)
        tile[i] = r->in[i].staged ? scratch + r->room * used++ : NULL;
    for (int i = r->n_in; i < r->n_operands; i++) /* the result's where it is of another type than f32 */
        at[i] = i < r->n_operands - 1 || r->type != HN_F32 ? scratch + r->room * used++ : NULL;
    const gsize size = hn_dtype_size(r->type);
    char *z = hn_cpu_data(&s->out[0]);
    for (int64_t t = from; t < to; t++) {
        const int64_t n = lay_out(r, s, t, at, tile, held, t == from);
        hn_elementwise_run(r->program, at, r->step, n);
        if (r->type != HN_F32) {
            const int64_t pieces = (r->n + TILE - 1) / TILE;
            const int64_t first = r->per > 0 ? t * r->per * r->n : t / pieces * r->n + t % pieces * TILE;
            from_f32(r->type, z + (gsize)first * size, at[r->n_operands - 1], n);
        }
    }
}

static gboolean fused_run(HnStep *s, GError **error)
{
    (void)error;
    const Fused *r = s->state;
    hn_parallel_for(r->many, r->threads, run_tiles, s);
    return TRUE;
}

static void fused_release(HnStep *s)
{
    Fused *r = s->state;
    if (r == NULL)
        return;
    hn_elementwise_free(r->program);
    g_free(r->step);
    g_free(r);
    s->state = NULL;
}

const HnKernel hn_cpu_fused_elementwise = {
    .name = "cpu.fused_elementwise",
    .prepare = fused_prepare,
    .run = fused_run,
    .release = fused_release,
    .inplace = TRUE,
};
