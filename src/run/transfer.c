/*
 * Planning and running with two memories: the host's, and that of the device that a backend's kernels work in.
 *
 * Steps of kernels are enqueued, steps of ref and of sub-graphs run on the host, and steps in between copy. Steps of
 * one kind that follow each other are a segment. Before one that reads on the host the session waits if something was
 * copied there since it last did; at the end of the plan it always does. Other segments on the device are the same at
 * each run, addresses and all, and are recorded at the second one, where the backend can: the first may still load what
 * it needs.
 */
#include <string.h>

#include "base/halt.h"
#include "run/plan.h"

gboolean hn_env_wait(const HnRunEnv *env, GError **error)
{
    const HnMemory *m = env->backend->memory;
    return m == NULL || m->wait(env->stream, error);
}

gboolean hn_session_read(HnSession *s, const HnSlot *slot, void *to, GError **error)
{
    const HnRunEnv *env = hn_session_env(s);
    const gsize bytes = slot->layout != NULL ? slot->layout->bytes : slot->tensor->bytes;
    if (slot->where == HN_DEVICE)
        return env->backend->memory->download(env->stream, to, slot->tensor->data, bytes, error) &&
               hn_env_wait(env, error);
    memcpy(to, slot->tensor->data, bytes);
    return TRUE;
}

/* --- moves ------------------------------------------------------------------------------------------------------- */

static gboolean move_run(HnStep *s, GError **error)
{
    const HnMemory *m = s->state;
    const HnTensor *from = s->in[0].slot->tensor, *to = s->out[0].slot->tensor;
    return (s->out[0].slot->where == HN_DEVICE ? m->upload : m->download)(s->stream, to->data, from->data, from->bytes,
                                                                          error);
}

static const HnKernel move_kernel = { .name = "run.move", .run = move_run };

gboolean hn_step_is_move(const HnStep *s)
{
    return s->kernel == &move_kernel;
}

HnWhere hn_step_where(const HnPlan *p, const HnStep *s)
{
    const gboolean computes = s->kernel != NULL && s->kernel != &hn_control_kernel && s->kernel != &move_kernel;
    return computes && p->exec->env->backend->memory != NULL ? HN_DEVICE : HN_HOST;
}

/* A slot for what `from` holds, plain, in the other place. */
static HnSlot *slot_like(HnPlan *p, const HnSlot *from, HnWhere where)
{
    HnSlot *to = hn_plan_new_slot(p);
    to->tensor = hn_tensor_new_borrowed(from->tensor->dtype, from->tensor->ndim, from->tensor->dims, NULL);
    to->half = from->half;
    to->where = where;
    return to;
}

/* A copy of a constant on the device, which all sessions there share. `s`: the step that moves would be. */
static gboolean upload_constant(const HnStep *s, const HnSlot *from, HnSlot *to, GError **error)
{
    const HnPackForm form = { .variant = (int64_t)from->tensor->dtype }; /* a half, or what it is in f32 */
    to->pack = hn_packs_get(s, from, &form, from->tensor->bytes, NULL, NULL, error);
    if (to->pack == NULL)
        return FALSE;
    to->constant = TRUE;
    to->tensor->data = to->pack->data;
    return TRUE;
}

HnSlot *hn_plan_moved(HnPlan *p, HnSlot *from, HnWhere where, GError **error)
{
    const HnMemory *m = p->exec->env->backend->memory;
    if (m == NULL || from->where == where)
        return from;
    if ((from = hn_plan_in_layout(p, from, NULL, error)) == NULL)
        return NULL;
    const GPtrArray *copies = g_hash_table_lookup(p->copies, from);
    for (guint i = 0; copies != NULL && i < copies->len; i++) { /* somebody else wanted the same */
        HnSlot *c = copies->pdata[i];
        if (c->where == where && c->layout == NULL && c->tensor->dtype == from->tensor->dtype)
            return c;
    }
    HnStep *s = hn_step_new(p, NULL, 1, 0, 1);
    HnSlot *to = slot_like(p, from, where);
    s->in[0].slot = from;
    s->out[0].slot = to;
    s->kernel = &move_kernel;
    s->state = (gpointer)m;
    if (!from->constant) {
        hn_plan_append(p, s);
        return to;
    }
    const gboolean ok = upload_constant(s, from, to, error);
    if (ok)
        hn_plan_note_copy(p, s);
    hn_step_free(s);
    return ok ? to : NULL;
}

/* A copy to the device of elements that are there when the plan begins. */
static gboolean is_early(const HnStep *s, GHashTable *made)
{
    return s->kernel == &move_kernel && s->out[0].slot->where == HN_DEVICE &&
           !g_hash_table_contains(made, hn_slot_root(s->in[0].slot));
}

void hn_plan_hoist_moves(HnPlan *p)
{
    if (p->exec->env->backend->memory == NULL)
        return;
    g_autoptr(GHashTable) made = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        for (int k = 0; k < s->n_out; k++)
            if (s->out[k].slot != NULL)
                g_hash_table_add(made, hn_slot_root(s->out[k].slot));
    }
    g_autofree gpointer *sorted = g_new(gpointer, p->steps->len + 1);
    guint n = 0;
    for (int early = 1; early >= 0; early--)
        for (guint i = 0; i < p->steps->len; i++)
            if (is_early(p->steps->pdata[i], made) == early)
                sorted[n++] = p->steps->pdata[i];
    memcpy(p->steps->pdata, sorted, n * sizeof *sorted);
}

static gboolean reads_on_host(const HnStep *s, int i)
{
    return s->kernel != NULL && i < 64 && (s->kernel->host_in >> i & 1) != 0;
}

gboolean hn_plan_move_ports(HnPlan *p, HnStep *s, GError **error)
{
    if (p->exec->env->backend->memory == NULL)
        return TRUE;
    const HnWhere where = hn_step_where(p, s);
    for (int i = 0; i < s->n_in + s->n_hidden; i++) {
        HnPort *port = &s->in[i];
        if (port->slot == NULL || port->unread)
            continue;
        port->slot = hn_plan_moved(p, port->slot, reads_on_host(s, i) ? HN_HOST : where, error);
        if (port->slot == NULL)
            return FALSE;
    }
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot != NULL)
            s->out[k].slot->where = where;
    return TRUE;
}

/* --- segments ---------------------------------------------------------------------------------------------------- */

/* What is enqueued depends on elements on the host that are others at each run. */
static gboolean depends_on_host(const HnStep *s)
{
    for (int i = 0; i < s->n_in + s->n_hidden; i++)
        if (reads_on_host(s, i) && s->in[i].slot != NULL && !s->in[i].slot->constant)
            return TRUE;
    return FALSE;
}

static int kind_of(const HnPlan *p, const HnStep *s)
{
    if (s->kernel == &move_kernel)
        return HN_MOVES;
    if (hn_step_where(p, s) == HN_HOST)
        return HN_ON_HOST;
    return depends_on_host(s) ? HN_READS_HOST : HN_ON_DEVICE;
}

void hn_plan_find_segments(HnPlan *p)
{
    if (p->exec->env->backend->memory == NULL)
        return;
    p->segments = g_array_new(FALSE, TRUE, sizeof(HnSegment));
    for (int i = 0; i < (int)p->steps->len; i++) {
        const int kind = kind_of(p, p->steps->pdata[i]);
        HnSegment *last = p->segments->len > 0 ? &g_array_index(p->segments, HnSegment, p->segments->len - 1) : NULL;
        if (last != NULL && (int)last->kind == kind) {
            last->end = i + 1;
            continue;
        }
        const HnSegment next = { .start = i, .end = i + 1, .kind = kind };
        g_array_append_val(p->segments, next);
    }
}

void hn_plan_forget_segments(HnPlan *p)
{
    const HnRunEnv *env = p->exec->env;
    for (guint i = 0; p->segments != NULL && i < p->segments->len; i++) {
        const HnSegment *g = &g_array_index(p->segments, HnSegment, i);
        if (g->recorded != NULL)
            env->backend->memory->forget(env->stream, g->recorded);
    }
    g_clear_pointer(&p->segments, g_array_unref);
}

static gboolean run_each(const HnPlan *p, const HnSegment *g, GError **error)
{
    for (int i = g->start; i < g->end; i++)
        if (!hn_halt_go(p->exec->env->halt, error) || !hn_step_run(p->steps->pdata[i], error))
            return FALSE;
    return TRUE;
}

/* What was begun is ended in any case. */
static gboolean record(const HnPlan *p, HnSegment *g, GError **error)
{
    const HnMemory *m = p->exec->env->backend->memory;
    gpointer stream = p->exec->env->stream;
    if (!m->record(stream, error))
        return FALSE;
    const gboolean ok = run_each(p, g, error);
    g->recorded = m->recorded(stream, ok ? error : NULL);
    return ok && (g->recorded != NULL || error == NULL || *error == NULL);
}

static gboolean run_on_device(const HnPlan *p, HnSegment *g, GError **error)
{
    const HnMemory *m = p->exec->env->backend->memory;
    GError *failure = NULL;
    if (g->runs == 1 && m->record != NULL && !record(p, g, &failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    g->runs = MIN(g->runs + 1, 2);
    return g->recorded != NULL ? m->replay(p->exec->env->stream, g->recorded, error) : run_each(p, g, error);
}

/* The segment copies to the host. */
static gboolean downloads(const HnPlan *p, const HnSegment *g)
{
    for (int i = g->start; i < g->end; i++)
        if (((const HnStep *)p->steps->pdata[i])->out[0].slot->where == HN_HOST)
            return TRUE;
    return FALSE;
}

static gboolean run_all(HnPlan *p, GError **error)
{
    gboolean late = FALSE; /* something is to come to the host */
    for (guint i = 0; i < p->segments->len; i++) {
        HnSegment *g = &g_array_index(p->segments, HnSegment, i);
        if ((g->kind == HN_ON_HOST || g->kind == HN_READS_HOST) && late) {
            if (!hn_env_wait(p->exec->env, error))
                return FALSE;
            late = FALSE;
        }
        late = late || (g->kind == HN_MOVES && downloads(p, g));
        if (!(g->kind == HN_ON_DEVICE ? run_on_device(p, g, error) : run_each(p, g, error)))
            return FALSE;
    }
    return TRUE;
}

/* Nothing that was enqueued is left behind, for memory that it touches may go. */
gboolean hn_plan_run_segments(HnPlan *p, GError **error)
{
    if (run_all(p, error))
        return hn_env_wait(p->exec->env, error);
    hn_env_wait(p->exec->env, NULL);
    return FALSE;
}

/* Why the step, of a segment on the device, is enqueued anew each time; NULL: it is not. */
static char *why_unrecorded(const HnPlan *p, const HnSegment *g, const HnStep *s)
{
    for (int i = 0; i < s->n_in + s->n_hidden && g->kind == HN_READS_HOST; i++) {
        const HnSlot *in = s->in[i].slot;
        if (reads_on_host(s, i) && in != NULL && !in->constant)
            return g_strdup_printf("its input %d is read on the host", i);
    }
    if (g->kind == HN_ON_HOST)
        return g_strdup(s->kernel == &hn_control_kernel ? "the host chooses what it runs" : "it runs on the host");
    return g->kind == HN_ON_DEVICE && g->runs > 1 && g->recorded == NULL
               ? g_strdup_printf("device '%s' cannot record it", p->exec->env->backend->name)
               : NULL;
}

void hn_plan_foreach_unrecorded(const HnPlan *p, HnUnrecordedFn fn, gpointer data)
{
    const HnMemory *m = p->exec->env->backend->memory;
    for (guint i = 0; p->segments != NULL && m->record != NULL && i < p->segments->len; i++) {
        const HnSegment *g = &g_array_index(p->segments, HnSegment, i);
        for (int k = g->start; k < g->end; k++) {
            const HnStep *s = p->steps->pdata[k];
            g_autofree char *why = why_unrecorded(p, g, s);
            if (why != NULL)
                fn(s, why, data);
        }
    }
}

/* --- times ------------------------------------------------------------------------------------------------------- */

gboolean hn_plan_has_clock(const HnPlan *p, const HnTimer *t)
{
    const HnMemory *m = p->exec->env->backend->memory;
    return m != NULL && m->mark != NULL && t->tick_ns > 0 && t->after == NULL;
}

static gboolean mark(const HnPlan *p, HnTimer *t, GError **error)
{
    const HnRunEnv *env = p->exec->env;
    return env->backend->memory->mark(env->stream, t->marks++, error);
}

/* A step that is enqueued: its span holds the numbers of its marks, for now. */
static gboolean run_between_marks(const HnPlan *p, HnStep *s, HnTimer *t, int depth, GError **error)
{
    const guint first = t->marks;
    if (!mark(p, t, error) || !hn_step_run(s, error) || !mark(p, t, error))
        return FALSE;
    HnSpan *span = hn_timer_add(t, s, depth, first, first + 1);
    if (span != NULL)
        span->device = TRUE;
    return TRUE;
}

static gboolean run_on_host(const HnPlan *p, HnStep *s, HnTimer *t, int depth, gboolean late, GError **error)
{
    if (late && !hn_env_wait(p->exec->env, error))
        return FALSE;
    const guint64 start = hn_timer_now(t);
    const gboolean ok = hn_step_run(s, error);
    hn_timer_add(t, s, depth, start, hn_timer_now(t));
    return ok;
}

/* Numbers of marks become ticks: mark 0 was reached at tick `origin`. */
static gboolean resolve(const HnPlan *p, HnTimer *t, gsize from, guint64 origin, GError **error)
{
    const HnRunEnv *env = p->exec->env;
    g_autofree double *ns = g_new(double, t->marks);
    if (!env->backend->memory->marks(env->stream, t->marks, ns, error))
        return FALSE;
    for (gsize i = from; i < t->n; i++) {
        HnSpan *s = &t->spans[i];
        if (!s->device)
            continue;
        s->start = origin + (guint64)(ns[s->start] / t->tick_ns);
        s->end = origin + (guint64)(ns[s->end] / t->tick_ns);
    }
    t->marks = 0;
    return TRUE;
}

static gboolean run_marked(HnPlan *p, HnTimer *t, int depth, GError **error)
{
    gboolean late = FALSE; /* something is to come to the host */
    for (guint i = 0; i < p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        const int kind = kind_of(p, s);
        const gboolean reads = kind == HN_ON_HOST || kind == HN_READS_HOST;
        if (!hn_halt_go(p->exec->env->halt, error))
            return FALSE;
        if (kind == HN_READS_HOST && late && !hn_env_wait(p->exec->env, error))
            return FALSE;
        if (!(kind == HN_ON_HOST ? run_on_host(p, s, t, depth, late, error) : run_between_marks(p, s, t, depth, error)))
            return FALSE;
        late = reads ? FALSE : late || s->out[0].slot->where == HN_HOST;
    }
    return TRUE;
}

/* Marks of plans within it, of sub-graphs, are counted on, and resolved with its own. */
gboolean hn_plan_run_marked(HnPlan *p, HnTimer *t, GError **error)
{
    const int depth = t->depth++;
    const gsize from = t->n;
    const guint64 origin = hn_timer_now(t);
    const gboolean ok = (depth > 0 || mark(p, t, error)) && run_marked(p, t, depth, error) &&
                        hn_env_wait(p->exec->env, error) && (depth > 0 || resolve(p, t, from, origin, error));
    t->depth = depth;
    if (!ok) {
        hn_env_wait(p->exec->env, NULL);
        t->marks = 0;
    }
    return ok;
}
