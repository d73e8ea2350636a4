#include "base/team.h"
#include "cpu/core/cpu_kernel.h"

static gboolean add_arg(HnPrim *p, HnStep *s, int arg, const_dnnl_memory_desc_t md, GError **error)
{
    dnnl_exec_arg_t *a = &p->arg[p->n];
    a->arg = arg;
    if (!hn_cpu_check(hn_dnnl(memory_create)(&a->memory, md, ((HnCpu *)s->device)->engine, DNNL_MEMORY_NONE), s, error))
        return FALSE;
    p->n++;
    return TRUE;
}

gboolean hn_prim_init(HnPrim *p, HnStep *s, const_dnnl_primitive_desc_t pd, int n, const int *args, GError **error)
{
    p->arg = g_new0(dnnl_exec_arg_t, (gsize)n + 1);
    p->threads = hn_onednn()->max_threads();
    if (!hn_cpu_check(hn_dnnl(primitive_create)(&p->prim, pd), s, error))
        return FALSE;
    for (int i = 0; i < n; i++)
        if (!add_arg(p, s, args[i], hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_exec_arg_md, args[i]), error))
            return FALSE;
    const_dnnl_memory_desc_t scratch = hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_scratchpad_md, 0);
    gsize bytes = scratch != NULL ? hn_dnnl(memory_desc_get_size)(scratch) : 0;
    if (bytes == 0)
        return TRUE;
    p->scratch = TRUE;
    s->scratch_bytes = MAX(s->scratch_bytes, bytes);
    return add_arg(p, s, DNNL_ARG_SCRATCHPAD, scratch, error);
}

gboolean hn_prim_run(HnPrim *p, const HnStep *s, void *const *data, GError **error)
{
    int n = p->n - (p->scratch ? 1 : 0);
    for (int i = 0; i < n; i++)
        hn_dnnl(memory_set_data_handle)(p->arg[i].memory, data[i]);
    if (p->scratch)
        hn_dnnl(memory_set_data_handle)(p->arg[n].memory, s->scratch);
    const int threads = hn_onednn()->max_threads();
    hn_onednn()->set_threads(p->threads);
    gboolean before = hn_team_together(TRUE);
    dnnl_status_t status = hn_dnnl(primitive_execute)(p->prim, ((HnCpuStream *)s->stream)->onednn, p->n, p->arg);
    hn_team_together(before);
    hn_onednn()->set_threads(threads);
    return hn_cpu_check(status, s, error);
}

void hn_prim_clear(HnPrim *p)
{
    for (int i = 0; i < p->n; i++)
        hn_dnnl(memory_destroy)(p->arg[i].memory);
    if (p->prim != NULL)
        hn_dnnl(primitive_destroy)(p->prim);
    g_free(p->arg);
    *p = (HnPrim){ 0 };
}
