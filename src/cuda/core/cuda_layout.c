#include "cuda/core/cuda_layout.h"

#include <string.h>

#include "cuda/core/cuda_layout_args.h"
#include "op/ops.h"
#include "op/transpose.h"

typedef struct {
    HnLayout base;
    int ndim;
    int64_t dims[HN_CUDA_LAYOUT_AXES];
    gsize size; /* of an element */
} Last;

static int64_t pixels_of(const HnTensor *t)
{
    int64_t n = 1;
    for (int i = 2; i < t->ndim; i++)
        n *= t->dims[i];
    return n;
}

int64_t hn_cuda_padded(const HnTensor *t)
{
    const int64_t line = hn_cuda_line(t->dtype);
    return (t->dims[1] + line - 1) / line * line;
}

gboolean hn_cuda_has_last(const HnTensor *t)
{
    const gsize size = hn_dtype_size(t->dtype);
    return t->ndim >= 3 && t->ndim <= HN_CUDA_LAYOUT_AXES && t->n > 0 && (size == 2 || size == 4);
}

/* One pixel, without anything behind its channels. */
static gboolean last_is_plain(const HnTensor *t)
{
    return pixels_of(t) == 1 && hn_cuda_padded(t) == t->dims[1];
}

static void layout_free(HnLayout *l)
{
    g_free(l);
}

HnLayout *hn_cuda_layout_last(const HnTensor *t)
{
    if (!hn_cuda_has_last(t) || last_is_plain(t))
        return NULL;
    Last *l = g_new0(Last, 1);
    l->ndim = t->ndim;
    l->size = hn_dtype_size(t->dtype);
    memcpy(l->dims, t->dims, (gsize)t->ndim * sizeof *t->dims);
    l->base = (HnLayout){ .ref = 1,
                          .bytes = (gsize)(t->dims[0] * pixels_of(t) * hn_cuda_padded(t)) * l->size,
                          .backend = hn_backend_cuda(0),
                          .free = layout_free };
    return &l->base;
}

gboolean hn_cuda_is_last(const HnSlot *slot)
{
    return slot->layout != NULL || (hn_cuda_has_last(slot->tensor) && last_is_plain(slot->tensor));
}

int64_t hn_cuda_pitch(const HnSlot *slot)
{
    return slot->pitch > 0 ? slot->pitch : hn_cuda_padded(slot->tensor);
}

void hn_cuda_want_last(HnStep *s, int i)
{
    s->in[i].want = hn_cuda_layout_last(s->in[i].slot->tensor);
}

void hn_cuda_make_last(HnStep *s)
{
    s->out[0].slot->layout = hn_cuda_layout_last(s->out[0].slot->tensor);
}

gboolean hn_cuda_layout_equal(const HnLayout *a, const HnLayout *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    const Last *x = (const Last *)a, *y = (const Last *)b;
    return x->ndim == y->ndim && x->size == y->size && memcmp(x->dims, y->dims, (gsize)x->ndim * sizeof *x->dims) == 0;
}

HnLayout *hn_cuda_layout_view(const HnSlot *from, const HnTensor *to)
{
    const HnTensor *t = from->tensor;
    const gboolean same = to->ndim >= 3 && to->n == t->n && to->dims[0] == t->dims[0] && to->dims[1] == t->dims[1];
    return same && to->dtype == t->dtype ? hn_cuda_layout_last(to) : NULL;
}

int hn_cuda_turn_of(const HnNode *n, int ndim)
{
    const HnTranspose *p = n->op == &hn_op_transpose ? n->params : NULL;
    if (p == NULL || p->perm == NULL || ndim < 3 || ndim > HN_CUDA_LAYOUT_AXES || p->n != ndim || p->perm[0] != 0)
        return 0;
    gboolean behind = p->perm[ndim - 1] == 1, front = p->perm[1] == ndim - 1;
    for (int i = 1; i < ndim - 1; i++) {
        behind = behind && p->perm[i] == i + 1;
        front = front && p->perm[i + 1] == i;
    }
    return behind ? 1 : front ? -1 : 0;
}

gboolean hn_cuda_turns(const HnNode *n, const HnSlot *from, const HnTensor *to, HnLayout **layout)
{
    const int turn = hn_cuda_turn_of(n, to->ndim);
    const HnTensor *image = turn > 0 ? from->tensor : to;
    if (turn == 0 || !hn_cuda_has_last(image) || hn_cuda_padded(image) != image->dims[1])
        return FALSE;
    if (turn > 0)
        return from->layout != NULL;
    *layout = from->layout == NULL ? hn_cuda_layout_last(to) : NULL;
    return *layout != NULL;
}

/* --- reorders ----------------------------------------------------------------------------------------------------- */

#define FEW_CHANNELS_BYTES 16 /* a line at most: a thread for each pixel */
#define LAUNCH_NS 2000
#define BYTES_PER_NS 2200

double hn_cuda_reorder_ns(const HnTensor *t)
{
    const double size = (double)hn_dtype_size(t->dtype), pixels = (double)(t->n / t->dims[1]);
    return LAUNCH_NS + pixels * size * (double)(t->dims[1] + hn_cuda_padded(t)) / BYTES_PER_NS;
}

typedef struct {
    HnCuFunction f;
    HnCudaGrid grid;
    HnCudaTurnArgs args;
} Turn;

static int64_t tiles(int64_t n, int64_t of)
{
    return n / of + (n % of != 0);
}

static gboolean turn_prepare(HnStep *s, GError **error)
{
    const HnTensor *t = hn_cuda_in(s, 0);
    const gsize size = hn_dtype_size(t->dtype);
    const gboolean back = s->out[0].slot->layout == NULL;
    Turn *u = g_new0(Turn, 1);
    HnCudaTurnArgs *a = &u->args;
    s->state = u;
    *a = (HnCudaTurnArgs){ .images = t->dims[0], .channels = t->dims[1], .pixels = pixels_of(t) };
    const gboolean few = (gsize)a->channels * size <= FEW_CHANNELS_BYTES;
    a->across = (int32_t)tiles(a->pixels, HN_CUDA_TURN_TILE);
    a->down = (int32_t)tiles(a->channels, HN_CUDA_TURN_TILE);
    a->wide = a->pixels % hn_cuda_line(t->dtype) == 0;
    u->grid = few ? hn_cuda_spread(s, a->images * a->pixels, HN_CUDA_TURN_THREADS)
                  : hn_cuda_row(a->images * a->across * a->down, HN_CUDA_TURN_THREADS);
    g_autofree char *name = g_strdup_printf("turn_%s%s_%d", back ? "back" : "last", few ? "_few" : "", (int)size * 8);
    u->f = hn_cuda_named(s, "cuda_layout", name, error);
    return u->f != NULL;
}

static gboolean turn_run(HnStep *s, GError **error)
{
    const Turn *u = s->state;
    const gboolean back = s->out[0].slot->layout == NULL;
    const HnPort *last = back ? &s->in[0] : &s->out[0], *plain = back ? &s->out[0] : &s->in[0];
    HnCudaTurnArgs a = u->args;
    a.plain = hn_cuda_address(plain);
    a.last = hn_cuda_address(last);
    a.pitch = hn_cuda_pitch(last->slot);
    a.wide = a.wide && a.plain % HN_CUDA_LINE == 0;
    return hn_cuda_launch(s, u->f, u->grid, &a, error);
}

static const HnKernel turn = {
    .name = "cuda.reorder",
    .prepare = turn_prepare,
    .run = turn_run,
    .release = hn_cuda_release,
    .pitched = TRUE,
};

const HnKernel *const hn_cuda_reorders[] = { &turn, NULL };
