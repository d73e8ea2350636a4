/*
 * A device on which something did what it must not says so late, and not which node it was: the same inputs run once
 * more, on the device opened anew, with a wait behind each step.
 */
#include "run/plan.h"

gboolean hn_env_failed(const HnRunEnv *env)
{
    const HnMemory *m = env->backend->memory;
    return m != NULL && m->failed != NULL && m->failed(env->stream);
}

void hn_step_name_failure(const HnStep *s, const HnRunEnv *env, GError **error)
{
    if (!hn_env_failed(env) || error == NULL || *error == NULL || g_str_has_prefix((*error)->message, "node '"))
        return;
    if (s->node != NULL)
        g_prefix_error(error, "node '%s' (%s): ", hn_node_label(s->origin != NULL ? s->origin : s->node),
                       s->node->op_type);
    else
        g_prefix_error_literal(error, "a copy between nodes: ");
}

/* --- the other run ----------------------------------------------------------------------------------------------- */

static gboolean wants_nothing(G_GNUC_UNUSED const HnValue *v, G_GNUC_UNUSED gpointer data)
{
    return FALSE;
}

static void saw_nothing(G_GNUC_UNUSED const HnValue *v, G_GNUC_UNUSED const HnSeen *seen, G_GNUC_UNUSED gpointer data)
{
}

/* The engine's variables with copies of what they hold. Ends with a NULL name; the elements are to be unreferenced. */
static HnVariable *copy_variables(const HnEngine *e, HnBudget *budget, GError **error)
{
    const guint first = e->inputs->len;
    HnVariable *all = g_new0(HnVariable, e->variables->len + 1);
    for (guint i = 0; i < e->variables->len; i++) {
        all[i].elements = hn_tensor_copy(((const HnVariableState *)e->variables->pdata[i])->tensor, budget, error);
        if (all[i].elements == NULL)
            return all;
        all[i].name = ((const HnValue *)e->fed->pdata[first + i])->name;
    }
    return all;
}

/* Weights that are fed. */
static GPtrArray *feeds_of(const HnEngine *e)
{
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < e->inputs->len; i++) {
        const HnValue *v = e->inputs->pdata[i];
        if (v->weight != NULL || v->sparse != NULL)
            g_ptr_array_add(names, (gpointer)v->name);
    }
    g_ptr_array_add(names, NULL);
    return names;
}

static HnEngine *engine_apart(const HnEngine *e, HnBudget *budget, GError **error)
{
    g_autoptr(HnDevice) device = hn_device_new_apart(e->device->backend, error);
    if (device == NULL)
        return NULL;
    GError *failure = NULL;
    device->isa = e->device->isa;
    g_autofree HnVariable *variables = copy_variables(e, budget, &failure);
    g_autoptr(GPtrArray) feeds = feeds_of(e);
    const HnEngineOptions o = { .budget = budget, .feeds = (const char *const *)feeds->pdata, .variables = variables };
    HnEngine *apart = failure == NULL ? hn_engine_new(e->graph->model, device, &o, error) : NULL;
    for (guint i = 0; i < e->variables->len; i++)
        hn_tensor_unref((HnTensor *)variables[i].elements);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return apart;
}

/* TRUE: nothing went wrong; else *error says what did. */
static gboolean runs_apart(const HnRunEnv *env, HnTensor *const *in, GError **error)
{
    const HnWatch nobody = { wants_nothing, saw_nothing, NULL };
    HnSessionOptions o = env->o;
    o.watch = &nobody; /* such a session waits behind each step */
    g_autoptr(HnEngine) e = engine_apart(env->engine, o.budget, error);
    g_autoptr(HnSession) s = e != NULL ? hn_session_new_on(e, &o, error) : NULL;
    if (s == NULL)
        return FALSE;
    const int n = hn_session_n_outputs(s);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n + 1);
    const gboolean ok = hn_session_run(s, in, out, error);
    for (int k = 0; ok && k < n; k++)
        hn_tensor_unref(out[k]);
    return ok;
}

void hn_env_find_failure(const HnRunEnv *env, HnTensor *const *in, GError **error)
{
    GError *found = NULL;
    if (error == NULL || *error == NULL)
        return;
    const gboolean ok = runs_apart(env, in, &found);
    if (found != NULL && g_str_has_prefix(found->message, "node '")) {
        g_clear_error(error);
        g_propagate_error(error, found);
        return;
    }
    GError *before = *error;
    *error = g_error_new(
        before->domain, before->code, "%s; %s%s", before->message,
        ok ? "step by step no node fails" : "which node it was cannot be found: ", ok ? "" : found->message);
    g_error_free(before);
    g_clear_error(&found);
}
