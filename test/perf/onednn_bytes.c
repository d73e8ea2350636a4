#include "onednn_bytes.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "cpu/core/onednn.h"

typedef struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_desc_t md[3];
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t prim;
    dnnl_memory_t memory[3];
} Primitive;

static const int args[] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST };

static gboolean make(Primitive *p, const PerfConv *c)
{
    const dnnl_query_t query[] = { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md };
    const int reach = (c->k - 1) * c->dilation + 1;
    const dnnl_dims_t x = { c->n, c->c, c->h, c->w };
    const dnnl_dims_t y = { c->n, c->m, (c->h + 2 * c->pad - reach) / c->stride + 1,
                            (c->w + 2 * c->pad - reach) / c->stride + 1 };
    const dnnl_dims_t w = { c->m, c->c, c->k, c->k };
    const dnnl_dims_t grouped = { c->group, c->m / c->group, c->c / c->group, c->k, c->k };
    const dnnl_dims_t strides = { c->stride, c->stride }, dilates = { c->dilation - 1, c->dilation - 1 };
    const dnnl_dims_t pads = { c->pad, c->pad };
    gboolean ok = hn_dnnl(engine_create)(&p->engine, dnnl_cpu, 0) == dnnl_success &&
                  hn_dnnl(stream_create)(&p->stream, p->engine, dnnl_stream_default_flags) == dnnl_success &&
                  hn_dnnl(memory_desc_create_with_tag)(&p->md[0], 4, x, dnnl_u8, dnnl_nhwc) == dnnl_success &&
                  hn_dnnl(memory_desc_create_with_tag)(&p->md[1], c->group > 1 ? 5 : 4, c->group > 1 ? grouped : w,
                                                       dnnl_s8, dnnl_format_tag_any) == dnnl_success &&
                  hn_dnnl(memory_desc_create_with_tag)(&p->md[2], 4, y, dnnl_u8, dnnl_nhwc) == dnnl_success &&
                  hn_dnnl(convolution_forward_primitive_desc_create)(
                      &p->pd, p->engine, dnnl_forward_inference, dnnl_convolution_direct, p->md[0], p->md[1], NULL,
                      p->md[2], strides, dilates, pads, pads, NULL) == dnnl_success &&
                  hn_dnnl(primitive_create)(&p->prim, p->pd) == dnnl_success;
    for (int i = 0; ok && i < 3; i++)
        ok = hn_dnnl(memory_create)(&p->memory[i], hn_dnnl(primitive_desc_query_md)(p->pd, query[i], 0), p->engine,
                                    DNNL_MEMORY_ALLOCATE) == dnnl_success;
    return ok;
}

static void clear(Primitive *p)
{
    for (int i = 0; i < 3; i++) {
        if (p->memory[i] != NULL)
            hn_dnnl(memory_destroy)(p->memory[i]);
        if (p->md[i] != NULL)
            hn_dnnl(memory_desc_destroy)(p->md[i]);
    }
    if (p->prim != NULL)
        hn_dnnl(primitive_destroy)(p->prim);
    if (p->pd != NULL)
        hn_dnnl(primitive_desc_destroy)(p->pd);
    if (p->stream != NULL)
        hn_dnnl(stream_destroy)(p->stream);
    if (p->engine != NULL)
        hn_dnnl(engine_destroy)(p->engine);
}

double perf_onednn_bytes(const PerfConv *c, int threads, double ns)
{
    Primitive p = { 0 };
    double least = NAN;
    if (hn_onednn() == NULL)
        return NAN;
    hn_onednn()->set_threads(threads);
    if (make(&p, c)) {
        dnnl_exec_arg_t arg[3];
        for (int i = 0; i < 3; i++)
            arg[i] = (dnnl_exec_arg_t){ args[i], p.memory[i] };
        const guint64 start = hn_now_ns();
        for (int round = 0; round < 3 || (double)(hn_now_ns() - start) < ns; round++) {
            const guint64 begin = hn_now_ns();
            hn_dnnl(primitive_execute)(p.prim, p.stream, 3, arg);
            least = fmin(least, (double)(hn_now_ns() - begin) / 1e3);
        }
    }
    clear(&p);
    return least;
}
