/* hone-prune --score taylor: gradients of the model's own loss, sample by sample. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "hone_prune.h"
#include "ir/copy.h"
#include "prune/taylor.h"
#include "train/targets.h"
#include "train/train_data.h"

#define MOST_SAMPLES 256

/* A graph of losses and gradients for one sample. The loss is that of labels, where there are some for the first
 * output; else of what the model makes and the same with noise as large as it is. */
typedef struct {
    const Prune *q;
    const HnPruneMap *map;
    gboolean labels;
    GPtrArray *objectives;
    HnStepGraph *graph;
    HnDevice *device;
    HnEngine *engine;
    HnSession *session, *plain;
    GPtrArray *in, *out; /* of the session */
    HnTensor **gradients;
    HnRng rng;
} Taylor;

static void taylor_clear(Taylor *t)
{
    hn_session_free(t->plain);
    hn_session_free(t->session);
    if (t->engine != NULL)
        hn_engine_unref(t->engine);
    hn_device_unref(t->device);
    hn_step_graph_free(t->graph);
    g_clear_pointer(&t->objectives, g_ptr_array_unref);
    g_ptr_array_unref(t->in);
    g_ptr_array_unref(t->out);
    g_free(t->gradients);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Taylor, taylor_clear)

static gboolean make_graph(Taylor *t, const HnSample *s, GError **error)
{
    g_autoptr(GPtrArray) types = hn_train_types(s, error);
    t->labels = s->label != NULL && hn_dtype_in(s->label->dtype, HN_T_INTS);
    t->objectives = hn_objectives_parse(t->labels ? "ce" : "mse", error);
    if (types == NULL || t->objectives == NULL)
        return FALSE;
    const HnStepGraphOptions o = { .objectives = t->objectives,
                                   .keep_statistics = TRUE,
                                   .in = (HnType *const *)types->pdata };
    t->graph = hn_step_graph_new(hn_model_copy(t->map->model), &o, error);
    return t->graph != NULL;
}

static gboolean open_sessions(Taylor *t, GError **error)
{
    const Prune *q = t->q;
    const HnEngineOptions eo = { .budget = q->ctx->budget,
                                 .variables = (const HnVariable *)(void *)t->graph->variables->data };
    const HnSessionOptions so = { .threads = q->ctx->common.threads, .budget = q->ctx->budget };
    return (t->device = hn_device_new(q->backend, error)) != NULL &&
           (t->engine = hn_engine_new(t->graph->model, t->device, &eo, error)) != NULL &&
           (t->session = hn_session_new_on(t->engine, &so, error)) != NULL &&
           (t->plain = hn_session_new(t->map->model, q->backend, &so, error)) != NULL;
}

/* The result plus noise of its own size. */
static HnTensor *with_noise(Taylor *t, const HnTensor *y, double *squares, GError **error)
{
    HnTensor *target = hn_tensor_copy(y, t->q->ctx->budget, error);
    *squares = 0;
    for (int64_t i = 0; target != NULL && i < y->n; i++)
        *squares += pow(hn_tensor_get_f64(y, i), 2) / (double)y->n;
    for (int64_t i = 0; target != NULL && i < y->n; i++)
        hn_tensor_set_f64(target, i, hn_tensor_get_f64(y, i) + sqrt(*squares) * hn_rng_normal(&t->rng));
    return target;
}

static HnTensor *target_of(Taylor *t, const HnSample *s, double *squares, GError **error)
{
    *squares = 1;
    if (t->labels)
        return hn_target_given(t->objectives->pdata[0], t->q->data, s, t->graph->compared[0], t->q->ctx->budget, error);
    g_autoptr(GPtrArray) out = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_ptr_array_set_size(out, hn_session_n_outputs(t->plain));
    return hn_session_run(t->plain, s->in, (HnTensor **)out->pdata, error)
               ? with_noise(t, out->pdata[0], squares, error)
               : NULL;
}

/* t->out: the loss, and gradients of what is trained. */
static gboolean run_sample(Taylor *t, const HnSample *s, GError **error)
{
    const int64_t state[2] = { (int64_t)t->q->ctx->common.seed, 0 };
    double squares;
    HnTensor *target = target_of(t, s, &squares, error);
    if (target == NULL)
        return FALSE;
    g_ptr_array_set_size(t->in, 0);
    g_ptr_array_set_size(t->out, 0);
    for (int i = 0; i < s->n; i++)
        g_ptr_array_add(t->in, hn_tensor_ref(s->in[i]));
    g_ptr_array_add(t->in, hn_tensor_ints(state, 2));
    g_ptr_array_add(t->in, target);
    g_ptr_array_add(t->in, hn_tensor_scalar_f32(squares > 0 ? (float)(1 / squares) : 0));
    g_ptr_array_set_size(t->out, hn_session_n_outputs(t->session));
    return hn_session_run(t->session, (HnTensor *const *)t->in->pdata, (HnTensor **)t->out->pdata, error);
}

/* By layer: out of t->out. */
static void find_gradients(Taylor *t)
{
    int at = t->graph->gradient_out;
    for (guint k = 0; k < t->graph->trained->len; k++) {
        const HnTrained *w = &g_array_index(t->graph->trained, HnTrained, k);
        if (w->gradient == NULL)
            continue;
        HnTensor *gradient = t->out->pdata[at++];
        for (guint i = 0; i < t->map->layers->len; i++) {
            const HnPruneLayer *l = t->map->layers->pdata[i];
            if (strcmp(hn_node_in(l->node, l->w)->name, w->origin) == 0)
                t->gradients[i] = gradient;
        }
    }
}

static gboolean sum_up(Taylor *t, double *score, GError **error)
{
    const int64_t n = MIN(t->q->calib, MOST_SAMPLES);
    for (int64_t i = 0; i < n; i++) {
        hn_progress_tell(&t->q->ctx->progress, "gradients", (guint64)i, (guint64)n);
        g_autoptr(HnSample) s = hn_data_load(t->q->data, i, error);
        if (s == NULL || hn_progress_stop(&t->q->ctx->progress, error) || !run_sample(t, s, error))
            return FALSE;
        find_gradients(t);
        hn_prune_taylor_add(t->map, t->gradients, score);
    }
    return TRUE;
}

static gboolean find_scores(const Prune *q, const HnPruneMap *map, double *score, GError **error)
{
    g_auto(Taylor) t = { .q = q,
                         .map = map,
                         .in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref),
                         .out = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref),
                         .gradients = g_new0(HnTensor *, map->layers->len + 1u),
                         .rng = hn_rng(q->ctx->common.seed) };
    g_autoptr(HnSample) first = hn_data_load(q->data, 0, error);
    return first != NULL && make_graph(&t, first, error) && open_sessions(&t, error) && sum_up(&t, score, error);
}

gboolean prune_taylor(gpointer data, const HnPruneMap *map, double *score, GError **error)
{
    Prune *q = data;
    const gsize bytes = ((gsize)hn_channels_count(map->channels) + 1) * sizeof *score;
    if (map != q->map)
        return find_scores(q, map, score, error);
    if (q->taylor == NULL) {
        g_autofree double *found = g_malloc0(bytes);
        if (!find_scores(q, map, found, error))
            return FALSE;
        q->taylor = g_steal_pointer(&found);
    }
    memcpy(score, q->taylor, bytes);
    return TRUE;
}
