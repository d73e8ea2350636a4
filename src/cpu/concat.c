/*
 * Concat: of channels without leaving a blocked or channels-last layout, and of plain sources along any axis.
 */
#include "op/concat.h"

#include <string.h>

#include "cpu/copy.h"
#include "op/index.h"

typedef struct {
    int64_t outer;
    int64_t *inner; /* per source: adjacent elements of each of outer pieces */
} Concat;

/* Channels that lie together in a layout: 8, 16; 0: all of them (channels last); -1: not one of these layouts. */
static int64_t block_of(dnnl_format_tag_t tag)
{
    switch ((int)tag) {
    case dnnl_nCw8c:
    case dnnl_nChw8c:
    case dnnl_nCdhw8c:
        return 8;
    case dnnl_nCw16c:
    case dnnl_nChw16c:
    case dnnl_nCdhw16c:
        return 16;
    case dnnl_nwc:
    case dnnl_nhwc:
    case dnnl_ndhwc:
        return 0;
    default:
        return -1;
    }
}

/* The layout of the first source that has one of these. */
static dnnl_format_tag_t tag_of(const HnStep *s)
{
    for (int i = 0; i < s->n_in; i++) {
        dnnl_format_tag_t tag = hn_layout_tag(s->in[i].slot->layout);
        if (block_of(tag) >= 0)
            return tag;
    }
    return dnnl_format_tag_undef;
}

static const char *concat_reject(const HnStep *s)
{
    const char *reason = hn_cpu_reject_f32(s);
    if (reason != NULL)
        return reason;
    dnnl_format_tag_t tag = tag_of(s);
    int64_t block = block_of(tag), channels = 0;
    if (block < 0)
        return "plain sources";
    for (int i = 0; i < s->n_in; i++) {
        int64_t c = hn_cpu_in(s, i)->dims[1];
        if (block > 0 && c % block != 0)
            return "channels that do not fill their blocks";
        channels += c;
    }
    return channels == s->out[0].slot->tensor->dims[1] ? NULL : "another axis than the channels";
}

static void concat_release(HnStep *s)
{
    Concat *c = s->state;
    if (c != NULL)
        g_free(c->inner);
    g_free(c);
    s->state = NULL;
}

static HnLayout *layout_of(const HnTensor *t, dnnl_format_tag_t tag)
{
    g_auto(dnnl_memory_desc_t) md = NULL;
    dnnl_dims_t dims;
    for (int i = 0; i < t->ndim; i++)
        dims[i] = t->dims[i];
    return hn_dnnl(memory_desc_create_with_tag)(&md, t->ndim, dims, dnnl_f32, tag) == dnnl_success ? hn_layout_new(md)
                                                                                                   : NULL;
}

static gboolean concat_prepare(HnStep *s, GError **error)
{
    (void)error;
    Concat *c = g_new0(Concat, 1);
    const HnTensor *y = s->out[0].slot->tensor;
    dnnl_format_tag_t tag = tag_of(s);
    s->state = c;
    c->inner = g_new0(int64_t, (gsize)s->n_in + 1);
    c->outer = block_of(tag) > 0 ? y->dims[0] : y->n / y->dims[1];
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = hn_cpu_in(s, i);
        c->inner[i] = x->n / c->outer;
        s->in[i].want = layout_of(x, tag);
    }
    s->out[0].slot->layout = layout_of(y, tag);
    return TRUE;
}

static gboolean concat_run(HnStep *s, GError **error)
{
    (void)error;
    const Concat *c = s->state;
    float *to = hn_cpu_data(&s->out[0]);
    for (int64_t o = 0; o < c->outer; o++)
        for (int i = 0; i < s->n_in; i++) {
            const float *from = hn_cpu_data(&s->in[i]);
            memcpy(to, from + o * c->inner[i], (size_t)c->inner[i] * sizeof *to);
            to += c->inner[i];
        }
    return TRUE;
}

static const HnKernel concat_channels = {
    .name = "cpu.concat",
    .reject = concat_reject,
    .prepare = concat_prepare,
    .run = concat_run,
    .release = concat_release,
};

/* --- plain sources ----------------------------------------------------------------------------------------------- */

static const char *join_reject(const HnStep *s)
{
    return hn_copy_reject(hn_cpu_in(s, 0));
}

static gboolean join_prepare(HnStep *s, GError **error)
{
    (void)error;
    const HnConcat *p = s->params;
    const HnTensor *y = s->out[0].slot->tensor;
    const int axis = (int)(p->axis < 0 ? p->axis + y->ndim : p->axis), threads = hn_cpu_threads_for(s, 0);
    int64_t ys[HN_MAX_RANK], xs[HN_MAX_RANK], at = 0;
    HnCopies *c = hn_copies_new((guint)s->n_in);
    hn_strides(y->ndim, y->dims, ys);
    for (int i = 0; i < s->n_in; i++) {
        const HnTensor *x = hn_cpu_in(s, i);
        hn_strides(x->ndim, x->dims, xs);
        c->part[i].copy = hn_copy_new(hn_dtype_size(x->dtype), x->ndim, x->dims, at, ys, 0, xs, threads);
        c->part[i].in = i;
        at += x->dims[axis] * ys[axis];
    }
    s->state = c;
    return TRUE;
}

static const HnKernel concat_plain = {
    .name = "cpu.join",
    .reject = join_reject,
    .prepare = join_prepare,
    .run = hn_copies_run,
    .release = hn_copies_release,
};

const HnKernel *const hn_cpu_concat[] = { &concat_channels, &concat_plain, NULL };
