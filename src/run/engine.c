#include "run/engine.h"

#include <string.h>

#include "pass/hoist_products.h"
#include "pass/inline_functions.h"
#include "run/plan.h"

static void bind_first_failure(HnNode *n, gpointer data)
{
    GError **error = data;
    if (*error == NULL)
        hn_op_bind(n, error);
}

gboolean hn_model_prepare(HnModel *m, GError **error)
{
    if (m->graph->outputs->len == 0) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_GRAPH,
                            "the model has no outputs, so there is nothing to compute");
        return FALSE;
    }
    if (!hn_inline_functions(m, error) || !hn_hoist_products(m, error))
        return FALSE;
    GError *failure = NULL; /* all of the graph's operators are known, or nothing starts */
    hn_graph_foreach_node(m->graph, bind_first_failure, &failure);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}

static gboolean is_variable(const HnVariable *variables, const char *name)
{
    for (const HnVariable *v = variables; v != NULL && v->name != NULL; v++)
        if (strcmp(v->name, name) == 0)
            return TRUE;
    return FALSE;
}

static gboolean find_inputs(HnEngine *e, const char *const *feeds, const HnVariable *variables, GError **error)
{
    const HnGraph *g = e->graph;
    for (guint i = 0; i < g->inputs->len; i++) {
        HnValue *v = g->inputs->pdata[i];
        gboolean weight = v->weight != NULL || v->sparse != NULL;
        if (weight && (feeds == NULL || !g_strv_contains(feeds, v->name)))
            continue;
        if (is_variable(variables, v->name)) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is to be fed, and is no variable", v->name);
            return FALSE;
        }
        g_ptr_array_add(e->inputs, v);
    }
    for (const char *const *f = feeds; f != NULL && *f != NULL; f++) {
        const HnValue *v = g_hash_table_lookup(g->values, *f);
        if (v == NULL || !v->is_input) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is no input of the model", *f);
            return FALSE;
        }
    }
    return TRUE;
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

static void variable_free(gpointer variable)
{
    HnVariableState *s = variable;
    hn_tensor_unref(s->tensor);
    g_free(s);
}

/* What the model says of output `next` is not against w. */
static gboolean fits(const HnValue *next, const HnTensor *w, const char *name, GError **error)
{
    const HnType *t = next->type;
    if (t == NULL || t->kind == HN_TYPE_NONE)
        return TRUE;
    gboolean same = t->kind == HN_TYPE_TENSOR && t->dtype == w->dtype && (t->rank < 0 || t->rank == w->ndim);
    for (int i = 0; same && t->rank >= 0 && i < w->ndim; i++)
        same = !t->dims[i].known || t->dims[i].n == w->dims[i];
    if (!same)
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "'%s', which is to replace '%s', is of another type", next->name,
                    name);
    return same;
}

/* The index of the output of that name and of w's type, as far as the model says; -1: error. */
static int find_next(const HnGraph *g, const HnTensor *w, const HnVariable *v, GError **error)
{
    int k = (int)g->outputs->len - 1;
    while (k >= 0 && strcmp(((HnValue *)g->outputs->pdata[k])->name, v->next) != 0)
        k--;
    if (k < 0)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s', which is to replace '%s', is no output of the model",
                    v->next, v->name);
    return k < 0 || fits(g->outputs->pdata[k], w, v->name, error) ? k : -1;
}

static gboolean add_variable(HnEngine *e, const HnVariable *v, HnBudget *budget, GError **error)
{
    HnValue *value = g_hash_table_lookup(e->graph->values, v->name);
    if (value == NULL || value->weight == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is no weight of the model, as a variable is", v->name);
        return FALSE;
    }
    if (g_ptr_array_find(e->fed, value, NULL)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is a variable twice", v->name);
        return FALSE;
    }
    const int next = v->next != NULL ? find_next(e->graph, value->weight, v, error) : -1;
    if (v->next != NULL && next < 0)
        return FALSE;
    HnTensor *t = v->elements != NULL ? hn_tensor_ref(v->elements) : hn_tensor_copy(value->weight, budget, error);
    if (t == NULL)
        return FALSE;
    HnVariableState *s = g_new0(HnVariableState, 1);
    *s = (HnVariableState){ t, next };
    g_ptr_array_add(e->variables, s);
    g_ptr_array_add(e->fed, value);
    return TRUE;
}

static gboolean find_variables(HnEngine *e, const HnVariable *variables, HnBudget *budget, GError **error)
{
    for (guint i = 0; i < e->inputs->len; i++)
        g_ptr_array_add(e->fed, e->inputs->pdata[i]);
    for (const HnVariable *v = variables; v != NULL && v->name != NULL; v++)
        if (!add_variable(e, v, budget, error))
            return FALSE;
    return TRUE;
}

HnTensor *hn_engine_variable(HnEngine *e, const char *name)
{
    for (guint i = e->inputs->len; i < e->fed->len; i++)
        if (strcmp(((HnValue *)e->fed->pdata[i])->name, name) == 0)
            return ((HnVariableState *)e->variables->pdata[i - e->inputs->len])->tensor;
    return NULL;
}

void hn_engine_replaced(HnEngine *e)
{
    g_atomic_int_inc(&e->generation);
}

static HnResident *const *residents_of(const HnEngine *e, guint *n)
{
    *n = e->residents != NULL ? e->residents->len : 0;
    return *n > 0 ? (HnResident *const *)e->residents->pdata : NULL;
}

void hn_engine_wrote(HnEngine *e)
{
    guint n;
    HnResident *const *list = residents_of(e, &n);
    if (n > 0)
        hn_residents_note(e->device->residents, list, n, HN_ON_HOST_NEWER);
    hn_engine_replaced(e);
}

gboolean hn_engine_fetch(HnEngine *e, GError **error)
{
    guint n;
    HnResident *const *list = residents_of(e, &n);
    return n == 0 || hn_residents_fetch(e->device->residents, list, n, error);
}

gboolean hn_engine_upload(HnEngine *e, gpointer stream, GError **error)
{
    guint n;
    HnResident *const *list = residents_of(e, &n);
    return n == 0 || hn_residents_upload(e->device->residents, list, n, stream, error);
}

void hn_engine_note_replaced(HnEngine *e)
{
    hn_residents_note(e->device->residents, (HnResident *const *)e->replaced->pdata, e->replaced->len,
                      HN_ON_DEVICE_NEWER);
}

void hn_engine_note_host(HnEngine *e, guint i)
{
    if (e->residents != NULL)
        hn_residents_note(e->device->residents, (HnResident *const *)e->residents->pdata + i, 1, HN_ON_HOST_NEWER);
}

gboolean hn_engine_reside(HnEngine *e, GError **error)
{
    const guint n = e->variables->len;
    if (e->device->residents == NULL || e->residents != NULL || n == 0)
        return TRUE;
    g_autofree HnTensor **host = g_new(HnTensor *, n);
    for (guint i = 0; i < n; i++)
        host[i] = ((const HnVariableState *)e->variables->pdata[i])->tensor;
    g_autoptr(GPtrArray) made = g_ptr_array_new();
    g_ptr_array_set_size(made, (gint)n);
    if (!hn_residents_get(e->device->residents, host, n, (HnResident **)made->pdata, error)) {
        g_prefix_error(error, "weights that change: ");
        return FALSE;
    }
    e->replaced = g_ptr_array_sized_new(n);
    for (guint i = 0; i < n; i++)
        g_ptr_array_add(e->replaced,
                        ((const HnVariableState *)e->variables->pdata[i])->next >= 0 ? made->pdata[i] : NULL);
    e->residents = g_steal_pointer(&made);
    return TRUE;
}

HnTensor *hn_engine_place(const HnEngine *e, guint i, HnWhere where)
{
    if (where == HN_HOST)
        return ((const HnVariableState *)e->variables->pdata[i])->tensor;
    const HnResident *r = e->residents != NULL ? e->residents->pdata[i] : NULL;
    return r != NULL ? r->there : NULL;
}

/* --- the engine --------------------------------------------------------------------------------------------------- */

HnEngine *hn_engine_new(HnModel *m, HnDevice *device, const HnEngineOptions *o, GError **error)
{
    static const HnEngineOptions none = { 0 };
    if (!hn_model_prepare(m, error))
        return NULL;
    if (o == NULL)
        o = &none;
    g_autoptr(HnEngine) e = g_new0(HnEngine, 1);
    e->ref = 1;
    e->graph = m->graph;
    e->device = hn_device_ref(device);
    e->inputs = g_ptr_array_new();
    e->fed = g_ptr_array_new();
    e->variables = g_ptr_array_new_with_free_func(variable_free);
    e->last_use = hn_plan_last_uses(e->graph);
    e->settled = g_new0(guint8, (gsize)e->graph->nodes->len + 1);
    e->constants = hn_constants_new(o->budget);
    g_mutex_init(&e->lock);
    e->base = hn_types_new(m);
    hn_types_set_budget(e->base, o->budget);
    if (!find_inputs(e, o->feeds, o->variables, error) || !find_variables(e, o->variables, o->budget, error) ||
        !hn_types_enter(e->base, e->graph, FALSE, error))
        return NULL;
    for (guint i = 0; i < e->fed->len; i++) /* an initializer that is fed, or changes, is no constant */
        hn_types_set(e->base, e->fed->pdata[i], NULL);
    return g_steal_pointer(&e);
}

HnDevice *hn_engine_device(const HnEngine *e)
{
    return e->device;
}

HnEngine *hn_engine_ref(HnEngine *e)
{
    g_atomic_int_inc(&e->ref);
    return e;
}

void hn_engine_unref(HnEngine *e)
{
    if (e == NULL || !g_atomic_int_dec_and_test(&e->ref))
        return;
    hn_types_free(e->base);
    hn_constants_free(e->constants);
    g_free(e->settled);
    g_hash_table_unref(e->last_use);
    if (e->residents != NULL) {
        hn_residents_unref(e->device->residents, (HnResident *const *)e->residents->pdata, e->residents->len);
        g_ptr_array_unref(e->residents);
        g_ptr_array_unref(e->replaced);
    }
    g_ptr_array_unref(e->variables);
    g_ptr_array_unref(e->fed);
    g_ptr_array_unref(e->inputs);
    g_mutex_clear(&e->lock);
    hn_device_unref(e->device);
    g_free(e);
}

/* --- constants that follow from weights alone -------------------------------------------------------------------- */

static gboolean all_known(const HnTypes *t, const HnPtrs *values)
{
    for (guint i = 0; i < values->len; i++)
        if (values->pdata[i] != NULL && hn_types_value(t, values->pdata[i]) == NULL)
            return FALSE;
    return TRUE;
}

/* The plan knows what n makes, and that follows from what every plan knows. */
static gboolean follows(const HnEngine *e, const HnTypes *plan, const HnNode *n)
{
    return (n->op->flags & HN_OP_CONTROL) == 0 && all_known(e->base, n->in) && all_known(plan, n->out);
}

/* Somebody may want v's elements, as only settled nodes do not. */
static gboolean is_wanted(const HnValue *v, GHashTable *settled)
{
    if (v->is_output)
        return TRUE;
    for (guint i = 0; i < v->users->len; i++)
        if (!g_hash_table_contains(settled, v->users->pdata[i]))
            return TRUE;
    return FALSE;
}

void hn_engine_settle(HnEngine *e, const HnTypes *plan, int start, int end)
{
    g_autoptr(GHashTable) settled = g_hash_table_new(NULL, NULL);
    for (int i = start; i < end; i++) {
        const HnNode *n = e->graph->nodes->pdata[i];
        if (e->settled[i] == 0 && follows(e, plan, n)) {
            e->settled[i] = 1;
            g_hash_table_add(settled, (gpointer)n);
            for (guint k = 0; k < n->out->len; k++)
                if (n->out->pdata[k] != NULL)
                    hn_types_set_value(e->base, n->out->pdata[k], hn_types_value(plan, n->out->pdata[k]));
        }
    }
    for (int i = start; i < end; i++) {
        const HnNode *n = e->graph->nodes->pdata[i];
        for (guint k = 0; k < n->out->len && g_hash_table_contains(settled, n); k++) {
            const HnValue *v = n->out->pdata[k];
            const HnTensor *t = v != NULL ? hn_types_value(e->base, v) : NULL;
            if (t != NULL && t->bytes > HN_TENSOR_SMALL && !is_wanted(v, settled))
                hn_types_forget(e->base, v);
        }
    }
}
