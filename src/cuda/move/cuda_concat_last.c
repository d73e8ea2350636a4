/*
 * Concat, Split and Slice of channels, channels last: mostly nothing is copied, since each pixel's channels are written
 * and read where they lie among the others.
 */
#include "cuda/conv/cuda_last.h"
#include "cuda/move/cuda_copies_args.h"
#include "cuda/move/cuda_strided.h"
#include "op/concat.h"
#include "op/index.h"
#include "run/move_forms.h"

/* Channels begin and end at lines. */
static gboolean is_even(const HnTensor *t)
{
    return t != NULL && hn_cuda_has_last(t) && hn_cuda_padded(t) == t->dims[1] && t->n < HN_DIVIDE_LIMIT;
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

#define THREADS 256
#define AT_ONCE 2 /* lines of a thread */

/* Channels of port i among those of all. */
static gsize offset_of(const HnPort *ports, int i)
{
    gsize offset = 0;
    for (int k = 0; k < i; k++)
        offset += ports[k].slot->tensor->bytes / (gsize)(ports[k].slot->tensor->n / ports[k].slot->tensor->dims[1]);
    return offset;
}

static gboolean copies_prepare(HnStep *s, GError **error)
{
    return (s->state = hn_cuda_sized(s, "cuda_copies", "copies", HN_CUDA_LINE, error)) != NULL;
}

static void copies_release(HnStep *s)
{
    s->state = NULL; /* the function is the device's */
}

/* Copies of a launch, in lines. */
typedef struct {
    HnCudaCopiesArgs args;
    unsigned n;
    int64_t most;
} Batch;

static gboolean launch(const HnStep *s, Batch *b, GError **error)
{
    HnCudaGrid g = hn_cuda_spread(s, (b->most + AT_ONCE - 1) / AT_ONCE, THREADS);
    g.grid[1] = b->n;
    const gboolean ok = b->n == 0 || hn_cuda_launch(s, s->state, g, &b->args, error);
    *b = (Batch){ .n = 0 };
    return ok;
}

/* The pixels of `part`, as many channels as it has. */
static gboolean add(const HnStep *s, Batch *b, const HnSlot *part, const HnSlot *y, gsize y0, const HnSlot *x, gsize x0,
                    GError **error)
{
    const HnTensor *t = part->tensor;
    const int line = hn_cuda_line(t->dtype);
    const int64_t run = t->dims[1] / line, n = t->n / line;
    b->args.part[b->n++] = (HnCudaRuns){
        (uint64_t)(uintptr_t)y->tensor->data + y0, (uint64_t)(uintptr_t)x->tensor->data + x0, (uint32_t)n,
        (uint32_t)(hn_cuda_pitch(y) / line),       (uint32_t)(hn_cuda_pitch(x) / line),       hn_divisor(run)
    };
    b->most = MAX(b->most, n);
    return b->n < HN_CUDA_COPIES || launch(s, b, error);
}

/* --- Concat ------------------------------------------------------------------------------------------------------- */

static const char *concat_reject(const HnStep *s)
{
    const HnConcat *p = s->params;
    const HnTensor *y = hn_cuda_out(s, 0);
    if (!is_even(y) || hn_axis(p->axis, y->ndim) != 1)
        return "another axis than that of channels";
    for (int i = 0; i < s->n_in; i++)
        if (!is_even(hn_cuda_in(s, i)))
            return "channels that are no lines";
    return NULL;
}

gboolean hn_cuda_concat_goes_last(const HnStep *s)
{
    gsize last = 0, plain = 0;
    for (int i = 0; i < s->n_in; i++) {
        const HnSlot *x = s->in[i].slot;
        if (x == NULL)
            return FALSE;
        *(x->layout != NULL ? &last : &plain) += x->tensor->bytes;
    }
    return last > 0 && last >= plain && concat_reject(s) == NULL;
}

static gboolean concat_prepare(HnStep *s, GError **error)
{
    for (int i = 0; i < s->n_in; i++)
        hn_cuda_want_last(s, i);
    hn_cuda_make_last(s);
    return copies_prepare(s, error);
}

static gboolean concat_run(HnStep *s, GError **error)
{
    Batch b = { .n = 0 };
    for (int i = 0; i < s->n_in; i++)
        if (!s->in[i].joined &&
            !add(s, &b, s->in[i].slot, s->out[0].slot, offset_of(s->in, i), s->in[i].slot, 0, error))
            return FALSE;
    return launch(s, &b, error);
}

static HnPlace concat_joins(const HnStep *s, int i, gsize *offset)
{
    *offset = offset_of(s->in, i);
    return HN_PLACE_PIXELS;
}

const HnKernel hn_cuda_concat_last = {
    .name = "cuda.concat_last",
    .reject = concat_reject,
    .prepare = concat_prepare,
    .run = concat_run,
    .release = copies_release,
    .pitched = TRUE,
    .joins = concat_joins,
};

/* --- Split -------------------------------------------------------------------------------------------------------- */

static const char *split_reject(const HnStep *s)
{
    const HnSplit *p = s->params;
    const HnTensor *x = hn_cuda_in(s, 0);
    if (hn_copy_varies(s, 1))
        return "sizes that are known only at run time";
    if (!is_even(x) || hn_axis(p->axis, x->ndim) != 1)
        return "another axis than that of channels";
    for (int k = 0; k < s->n_out; k++)
        if (!is_even(hn_cuda_out(s, k)))
            return "channels that are no lines";
    return NULL;
}

static gboolean split_prepare(HnStep *s, GError **error)
{
    for (int k = 0; k < s->n_out; k++)
        s->out[k].slot->layout = hn_cuda_layout_last(hn_cuda_out(s, k));
    hn_cuda_want_last(s, 0);
    hn_copy_unread(s);
    return copies_prepare(s, error);
}

static gboolean split_run(HnStep *s, GError **error)
{
    Batch b = { .n = 0 };
    for (int k = 0; k < s->n_out; k++)
        if (!s->out[k].joined &&
            !add(s, &b, s->out[k].slot, s->out[k].slot, 0, s->in[0].slot, offset_of(s->out, k), error))
            return FALSE;
    return launch(s, &b, error);
}

static HnPlace split_splits(const HnStep *s, int k, gsize *offset)
{
    *offset = offset_of(s->out, k);
    return HN_PLACE_PIXELS;
}

const HnKernel hn_cuda_split_last = {
    .name = "cuda.split_last",
    .reject = split_reject,
    .prepare = split_prepare,
    .run = split_run,
    .release = copies_release,
    .pitched = TRUE,
    .splits = split_splits,
};

/* --- Slice -------------------------------------------------------------------------------------------------------- */

/* From one channel on some more, all of the rest. *first: that channel. */
static const char *slice_form(const HnStep *s, int64_t *first)
{
    const HnTensor *x = hn_cuda_in(s, 0), *y = hn_cuda_out(s, 0);
    int64_t from[HN_MAX_RANK], step[HN_MAX_RANK];
    const char *reason = hn_slice_reject(s);
    if (reason != NULL || (reason = hn_slice_bounds(s, from, step)) != NULL)
        return reason;
    if (!is_even(x) || !is_even(y))
        return "channels that are no lines";
    for (int a = 0; a < x->ndim; a++)
        if (a == 1 ? step[a] != 1 || from[a] % hn_cuda_line(x->dtype) != 0
                   : from[a] != 0 || step[a] != 1 || x->dims[a] != y->dims[a])
            return "other axes than that of channels";
    *first = from[1];
    return NULL;
}

static const char *slice_reject(const HnStep *s)
{
    int64_t first;
    return slice_form(s, &first);
}

static gboolean slice_prepare(HnStep *s, GError **error)
{
    hn_cuda_want_last(s, 0);
    hn_cuda_make_last(s);
    hn_copy_unread(s);
    return copies_prepare(s, error);
}

static gsize first_of(const HnStep *s)
{
    int64_t first = 0;
    (void)slice_form(s, &first);
    return (gsize)first * hn_dtype_size(hn_cuda_in(s, 0)->dtype);
}

static gboolean slice_run(HnStep *s, GError **error)
{
    Batch b = { .n = 0 };
    const HnSlot *y = s->out[0].slot;
    return s->out[0].joined || (add(s, &b, y, y, 0, s->in[0].slot, first_of(s), error) && launch(s, &b, error));
}

static HnPlace slice_splits(const HnStep *s, int k, gsize *offset)
{
    (void)k;
    *offset = first_of(s);
    return HN_PLACE_PIXELS;
}

const HnKernel hn_cuda_slice_last = {
    .name = "cuda.slice_last",
    .reject = slice_reject,
    .prepare = slice_prepare,
    .run = slice_run,
    .release = copies_release,
    .pitched = TRUE,
    .splits = slice_splits,
};
