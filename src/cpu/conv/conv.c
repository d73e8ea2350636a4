/*
 * Conv with 1 to 3 spatial axes. oneDNN chooses the layouts of source, result and constant weights.
 */
#include "op/conv.h"

#include "cpu/core/epilogue.h"
#include "cpu/conv/conv_small.h"
#include "cpu/conv/conv_few.h"
#include "cpu/conv/conv_gemm.h"
#include "cpu/conv/conv_planar.h"
#include "cpu/core/cpu_kernel.h"
#include "cpu/conv/depthwise.h"
#include "cpu/conv/turned.h"
#include "cpu/conv/winograd.h"
#include "cpu/fourier/dft_product.h"
#include "cpu/sparse/sparse_conv.h"

typedef struct {
    HnPrim prim;
    HnPack *weights;
    HnEpilogue epilogue;
} Conv;

/* Weights [group * M, C, k...] as oneDNN counts axes: [group, M, C, k...] where there are groups. */
static int weight_dims(const HnConvPlan *plan, const HnTensor *w, int64_t *dims)
{
    int n = 0;
    if (plan->group > 1)
        dims[n++] = plan->group;
    dims[n++] = plan->out_channels;
    for (int i = 1; i < w->ndim; i++)
        dims[n++] = w->dims[i];
    return n;
}

static dnnl_memory_desc_t weights_as_stored(const HnConvPlan *plan, const HnTensor *w)
{
    int64_t dims[HN_MAX_RANK + 1];
    int n = weight_dims(plan, w, dims);
    return hn_md_plain(n, dims);
}

/* Weights that are made while running are put into oneDNN's layout by a reorder step, unless there are groups: that
 * step does not split axes. */
static dnnl_memory_desc_t weights_wanted(const HnStep *s, const HnConvPlan *plan, const HnTensor *w)
{
    int64_t dims[HN_MAX_RANK + 1];
    int n = weight_dims(plan, w, dims);
    return s->in[1].slot->constant || plan->group == 1 ? hn_md_any(n, dims) : hn_md_plain(n, dims);
}

static dnnl_status_t describe(const HnStep *s, const HnEpilogue *epilogue, HnConvPlan *plan, dnnl_primitive_desc_t *pd)
{
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *b = hn_cpu_in(s, 2), *y = s->out[0].slot->tensor;
    dnnl_dims_t strides, dilations, pad, pad_end;
    if (!hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, plan, NULL))
        return dnnl_invalid_arguments;
    for (int i = 0; i < plan->n; i++) {
        strides[i] = plan->axis[i].stride;
        dilations[i] = plan->axis[i].dilation - 1;
        pad[i] = plan->axis[i].pad;
        pad_end[i] = MAX(0, hn_window_overhang(&plan->axis[i]));
    }
    const double flops = 2 * (double)y->n * (double)plan->in_channels * (double)plan->taps;
    HnCpu *c = hn_cpu_begin(s, flops);
    g_auto(dnnl_primitive_attr_t) attr = hn_epilogue_attr(epilogue, y->ndim, y->dims, 1, hn_cpu_in_bf16(s, flops));
    if (attr == NULL)
        return dnnl_unimplemented;
    g_auto(dnnl_memory_desc_t) src = hn_md_any(x->ndim, x->dims);
    g_auto(dnnl_memory_desc_t) weights = weights_wanted(s, plan, w);
    g_auto(dnnl_memory_desc_t) bias = b != NULL ? hn_md_plain(b->ndim, b->dims) : NULL;
    g_auto(dnnl_memory_desc_t) dst = hn_md_any(y->ndim, y->dims);
    return hn_dnnl(convolution_forward_primitive_desc_create)(pd, c->engine, dnnl_forward_inference,
                                                              dnnl_convolution_direct, src, weights, bias, dst, strides,
                                                              dilations, pad, pad_end, attr);
}

static const char *conv_reject(const HnStep *s)
{
    HnConvPlan plan;
    const char *reason = hn_conv_reject(s, HN_CONV_PLAIN, 3, &plan);
    if (reason != NULL || (reason = hn_cpu_reject_onednn(s)) != NULL)
        return reason;
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    HnEpilogue epilogue;
    hn_epilogue_init(&epilogue, (HnStep *)s, 1);
    dnnl_status_t status = describe(s, &epilogue, &plan, &pd);
    hn_epilogue_clear(&epilogue);
    return status == dnnl_success ? NULL : "oneDNN has no implementation";
}

static void conv_release(HnStep *s)
{
    Conv *c = s->state;
    if (c == NULL)
        return;
    hn_prim_clear(&c->prim);
    hn_epilogue_clear(&c->epilogue);
    hn_pack_unref(c->weights);
    g_free(c);
    s->state = NULL;
}

static gboolean conv_prepare(HnStep *s, GError **error)
{
    Conv *c = g_new0(Conv, 1);
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    HnConvPlan plan;
    s->state = c;
    hn_epilogue_init(&c->epilogue, s, 1);
    if (!hn_cpu_check(describe(s, &c->epilogue, &plan, &pd), s, error))
        return FALSE;
    const_dnnl_memory_desc_t weights = hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_weights_md, 0);
    g_auto(dnnl_memory_desc_t) stored = weights_as_stored(&plan, hn_cpu_in(s, 1));
    if (s->in[1].slot->constant) {
        if (!hn_pack(s, 1, stored, weights, &c->weights, error))
            return FALSE;
    } else if (plan.group == 1) {
        s->in[1].want = hn_layout_new(weights);
    }
    s->in[0].want = hn_layout_new(hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_src_md, 0));
    s->out[0].slot->layout = hn_layout_new(hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_dst_md, 0));
    int args[HN_PRIM_ARGS] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS };
    int n = hn_epilogue_args(&c->epilogue, s, pd, args, hn_cpu_in(s, 2) != NULL ? 4 : 3);
    return hn_prim_init(&c->prim, s, pd, n, args, error);
}

static gboolean conv_run(HnStep *s, GError **error)
{
    Conv *c = s->state;
    gboolean bias = hn_cpu_in(s, 2) != NULL;
    void *data[HN_PRIM_ARGS] = { hn_cpu_data(&s->in[0]), hn_pack_data(c->weights, s, 1), hn_cpu_data(&s->out[0]),
                                 bias ? hn_cpu_data(&s->in[2]) : NULL };
    hn_epilogue_data(&c->epilogue, s, data, bias ? 4 : 3);
    return hn_prim_run(&c->prim, s, data, error);
}

static const HnKernel conv_onednn = {
    .name = "onednn.conv",
    .reject = conv_reject,
    .prepare = conv_prepare,
    .run = conv_run,
    .release = conv_release,
    .fuses = hn_epilogue_conv_fuses,
};

const HnKernel *const hn_cpu_conv[] = { &hn_cpu_dft_conv,
                                        &hn_cpu_depthwise,
                                        &hn_cpu_conv_group,
                                        &hn_cpu_sparse_conv,
                                        &hn_cpu_conv_small,
                                        &hn_cpu_winograd,
                                        &hn_cpu_conv_few,
                                        &hn_cpu_conv_planar,
                                        &hn_cpu_conv_gemm,
                                        &conv_onednn,
                                        NULL };
