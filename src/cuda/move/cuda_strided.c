#include "cuda/move/cuda_strided.h"

#include <string.h>

#include "cuda/move/cuda_strided_args.h"

#define THREADS 256
#define WIDEST 16
#define NARROW_TILE 8 /* elements: with fewer on a side, caches do as well as shared memory */
#define PLACE 64      /* bytes: where values of an arena begin */

/* A copy as it is launched. */
typedef struct {
    HnCuFunction f;
    size_t size;
    HnCudaStridedArgs args; /* n: of a launch, is filled in by run */
    int64_t dims[HN_CUDA_AXES];
} Form;

struct HnCudaStrided {
    gboolean empty, piece, tiled;
    gsize bytes;      /* of a piece */
    int64_t y0, x0;   /* bytes */
    Form as_is, wide; /* wide.f: NULL where elements are not made wider, or tiles not moved by four elements */
    size_t wants;     /* wide: what addresses are multiples of, bytes */
};

HnCuFunction hn_cuda_sized(const HnStep *s, const char *module, const char *prefix, size_t size, GError **error)
{
    g_autofree char *name = g_strdup_printf("%s_%d", prefix, (int)size);
    return hn_cuda_named(s, module, name, error);
}

/* --- what a copy amounts to -------------------------------------------------------------------------------------- */

/* Axes that continue one another become one. */
static void merge_axes(Form *f, int ndim, const int64_t *dims, const int64_t *ys, const int64_t *xs)
{
    HnCudaStridedArgs *a = &f->args;
    int n = 0;
    for (int k = 0; k < ndim; k++) {
        if (dims[k] == 1)
            continue;
        if (n > 0 && a->ys[n - 1] == ys[k] * dims[k] && a->xs[n - 1] == xs[k] * dims[k]) {
            f->dims[n - 1] *= dims[k];
        } else {
            f->dims[n] = dims[k];
            n++;
        }
        a->ys[n - 1] = ys[k];
        a->xs[n - 1] = xs[k];
    }
    if (n == 0) {
        f->dims[0] = a->ys[0] = a->xs[0] = 1;
        n = 1;
    }
    a->ndim = n;
}

/* The widest elements that runs on both sides consist of. */
static size_t width_of(const HnCudaStrided *c)
{
    const Form *f = &c->as_is;
    const int last = f->args.ndim - 1;
    int64_t bits = c->y0 | c->x0 | WIDEST | f->dims[last] * (int64_t)f->size;
    if (f->args.ys[last] != 1 || f->args.xs[last] != 1)
        return f->size;
    for (int a = 0; a < last; a++)
        bits |= (f->args.ys[a] | f->args.xs[a]) * (int64_t)f->size;
    return MAX((size_t)(bits & -bits), f->size);
}

static void widen(Form *w, const Form *f, size_t size)
{
    const int64_t times = (int64_t)(size / f->size);
    *w = *f;
    w->size = size;
    for (int a = 0; a < f->args.ndim - 1; a++) {
        w->args.ys[a] /= times;
        w->args.xs[a] /= times;
    }
    w->dims[f->args.ndim - 1] /= times;
    if (w->dims[f->args.ndim - 1] == 1 && f->args.ndim > 1)
        w->args.ndim--;
}

/* How many tiles there are. FALSE: too many. */
static gboolean count_tiles(HnCudaStridedArgs *a, int64_t side)
{
    const int64_t across = ((int64_t)a->tile_m + side - 1) / side, down = ((int64_t)a->tile_n + side - 1) / side;
    if (across * down >= HN_DIVIDE_LIMIT)
        return FALSE;
    a->tiles_m = hn_divisor(across);
    a->tiles_n = hn_divisor(down);
    return TRUE;
}

/* Different axes are side by side in source and destination: these become tiles. */
static gboolean make_tiles(Form *f)
{
    HnCudaStridedArgs *a = &f->args;
    int m = -1, n = -1, left = 0;
    for (int k = 0; k < a->ndim; k++) {
        m = a->xs[k] == 1 ? k : m;
        n = a->ys[k] == 1 ? k : n;
    }
    if (m < 0 || n < 0 || m == n)
        return FALSE;
    if (MIN(f->dims[m], f->dims[n]) < NARROW_TILE || MAX(f->dims[m], f->dims[n]) >= HN_DIVIDE_LIMIT)
        return FALSE;
    a->tile_m = (uint32_t)f->dims[m];
    a->tile_n = (uint32_t)f->dims[n];
    a->tile_x = a->xs[n];
    a->tile_y = a->ys[m];
    if (!count_tiles(a, f->size > 2 ? 32 : 64))
        return FALSE;
    for (int k = 0; k < a->ndim; k++)
        if (k != m && k != n) {
            f->dims[left] = f->dims[k];
            a->ys[left] = a->ys[k];
            a->xs[left++] = a->xs[k];
        }
    a->ndim = left;
    return TRUE;
}

/* Rows and columns of all tiles are whole quads of elements, which begin at multiples of their size. */
static gboolean has_quads(const HnCudaStrided *c)
{
    const Form *f = &c->as_is;
    const HnCudaStridedArgs *a = &f->args;
    int64_t bits = a->tile_m | a->tile_n | a->tile_x | a->tile_y | c->y0 / (int64_t)f->size | c->x0 / (int64_t)f->size;
    for (int k = 0; k < a->ndim; k++)
        bits |= a->xs[k] | a->ys[k];
    return f->size <= 4 && bits % 4 == 0;
}

HnCudaStrided *hn_cuda_strided_new(const HnStep *s, size_t size, int ndim, const int64_t *dims, int64_t y0,
                                   const int64_t *ys, int64_t x0, const int64_t *xs, GError **error)
{
    HnCudaStrided *c = g_new0(HnCudaStrided, 1);
    Form *f = &c->as_is;
    c->y0 = y0 * (int64_t)size;
    c->x0 = x0 * (int64_t)size;
    f->size = size;
    for (int a = 0; a < ndim; a++)
        c->empty = c->empty || dims[a] == 0;
    if (c->empty)
        return c;
    merge_axes(f, ndim, dims, ys, xs);
    c->piece = f->args.ndim == 1 && ((f->args.ys[0] == 1 && f->args.xs[0] == 1) || f->dims[0] == 1);
    c->bytes = (gsize)f->dims[0] * size;
    if (c->piece)
        return c;
    c->tiled = make_tiles(f);
    const size_t width = c->tiled ? size : width_of(c);
    const char *prefix = c->tiled ? "strided_tiles" : "strided_each";
    gboolean ok = (f->f = hn_cuda_sized(s, "cuda_strided", prefix, size, error)) != NULL;
    c->wants = width;
    if (ok && c->tiled && has_quads(c)) {
        c->wide = *f;
        c->wants = 4 * size;
        (void)count_tiles(&c->wide.args, HN_CUDA_WIDE_SIDE);
        ok = (c->wide.f = hn_cuda_sized(s, "cuda_strided", "strided_quads", size, error)) != NULL;
    }
    if (ok && width > size) {
        widen(&c->wide, f, width);
        ok = (c->wide.f = hn_cuda_sized(s, "cuda_strided", prefix, width, error)) != NULL;
    }
    if (!ok)
        g_clear_pointer(&c, g_free);
    return c;
}

void hn_cuda_strided_free(HnCudaStrided *c)
{
    g_free(c);
}

/* --- launches ---------------------------------------------------------------------------------------------------- */

/* The copy of a part: axes from `axis` on, those before stand still. A launch's numbers are below HN_DIVIDE_LIMIT. */
static gboolean launch_from(const HnStep *s, const HnCudaStrided *c, const Form *f, int axis, uint64_t y, uint64_t x,
                            GError **error)
{
    HnCudaStridedArgs a = f->args;
    const int64_t unit = c->tiled ? (int64_t)a.tiles_m.by * a.tiles_n.by : 1;
    int64_t inner = unit;
    a.ndim -= axis;
    for (int k = 0; k < a.ndim; k++) {
        inner *= k > 0 ? f->dims[axis + k] : 1;
        a.ys[k] = f->args.ys[axis + k];
        a.xs[k] = f->args.xs[axis + k];
        if (k > 0 && inner < HN_DIVIDE_LIMIT)
            a.dims[k] = hn_divisor(f->dims[axis + k]);
    }
    const int64_t count = a.ndim > 0 ? f->dims[axis] : 1, most = MAX((HN_DIVIDE_LIMIT - 1) / inner, 1);
    for (int64_t k = 0, n; k < count; k += n) {
        n = MIN(most, count - k);
        a.y = y + (uint64_t)(a.ndim > 0 ? k * a.ys[0] : 0) * f->size;
        a.x = x + (uint64_t)(a.ndim > 0 ? k * a.xs[0] : 0) * f->size;
        if (inner >= HN_DIVIDE_LIMIT) {
            if (!launch_from(s, c, f, axis + 1, a.y, a.x, error))
                return FALSE;
            continue;
        }
        a.dims[0] = hn_divisor(n);
        a.n = (uint32_t)(n * inner);
        HnCudaGrid g = hn_cuda_loop(s, c->tiled ? (int64_t)a.n * THREADS : a.n, THREADS);
        if (c->tiled) {
            g.block[0] = HN_CUDA_WARP;
            g.block[1] = HN_CUDA_TILE_ROWS;
        }
        if (!hn_cuda_launch(s, f->f, g, &a, error))
            return FALSE;
    }
    return TRUE;
}

gboolean hn_cuda_strided_run(const HnStep *s, const HnCudaStrided *c, uint64_t y, uint64_t x, GError **error)
{
    if (c->empty)
        return TRUE;
    y += (uint64_t)c->y0;
    x += (uint64_t)c->x0;
    if (c->piece)
        return hn_cuda_copy(s, y, x, c->bytes, error);
    const gboolean wide = c->wide.f != NULL && (y | x) % c->wants == 0;
    return launch_from(s, c, wide ? &c->wide : &c->as_is, 0, y, x, error);
}

gboolean hn_cuda_strided_runs(const HnCudaStrided *c, HnCudaRunBytes *r)
{
    const Form *f = &c->as_is;
    const int64_t size = (int64_t)f->size;
    const int last = f->args.ndim - 1;
    if (c->empty || c->tiled)
        return FALSE;
    *r = (HnCudaRunBytes){ 1, (int64_t)c->bytes, c->y0, c->x0, (int64_t)c->bytes, (int64_t)c->bytes };
    if (c->piece)
        return TRUE;
    const gboolean side_by_side = f->args.ys[last] == 1 && f->args.xs[last] == 1;
    if (last > 1 || (last == 1 && !side_by_side) || f->args.ys[0] < 0 || f->args.xs[0] < 0)
        return FALSE;
    r->rows = f->dims[0];
    r->run = last == 1 ? f->dims[1] * size : size;
    r->y_row = f->args.ys[0] * size;
    r->x_row = f->args.xs[0] * size;
    return TRUE;
}

HnPlace hn_cuda_strided_place(const HnCudaStrided *c, gboolean in, gsize *offset)
{
    const int64_t at = in ? c->y0 : c->x0;
    *offset = (gsize)at;
    return c->piece && at % PLACE == 0 ? HN_PLACE_PIECE : HN_PLACE_NONE;
}
