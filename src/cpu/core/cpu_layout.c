/*
 * Layouts of the CPU backend: channels last, which own kernels use, and whatever else oneDNN chose, as its memory
 * descriptor. Steps between plain and channels last are own copies, those between others are oneDNN's reorders.
 */
#include <string.h>

#include "cpu/core/cpu_backend.h"
#include "cpu/core/strided_copy.h"
#include "cpu/core/cpu_kernel.h"
#include "cpu/core/half_rows.h"
#include "op/index.h"

typedef struct {
    HnLayout base;
    gboolean last; /* channels last, of a value of these dims */
    int ndim;
    int64_t dims[DNNL_MAX_NDIMS];
    dnnl_memory_desc_t md; /* channels last: NULL until somebody asks */
} CpuLayout;

/* --- memory descriptors ------------------------------------------------------------------------------------------ */

dnnl_memory_desc_t hn_md_strided(int ndim, const int64_t *dims, const int64_t *strides)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_dims_t d = { 1 }, s = { 1 };
    if (ndim > DNNL_MAX_NDIMS)
        return NULL;
    for (int i = 0; i < ndim; i++) {
        d[i] = dims[i];
        s[i] = strides[i];
    }
    return hn_dnnl(memory_desc_create_with_strides)(&md, MAX(ndim, 1), d, dnnl_f32, s) == dnnl_success ? md : NULL;
}

dnnl_memory_desc_t hn_md_plain(int ndim, const int64_t *dims)
{
    int64_t strides[DNNL_MAX_NDIMS], step = 1;
    if (ndim > DNNL_MAX_NDIMS)
        return NULL;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    return hn_md_strided(ndim, dims, strides);
}

dnnl_memory_desc_t hn_md_any(int ndim, const int64_t *dims)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_dims_t d = { 1 };
    if (ndim > DNNL_MAX_NDIMS)
        return NULL;
    for (int i = 0; i < ndim; i++)
        d[i] = dims[i];
    return hn_dnnl(memory_desc_create_with_tag)(&md, MAX(ndim, 1), d, dnnl_f32, dnnl_format_tag_any) == dnnl_success
               ? md
               : NULL;
}

dnnl_memory_desc_t hn_md_of(const HnSlot *slot)
{
    dnnl_memory_desc_t md = NULL;
    if (slot->layout == NULL)
        return hn_md_plain(slot->tensor->ndim, slot->tensor->dims);
    return hn_dnnl(memory_desc_clone)(&md, hn_layout_md(slot->layout)) == dnnl_success ? md : NULL;
}

/* What hone needs to know of a memory descriptor. */
typedef struct {
    int ndim, n_blocks;
    const dnnl_dims_t *dims, *padded, *strides, *blocks, *axes;
} Form;

static gboolean form_of(const_dnnl_memory_desc_t md, Form *f)
{
    dnnl_format_kind_t kind;
    const struct {
        dnnl_query_t what;
        void *to;
    } queries[] = {
        { dnnl_query_ndims_s32, &f->ndim },           { dnnl_query_dims, &f->dims },
        { dnnl_query_padded_dims, &f->padded },       { dnnl_query_strides, &f->strides },
        { dnnl_query_inner_nblks_s32, &f->n_blocks }, { dnnl_query_inner_blks, &f->blocks },
        { dnnl_query_inner_idxs, &f->axes },
    };
    if (hn_dnnl(memory_desc_query)(md, dnnl_query_format_kind, &kind) != dnnl_success || kind != dnnl_blocked)
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(queries); i++)
        if (hn_dnnl(memory_desc_query)(md, queries[i].what, queries[i].to) != dnnl_success)
            return FALSE;
    return TRUE;
}

static gboolean form_padded(const Form *f)
{
    return memcmp(*f->dims, *f->padded, (size_t)f->ndim * sizeof(dnnl_dim_t)) != 0;
}

/* Do the elements lie in row-major order? Channels in blocks do, where each channel is one element. */
static gboolean form_plain(const Form *f)
{
    int64_t block = 1, step = 1;
    int axis = -1;
    if (form_padded(f) || f->n_blocks > 1)
        return FALSE;
    if (f->n_blocks == 1) {
        block = (*f->blocks)[0];
        axis = (int)(*f->axes)[0];
        for (int i = axis + 1; i < f->ndim; i++)
            if ((*f->dims)[i] != 1)
                return FALSE;
    }
    for (int i = f->ndim - 1; i >= 0; i--) {
        int64_t outer = i == axis ? (*f->dims)[i] / block : (*f->dims)[i];
        if (outer != 1 && (*f->strides)[i] != (i == axis ? block : step))
            return FALSE;
        step *= (*f->dims)[i];
    }
    return TRUE;
}

/* --- layouts ----------------------------------------------------------------------------------------------------- */

static void layout_free(HnLayout *l)
{
    CpuLayout *c = (CpuLayout *)l;
    if (c->md != NULL)
        hn_dnnl(memory_desc_destroy)(c->md);
    g_free(c);
}

static CpuLayout *layout_alloc(gsize bytes)
{
    CpuLayout *c = g_new0(CpuLayout, 1);
    c->base = (HnLayout){ .ref = 1, .bytes = bytes, .backend = &hn_backend_cpu, .free = layout_free };
    return c;
}

void hn_last_strides(int ndim, const int64_t *dims, int64_t *strides)
{
    int64_t step = dims[1];
    strides[1] = 1;
    for (int i = ndim - 1; i >= 2; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    strides[0] = step;
}

static gboolean form_last(const Form *f)
{
    int64_t strides[DNNL_MAX_NDIMS];
    if (f->ndim < 3 || f->ndim > 5 || f->n_blocks > 0 || form_padded(f))
        return FALSE;
    hn_last_strides(f->ndim, *f->dims, strides);
    for (int i = 0; i < f->ndim; i++)
        if ((*f->dims)[i] != 1 && (*f->strides)[i] != strides[i])
            return FALSE;
    return TRUE;
}

/* One channel, or one pixel: the same in both orders. */
static gboolean last_is_plain(int ndim, const int64_t *dims)
{
    int64_t pixels = 1;
    for (int i = 2; i < ndim; i++)
        pixels *= dims[i];
    return dims[1] == 1 || pixels == 1;
}

static HnLayout *last_new(int ndim, const int64_t *dims, gsize bytes)
{
    if (last_is_plain(ndim, dims))
        return NULL;
    CpuLayout *c = layout_alloc(bytes);
    c->last = TRUE;
    c->ndim = ndim;
    memcpy(c->dims, dims, (gsize)ndim * sizeof *dims);
    return &c->base;
}

HnLayout *hn_layout_last(const HnTensor *t)
{
    return t->ndim >= 3 && t->ndim <= 5 ? last_new(t->ndim, t->dims, t->bytes) : NULL;
}

gboolean hn_layout_is_last(const HnLayout *l)
{
    return l != NULL && ((const CpuLayout *)l)->last;
}

gboolean hn_slot_is_last(const HnSlot *slot)
{
    const HnTensor *t = slot->tensor;
    return slot->layout != NULL ? hn_layout_is_last(slot->layout)
                                : t->ndim >= 3 && t->ndim <= 5 && last_is_plain(t->ndim, t->dims);
}

int64_t hn_slot_pitch(const HnSlot *slot)
{
    return slot->pitch > 0 ? slot->pitch : slot->tensor->dims[1];
}

HnLayout *hn_layout_new(const_dnnl_memory_desc_t md)
{
    Form f;
    gboolean known = form_of(md, &f);
    gsize bytes = hn_dnnl(memory_desc_get_size)(md);
    if (known && form_plain(&f))
        return NULL;
    if (known && form_last(&f))
        return last_new(f.ndim, *f.dims, bytes);
    CpuLayout *c = layout_alloc(bytes);
    hn_dnnl(memory_desc_clone)(&c->md, md);
    return &c->base;
}

const_dnnl_memory_desc_t hn_layout_md(const HnLayout *l)
{
    CpuLayout *c = (CpuLayout *)l;
    if (c->md == NULL) {
        int64_t strides[DNNL_MAX_NDIMS];
        hn_last_strides(c->ndim, c->dims, strides);
        c->md = hn_md_strided(c->ndim, c->dims, strides);
    }
    return c->md;
}

gboolean hn_layout_padded(const HnLayout *l)
{
    Form f;
    return l != NULL && !hn_layout_is_last(l) && (!form_of(hn_layout_md(l), &f) || form_padded(&f));
}

gboolean hn_layout_equal(const HnLayout *a, const HnLayout *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    const CpuLayout *x = (const CpuLayout *)a, *y = (const CpuLayout *)b;
    if (x->last != y->last)
        return FALSE;
    if (x->last)
        return x->ndim == y->ndim && memcmp(x->dims, y->dims, (gsize)x->ndim * sizeof *x->dims) == 0;
    return hn_dnnl(memory_desc_equal)(x->md, y->md) != 0;
}

/* Pixels under other dims, channels last as they were. */
HnLayout *hn_layout_view(const HnSlot *from, const HnTensor *to)
{
    const HnTensor *t = from->tensor;
    const gboolean same = to->ndim >= 3 && to->n == t->n && to->dims[0] == t->dims[0] && to->dims[1] == t->dims[1];
    return same && hn_layout_is_last(from->layout) ? hn_layout_last(to) : NULL;
}

int64_t hn_slot_elements(const HnSlot *slot)
{
    return slot->layout != NULL ? (int64_t)(slot->layout->bytes / hn_dtype_size(slot->tensor->dtype)) : slot->tensor->n;
}

/* --- own reorder -------------------------------------------------------------------------------------------------- */

static gboolean plain_or_last(const HnSlot *slot)
{
    return slot->layout == NULL || hn_layout_is_last(slot->layout);
}

static const char *swap_reject(const HnStep *s)
{
    if (s->in[0].slot->tensor->dtype != s->out[0].slot->tensor->dtype)
        return "another element type";
    return plain_or_last(s->in[0].slot) && plain_or_last(s->out[0].slot) ? NULL : "a layout of oneDNN's";
}

static gboolean swap_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *t = s->in[0].slot->tensor;
    int64_t strides[2][DNNL_MAX_NDIMS], dims[DNNL_MAX_NDIMS], ys[DNNL_MAX_NDIMS], xs[DNNL_MAX_NDIMS];
    const HnSlot *slots[2] = { s->out[0].slot, s->in[0].slot };
    for (int k = 0; k < 2; k++)
        if (slots[k]->layout != NULL)
            hn_last_strides(t->ndim, t->dims, strides[k]);
        else
            hn_strides(t->ndim, t->dims, strides[k]);
    /* axes in the order of the destination */
    int order[DNNL_MAX_NDIMS], n = 0;
    order[n++] = 0;
    for (int i = slots[0]->layout != NULL ? 2 : 1; i < t->ndim; i++)
        order[n++] = i;
    if (slots[0]->layout != NULL)
        order[n++] = 1;
    for (int i = 0; i < n; i++) {
        dims[i] = t->dims[order[i]];
        ys[i] = strides[0][order[i]];
        xs[i] = strides[1][order[i]];
    }
    s->state = hn_copy_new(hn_dtype_size(t->dtype), n, dims, 0, ys, 0, xs, hn_cpu_threads_for(s, 0));
    return TRUE;
}

static gboolean swap_run(HnStep *s, GError **error)
{
    (void)error;
    hn_copy_run(s->state, hn_cpu_data(&s->out[0]), hn_cpu_data(&s->in[0]));
    return TRUE;
}

static void swap_release(HnStep *s)
{
    hn_copy_free(s->state);
    s->state = NULL;
}

static const HnKernel swap = {
    .name = "cpu.reorder", .reject = swap_reject, .prepare = swap_prepare, .run = swap_run, .release = swap_release
};

/* --- oneDNN's reorder
 * ----------------------------------------------------------------------------------------------------- */

static void reorder_release(HnStep *s)
{
    if (s->state != NULL)
        hn_prim_clear(s->state);
    g_clear_pointer(&s->state, g_free);
}

static gboolean reorder_prepare(HnStep *s, GError **error)
{
    HnCpu *c = hn_cpu_begin(s, 0);
    g_auto(dnnl_memory_desc_t) from = hn_md_of(s->in[0].slot);
    g_auto(dnnl_memory_desc_t) to = hn_md_of(s->out[0].slot);
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    dnnl_status_t status = dnnl_out_of_memory;
    if (from != NULL && to != NULL)
        status = hn_dnnl(reorder_primitive_desc_create)(&pd, from, c->engine, to, c->engine, c->attr);
    if (!hn_cpu_check(status, s, error))
        return FALSE;
    HnPrim *p = g_new0(HnPrim, 1);
    s->state = p;
    return hn_prim_init(p, s, pd, 2, (const int[]){ DNNL_ARG_FROM, DNNL_ARG_TO }, error);
}

static gboolean reorder_run(HnStep *s, GError **error)
{
    void *data[] = { hn_cpu_data(&s->in[0]), hn_cpu_data(&s->out[0]) };
    return hn_prim_run(s->state, s, data, error);
}

static const HnKernel reorder = {
    .name = "onednn.reorder",
    .prepare = reorder_prepare,
    .run = reorder_run,
    .release = reorder_release,
};

/* --- halves ------------------------------------------------------------------------------------------------------ */

static const char *convert_reject(const HnStep *s)
{
    return s->in[0].slot->tensor->dtype == s->out[0].slot->tensor->dtype ? "the same element type" : NULL;
}

static gboolean convert_prepare(HnStep *s, GError **error)
{
    (void)s;
    (void)error;
    return TRUE;
}

static gboolean convert_run(HnStep *s, GError **error)
{
    (void)error;
    const HnTensor *x = s->in[0].slot->tensor, *y = s->out[0].slot->tensor;
    if (x->dtype == HN_F32)
        hn_cpu_half_from_f32(y->dtype, y->data, x->data, x->n);
    else
        hn_cpu_half_to_f32(x->dtype, y->data, x->data, x->n);
    return TRUE;
}

static const HnKernel convert = {
    .name = "cpu.convert", .reject = convert_reject, .prepare = convert_prepare, .run = convert_run
};

const HnKernel *const hn_cpu_reorders[] = { &swap, &convert, &reorder, NULL };
