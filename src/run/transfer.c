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

gboolean hn_env_open(HnRunEnv *env, GError **error)
{
    const HnBackend *b = env->backend;
    const HnMemory *m = b->memory;
    const gsize most = hn_budget_device_limit(env->o.budget);
    if (m != NULL && m->limit != NULL && most > 0)
        m->limit(env->device, most);
    if (b->stream_new != NULL && (env->stream = b->stream_new(env->device, error)) == NULL)
        return FALSE;
    if (m != NULL && m->threads != NULL)
        m->threads(env->stream, env->o.threads);
    return TRUE;
}

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

/* Of the session's inputs, variables left out. */
static gboolean is_fed(const HnPlan *p, HnSlot *s)
{
    const HnPlan *first = p;
    guint i;
    while (first->before != NULL)
        first = first->before;
    return first->exec->owner == NULL && g_ptr_array_find(first->inputs, hn_slot_root(s), &i) &&
           i < p->exec->env->engine->inputs->len;
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
        to->kept = where == HN_DEVICE && p->exec->env->o.keeps_io && is_fed(p, from);
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
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    for (int early = 1; early >= 0; early--)
        for (guint i = 0; i < p->steps->len; i++)
            if (is_early(p->steps->pdata[i], made) == early)
                g_ptr_array_add(sorted, p->steps->pdata[i]);
    for (guint i = 0; i < sorted->len; i++)
        p->steps->pdata[i] = sorted->pdata[i];
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
        HnSegment *g = &g_array_index(p->segments, HnSegment, i);
        if (g->recorded != NULL)
            env->backend->memory->forget(env->stream, g->recorded);
        g_clear_pointer(&g->work, g_array_unref);
    }
    g_clear_pointer(&p->segments, g_array_unref);
}

static gboolean run_each(const HnPlan *p, const HnSegment *g, GError **error)
{
    for (int i = g->start, n; i < g->end; i += n) {
        HnStep *const *s = (HnStep *const *)p->steps->pdata + i;
        const HnTraceMark before = hn_trace_mark(p->exec->env);
        n = hn_plan_together(p, i, g->end);
        if (!hn_halt_go(p->exec->env->halt, error) ||
            !(n > 1 ? s[0]->kernel->run_many(s, n, error) : hn_step_run(s[0], error)))
            return FALSE;
        if (g->kind != HN_ON_HOST) /* what it runs in sub-graphs was noted there */
            hn_trace_note(p->exec->env, before, s, n);
    }
    return TRUE;
}

/* What was begun is ended in any case. */
static gboolean record(const HnPlan *p, HnSegment *g, GError **error)
{
    const HnMemory *m = p->exec->env->backend->memory;
    gpointer stream = p->exec->env->stream;
    if (!m->record(stream, error))
        return FALSE;
    hn_trace_record(p->exec->env, g);
    const gboolean ok = run_each(p, g, error);
    hn_trace_recorded(p->exec->env, g);
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
    if (g->recorded == NULL)
        return run_each(p, g, error);
    hn_trace_replay(p->exec->env, g);
    return m->replay(p->exec->env->stream, g->recorded, error);
}

/* With HnSessionOptions.keeps_io, behind the first run: the same input is there, or a result nobody reads but the
 * caller. */
static gboolean rests(const HnPlan *p, const HnStep *s)
{
    HnSlot *to = s->out[0].slot;
    if (to->where == HN_DEVICE)
        return to->kept && is_fed(p, s->in[0].slot);
    return p->exec->owner == NULL && !to->read && g_ptr_array_find(p->results, to, NULL);
}

static gboolean run_moves(const HnPlan *p, HnSegment *g, GError **error)
{
    const gboolean again = g->runs > 0 && p->exec->env->o.keeps_io;
    for (int i = g->start; i < g->end; i++) {
        HnStep *s = p->steps->pdata[i];
        const HnTraceMark before = hn_trace_mark(p->exec->env);
        if (again && rests(p, s))
            continue;
        if (!hn_halt_go(p->exec->env->halt, error) || !hn_step_run(s, error))
            return FALSE;
        hn_trace_note(p->exec->env, before, &s, 1);
    }
    g->runs = 1;
    return TRUE;
}

static gboolean is_download(const HnStep *s)
{
    return s->kernel == &move_kernel && s->out[0].slot->where == HN_HOST;
}

/* The segment copies to the host. */
static gboolean downloads(const HnPlan *p, const HnSegment *g)
{
    for (int i = g->start; i < g->end; i++)
        if (is_download(p->steps->pdata[i]))
            return TRUE;
    return FALSE;
}

/* What begins at a mark of hn_session_time_device(). */
enum { MARK_UPLOAD, MARK_DOWNLOAD, MARK_KERNELS, MARK_GAP, MARK_KINDS, MARK_RECORDED = 32, MARK_RUN = 64 };
#define MARKS_MOST 16384 /* runs with more are not timed */

/* Nothing where that goes on already. */
static gboolean mark_begin(const HnRunEnv *env, guint8 kind, GError **error)
{
    GArray *m = env->marked;
    if (m == NULL || m->len > MARKS_MOST ||
        (m->len > 0 && g_array_index(m, guint8, m->len - 1) == kind && kind == MARK_GAP))
        return TRUE;
    g_array_append_val(m, kind);
    return env->backend->memory->mark(env->stream, m->len - 1, error);
}

/* Nothing of it is moved this time. */
static gboolean all_rest(const HnPlan *p, const HnSegment *g)
{
    if (g->kind != HN_MOVES || g->runs == 0 || !p->exec->env->o.keeps_io)
        return FALSE;
    for (int i = g->start; i < g->end; i++)
        if (!rests(p, p->steps->pdata[i]))
            return FALSE;
    return TRUE;
}

/* *begun: this is not the run's first mark. */
static gboolean mark_segment(const HnPlan *p, const HnSegment *g, gboolean *begun, GError **error)
{
    if (p->exec->env->marked == NULL || all_rest(p, g))
        return TRUE;
    const gboolean first = !*begun;
    *begun = TRUE;
    const guint8 kind = g->kind == HN_ON_HOST ? MARK_GAP
                        : g->kind != HN_MOVES ? MARK_KERNELS
                        : downloads(p, g)     ? MARK_DOWNLOAD
                                              : MARK_UPLOAD;
    return mark_begin(p->exec->env, first ? kind | MARK_RUN : kind, error);
}

static void note_recorded(const HnPlan *p, const HnSegment *g)
{
    GArray *m = p->exec->env->marked;
    if (m != NULL && m->len > 0 && g->recorded != NULL)
        g_array_index(m, guint8, m->len - 1) |= MARK_RECORDED;
}

gboolean hn_env_time_device(HnRunEnv *env, gboolean on)
{
    const HnMemory *m = env->backend->memory;
    g_clear_pointer(&env->marked, g_array_unref);
    if (!on || m == NULL || m->mark == NULL)
        return FALSE;
    env->marked = g_array_new(FALSE, FALSE, sizeof(guint8));
    return TRUE;
}

static void add_interval(HnDeviceTimes *t, guint8 what, double ms)
{
    double *const sums[MARK_KINDS] = { &t->upload_ms, &t->download_ms, &t->kernels_ms, &t->gaps_ms };
    const int kind = what & ~(MARK_RECORDED | MARK_RUN);
    *sums[kind] += ms;
    t->segments += kind == MARK_KERNELS;
    t->recorded += (what & MARK_RECORDED) != 0;
}

gboolean hn_env_device_times(HnRunEnv *env, HnDeviceTimes *t, GError **error)
{
    GArray *m = env->marked;
    const guint n = m != NULL && m->len <= MARKS_MOST ? m->len : 0;
    g_autofree double *ns = g_new(double, n + 1);
    *t = (HnDeviceTimes){ 0 };
    const gboolean ok = n == 0 || env->backend->memory->marks(env->stream, n, ns, error);
    for (guint i = 0; ok && i < n; i++) {
        const guint8 what = g_array_index(m, guint8, i);
        t->runs += (what & MARK_RUN) != 0;
        if (i + 1 < n && (g_array_index(m, guint8, i + 1) & MARK_RUN) == 0)
            add_interval(t, what, (ns[i + 1] - ns[i]) * 1e-6);
    }
    if (m != NULL)
        g_array_set_size(m, 0);
    return ok;
}

static gboolean run_all(HnPlan *p, GError **error)
{
    gboolean begun = p->exec->owner != NULL || p->before != NULL;
    gboolean late = FALSE; /* something is to come to the host */
    for (guint i = 0; i < p->segments->len; i++) {
        HnSegment *g = &g_array_index(p->segments, HnSegment, i);
        if ((g->kind == HN_ON_HOST || g->kind == HN_READS_HOST) && late) {
            if (!mark_begin(p->exec->env, MARK_GAP, error) || !hn_env_wait(p->exec->env, error))
                return FALSE;
            late = FALSE;
        }
        late = late || (g->kind == HN_MOVES && downloads(p, g));
        if (!mark_segment(p, g, &begun, error))
            return FALSE;
        if (!(g->kind == HN_ON_DEVICE ? run_on_device(p, g, error)
              : g->kind == HN_MOVES   ? run_moves(p, g, error)
                                      : run_each(p, g, error)))
            return FALSE;
        note_recorded(p, g);
    }
    return mark_begin(p->exec->env, MARK_GAP, error);
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

#define HELD_MOST 64 /* steps for which the device is held up: what is enqueued has a limit */

/* Steps of kernels that are enqueued one behind the other shall not wait for the host on the device. *held: so many are
 * held up; copies and waits are not. */
static gboolean hold(const HnPlan *p, gboolean on, int *held, GError **error)
{
    const HnRunEnv *env = p->exec->env;
    const HnMemory *m = env->backend->memory;
    if (m->hold == NULL || (!on && *held == 0))
        return TRUE;
    if (on && *held > 0 && ++*held <= HELD_MOST)
        return TRUE;
    const gboolean ok =
        (*held == 0 || m->hold(env->stream, FALSE, error)) && (!on || m->hold(env->stream, TRUE, error));
    *held = on;
    return ok;
}

/* A step that is enqueued: its span holds the numbers of its marks, for now. */
static gboolean run_between_marks(const HnPlan *p, HnStep *s, HnTimer *t, int depth, GError **error)
{
    const HnMemory *m = p->exec->env->backend->memory;
    gpointer stream = p->exec->env->stream;
    const guint first = t->marks, before = m->launches != NULL ? m->launches(stream) : 0;
    if (!mark(p, t, error) || !hn_step_run(s, error) || !mark(p, t, error))
        return FALSE;
    HnSpan *span = hn_timer_add(t, s, depth, first, first + 1);
    if (span == NULL)
        return TRUE;
    span->device = TRUE;
    span->moves = s->kernel == &move_kernel;
    span->launches = m->launches != NULL ? m->launches(stream) - before : 0;
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

static gboolean run_marked(HnPlan *p, HnTimer *t, int depth, int *held, GError **error)
{
    gboolean late = FALSE; /* something is to come to the host */
    for (guint i = 0; i < p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        const int kind = kind_of(p, s);
        const gboolean reads = kind == HN_ON_HOST || kind == HN_READS_HOST;
        if (!hn_halt_go(p->exec->env->halt, error) || !hold(p, kind == HN_ON_DEVICE, held, error))
            return FALSE;
        if (kind == HN_READS_HOST && late && !hn_env_wait(p->exec->env, error))
            return FALSE;
        if (!(kind == HN_ON_HOST ? run_on_host(p, s, t, depth, late, error) : run_between_marks(p, s, t, depth, error)))
            return FALSE;
        late = !reads && (late || is_download(s));
    }
    return TRUE;
}

/* Marks of plans within it, of sub-graphs, are counted on, and resolved with its own. */
gboolean hn_plan_run_marked(HnPlan *p, HnTimer *t, GError **error)
{
    const int depth = t->depth++;
    const gsize from = t->n;
    const guint64 origin = hn_timer_now(t);
    int held = 0;
    const gboolean enqueued = (depth > 0 || mark(p, t, error)) && run_marked(p, t, depth, &held, error);
    const gboolean freed = hold(p, FALSE, &held, enqueued ? error : NULL);
    const gboolean ok =
        enqueued && freed && hn_env_wait(p->exec->env, error) && (depth > 0 || resolve(p, t, from, origin, error));
    t->depth = depth;
    if (!ok) {
        hn_env_wait(p->exec->env, NULL);
        t->marks = 0;
    }
    return ok;
}
