#include "train/judge.h"

#include <math.h>

#define KEPT_BYTES ((gsize)64 << 20) /* of targets that a teacher made */
#define SURE 2.0                     /* standard errors by which parts differ for that to decide */

typedef struct {
    HnModel *model; /* one loss node; NULL: not yet */
    HnSession *session;
    double sum; /* over all batches */
    int64_t count;
} Loss;

struct HnJudge {
    HnJudgeOptions o;
    guint n;         /* objectives */
    Loss *losses;    /* [n] */
    GPtrArray *kept; /* by batch: HnTensor *[n]; NULL where targets are made each time */
    gsize kept_bytes;
};

static void free_targets(HnJudge *j, HnTensor **t)
{
    hn_targets_clear(j->o.targets, t);
    g_free(t);
}

static void forget(HnJudge *j)
{
    for (guint i = 0; j->kept != NULL && i < j->kept->len; i++)
        free_targets(j, j->kept->pdata[i]);
    g_clear_pointer(&j->kept, g_ptr_array_unref);
}

HnJudge *hn_judge_new(const HnJudgeOptions *o)
{
    HnJudge *j = g_new0(HnJudge, 1);
    j->o = *o;
    j->n = o->targets->objectives->len;
    j->losses = g_new0(Loss, j->n + 1);
    j->kept = o->targets->teacher != NULL ? g_ptr_array_new() : NULL;
    return j;
}

void hn_judge_free(HnJudge *j)
{
    if (j == NULL)
        return;
    forget(j);
    for (guint i = 0; i < j->n; i++) {
        hn_session_free(j->losses[i].session);
        hn_model_free(j->losses[i].model);
    }
    g_free(j->losses);
    g_free(j);
}

gboolean hn_parts_differ(double x, double y, int64_t n)
{
    const double p = (x + y) / 2;
    return fabs(x - y) > SURE * sqrt(2 * p * (1 - p) / (double)MAX(n, 1));
}

/* Agreement differs by more than chance makes it, or there is no loss that tells more. */
static gboolean differs(const HnJudgement *a, const HnJudgement *b)
{
    if (!isfinite(a->loss) || !isfinite(b->loss))
        return a->agreement != b->agreement;
    return hn_parts_differ(a->agreement, b->agreement, MIN(a->samples, b->samples));
}

gboolean hn_judgement_better(const HnJudgement *a, const HnJudgement *b)
{
    if (isfinite(a->top1) && isfinite(b->top1) && a->top1 != b->top1)
        return a->top1 > b->top1;
    if (isnan(a->top1) && isfinite(a->agreement) && isfinite(b->agreement) && differs(a, b))
        return a->agreement > b->agreement;
    return a->loss < b->loss || (isfinite(a->loss) && !isfinite(b->loss));
}

/* --- one loss ----------------------------------------------------------------------------------------------------- */

static HnValue *add_input(HnGraph *g, const char *stem, const HnTensor *like)
{
    HnDim dims[HN_MAX_RANK];
    for (int a = 0; a < like->ndim; a++)
        dims[a] = hn_dim_unknown();
    g_autoptr(HnType) type = hn_type_tensor(like->dtype, like->ndim, dims);
    HnValue *v = hn_graph_new_value(g, stem);
    hn_value_set_type(v, type);
    hn_graph_add_input(g, v);
    return v;
}

/* A model that is the loss alone. */
static gboolean open_loss(const HnJudge *j, guint i, HnTensor *value, HnTensor *target, GError **error)
{
    const HnObjective *o = j->o.targets->objectives->pdata[i];
    Loss *l = &j->losses[i];
    l->model = hn_model_new();
    hn_model_set_opset(l->model, "", HN_OPSET_MAX);
    hn_model_set_opset(l->model, HN_DOMAIN_INTERNAL, 1);
    HnGraph *g = l->model->graph;
    HnValue *x = add_input(g, "value", value);
    HnNode *n = hn_objective_node(o, g, x, add_input(g, "target", target), value->dtype, error);
    if (n == NULL)
        return FALSE;
    hn_graph_add_output(g, hn_node_out(n, 0));
    const HnSessionOptions so = { .threads = j->o.forward.threads, .budget = j->o.forward.budget, .plan_cache = 2 };
    l->session = hn_session_new(l->model, j->o.forward.backend, &so, error);
    return l->session != NULL;
}

static gboolean add_loss(const HnJudge *j, guint i, HnTensor *value, HnTensor *target, const HnType *type,
                         GError **error)
{
    Loss *l = &j->losses[i];
    HnTensor *in[] = { value, target }, *out[1] = { NULL };
    if ((l->session == NULL && !open_loss(j, i, value, target, error)) || !hn_session_run(l->session, in, out, error))
        return FALSE;
    l->sum += hn_tensor_get_f64(out[0], 0);
    l->count += hn_objective_count(j->o.targets->objectives->pdata[i], target, type);
    hn_tensor_unref(out[0]);
    return TRUE;
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

/* Targets of batch k; *own: they are the caller's. */
static HnTensor **targets_of(HnJudge *j, guint k, const HnSample *s, HnType *const *types, gboolean *own,
                             GError **error)
{
    *own = j->kept == NULL;
    if (j->kept != NULL && k < j->kept->len)
        return j->kept->pdata[k];
    HnTensor **t = g_new0(HnTensor *, j->n + 1);
    if (!hn_targets_make(j->o.targets, j->o.data, s, types, t, error)) {
        g_free(t);
        return NULL;
    }
    if (j->kept == NULL)
        return t;
    /* a session's results are the next run's */
    for (guint i = 0; i < j->n; i++) {
        HnTensor *copy = hn_tensor_copy(t[i], NULL, error);
        hn_tensor_unref(t[i]);
        t[i] = copy;
        j->kept_bytes += copy != NULL ? copy->bytes : 0;
    }
    g_ptr_array_add(j->kept, t);
    if (j->kept_bytes > KEPT_BYTES) {
        g_ptr_array_set_size(j->kept, (gint)j->kept->len - 1);
        forget(j);
        *own = TRUE;
    }
    return t;
}

typedef struct {
    int64_t right, of;      /* labels */
    int64_t agree, of_rows; /* rows, with the teacher */
} Hits;

static void count_hits(const HnJudge *j, const HnSample *s, HnTensor *const *values, HnTensor *const *targets,
                       Hits *hits)
{
    int64_t n;
    for (guint i = 0; i < j->n; i++) {
        hits->agree += hn_objective_agrees(j->o.targets->objectives->pdata[i], values[i], targets[i], &n);
        hits->of_rows += n;
    }
    if (j->o.blind || s->label == NULL || !hn_dtype_in(s->label->dtype, HN_T_INTS))
        return;
    hits->right += hn_objective_hits(j->o.targets->objectives->pdata[0], values[0], s->label, &n);
    hits->of += n;
}

/* Losses of a batch, and what is right. */
static gboolean judge_batch(HnJudge *j, guint k, const HnSample *s, HnTensor **values, Hits *hits, GError **error)
{
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    gboolean own, ok = TRUE;
    for (guint i = 0; i < j->n; i++)
        g_ptr_array_add(types, hn_type_fixed(values[i]->dtype, values[i]->ndim, values[i]->dims));
    HnTensor **targets = targets_of(j, k, s, (HnType *const *)types->pdata, &own, error);
    if (targets == NULL)
        return FALSE;
    for (guint i = 0; ok && i < j->n; i++)
        ok = add_loss(j, i, values[i], targets[i], types->pdata[i], error);
    if (ok)
        count_hits(j, s, values, targets, hits);
    if (own)
        free_targets(j, targets);
    return ok;
}

static gboolean judge_all(HnJudge *j, HnForward *f, HnDataIter *it, HnJudgement *made, GError **error)
{
    g_autofree HnTensor **values = g_new0(HnTensor *, j->n + 1);
    Hits hits = { 0 };
    for (guint k = 0;; k++) {
        GError *failure = NULL;
        g_autoptr(HnSample) s = hn_data_iter_next(it, &failure);
        if (s == NULL && failure == NULL)
            break;
        if (s == NULL || !hn_batch_finite(j->o.data, s, &failure) || hn_progress_stop(j->o.progress, &failure) ||
            !hn_forward_run(f, s->in, values, &failure)) {
            g_propagate_error(error, failure);
            return FALSE;
        }
        const gboolean ok = judge_batch(j, k, s, values, &hits, error);
        hn_targets_clear(j->o.targets, values);
        if (!ok)
            return FALSE;
        made->samples += s->count;
    }
    made->top1 = hits.of > 0 ? (double)hits.right / (double)hits.of : NAN;
    made->agreement = hits.of_rows > 0 ? (double)hits.agree / (double)hits.of_rows : NAN;
    return TRUE;
}

gboolean hn_judge_run(HnJudge *j, HnModel *m, HnJudgement *made, GError **error)
{
    return hn_judge_run_like(j, m, j->o.forward.like, made, error);
}

gboolean hn_judge_run_like(HnJudge *j, HnModel *m, const HnGraph *like, HnJudgement *made, GError **error)
{
    HnForwardOptions forward = j->o.forward;
    forward.like = like;
    *made = (HnJudgement){ 0, NAN, NAN, 0 };
    g_autoptr(HnForward) f = hn_forward_new(m, j->o.targets->objectives, &forward, error);
    if (f == NULL)
        return FALSE;
    for (guint i = 0; i < j->n; i++)
        j->losses[i].sum = (double)(j->losses[i].count = 0);
    const HnDataIterOptions io = { .batch = j->o.batch, .threads = 1 };
    g_autoptr(HnDataIter) it = hn_data_iter_new(j->o.data, &io);
    if (!judge_all(j, f, it, made, error))
        return FALSE;
    for (guint i = 0; i < j->n; i++) {
        const HnObjective *o = j->o.targets->objectives->pdata[i];
        made->loss += o->weight * j->losses[i].sum / (double)MAX(j->losses[i].count, 1);
    }
    return TRUE;
}
