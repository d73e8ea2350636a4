/*
 * ConstantOfShape and Range of known length, IsNaN and IsInf, and Dropout that does not train.
 */
#include "cuda/elementwise/cuda_fill.h"

#include <string.h>

#include "op/constant.h"
#include "op/dropout.h"
#include "op/sign.h"
#include "run/move_forms.h"

#define THREADS 256
#define WORD 16 /* bytes that a thread writes */

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaFillArgs fill;
} Fill;

HnCudaFillArgs hn_cuda_fill_of(const void *elem, gsize size, int64_t n)
{
    guint8 word[WORD] = { 0 };
    HnCudaFillArgs a = { .bytes = n * (int64_t)size };
    for (gsize at = 0; elem != NULL && at < WORD; at += size)
        memcpy(word + at, elem, size);
    memcpy(&a.low, word, sizeof a.low);
    memcpy(&a.high, word + sizeof a.low, sizeof a.high);
    return a;
}

HnCuFunction hn_cuda_fill_function(const HnStep *s, GError **error)
{
    return hn_cuda_named(s, "cuda_fill", "fill", error);
}

gboolean hn_cuda_fill(const HnStep *s, HnCuFunction f, HnCudaFillArgs a, uint64_t z, GError **error)
{
    a.z = z;
    return a.bytes == 0 || hn_cuda_launch(s, f, hn_cuda_loop(s, a.bytes / WORD + 1, THREADS), &a, error);
}

/* --- ConstantOfShape ---------------------------------------------------------------------------------------------- */

static const char *filled_reject(const HnStep *s)
{
    const HnTensor *z = hn_cuda_out(s, 0);
    return z->dtype == HN_STRING || hn_dtype_bits(z->dtype) < 8 ? "elements without an address of their own" : NULL;
}

static gboolean filled_prepare(HnStep *s, GError **error)
{
    const HnFilled *p = s->params;
    const HnTensor *z = hn_cuda_out(s, 0);
    Fill *f = g_new0(Fill, 1);
    s->state = f;
    s->in[0].unread = TRUE;
    f->fill = hn_cuda_fill_of(p->value != NULL ? p->value->data : NULL, hn_dtype_size(z->dtype), z->n);
    f->f = hn_cuda_fill_function(s, error);
    return f->f != NULL;
}

static gboolean filled_run(HnStep *s, GError **error)
{
    const Fill *f = s->state;
    return hn_cuda_fill(s, f->f, f->fill, hn_cuda_out_address(s, 0), error);
}

static const HnKernel filled = {
    .name = "cuda.fill",
    .reject = filled_reject,
    .prepare = filled_prepare,
    .run = filled_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_constantofshape[] = { &filled, NULL };

/* --- Range -------------------------------------------------------------------------------------------------------- */

/* A kernel `prefix` by type over n elements. */
static gboolean prepare_loop(HnStep *s, const char *prefix, HnDtype dtype, int64_t n, GError **error)
{
    Fill *f = g_new0(Fill, 1);
    s->state = f;
    f->grid = hn_cuda_loop(s, n, THREADS);
    f->f = hn_cuda_typed(s, "cuda_fill", prefix, dtype, error);
    return f->f != NULL;
}

static gboolean range_prepare(HnStep *s, GError **error)
{
    s->in[1].unread = TRUE; /* the length is known */
    return prepare_loop(s, "range", hn_cuda_out(s, 0)->dtype, hn_cuda_out(s, 0)->n, error);
}

static gboolean range_run(HnStep *s, GError **error)
{
    const Fill *f = s->state;
    const HnCudaRangeArgs a = { hn_cuda_out_address(s, 0), hn_cuda_in_address(s, 0), hn_cuda_in_address(s, 2),
                                hn_cuda_out(s, 0)->n };
    return a.n == 0 || hn_cuda_launch(s, f->f, f->grid, &a, error);
}

static const HnKernel range = {
    .name = "cuda.range",
    .reject = hn_range_reject,
    .prepare = range_prepare,
    .run = range_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_range[] = { &range, NULL };

/* --- IsNaN, IsInf ------------------------------------------------------------------------------------------------- */

static const char *is_reject(const HnStep *s)
{
    const HnDtype d = hn_cuda_in(s, 0)->dtype;
    return hn_cuda_is_float(d) || d == HN_F64 ? NULL : "only f32, f64, f16, bf16";
}

static gboolean is_prepare(HnStep *s, GError **error)
{
    return prepare_loop(s, "is", hn_cuda_in(s, 0)->dtype, hn_cuda_in(s, 0)->n, error);
}

static gboolean is_run(HnStep *s, GError **error)
{
    const Fill *f = s->state;
    const HnIs *p = s->params;
    const HnCudaIsArgs a = {
        hn_cuda_out_address(s, 0), hn_cuda_in_address(s, 0), hn_cuda_in(s, 0)->n, p->nan, p->positive, p->negative
    };
    return a.n == 0 || hn_cuda_launch(s, f->f, f->grid, &a, error);
}

static const HnKernel is = {
    .name = "cuda.isnan",
    .reject = is_reject,
    .prepare = is_prepare,
    .run = is_run,
    .release = hn_cuda_release,
};

const HnKernel *const hn_cuda_isnan[] = { &is, NULL };
const HnKernel *const hn_cuda_isinf[] = { &is, NULL };

/* --- Dropout ------------------------------------------------------------------------------------------------------ */

static const char *dropout_reject(const HnStep *s)
{
    return hn_cuda_in(s, 0)->dtype == HN_STRING ? "elements without an address of their own" : hn_dropout_trains(s);
}

static gboolean dropout_prepare(HnStep *s, GError **error)
{
    Fill *f = g_new0(Fill, 1);
    s->state = f;
    for (int i = 1; i < s->n_in; i++)
        s->in[i].unread = s->in[i].slot != NULL;
    const HnTensor *mask = hn_cuda_out(s, 1);
    if (mask == NULL)
        return TRUE;
    uint64_t one[2] = { 0 };
    HnTensor *t = hn_tensor_new_borrowed(mask->dtype, 0, NULL, one);
    hn_tensor_set_f64(t, 0, 1);
    hn_tensor_unref(t);
    f->fill = hn_cuda_fill_of(one, hn_dtype_size(mask->dtype), mask->n);
    f->f = hn_cuda_fill_function(s, error);
    return f->f != NULL;
}

static gboolean dropout_run(HnStep *s, GError **error)
{
    const Fill *f = s->state;
    const uint64_t x = hn_cuda_in_address(s, 0), y = hn_cuda_out_address(s, 0);
    if (y != 0 && y != x && !hn_cuda_copy(s, y, x, hn_cuda_in(s, 0)->bytes, error))
        return FALSE;
    return f->f == NULL || hn_cuda_fill(s, f->f, f->fill, hn_cuda_out_address(s, 1), error);
}

static const HnKernel dropout = {
    .name = "cuda.dropout",
    .reject = dropout_reject,
    .prepare = dropout_prepare,
    .run = dropout_run,
    .release = hn_cuda_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cuda_dropout[] = { &dropout, NULL };
