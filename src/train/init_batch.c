#include "train/init_batch.h"

#include <math.h>
#include <string.h>

#include "op/linear.h"
#include "train/open_batch.h"
#include "train/trainer.h"

#define LEAST 1e-6 /* standard deviation of a channel that says something */

typedef struct {
    const HnNode *node;
    HnLinearView view;
    HnTensor *w, *b; /* variables of the engine; b NULL: there is none of its own */
} Layer;

typedef struct {
    const HnInitBatch *o;
    HnModel *work;
    GHashTable *trained; /* HnValue * that no layer has yet */
    GArray *layers;      /* Layer */
    GArray *variables;   /* HnVariable, ended by one without a name */
    HnEngine *engine;
    HnSession *session;
} Batch;

/* What a record has a scale for that is no layer, table or operand. */
static gboolean is_norm(const HnOp *op)
{
    const gboolean kind = op->channels.kind == HN_CH_PLANES || op->channels.kind == HN_CH_ROWS;
    return kind && op->trained != 0 && (op->trained & 1) == 0 && (op->flags & HN_OP_ELEMENTWISE) == 0;
}

static gboolean take(Batch *k, HnValue *v)
{
    const HnVariable variable = { v != NULL ? v->name : NULL, NULL, NULL };
    if (v == NULL || v->weight == NULL || v->weight->dtype != HN_F32 || !g_hash_table_remove(k->trained, v))
        return FALSE;
    g_array_append_val(k->variables, variable);
    return TRUE;
}

/* FALSE: there is a norm. */
static gboolean find_layers(Batch *k)
{
    const HnGraph *g = k->work->graph;
    for (guint i = 0; i < g->nodes->len; i++) {
        const HnNode *n = g->nodes->pdata[i];
        Layer l = { .node = n };
        if (n->op != NULL && is_norm(n->op))
            return FALSE;
        if (!hn_op_is_linear(n->op) || !hn_op_linear(n, &l.view) || (l.view.groups > 1 && l.view.out != 0))
            continue;
        if (!take(k, l.view.w))
            continue;
        if (l.view.b != NULL && !take(k, l.view.b))
            l.view.b = NULL;
        g_array_append_val(k->layers, l);
    }
    if (k->layers->len > 0) /* what the last one makes is compared, and small at first */
        g_array_set_size(k->layers, k->layers->len - 1);
    return k->layers->len > 0;
}

/* Results are the layers' own. */
static gboolean open_session(Batch *k, GError **error)
{
    HnGraph *g = k->work->graph;
    while (g->outputs->len > 0)
        hn_graph_remove_output(g, (int)g->outputs->len - 1);
    for (guint i = 0; i < k->layers->len; i++)
        hn_graph_add_output(g, hn_node_out(g_array_index(k->layers, Layer, i).node, 0));
    const HnEngineOptions eo = { .budget = k->o->budget, .variables = (const HnVariable *)(void *)k->variables->data };
    const HnSessionOptions so = { .threads = k->o->threads, .budget = k->o->budget };
    g_autoptr(HnDevice) device = hn_device_new(k->o->backend, error);
    if (device == NULL || (k->engine = hn_engine_new(k->work, device, &eo, error)) == NULL)
        return FALSE;
    for (guint i = 0; i < k->layers->len; i++) {
        Layer *l = &g_array_index(k->layers, Layer, i);
        l->w = hn_engine_variable(k->engine, l->view.w->name);
        l->b = l->view.b != NULL ? hn_engine_variable(k->engine, l->view.b->name) : NULL;
    }
    return (k->session = hn_session_new_on(k->engine, &so, error)) != NULL;
}

/* Elements of channel c of t along an axis: their mean and standard deviation. */
static void moments(const HnTensor *t, int axis, int64_t c, double *mean, double *deviation)
{
    int64_t inner = 1, n = t->dims[axis];
    double sum = 0, squares = 0;
    for (int a = axis + 1; a < t->ndim; a++)
        inner *= t->dims[a];
    const int64_t each = t->n / n, outer = each / inner;
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++) {
            const double x = hn_tensor_get_f64(t, (i * n + c) * inner + j);
            sum += x;
            squares += x * x;
        }
    *mean = sum / (double)each;
    *deviation = sqrt(fmax(squares / (double)each - *mean * *mean, 0));
}

static void divide_channel(HnTensor *w, int axis, int64_t c, double by)
{
    int64_t inner = 1;
    const int64_t n = w->dims[axis];
    float *x = w->data;
    for (int a = axis + 1; a < w->ndim; a++)
        inner *= w->dims[a];
    for (int64_t i = 0; i < w->n; i++)
        if (i / inner % n == c)
            x[i] = (float)((double)x[i] / by);
}

/* The layer's results y become (y - mean) / deviation. */
static void settle_layer(Layer *l, const HnTensor *y)
{
    const int axis = l->view.y_axis < 0 ? l->view.y_axis + y->ndim : l->view.y_axis;
    const int out = l->view.out < 0 ? l->view.out + l->w->ndim : l->view.out;
    if (axis < 0 || axis >= y->ndim || out < 0 || out >= l->w->ndim || y->dims[axis] != l->w->dims[out])
        return;
    const gboolean shifts = l->b != NULL && l->b->n == y->dims[axis] && l->view.beta != 0;
    for (int64_t c = 0; c < y->dims[axis]; c++) {
        double mean, deviation;
        moments(y, axis, c, &mean, &deviation);
        if (!(deviation > LEAST))
            continue;
        divide_channel(l->w, out, c, deviation);
        if (shifts)
            hn_tensor_set_f64(l->b, c, (hn_tensor_get_f64(l->b, c) - mean / l->view.beta) / deviation);
    }
}

/* One after the other: what a layer reads depends on those before it. */
static gboolean settle(Batch *k, GError **error)
{
    const guint n = k->layers->len;
    g_autofree HnTensor **out = g_new0(HnTensor *, n + 1);
    for (guint i = 0; i < n; i++) {
        if (!hn_session_run(k->session, k->o->in, out, error))
            return FALSE;
        settle_layer(&g_array_index(k->layers, Layer, i), out[i]);
        hn_engine_wrote(k->engine);
        for (guint j = 0; j < n; j++)
            g_clear_pointer(&out[j], hn_tensor_unref);
    }
    return TRUE;
}

static gboolean put(const Batch *k, HnModel *m, GError **error)
{
    for (guint i = 0; i < k->layers->len; i++) {
        const Layer *l = &g_array_index(k->layers, Layer, i);
        if (!hn_trainer_put(m, l->view.w->name, l->w, error) ||
            (l->b != NULL && !hn_trainer_put(m, l->view.b->name, l->b, error)))
            return FALSE;
    }
    return TRUE;
}

static gboolean run(Batch *k, HnModel *m, GError **error)
{
    if (!hn_model_prepare(k->work, error))
        return FALSE;
    g_autoptr(GPtrArray) list = hn_trainable_find(k->work, &k->o->trainable, error);
    if (list == NULL)
        return FALSE;
    for (guint i = 0; i < list->len; i++)
        g_hash_table_add(k->trained, list->pdata[i]);
    return !find_layers(k) || (open_session(k, error) && settle(k, error) && put(k, m, error));
}

gboolean hn_init_by_batch(HnModel *m, HnModel *work, const HnInitBatch *o, GError **error)
{
    work = hn_train_open_batch(work, NULL, o->budget);
    Batch k = { .o = o, .work = work, .trained = g_hash_table_new(NULL, NULL) };
    k.layers = g_array_new(FALSE, TRUE, sizeof(Layer));
    k.variables = g_array_new(TRUE, TRUE, sizeof(HnVariable));
    const gboolean ok = run(&k, m, error);
    hn_session_free(k.session);
    hn_engine_unref(k.engine);
    hn_model_free(work);
    g_array_unref(k.layers);
    g_array_unref(k.variables);
    g_hash_table_unref(k.trained);
    return ok;
}
