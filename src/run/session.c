/*
 * Running: inputs bound, steps called one after the other, results handed out; and the step that runs a record's ref.
 */
#include "run/session.h"

#include <string.h>

#include "base/cpu.h"
#include "base/halt.h"
#include "run/plan.h"

struct HnSession {
    HnRunEnv env;
    GPtrArray *inputs; /* the engine's */
    HnTensor **fed;    /* room for the inputs, then the variables */
    HnExec *main;
};

/* --- the step that runs ref -------------------------------------------------------------------------------------- */

typedef struct {
    HnEval e;
    HnTensor **in, **out;
    GPtrArray *execs; /* HnExec * of the node's sub-graphs; NULL for ordinary nodes */
    HnTensor **fed;   /* n_fed, the most that one of them is fed with */
    guint n_fed;
    HnStep *step;
} Ref;

/* The state of a step that runs a record's ref, sub-graphs or not; NULL: a backend's kernel runs. */
static const Ref *ref_of(const HnStep *s)
{
    return s->kernel == NULL || s->kernel == &hn_control_kernel ? s->state : NULL;
}

/* HnEval.graph: the formal inputs, then the captures as they are now. */
static gboolean run_graph(HnEval *e, HnGraph *g, int n_in, HnTensor *const *in, int n_out, HnTensor **out)
{
    const Ref *r = e->data;
    HnExec *x = NULL;
    for (guint i = 0; r->execs != NULL && i < r->execs->len; i++)
        if (((HnExec *)r->execs->pdata[i])->graph == g)
            x = r->execs->pdata[i];
    if (x == NULL || (guint)n_in != g->inputs->len || (guint)n_out != g->outputs->len) {
        hn_eval_fail(e, HN_ERROR_GRAPH, "the sub-graph has %u inputs and %u outputs, not %d and %d", g->inputs->len,
                     g->outputs->len, n_in, n_out);
        return FALSE;
    }
    for (int i = 0; i < n_in; i++)
        if ((r->fed[i] = in[i]) == NULL) {
            hn_eval_fail(e, HN_ERROR_GRAPH, "input %d of the sub-graph is missing", i);
            return FALSE;
        }
    for (int i = 0, k = n_in; i < r->step->n_hidden; i++) {
        const HnSlot *s = r->step->in[r->step->n_in + i].slot;
        if (!s->constant)
            r->fed[k++] = s->tensor;
    }
    return hn_exec_run(x, r->fed, out, &e->error);
}

/* captures: what the step's hidden inputs are, which may be read from a slot of another type. */
static void add_exec(Ref *r, HnPlan *p, HnGraph *g, const GPtrArray *captures)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new();
    for (guint i = 0; i < g->inputs->len; i++)
        g_ptr_array_add(inputs, g->inputs->pdata[i]);
    for (int i = 0; i < r->step->n_hidden; i++) {
        const HnSlot *s = r->step->in[r->step->n_in + i].slot;
        if (!s->constant)
            g_ptr_array_add(inputs, captures->pdata[i]);
    }
    g_ptr_array_add(r->execs, hn_exec_new(p->exec->env, g, p, inputs));
    r->fed = g_renew(HnTensor *, r->fed, MAX(r->n_fed, inputs->len) + 1);
    r->n_fed = MAX(r->n_fed, inputs->len);
}

void hn_ref_prepare(HnStep *s, HnPlan *p)
{
    Ref *r = g_new0(Ref, 1);
    s->state = r;
    r->step = s;
    r->in = g_new0(HnTensor *, (gsize)s->n_in + 1);
    r->out = g_new0(HnTensor *, (gsize)s->n_out + 1);
    r->e = (HnEval){ .node = s->node,
                     .params = s->params,
                     .n_in = s->n_in,
                     .n_out = s->n_out,
                     .in = r->in,
                     .out = r->out,
                     .budget = s->budget,
                     .graph = run_graph,
                     .data = r };
    const HnValue *v = hn_node_out(s->origin, 0);
    r->e.seed = p->exec->env->o.seed * 0x9e3779b97f4a7c15u + (v != NULL ? v->id : 0);
    if ((s->op->flags & HN_OP_CONTROL) == 0)
        return;
    g_autoptr(GPtrArray) captures = hn_node_captures(s->origin);
    r->execs = g_ptr_array_new_with_free_func((GDestroyNotify)hn_exec_free);
    for (guint i = 0; i < s->origin->attrs->len; i++) {
        const HnAttr *a = s->origin->attrs->pdata[i];
        if (a->kind == HN_ATTR_GRAPH)
            add_exec(r, p, a->g, captures);
    }
}

/* What a list held may go; in its place is an empty one. */
static void forget(HnSlot *s)
{
    hn_tensor_unref(s->tensor);
    s->tensor = hn_tensor_ref(s->spare);
}

gboolean hn_ref_run(HnStep *s, GError **error)
{
    Ref *r = s->state;
    for (int i = 0; i < s->n_in; i++)
        r->in[i] = s->in[i].slot != NULL ? s->in[i].slot->tensor : NULL;
    for (int k = 0; k < s->n_out; k++)
        r->out[k] = s->out[k].slot != NULL && !s->out[k].slot->changing ? s->out[k].slot->tensor : NULL;
    gboolean ok = hn_op_eval(&r->e, error);
    for (int k = 0; k < s->n_out; k++) {
        HnSlot *o = s->out[k].slot;
        if (o == NULL || o->changing) { /* result of data-dependent shape, or one that nobody named */
            if (o != NULL && ok) {
                hn_tensor_unref(o->tensor);
                o->tensor = r->out[k];
            } else {
                hn_tensor_unref(r->out[k]);
            }
        }
        r->out[k] = NULL;
    }
    for (int i = 0; i < s->n_in + s->n_hidden; i++)
        if (s->in[i].dies)
            forget(s->in[i].slot);
    return ok;
}

void hn_ref_release(HnStep *s)
{
    Ref *r = s->state;
    if (r == NULL)
        return;
    g_clear_pointer(&r->execs, g_ptr_array_unref);
    g_free(r->fed);
    g_free(r->in);
    g_free(r->out);
    g_free(r);
    s->state = NULL;
}

/* If, Loop and Scan on any backend: their records only move values between sub-graphs, whose steps have kernels of
 * their own. */
const HnKernel hn_control_kernel = {
    .name = "run.control",
    .run = hn_ref_run,
    .release = hn_ref_release,
};

/* --- running an exec --------------------------------------------------------------------------------------------- */

static gboolean type_is(const HnType *t, const HnTensor *x)
{
    if (t->dtype != x->dtype || t->rank != x->ndim)
        return hn_tensor_is_list(x) && hn_type_is_of(t, x);
    for (int k = 0; k < x->ndim; k++)
        if (t->dims[k].n != x->dims[k])
            return FALSE;
    return TRUE;
}

static gboolean key_is(const HnPlan *p, HnTensor *const *in)
{
    for (guint i = 0; i < p->n_key; i++)
        if (!type_is(p->key[i], in[i]))
            return FALSE;
    return TRUE;
}

static HnPlan *plan_for(HnExec *x, HnTensor *const *in, GError **error)
{
    if (x->plans->len > 0 && key_is(x->plans->pdata[0], in))
        return x->plans->pdata[0];
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (guint i = 0; i < x->inputs->len; i++)
        g_ptr_array_add(types, hn_type_of(in[i]));
    return hn_exec_plan(x, (HnType *const *)types->pdata, error);
}

static HnPlan *plan_behind(HnPlan *p, GError **error)
{
    if (p->next->len > 0) {
        HnPlan *q = p->next->pdata[0];
        gboolean same = TRUE;
        for (guint i = 0; i < p->seen->len && same; i++)
            same = type_is(q->key[i], ((HnSlot *)p->seen->pdata[i])->tensor);
        if (same)
            return q;
    }
    return hn_plan_next(p, error);
}

static const HnSlot *root_of(const HnSlot *s)
{
    while (s->root != NULL)
        s = s->root;
    return s;
}

static gboolean ours_alone(const HnTensor *t)
{
    return t != NULL && g_atomic_int_get(&t->ref) == 1;
}

/* A sub-graph's results may outlive its next run (a loop carries them), and so may lasting ones: the next go where
 * nobody looks any more, which is the same place, or one of two by turns, or a new one. */
static gboolean renew_results(HnPlan *p, GError **error)
{
    for (guint i = 0; i < p->fresh->len; i++) {
        HnSlot *s = p->fresh->pdata[i];
        HnTensor *t = s->tensor, *other = s->spare;
        if (ours_alone(t))
            continue;
        if (!ours_alone(other)) {
            HnTensor *fresh = hn_tensor_new(t->dtype, t->ndim, t->dims, p->exec->env->o.budget, error);
            if (fresh == NULL)
                return FALSE;
            hn_tensor_unref(other);
            other = fresh;
        }
        s->tensor = other;
        s->spare = t;
    }
    return TRUE;
}

gboolean hn_step_run(HnStep *s, GError **error)
{
    return s->kernel != NULL ? s->kernel->run(s, error) : hn_ref_run(s, error);
}

static void look_at_results(const HnPlan *p, const HnStep *s)
{
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot != NULL && s->out[k].slot->watched)
            hn_plan_look(p, s->out[k].slot);
}

static gboolean run_watched(HnPlan *p, GError **error)
{
    const gint *halt = p->exec->env->halt;
    for (guint i = 0; i < p->steps->len; i++) {
        if (!hn_halt_go(halt, error))
            return FALSE;
        if (!hn_step_run(p->steps->pdata[i], error) || !hn_env_wait(p->exec->env, error)) {
            hn_step_name_failure(p->steps->pdata[i], p->exec->env, error);
            return FALSE;
        }
        look_at_results(p, p->steps->pdata[i]);
    }
    return TRUE;
}

static gboolean run_timed(HnPlan *p, HnTimer *t, GError **error)
{
    const gint *halt = p->exec->env->halt;
    int depth = t->depth++;
    guint64 start = hn_timer_now(t);
    gboolean ok = TRUE;
    for (guint i = 0; ok && i < p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        ok = hn_halt_go(halt, error) && hn_step_run(s, error) && hn_env_wait(p->exec->env, error);
        guint64 end = hn_timer_now(t);
        hn_timer_add(t, s, depth, start, end);
        start = end;
        if (t->after != NULL && ok) {
            t->after(s, t->data);
            start = hn_timer_now(t);
        }
    }
    t->depth = depth;
    return ok;
}

static gboolean run_steps(HnPlan *p, GError **error)
{
    if ((p->exec->owner != NULL || p->exec->env->o.lasting) && !renew_results(p, error))
        return FALSE;
    for (guint i = 0; i < p->aliases->len; i++) {
        HnSlot *s = p->aliases->pdata[i];
        s->tensor->data = hn_slot_place(s);
    }
    if (p->exec->env->timer != NULL)
        return hn_plan_has_clock(p, p->exec->env->timer) ? hn_plan_run_marked(p, p->exec->env->timer, error)
                                                         : run_timed(p, p->exec->env->timer, error);
    if (p->exec->env->o.watch != NULL)
        return run_watched(p, error);
    if (p->segments != NULL)
        return hn_plan_run_segments(p, error);
    const gint *halt = p->exec->env->halt;
    for (guint i = 0; i < p->steps->len; i++)
        if (!hn_halt_go(halt, error) || !hn_step_run(p->steps->pdata[i], error))
            return FALSE;
    return TRUE;
}

gboolean hn_exec_run(HnExec *x, HnTensor *const *in, HnTensor **out, GError **error)
{
    HnPlan *p = plan_for(x, in, error);
    if (p == NULL)
        return FALSE;
    for (guint i = 0; i < p->inputs->len; i++) {
        HnSlot *s = p->inputs->pdata[i];
        HnTensor *old = s->tensor;
        if (s->where == HN_DEVICE /* a variable */ || hn_plan_feed(p, (int)i, in[i]))
            continue;
        s->tensor = hn_tensor_ref(in[i]);
        hn_tensor_unref(old);
        if (s->watched && (x->owner == NULL || i < x->graph->inputs->len)) /* captures were seen where they are made */
            hn_plan_look(p, s);
    }
    for (;;) {
        if (!hn_env_computes(x->env)) {
            if (!p->last) {
                g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                            "the shapes behind node '%s' depend on data, which the null device does not compute",
                            hn_node_label(x->graph->nodes->pdata[p->end - 1]));
                return FALSE;
            }
        } else {
            for (int part = 0; part < p->parts; part++) {
                hn_plan_begin_part(p, part);
                if (!run_steps(p, error))
                    return FALSE;
            }
        }
        if (p->last)
            break;
        if ((p = plan_behind(p, error)) == NULL)
            return FALSE;
    }
    for (guint k = 0; k < p->results->len; k++) {
        const HnSlot *s = p->results->pdata[k], *r = root_of(s);
        out[k] = s->where == HN_DEVICE ? NULL
                 : p->parts > 1        ? hn_tensor_ref(p->wholes->pdata[k])
                 : s == r              ? hn_tensor_ref(s->tensor)
                                       : hn_tensor_reshaped(r->tensor, s->tensor->ndim, s->tensor->dims);
    }
    return TRUE;
}

/* A variable's place on the device, which is counted once. */
static gboolean is_of_variable(const HnEngine *e, const HnTensor *t)
{
    for (guint i = 0; e->residents != NULL && i < e->residents->len; i++) {
        const HnResident *r = e->residents->pdata[i];
        if (r != NULL && r->there->data == t->data)
            return TRUE;
    }
    return FALSE;
}

static void stats_of_plan(const HnPlan *p, HnSessionStats *t)
{
    t->plans++;
    for (int w = 0; w < HN_PLACES; w++)
        t->arena_bytes += p->arena[w].bytes;
    t->device_bytes += p->arena[HN_DEVICE].bytes;
    for (guint i = 0; i < p->slots->len; i++) {
        const HnSlot *s = p->slots->pdata[i];
        if (s->constant) {
            t->weight_bytes += s->tensor->bytes;
        } else if (s->kept && s->root == NULL && s->tensor != NULL && !s->changing) {
            t->output_bytes += s->tensor->bytes * (gsize)p->parts;
            if (s->where == HN_DEVICE && !is_of_variable(p->exec->env->engine, s->tensor))
                t->device_bytes += s->tensor->bytes;
        }
    }
    for (guint i = 0; i < p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        const Ref *r = ref_of(s);
        t->steps++;
        t->ref_steps += s->kernel == NULL;
        for (guint k = 0; r != NULL && r->execs != NULL && k < r->execs->len; k++)
            hn_exec_stats(r->execs->pdata[k], t);
    }
    for (guint i = 0; i < p->next->len; i++)
        stats_of_plan(p->next->pdata[i], t);
}

void hn_exec_stats(const HnExec *x, HnSessionStats *stats)
{
    for (guint i = 0; i < x->plans->len; i++)
        stats_of_plan(x->plans->pdata[i], stats);
}

static void foreach_in_plan(const HnPlan *p, HnStepFn fn, int depth, gpointer data)
{
    for (guint i = 0; i < p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        const Ref *r = ref_of(s);
        fn(s, depth, data);
        for (guint k = 0; r != NULL && r->execs != NULL && k < r->execs->len; k++)
            hn_exec_foreach(r->execs->pdata[k], fn, depth + 1, data);
    }
    for (guint i = 0; i < p->next->len; i++)
        foreach_in_plan(p->next->pdata[i], fn, depth, data);
}

void hn_exec_foreach(const HnExec *x, HnStepFn fn, int depth, gpointer data)
{
    for (guint i = 0; i < x->plans->len; i++)
        foreach_in_plan(x->plans->pdata[i], fn, depth, data);
}

static void unrecorded_in_exec(const HnExec *x, HnUnrecordedFn fn, gpointer data);

static void unrecorded_in_plan(const HnPlan *p, HnUnrecordedFn fn, gpointer data)
{
    hn_plan_foreach_unrecorded(p, fn, data);
    for (guint i = 0; i < p->steps->len; i++) {
        const Ref *r = ref_of(p->steps->pdata[i]);
        for (guint k = 0; r != NULL && r->execs != NULL && k < r->execs->len; k++)
            unrecorded_in_exec(r->execs->pdata[k], fn, data);
    }
    for (guint i = 0; i < p->next->len; i++)
        unrecorded_in_plan(p->next->pdata[i], fn, data);
}

static void unrecorded_in_exec(const HnExec *x, HnUnrecordedFn fn, gpointer data)
{
    for (guint i = 0; i < x->plans->len; i++)
        unrecorded_in_plan(x->plans->pdata[i], fn, data);
}

/* --- the session ------------------------------------------------------------------------------------------------- */

HnSession *hn_session_new_on(HnEngine *e, const HnSessionOptions *o, GError **error)
{
    g_autoptr(HnSession) s = g_new0(HnSession, 1);
    HnRunEnv *env = &s->env;
    env->engine = hn_engine_ref(e);
    env->backend = e->device->backend;
    env->device = e->device->handle;
    env->o = *o;
    if (env->o.plan_cache <= 0)
        env->o.plan_cache = HN_PLAN_CACHE;
    if (env->o.threads <= 0)
        env->o.threads = hn_cpu_threads(NULL);
    if (env->o.budget != NULL)
        hn_budget_ref(env->o.budget);
    env->halt = hn_budget_halt(env->o.budget);
    env->o.prefer = o->prefer != NULL ? g_intern_string(o->prefer) : NULL;
    if (!hn_env_open(env, error))
        return NULL;
    s->inputs = e->inputs;
    s->fed = g_new0(HnTensor *, (gsize)e->fed->len + 1);
    for (guint i = 0; i < e->variables->len; i++)
        s->fed[s->inputs->len + i] = ((HnVariableState *)e->variables->pdata[i])->tensor;
    env->renewals = hn_renewals_new();
    env->generation = g_atomic_int_get(&e->generation);
    s->main = hn_exec_new(env, e->graph, NULL, e->fed);
    return g_steal_pointer(&s);
}

HnSession *hn_session_new(HnModel *m, const HnBackend *backend, const HnSessionOptions *o, GError **error)
{
    g_autoptr(HnDevice) device = hn_device_new(backend, error);
    const HnEngineOptions eo = { .budget = o->budget, .feeds = o->feeds };
    if (device != NULL && o->max_isa > 0)
        device->isa = (HnIsa)(o->max_isa - 1);
    g_autoptr(HnEngine) engine = device != NULL ? hn_engine_new(m, device, &eo, error) : NULL;
    return engine != NULL ? hn_session_new_on(engine, o, error) : NULL;
}

HnRunEnv *hn_session_env(HnSession *s)
{
    return &s->env;
}

HnEngine *hn_session_engine(const HnSession *s)
{
    return s->env.engine;
}

void hn_session_free(HnSession *s)
{
    if (s == NULL)
        return;
    HnEngine *e = s->env.engine;
    g_mutex_lock(&e->lock);
    hn_exec_free(s->main);
    hn_constants_sweep(e->constants);
    g_mutex_unlock(&e->lock);
    hn_env_time_device(&s->env, FALSE);
    g_clear_pointer(&s->env.traced, g_array_unref);
    g_array_unref(s->env.renewals);
    g_free(s->fed);
    if (s->env.stream != NULL)
        s->env.backend->stream_free(s->env.stream);
    if (s->env.o.budget != NULL)
        hn_budget_unref(s->env.o.budget);
    hn_engine_unref(e);
    g_free(s);
}

int hn_session_n_inputs(const HnSession *s)
{
    return (int)s->inputs->len;
}

const HnValue *hn_session_input(const HnSession *s, int i)
{
    return s->inputs->pdata[i];
}

int hn_session_n_outputs(const HnSession *s)
{
    return (int)s->env.engine->graph->outputs->len;
}

const HnValue *hn_session_output(const HnSession *s, int k)
{
    return s->env.engine->graph->outputs->pdata[k];
}

typedef enum { FITS, OTHER_SHAPE, OTHER_TYPE, UNKNOWN_TYPE } Fit;

/* Does what is given go with what is declared? Of an element whose type nobody knows (NULL) there is none, or there are
 * several, and each is looked at when it is read. */
static Fit fit(const HnType *t, const HnType *given)
{
    if (t == NULL || given == NULL || t->kind == HN_TYPE_NONE)
        return FITS;
    if (t->kind == HN_TYPE_SPARSE || t->kind == HN_TYPE_OPAQUE)
        return UNKNOWN_TYPE;
    if (t->kind != given->kind)
        return OTHER_TYPE;
    if (t->kind == HN_TYPE_MAP)
        return t->dtype != given->dtype || !hn_type_may_be(t->elem, HN_BIT(given->elem->dtype)) ? OTHER_TYPE : FITS;
    if (t->kind != HN_TYPE_TENSOR)
        return fit(t->elem, given->elem);
    gboolean fits = t->rank < 0 || given->rank < 0 || t->rank == given->rank;
    for (int i = 0; i < t->rank && fits && given->rank >= 0; i++)
        fits = !t->dims[i].known || !given->dims[i].known || t->dims[i].n == given->dims[i].n;
    if (!fits)
        return OTHER_SHAPE;
    return t->dtype == HN_UNDEFINED || given->dtype == HN_UNDEFINED || t->dtype == given->dtype ? FITS : OTHER_TYPE;
}

static gboolean check_type(const HnValue *v, const HnType *given, GError **error)
{
    const Fit f = fit(v->type, given);
    if (f == FITS)
        return TRUE;
    g_autofree char *want = hn_type_describe(v->type), *got = hn_type_describe(given);
    if (f == UNKNOWN_TYPE)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "input '%s' is %s, which is not computed with", v->name,
                    want);
    else
        g_set_error(error, HN_ERROR, f == OTHER_TYPE ? HN_ERROR_TYPE : HN_ERROR_SHAPE,
                    "input '%s' is %s, but %s is given", v->name, want, got);
    return FALSE;
}

/* The same without making a type where nothing is wrong. */
static gboolean check_input(const HnValue *v, const HnTensor *x, GError **error)
{
    const HnType *t = v->type;
    if (t == NULL || t->kind == HN_TYPE_NONE)
        return TRUE;
    gboolean fits = t->kind == HN_TYPE_TENSOR && (t->rank < 0 || t->rank == x->ndim) &&
                    (t->dtype == HN_UNDEFINED || t->dtype == x->dtype) && !hn_tensor_is_list(x);
    for (int i = 0; i < x->ndim && fits && t->rank >= 0; i++)
        fits = !t->dims[i].known || t->dims[i].n == x->dims[i];
    if (fits)
        return TRUE;
    g_autoptr(HnType) given = hn_type_of(x);
    return check_type(v, given, error);
}

gboolean hn_session_prepare(HnSession *s, HnType *const *in, GError **error)
{
    for (guint i = 0; i < s->inputs->len; i++) {
        const HnValue *v = s->inputs->pdata[i];
        if (!hn_type_is_list(in[i]) && !hn_type_is_fixed(in[i], NULL)) {
            g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "input '%s' needs a fixed shape", v->name);
            return FALSE;
        }
        if (!check_type(v, in[i], error))
            return FALSE;
    }
    const HnEngine *e = s->env.engine;
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (guint i = 0; i < s->inputs->len; i++)
        g_ptr_array_add(types, hn_type_ref(in[i]));
    for (guint i = s->inputs->len; i < e->fed->len; i++)
        g_ptr_array_add(types, hn_type_fixed(s->fed[i]->dtype, s->fed[i]->ndim, s->fed[i]->dims));
    const HnIsa before = hn_cpu_limit_isa(e->device->isa);
    const gboolean ok = hn_exec_plan(s->main, (HnType *const *)types->pdata, error) != NULL;
    hn_cpu_limit_isa(before);
    return ok;
}

/* Elements that lie where a variable's do, which is not `own`. */
static gboolean lies_in_another(const HnEngine *e, const HnTensor *t, const HnTensor *own)
{
    for (guint i = 0; i < e->variables->len; i++) {
        const HnTensor *v = ((HnVariableState *)e->variables->pdata[i])->tensor;
        if (v != own && t->data == v->data)
            return TRUE;
    }
    return FALSE;
}

/* Variables are on the device as they are now. */
static gboolean begin_on_device(HnSession *s, GError **error)
{
    HnEngine *e = s->env.engine;
    if (e->device->residents == NULL || !hn_env_computes(&s->env))
        return TRUE;
    g_mutex_lock(&e->lock);
    const gboolean ok = hn_engine_reside(e, error);
    g_mutex_unlock(&e->lock);
    if (!ok || !hn_engine_upload(e, s->env.stream, error))
        return FALSE;
    hn_engine_note_replaced(e);
    return TRUE;
}

static gboolean is_form_of(const HnTensor *next, const HnVariableState *v, const HnEngine *e, GError **error)
{
    if (hn_tensor_same_form(next, v->tensor))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "'%s', which is to replace a variable, came out of another type",
                ((HnValue *)e->graph->outputs->pdata[v->next])->name);
    return FALSE;
}

/* Variables become what the run made of them; an output that was made in their memory is there already, and so is one
 * that stayed on the device (NULL), for which the variable on the host is given back. */
static gboolean update_variables(HnEngine *e, HnTensor **out, GError **error)
{
    gboolean any = FALSE;
    for (guint i = 0; i < e->variables->len; i++) {
        const HnVariableState *v = e->variables->pdata[i];
        HnTensor *copy;
        if (v->next < 0 || out[v->next] == NULL || !lies_in_another(e, out[v->next], v->tensor))
            continue;
        if ((copy = hn_tensor_copy(out[v->next], NULL, error)) == NULL)
            return FALSE;
        hn_tensor_unref(out[v->next]);
        out[v->next] = copy;
    }
    for (guint i = 0; i < e->variables->len; i++) {
        const HnVariableState *v = e->variables->pdata[i];
        const HnTensor *next = v->next >= 0 ? out[v->next] : NULL;
        any = any || v->next >= 0;
        if (next == NULL)
            continue;
        if (!is_form_of(next, v, e, error))
            return FALSE;
        if (next->data != v->tensor->data)
            memcpy(v->tensor->data, next->data, next->bytes);
        hn_engine_note_host(e, i);
    }
    for (guint i = 0; i < e->variables->len; i++) {
        const HnVariableState *v = e->variables->pdata[i];
        if (v->next >= 0 && out[v->next] == NULL)
            out[v->next] = hn_tensor_ref(v->tensor);
    }
    if (any)
        hn_engine_replaced(e);
    return TRUE;
}

static void renew(HnRunEnv *env)
{
    const gint now = g_atomic_int_get(&env->engine->generation);
    if (now == env->generation)
        return;
    hn_renewals_run(env->renewals, env->o.threads);
    env->generation = now;
}

static gboolean is_optional(const HnValue *v)
{
    return v->type != NULL && v->type->kind == HN_TYPE_OPTIONAL;
}

static gboolean any_optional(const HnSession *s)
{
    for (guint i = 0; i < s->inputs->len; i++)
        if (is_optional(s->inputs->pdata[i]))
            return TRUE;
    return FALSE;
}

/* An optional input may be left out, or given without more ado. New references. */
static GPtrArray *with_optionals(const HnSession *s, HnTensor *const *in, GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (guint i = 0; i < s->inputs->len; i++) {
        HnTensor *t = in[i] != NULL ? hn_tensor_ref(in[i]) : NULL;
        if (is_optional(s->inputs->pdata[i]) && (t == NULL || t->dtype != HN_OPTIONAL)) {
            g_autoptr(HnTensor) item = t;
            t = hn_tensor_new_list(HN_OPTIONAL, item != NULL ? 1 : 0, s->env.o.budget, error);
            if (t == NULL)
                return NULL;
            if (item != NULL)
                hn_tensor_set_item(t, 0, item);
        }
        g_ptr_array_add(all, t);
    }
    return g_steal_pointer(&all);
}

static gboolean run(HnSession *s, HnTensor *const *in, HnTensor **out, GError **error)
{
    g_autoptr(GPtrArray) filled = NULL;
    if (any_optional(s)) {
        if ((filled = with_optionals(s, in, error)) == NULL)
            return FALSE;
        in = (HnTensor *const *)filled->pdata;
    }
    for (guint i = 0; i < s->inputs->len; i++) {
        const HnValue *v = s->inputs->pdata[i];
        if (in[i] == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "input '%s' is missing", v->name);
            return FALSE;
        }
        if (!check_input(v, in[i], error))
            return FALSE;
    }
    HnEngine *e = s->env.engine;
    if (e->variables->len == 0)
        return hn_exec_run(s->main, in, out, error);
    memcpy(s->fed, in, s->inputs->len * sizeof *in);
    renew(&s->env);
    if (!begin_on_device(s, error) || !hn_exec_run(s->main, s->fed, out, error))
        return FALSE;
    if (!hn_env_computes(&s->env) || update_variables(e, out, error))
        return TRUE;
    for (guint k = 0; k < e->graph->outputs->len; k++)
        g_clear_pointer(&out[k], hn_tensor_unref);
    return FALSE;
}

gboolean hn_session_run(HnSession *s, HnTensor *const *in, HnTensor **out, GError **error)
{
    const HnIsa before = hn_cpu_limit_isa(s->env.engine->device->isa);
    const gboolean ok = run(s, in, out, error);
    hn_cpu_limit_isa(before);
    if (!ok && s->env.o.watch == NULL && hn_env_failed(&s->env))
        hn_env_find_failure(&s->env, in, error);
    return ok;
}

void hn_session_limit(HnSession *s, gsize bytes)
{
    s->env.most_bytes = bytes;
}

void hn_session_set_timer(HnSession *s, HnTimer *t)
{
    s->env.timer = t;
}

void hn_session_stats(const HnSession *s, HnSessionStats *stats)
{
    *stats = (HnSessionStats){ .optimize_ms = s->env.optimize_ms, .prepare_ms = s->env.prepare_ms };
    hn_exec_stats(s->main, stats);
    stats->packed_bytes = hn_packs_bytes(s->env.engine->device->packs);
    stats->device_bytes += s->env.backend->memory != NULL ? stats->packed_bytes : 0;
    const GPtrArray *variables = s->env.engine->residents;
    for (guint i = 0; variables != NULL && i < variables->len; i++)
        stats->device_bytes += variables->pdata[i] != NULL ? ((HnResident *)variables->pdata[i])->there->bytes : 0;
}

gboolean hn_session_time_device(HnSession *s, gboolean on)
{
    return hn_env_time_device(&s->env, on);
}

gboolean hn_session_device_times(HnSession *s, HnDeviceTimes *t, GError **error)
{
    return hn_env_device_times(&s->env, t, error);
}

void hn_session_foreach_step(const HnSession *s, HnStepFn fn, gpointer data)
{
    hn_exec_foreach(s->main, fn, 0, data);
}

void hn_session_foreach_unrecorded(const HnSession *s, HnUnrecordedFn fn, gpointer data)
{
    unrecorded_in_exec(s->main, fn, data);
}
