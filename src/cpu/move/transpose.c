/*
 * Transpose, DepthToSpace and SpaceToDepth as one strided copy each.
 */
#include "op/transpose.h"

#include <string.h>

#include "cpu/core/strided_copy.h"
#include "op/index.h"

static const char *transpose_reject(const HnStep *s)
{
    return hn_copy_reject(hn_cpu_in(s, 0));
}

/* The source's axes, in the order `perm` of the destination. */
static gboolean prepare_order(HnStep *s, int n, const int64_t *from, const int *perm)
{
    int64_t own[HN_MAX_RANK], dims[HN_MAX_RANK], ys[HN_MAX_RANK], xs[HN_MAX_RANK];
    HnCopies *c = hn_copies_new(1);
    hn_strides(n, from, own);
    for (int a = 0; a < n; a++) {
        dims[a] = from[perm[a]];
        xs[a] = own[perm[a]];
    }
    hn_strides(n, dims, ys);
    c->part[0].copy =
        hn_copy_new(hn_dtype_size(hn_cpu_in(s, 0)->dtype), n, dims, 0, ys, 0, xs, hn_cpu_threads_for(s, 0));
    s->state = c;
    return TRUE;
}

static gboolean transpose_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTranspose *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0);
    int perm[HN_MAX_RANK];
    for (int a = 0; a < x->ndim; a++)
        perm[a] = p->perm != NULL ? (int)p->perm[a] : x->ndim - 1 - a;
    return prepare_order(s, x->ndim, x->dims, perm);
}

/* Channels last stays so: the pixels of a block are next to the channels, or among them. */
static gboolean keep_last(HnStep *s)
{
    const gboolean last = hn_layout_is_last(s->in[0].slot->layout);
    s->in[0].any = last;
    s->out[0].slot->layout = last ? hn_layout_last(s->out[0].slot->tensor) : NULL;
    return last;
}

static gboolean depthtospace_prepare(HnStep *s, GError **error)
{
    (void)error;
    static const int dcr[6] = { 0, 3, 4, 1, 5, 2 }, crd[6] = { 0, 1, 4, 2, 5, 3 };
    static const int last_dcr[6] = { 0, 1, 3, 2, 4, 5 }, last_crd[6] = { 0, 1, 4, 2, 5, 3 };
    const HnDepthBlock *p = s->params;
    const int64_t *x = hn_cpu_in(s, 0)->dims, *y = s->out[0].slot->tensor->dims, b = p->block;
    const int64_t outside[6] = { x[0], b, b, y[1], x[2], x[3] }, inside[6] = { x[0], y[1], b, b, x[2], x[3] };
    const int64_t last_outside[6] = { x[0], x[2], x[3], b, b, y[1] }, last_inside[6] = { x[0], x[2], x[3], y[1], b, b };
    if (keep_last(s))
        return prepare_order(s, 6, p->crd ? last_inside : last_outside, p->crd ? last_crd : last_dcr);
    return prepare_order(s, 6, p->crd ? inside : outside, p->crd ? crd : dcr);
}

static gboolean spacetodepth_prepare(HnStep *s, GError **error)
{
    (void)error;
    static const int dcr[6] = { 0, 3, 5, 1, 2, 4 }, crd[6] = { 0, 1, 3, 5, 2, 4 };
    static const int last_dcr[6] = { 0, 1, 3, 2, 4, 5 }, last_crd[6] = { 0, 1, 3, 5, 2, 4 };
    const HnDepthBlock *p = s->params;
    const int64_t *x = hn_cpu_in(s, 0)->dims, *y = s->out[0].slot->tensor->dims, b = p->block;
    const int64_t dims[6] = { x[0], x[1], y[2], b, y[3], b }, last[6] = { x[0], y[2], b, y[3], b, x[1] };
    if (keep_last(s))
        return prepare_order(s, 6, last, p->crd ? last_crd : last_dcr);
    return prepare_order(s, 6, dims, p->crd ? crd : dcr);
}

/* --- between a plain [N, spatial..., C] and channels last [N, C, spatial...]
 * -------------------------------------------
 *
 * Both are the same bytes: models that were exported with channels last move nothing. */

typedef enum { OTHER, TO_FIRST, TO_LAST } Turn;

static Turn turn_of(const HnStep *s)
{
    const HnTranspose *p = s->params;
    const int n = hn_cpu_in(s, 0)->ndim;
    if (p->perm == NULL || n < 3 || n > 5 || p->perm[0] != 0)
        return OTHER;
    const gboolean to_first = p->perm[1] == n - 1, to_last = p->perm[n - 1] == 1; /* of three axes it may be both */
    const gboolean first = to_first && !(to_last && hn_layout_is_last(s->in[0].slot->layout));
    Turn t = first ? TO_FIRST : to_last ? TO_LAST : OTHER;
    for (int a = t == TO_FIRST ? 2 : 1; a < (t == TO_FIRST ? n : n - 1) && t != OTHER; a++)
        if (p->perm[a] != (t == TO_FIRST ? a - 1 : a + 1))
            return OTHER;
    return t;
}

static const char *turn_reject(const HnStep *s)
{
    const HnSlot *x = s->in[0].slot;
    switch (turn_of(s)) {
    case TO_FIRST:
        return x->layout != NULL ? "the source is not plain" : hn_copy_reject(x->tensor);
    case TO_LAST:
        return hn_layout_is_last(x->layout) ? hn_copy_reject(x->tensor) : "the source is not channels last";
    default:
        return "another order than channels first and last";
    }
}

static gboolean turn_prepare(HnStep *s, GError **error)
{
    (void)error;
    if (turn_of(s) == TO_FIRST)
        s->out[0].slot->layout = hn_layout_last(s->out[0].slot->tensor);
    else
        s->in[0].want = hn_layout_ref(s->in[0].slot->layout);
    return TRUE;
}

static gboolean turn_run(HnStep *s, GError **error)
{
    (void)error;
    if (!s->out[0].joined && s->in[0].slot->tensor->n > 0)
        memcpy(hn_cpu_data(&s->out[0]), hn_cpu_data(&s->in[0]), s->in[0].slot->tensor->bytes);
    return TRUE;
}

static HnPlace turn_splits(const HnStep *s, int k, gsize *offset)
{
    (void)s;
    (void)k;
    *offset = 0;
    return HN_PLACE_PIECE;
}

static const HnKernel turn = {
    .name = "cpu.turn", .reject = turn_reject, .prepare = turn_prepare, .run = turn_run, .splits = turn_splits
};

#define KERNEL(op)                      \
    static const HnKernel op##_copy = { \
        .name = "cpu." #op,             \
        .reject = transpose_reject,     \
        .prepare = op##_prepare,        \
        .run = hn_copies_run,           \
        .splits = hn_copies_splits,     \
        .release = hn_copies_release,   \
    };
KERNEL(transpose)
KERNEL(depthtospace)
KERNEL(spacetodepth)

const HnKernel *const hn_cpu_transpose[] = { &turn, &transpose_copy, NULL };
const HnKernel *const hn_cpu_depthtospace[] = { &depthtospace_copy, NULL };
const HnKernel *const hn_cpu_spacetodepth[] = { &spacetodepth_copy, NULL };
