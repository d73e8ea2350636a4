#include "op/move.h"

#include <inttypes.h>
#include <string.h>

#include "op/types.h"

/* --- elements ------------------------------------------------------------------------------------------------------
 */

size_t hn_move_size(HnEval *e, HnDtype dtype)
{
    size_t size = dtype == HN_STRING ? sizeof(GBytes *) : hn_dtype_size(dtype);
    if (size == 0)
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "elements of type %s are not computed with", hn_dtype_name(dtype));
    return size;
}

void *hn_move_out(HnEval *e, int k, HnDtype dtype, int ndim, const int64_t *dims)
{
    void *data = hn_eval_out(e, k, dtype, ndim, dims);
    if (data != NULL && dtype == HN_STRING) {
        GBytes **s = data;
        for (int64_t i = 0; i < e->out[k]->n; i++) {
            g_bytes_unref(s[i]);
            s[i] = NULL;
        }
    }
    return data;
}

void hn_move_done(HnEval *e, int k)
{
    if (e->out[k]->dtype != HN_STRING)
        return;
    GBytes **s = e->out[k]->data;
    for (int64_t i = 0; i < e->out[k]->n; i++)
        s[i] = s[i] != NULL ? g_bytes_ref(s[i]) : g_bytes_new_static("", 0);
}

#define TILE 16 /* elements: a tile of both sides stays in the first cache */

/* What is left of a strided copy after merging axes: a loop over `dims` around rows or tiles. */
typedef struct {
    int ndim;
    int64_t dims[2 * HN_MAX_RANK];
    int64_t ys[2 * HN_MAX_RANK], xs[2 * HN_MAX_RANK];
    int64_t n, s;      /* elements of a row, their distance in src */
    int64_t m, yd, xd; /* rows of a tile, their distances; m = 1: no tiles */
} Plan;

/* Weights lie where their file has them, on any byte. */
#define DEFINE_MOVE(T)                                                          \
    typedef T Anywhere_##T __attribute__((aligned(1)));                         \
    static void tile_##T(Anywhere_##T *y, const Anywhere_##T *x, const Plan *p) \
    {                                                                           \
        for (int64_t jb = 0; jb < p->m; jb += TILE)                             \
            for (int64_t ib = 0; ib < p->n; ib += TILE) {                       \
                int64_t je = MIN(jb + TILE, p->m), ie = MIN(ib + TILE, p->n);   \
                for (int64_t j = jb; j < je; j++)                               \
                    for (int64_t i = ib; i < ie; i++)                           \
                        y[j * p->yd + i] = x[j * p->xd + i * p->s];             \
            }                                                                   \
    }                                                                           \
    static void move_##T(Anywhere_##T *y, const Anywhere_##T *x, const Plan *p) \
    {                                                                           \
        int64_t idx[2 * HN_MAX_RANK] = { 0 }, off[2] = { 0, 0 };                \
        int64_t *const strides[2] = { (int64_t *)p->ys, (int64_t *)p->xs };     \
        do {                                                                    \
            Anywhere_##T *yr = y + off[0];                                      \
            const Anywhere_##T *xr = x + off[1];                                \
            if (p->m > 1)                                                       \
                tile_##T(yr, xr, p);                                            \
            else if (p->s == 1 && p->n >= 8)                                    \
                memcpy(yr, xr, (size_t)p->n * sizeof *yr);                      \
            else                                                                \
                for (int64_t i = 0; i < p->n; i++)                              \
                    yr[i] = xr[i * p->s];                                       \
        } while (hn_index_next(p->ndim, p->dims, idx, 2, strides, off));        \
    }
DEFINE_MOVE(uint8_t)
DEFINE_MOVE(uint16_t)
DEFINE_MOVE(uint32_t)
DEFINE_MOVE(uint64_t)
DEFINE_MOVE(HnPair)

void hn_move_strided(void *dst, const void *src, size_t size, int ndim, const int64_t *dims, const int64_t *strides)
{
    Plan p = { .m = 1 };
    int nd = 0;
    for (int i = 0; i < ndim; i++)
        if (dims[i] == 0)
            return;
    for (int i = 0; i < ndim; i++) {
        if (dims[i] == 1)
            continue;
        if (nd > 0 && p.xs[nd - 1] == strides[i] * dims[i]) { /* the axis before continues this one */
            p.dims[nd - 1] *= dims[i];
            p.xs[nd - 1] = strides[i];
            continue;
        }
        p.dims[nd] = dims[i];
        p.xs[nd++] = strides[i];
    }
    hn_strides(nd, p.dims, p.ys);
    p.n = nd > 0 ? p.dims[nd - 1] : 1;
    p.s = nd > 0 ? p.xs[nd - 1] : 1;
    p.ndim = MAX(nd - 1, 0);
    /* rows that jump through src: take along the axis in which src is contiguous */
    for (int j = 0; j < p.ndim && p.s != 1 && p.s != 0; j++)
        if (p.xs[j] == 1) {
            p.m = p.dims[j];
            p.yd = p.ys[j];
            p.xd = 1;
            for (int i = j; i + 1 < p.ndim; i++) {
                p.dims[i] = p.dims[i + 1];
                p.ys[i] = p.ys[i + 1];
                p.xs[i] = p.xs[i + 1];
            }
            p.ndim--;
            break;
        }
#define MOVE(T) move_##T(dst, src, &p);
    HN_FOR_MOVE(size, MOVE)
#undef MOVE
}

void hn_move_fill(void *dst, const void *elem, size_t size, int64_t n)
{
    static const HnPair zero;
    if (elem == NULL)
        elem = &zero;
#define FILL(T)                     \
    T v, *y = dst;                  \
    memcpy(&v, elem, sizeof v);     \
    for (int64_t i = 0; i < n; i++) \
        y[i] = v;
    HN_FOR_MOVE(size, FILL)
#undef FILL
}

/* --- small integer inputs -------------------------------------------------------------------------------------------
 */

int hn_eval_ints(HnEval *e, int i, int64_t *v, int max)
{
    const HnTensor *t = hn_eval_in(e, i);
    if (t == NULL || t->ndim > 1) {
        hn_eval_fail(e, HN_ERROR_SHAPE, t == NULL ? "input %d is missing" : "input %d is not a list", i);
        return -1;
    }
    if (t->n > max) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input %d has %" PRId64 " elements, at most %d make sense", i, t->n, max);
        return -1;
    }
    for (int64_t j = 0; j < t->n; j++)
        v[j] = hn_tensor_get_i64(t, j);
    return (int)t->n;
}

gboolean hn_eval_int(HnEval *e, int i, int64_t *v)
{
    const HnTensor *t = hn_eval_in(e, i);
    if (t == NULL || t->n != 1) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input %d does not have one element", i);
        return FALSE;
    }
    *v = hn_tensor_get_i64(t, 0);
    return TRUE;
}

int64_t *hn_eval_indices(HnEval *e, const HnTensor *t, int64_t n)
{
    if (t->dtype != HN_I32 && t->dtype != HN_I64) {
        hn_eval_fail(e, HN_ERROR_TYPE, "indices cannot be %s", hn_dtype_name(t->dtype));
        return NULL;
    }
    int64_t *v = hn_eval_scratch(e, t->n, sizeof *v);
    if (v == NULL)
        return NULL;
    if (t->dtype == HN_I64) {
        memcpy(v, t->data, (size_t)t->n * sizeof *v);
    } else {
        const int32_t *x = t->data;
        for (int64_t i = 0; i < t->n; i++)
            v[i] = x[i];
    }
    for (int64_t i = 0; i < t->n; i++)
        if (!hn_eval_index(e, &v[i], n)) {
            hn_eval_scratch_free(e, v);
            return NULL;
        }
    return v;
}

/* --- inference ------------------------------------------------------------------------------------------------------
 */

void hn_infer_pass_contents(HnInfer *x, int rank)
{
    const HnContents *c = hn_infer_contents(x, 0);
    if (c == NULL || rank < 0 || rank > 1 || (rank == 0 && c->n != 1))
        return;
    HnContents *r = hn_contents_new(rank, c->n);
    for (int i = 0; i < c->n; i++)
        r->d[i] = c->d[i];
    hn_infer_out_contents(x, 0, r);
}

gboolean hn_dim_nonnegative(HnDim d)
{
    if (d.known)
        return d.n >= 0;
    /* sums and products of names: without a minus nothing becomes negative */
    return d.sym != NULL && strchr(d.sym, '-') == NULL;
}

int hn_infer_length(const HnInfer *x, int i)
{
    const HnContents *c = hn_infer_contents(x, i);
    if (c != NULL)
        return c->n;
    int rank = hn_infer_rank(x, i);
    if (rank == 0)
        return 1;
    HnDim d = rank == 1 ? hn_infer_dim(x, i, 0) : hn_dim_unknown();
    return d.known && d.n <= G_MAXINT ? (int)d.n : -1;
}

gboolean hn_infer_mark_axes(HnInfer *x, const int64_t *axes, int n, int rank, gboolean *mark)
{
    memset(mark, 0, HN_MAX_RANK * sizeof *mark);
    for (int i = 0; i < n; i++) {
        int a = hn_infer_axis(x, axes[i], rank);
        if (x->error != NULL)
            return FALSE;
        if (mark[a]) {
            hn_infer_fail(x, HN_ERROR_ATTRIBUTE, "axis %d is given twice", a);
            return FALSE;
        }
        mark[a] = TRUE;
    }
    return TRUE;
}

gboolean hn_eval_mark_axes(HnEval *e, const int64_t *axes, int n, int rank, gboolean *mark)
{
    memset(mark, 0, HN_MAX_RANK * sizeof *mark);
    for (int i = 0; i < n; i++) {
        int a = hn_eval_axis(e, axes[i], rank);
        if (a < 0)
            return FALSE;
        if (mark[a]) {
            hn_eval_fail(e, HN_ERROR_ATTRIBUTE, "axis %d is given twice", a);
            return FALSE;
        }
        mark[a] = TRUE;
    }
    return TRUE;
}

void hn_cost_move(const HnInfer *x, HnCost *c)
{
    c->bytes = 0;
    for (int k = 0; k < x->n_out; k++)
        if (x->out[k] != NULL)
            c->bytes += 2 * hn_type_count(x->out[k]) * hn_dtype_bits(x->out[k]->dtype) / 8;
}

void hn_cost_nothing(const HnInfer *x, HnCost *c)
{
    (void)x;
    c->bytes = 0;
}
