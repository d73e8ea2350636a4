/*
 * What steps enqueue on a device, counted while it keeps records (HnDeviceTrace), and whose record is whose. What is
 * replayed was counted when it was recorded.
 */
#include "run/plan.h"

static guint work_of(const HnRunEnv *env)
{
    return env->backend->trace->work(env->stream);
}

static guint launches_of(const HnRunEnv *env)
{
    const HnMemory *m = env->backend->memory;
    return m->launches != NULL ? m->launches(env->stream) : 0;
}

HnTraceMark hn_trace_mark(const HnRunEnv *env)
{
    return env->noting != NULL ? (HnTraceMark){ work_of(env) - env->work_zero, launches_of(env) } : (HnTraceMark){ 0 };
}

void hn_trace_note(const HnRunEnv *env, HnTraceMark before, HnStep *const *s, int n)
{
    if (env->noting == NULL)
        return;
    const HnTraceMark now = hn_trace_mark(env);
    for (int i = 0; i < n; i++) {
        const HnStepWork w = { .node = s[i]->origin,
                               .value = s[i]->node == NULL && s[i]->in[0].slot != NULL ? s[i]->in[0].slot->value : NULL,
                               .from = before.work,
                               .to = now.work,
                               .launches = now.launches - before.launches,
                               .shared_by = (guint)n,
                               .moves = hn_step_is_move(s[i]) };
        g_array_append_val(env->noting, w);
    }
}

void hn_trace_record(HnRunEnv *env, HnSegment *g)
{
    if (env->backend->trace == NULL)
        return;
    g->work = g_array_new(FALSE, FALSE, sizeof(HnStepWork));
    g->pieces = work_of(env);
    g->zero = env->work_zero;
    env->noting = g->work;
    env->work_zero = g->pieces;
}

void hn_trace_recorded(HnRunEnv *env, HnSegment *g)
{
    if (env->backend->trace == NULL)
        return;
    g->pieces = work_of(env) - g->pieces;
    env->noting = env->traced;
    env->work_zero = g->zero + g->pieces; /* they were not done */
}

void hn_trace_replay(HnRunEnv *env, const HnSegment *g)
{
    if (env->traced == NULL || g->work == NULL)
        return;
    const guint at = hn_trace_mark(env).work;
    for (guint i = 0; i < g->work->len; i++) {
        HnStepWork w = g_array_index(g->work, HnStepWork, i);
        w.from += at;
        w.to += at;
        g_array_append_val(env->traced, w);
    }
    env->work_zero -= g->pieces;
}

gboolean hn_session_trace_device(HnSession *s, char **why)
{
    HnRunEnv *env = hn_session_env(s);
    const HnDeviceTrace *t = env->backend->trace;
    if (t == NULL) {
        *why = g_strdup_printf("device '%s' keeps none", env->backend->name);
        return FALSE;
    }
    if (!t->start(env->stream, why))
        return FALSE;
    env->traced = env->noting = g_array_new(FALSE, FALSE, sizeof(HnStepWork));
    env->work_zero = work_of(env);
    return TRUE;
}

/* NULL: they fit. */
static char *compare(const GArray *records, const GArray *work, guint pieces)
{
    if (records->len != pieces)
        return g_strdup_printf("%u records of %u pieces of work", records->len, pieces);
    for (guint i = 0; i < work->len; i++) {
        const HnStepWork *w = &g_array_index(work, HnStepWork, i);
        guint kernels = 0;
        for (guint k = w->from; k < MIN(w->to, pieces); k++)
            kernels += g_array_index(records, HnDeviceRecord, k).kind == HN_WORK_KERNEL;
        if (w->to > pieces || kernels != w->launches)
            return g_strdup_printf("records in another order than the work: %u kernels of %u at '%s'", kernels,
                                   w->launches, w->node != NULL ? hn_node_label(w->node) : "a copy");
    }
    return NULL;
}

gboolean hn_session_device_records(HnSession *s, GArray *records, GArray *work, char **why)
{
    HnRunEnv *env = hn_session_env(s);
    if (env->traced == NULL) {
        *why = g_strdup("none were kept");
        return FALSE;
    }
    const guint pieces = hn_trace_mark(env).work;
    g_autoptr(GArray) traced = g_steal_pointer(&env->traced);
    env->noting = NULL;
    g_array_append_vals(work, traced->data, traced->len);
    return env->backend->trace->stop(env->stream, pieces, records, why) &&
           (*why = compare(records, work, pieces)) == NULL;
}
