#include "check/capture.h"

struct HnCapture {
    HnCaptureOptions o;
    HnGraph *graph;
    GPtrArray *outputs; /* HnValue *: that it had */
    HnSession *session;
    guint n;
    int *out;       /* [n]: output of the model; -1 - i: its input i */
    int n_out;      /* of the model */
    HnTensor **got; /* [n_out] */
};

static void drop_outputs(HnGraph *g)
{
    for (int i = (int)g->outputs->len - 1; i >= 0; i--)
        hn_graph_remove_output(g, i);
}

/* Place of v among the outputs, where it is put if it is none. */
static int output_of(HnGraph *g, HnValue *v)
{
    guint at;
    if (!g_ptr_array_find(g->outputs, v, &at)) {
        at = g->outputs->len;
        hn_graph_add_output(g, v);
    }
    return (int)at;
}

/* Place of an input among those that are fed. */
static int place_of(const HnGraph *g, const char *name)
{
    int place = 0;
    for (guint i = 0; i < g->inputs->len; i++) {
        const HnValue *v = g->inputs->pdata[i];
        if (g_str_equal(v->name, name))
            break;
        place += !hn_value_is_weight(v);
    }
    return place;
}

HnCapture *hn_capture_new(HnModel *m, const GPtrArray *names, const HnCaptureOptions *o, GError **error)
{
    g_autoptr(HnCapture) t = g_new0(HnCapture, 1);
    g_autofree gboolean *fed = g_new0(gboolean, names->len + 1);
    t->o = *o;
    t->graph = m->graph;
    t->outputs = g_ptr_array_copy(m->graph->outputs, NULL, NULL);
    drop_outputs(m->graph);
    t->n = names->len;
    t->out = g_new0(int, names->len + 1);
    for (guint i = 0; i < names->len; i++) {
        HnValue *v = g_hash_table_lookup(m->graph->values, names->pdata[i]);
        if (v == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "the model has no value '%s'", (char *)names->pdata[i]);
            return NULL;
        }
        fed[i] = v->is_input && v->weight == NULL;
        t->out[i] = fed[i] ? 0 : output_of(m->graph, v);
    }
    const HnSessionOptions so = { .threads = o->threads, .budget = o->budget, .plan_cache = 1 };
    for (guint i = 0; i < names->len; i++)
        if (fed[i])
            t->out[i] = -1 - place_of(m->graph, names->pdata[i]);
    if (m->graph->outputs->len == 0) /* inputs alone are looked at */
        return g_steal_pointer(&t);
    t->session = hn_session_new(m, o->backend, &so, error);
    if (t->session == NULL)
        return NULL;
    t->n_out = hn_session_n_outputs(t->session);
    t->got = g_new0(HnTensor *, (gsize)t->n_out + 1);
    return g_steal_pointer(&t);
}

static void drop(HnCapture *t)
{
    for (int k = 0; t->got != NULL && k < t->n_out; k++)
        g_clear_pointer(&t->got[k], hn_tensor_unref);
}

void hn_capture_free(HnCapture *t)
{
    if (t == NULL)
        return;
    drop(t);
    hn_session_free(t->session);
    if (t->outputs != NULL) {
        drop_outputs(t->graph);
        for (guint i = 0; i < t->outputs->len; i++)
            hn_graph_add_output(t->graph, t->outputs->pdata[i]);
        g_ptr_array_unref(t->outputs);
    }
    g_free(t->got);
    g_free(t->out);
    g_free(t);
}

gboolean hn_capture_run(HnCapture *t, const HnSample *s, HnTensor **values, GError **error)
{
    drop(t);
    if (hn_progress_stop(t->o.progress, error) ||
        (t->session != NULL && !hn_session_run(t->session, s->in, t->got, error)))
        return FALSE;
    for (guint i = 0; i < t->n; i++)
        values[i] = t->out[i] >= 0 ? t->got[t->out[i]] : s->in[-1 - t->out[i]];
    return TRUE;
}

gboolean hn_capture_all(HnCapture *t, HnCaptureFn fn, gpointer data, GError **error)
{
    g_autofree HnTensor **values = g_new0(HnTensor *, t->n + 1);
    for (int64_t k = 0; k < t->o.n; k++) {
        g_autoptr(HnSample) s = hn_data_load(t->o.data, t->o.first + k, error);
        if (s == NULL || !hn_capture_run(t, s, values, error))
            return FALSE;
        for (guint i = 0; i < t->n; i++)
            if (values[i] != NULL && values[i]->n > 0 && !fn(data, k, i, values[i], error))
                return FALSE;
    }
    return TRUE;
}
