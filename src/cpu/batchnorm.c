/*
 * BatchNormalization with given mean and variance, in whatever layout the source has.
 */
#include "op/batchnorm.h"

#include "cpu/norm.h"

enum { X, SCALE, SHIFT, MEAN, VARIANCE };

static dnnl_status_t describe(const HnStep *s, dnnl_primitive_desc_t *pd)
{
    const HnBatchNorm *p = s->params;
    HnCpu *c = hn_cpu_begin(s, 0);
    unsigned flags = dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift;
    g_auto(dnnl_memory_desc_t) md = hn_md_of(s->in[X].slot);
    return hn_dnnl(batch_normalization_forward_primitive_desc_create)(pd, c->engine, dnnl_forward_inference, md, md,
                                                                      p->epsilon, flags, c->attr);
}

static const char *batchnorm_reject(const HnStep *s)
{
    const HnBatchNorm *p = s->params;
    const char *reason = hn_cpu_reject_f32(s);
    const HnTensor *x = hn_cpu_in(s, X);
    if (reason != NULL)
        return reason;
    if (p->training || p->per_element)
        return "only inference with one mean and variance per channel";
    if (x->ndim < 2 || x->ndim > 5)
        return "only 0 to 3 spatial axes";
    for (int i = SCALE; i <= VARIANCE; i++)
        if (hn_cpu_in(s, i)->n != x->dims[1])
            return "an input of another size than the channels";
    if ((reason = hn_cpu_reject_onednn(s)) != NULL)
        return reason;
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    return describe(s, &pd) == dnnl_success ? NULL : "oneDNN has no implementation";
}

static void batchnorm_release(HnStep *s)
{
    if (s->state != NULL)
        hn_prim_clear(s->state);
    g_clear_pointer(&s->state, g_free);
}

static gboolean batchnorm_prepare(HnStep *s, GError **error)
{
    HnPrim *prim = g_new0(HnPrim, 1);
    g_auto(dnnl_primitive_desc_t) pd = NULL;
    s->state = prim;
    if (!hn_cpu_check(describe(s, &pd), s, error))
        return FALSE;
    s->in[X].any = TRUE;
    s->out[0].slot->layout = hn_layout_new(hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_dst_md, 0));
    static const int args[] = { DNNL_ARG_SRC,  DNNL_ARG_SCALE,    DNNL_ARG_SHIFT,
                                DNNL_ARG_MEAN, DNNL_ARG_VARIANCE, DNNL_ARG_DST };
    return hn_prim_init(prim, s, pd, G_N_ELEMENTS(args), args, error);
}

static gboolean batchnorm_run(HnStep *s, GError **error)
{
    void *data[] = { hn_cpu_data(&s->in[X]),    hn_cpu_data(&s->in[SCALE]),    hn_cpu_data(&s->in[SHIFT]),
                     hn_cpu_data(&s->in[MEAN]), hn_cpu_data(&s->in[VARIANCE]), hn_cpu_data(&s->out[0]) };
    return hn_prim_run(s->state, s, data, error);
}

static const HnKernel batchnorm_onednn = {
    .name = "onednn.batchnorm",
    .reject = batchnorm_reject,
    .prepare = batchnorm_prepare,
    .run = batchnorm_run,
    .release = batchnorm_release,
    .inplace = TRUE,
};

const HnKernel *const hn_cpu_batchnormalization[] = { &hn_cpu_batchnorm, &batchnorm_onednn, NULL };
