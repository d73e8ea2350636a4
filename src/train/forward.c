#include "train/forward.h"

#include <string.h>

#include "train/open_batch.h"
#include "train/train_data.h"

struct HnForward {
    HnModel *model;
    HnSession *session;
    guint n;     /* objectives */
    guint *at;   /* [n]: the result that each compares */
    guint *from; /* by input of the session: which of those that it is fed */
    HnTensor **in, **out;
};

void hn_forward_free(HnForward *f)
{
    if (f == NULL)
        return;
    hn_session_free(f->session);
    hn_model_free(f->model);
    g_free(f->at);
    g_free(f->from);
    g_free(f->in);
    g_free(f->out);
    g_free(f);
}

/* A first axis of a number is one of any. */
static void open_axes(HnModel *m)
{
    g_autoptr(GPtrArray) inputs = hn_train_inputs(m);
    for (guint i = 0; i < inputs->len; i++) {
        HnValue *v = inputs->pdata[i];
        HnDim dims[HN_MAX_RANK];
        if (!hn_type_is_tensor(v->type) || v->type->rank < 1 || !v->type->dims[0].known)
            continue;
        memcpy(dims, v->type->dims, (gsize)v->type->rank * sizeof *dims);
        dims[0] = hn_dim_unknown();
        g_autoptr(HnType) type = hn_type_tensor(v->type->dtype, v->type->rank, dims);
        hn_value_set_type(v, type);
    }
}

/* What the teacher has in the place of what the student's graph has. */
static HnValue *in_its_place(const HnObjective *o, const HnGraph *g, const HnGraph *like, GError **error)
{
    const HnValue *v = o->value != NULL ? g_hash_table_lookup(like->values, o->value) : NULL;
    guint place = 0;
    if (o->like != NULL) {
        HnObjective named = *o;
        named.value = o->like;
        return hn_objective_value(&named, g, error);
    }
    if (v != NULL && g_hash_table_contains(g->values, v->name))
        return hn_objective_value(o, g, error);
    if (v != NULL && (!g_ptr_array_find(like->outputs, v, &place) || place >= g->outputs->len)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--loss': the teacher has no value '%s'", v->name);
        return NULL;
    }
    HnObjective placed = *o;
    placed.value = ((HnValue *)g->outputs->pdata[place])->name;
    return hn_objective_value(&placed, g, error);
}

/* Results are what is compared, and nothing else. */
static gboolean choose_results(HnForward *f, const GPtrArray *objectives, const HnGraph *like, GError **error)
{
    HnGraph *g = f->model->graph;
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    for (guint i = 0; i < f->n; i++) {
        const HnObjective *o = objectives->pdata[i];
        HnValue *v = like != NULL ? in_its_place(o, g, like, error) : hn_objective_value(o, g, error);
        if (v == NULL)
            return FALSE;
        if (!g_ptr_array_find(values, v, &f->at[i])) {
            f->at[i] = values->len;
            g_ptr_array_add(values, v);
        }
    }
    while (g->outputs->len > 0)
        hn_graph_remove_output(g, (int)g->outputs->len - 1);
    for (guint i = 0; i < values->len; i++)
        hn_graph_add_output(g, values->pdata[i]);
    return TRUE;
}

static gboolean match_inputs(HnForward *f, const GPtrArray *inputs, GError **error)
{
    const guint n = (guint)hn_session_n_inputs(f->session);
    f->from = g_new(guint, n + 1);
    f->in = g_new0(HnTensor *, n + 1);
    for (guint i = 0; i < n; i++) {
        const char *name = hn_session_input(f->session, (int)i)->name;
        f->from[i] = i;
        for (guint k = 0; k < inputs->len; k++)
            if (strcmp(((HnValue *)inputs->pdata[k])->name, name) == 0)
                f->from[i] = k;
        if (f->from[i] < inputs->len)
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "the teacher wants an input '%s', which the student does not have",
                    name);
        return FALSE;
    }
    return TRUE;
}

HnForward *hn_forward_new(HnModel *m, const GPtrArray *objectives, const HnForwardOptions *o, GError **error)
{
    g_autoptr(HnForward) f = g_new0(HnForward, 1);
    const HnSessionOptions so = {
        .threads = o->threads, .bf16 = o->bf16, .budget = o->budget, .plan_cache = 2, .watch = o->watch
    };
    f->model = m = hn_train_open_batch(m, NULL, o->budget);
    f->n = objectives->len;
    f->at = g_new0(guint, f->n + 1);
    if (!hn_model_prepare(m, error) || !choose_results(f, objectives, o->like, error))
        return NULL;
    open_axes(m);
    f->out = g_new0(HnTensor *, m->graph->outputs->len + 1);
    f->session = hn_session_new(m, o->backend, &so, error);
    return f->session != NULL && match_inputs(f, o->inputs, error) ? g_steal_pointer(&f) : NULL;
}

char *hn_forward_describe(const HnForward *f)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < f->n; i++)
        g_string_append_printf(text, "%s@%s", i > 0 ? " " : "",
                               ((const HnValue *)f->model->graph->outputs->pdata[f->at[i]])->name);
    return g_string_free(text, FALSE);
}

guint hn_forward_count(const HnForward *f)
{
    return f->n;
}

gboolean hn_forward_run(HnForward *f, HnTensor *const *in, HnTensor **out, GError **error)
{
    const int n = hn_session_n_outputs(f->session);
    for (int i = 0; i < hn_session_n_inputs(f->session); i++)
        f->in[i] = in[f->from[i]];
    if (!hn_session_run(f->session, f->in, f->out, error))
        return FALSE;
    for (guint i = 0; i < f->n; i++)
        out[i] = hn_tensor_ref(f->out[f->at[i]]);
    for (int k = 0; k < n; k++)
        g_clear_pointer(&f->out[k], hn_tensor_unref);
    return TRUE;
}
