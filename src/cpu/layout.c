/*
 * Layouts of the CPU backend are oneDNN memory descriptors; the step between two of them is a oneDNN reorder.
 */
#include <string.h>

#include "cpu/backend.h"
#include "cpu/cpu.h"

typedef struct {
    HnLayout base;
    dnnl_memory_desc_t md;
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
    return hn_dnnl(memory_desc_query)(md, dnnl_query_format_kind, &kind) == dnnl_success && kind == dnnl_blocked &&
           hn_dnnl(memory_desc_query)(md, dnnl_query_ndims_s32, &f->ndim) == dnnl_success &&
           hn_dnnl(memory_desc_query)(md, dnnl_query_dims, &f->dims) == dnnl_success &&
           hn_dnnl(memory_desc_query)(md, dnnl_query_padded_dims, &f->padded) == dnnl_success &&
           hn_dnnl(memory_desc_query)(md, dnnl_query_strides, &f->strides) == dnnl_success &&
           hn_dnnl(memory_desc_query)(md, dnnl_query_inner_nblks_s32, &f->n_blocks) == dnnl_success &&
           hn_dnnl(memory_desc_query)(md, dnnl_query_inner_blks, &f->blocks) == dnnl_success &&
           hn_dnnl(memory_desc_query)(md, dnnl_query_inner_idxs, &f->axes) == dnnl_success;
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
    hn_dnnl(memory_desc_destroy)(c->md);
    g_free(c);
}

HnLayout *hn_layout_new(const_dnnl_memory_desc_t md)
{
    Form f;
    if (form_of(md, &f) && form_plain(&f))
        return NULL;
    CpuLayout *c = g_new0(CpuLayout, 1);
    c->base = (HnLayout){
        .ref = 1, .bytes = hn_dnnl(memory_desc_get_size)(md), .backend = &hn_backend_cpu, .free = layout_free
    };
    hn_dnnl(memory_desc_clone)(&c->md, md);
    return &c->base;
}

const_dnnl_memory_desc_t hn_layout_md(const HnLayout *l)
{
    return ((const CpuLayout *)l)->md;
}

gboolean hn_layout_padded(const HnLayout *l)
{
    Form f;
    return l != NULL && (!form_of(hn_layout_md(l), &f) || form_padded(&f));
}

gboolean hn_layout_equal(const HnLayout *a, const HnLayout *b)
{
    return a == b || (a != NULL && b != NULL && hn_dnnl(memory_desc_equal)(hn_layout_md(a), hn_layout_md(b)) != 0);
}

int64_t hn_slot_elements(const HnSlot *slot)
{
    return slot->layout != NULL ? (int64_t)(slot->layout->bytes / hn_dtype_size(slot->tensor->dtype)) : slot->tensor->n;
}

dnnl_format_tag_t hn_layout_tag(const HnLayout *l)
{
    static const dnnl_format_tag_t tags[][3] = {
        /* of 3, 4 and 5 axes */
        { dnnl_nCw16c, dnnl_nCw8c, dnnl_nwc },
        { dnnl_nChw16c, dnnl_nChw8c, dnnl_nhwc },
        { dnnl_nCdhw16c, dnnl_nCdhw8c, dnnl_ndhwc },
    };
    Form f;
    if (l == NULL || !form_of(hn_layout_md(l), &f) || f.ndim < 3 || f.ndim > 5)
        return dnnl_format_tag_undef;
    for (int i = 0; i < 3; i++) {
        g_auto(dnnl_memory_desc_t) md = NULL;
        dnnl_format_tag_t tag = tags[f.ndim - 3][i];
        if (hn_dnnl(memory_desc_create_with_tag)(&md, f.ndim, *f.dims, dnnl_f32, tag) == dnnl_success &&
            hn_dnnl(memory_desc_equal)(md, hn_layout_md(l)) != 0)
            return tag;
    }
    return dnnl_format_tag_undef;
}

/* --- reorder ----------------------------------------------------------------------------------------------------- */

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

const HnKernel hn_cpu_reorder = {
    .name = "onednn.reorder",
    .prepare = reorder_prepare,
    .run = reorder_run,
    .release = reorder_release,
};
