#include "prune/choose.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "op/linear.h"
#include "op/ops.h"

#define EXCHANGE 6  /* products of an exchange, in those of a removal's size */
#define CHEAP 4e9   /* of a sweep of them */
#define SWEEPS 4    /* at most */
#define BETTER 1e-6 /* of a loss, at least: what rounding does not do */

static const char *const names[HN_PRUNE_SCORES] = {
    [HN_PRUNE_OBS] = "obs",     [HN_PRUNE_L1] = "l1",         [HN_PRUNE_L2] = "l2",         [HN_PRUNE_BN] = "bn-scale",
    [HN_PRUNE_WANDA] = "wanda", [HN_PRUNE_TAYLOR] = "taylor", [HN_PRUNE_RANDOM] = "random",
};

const char *hn_prune_score_name(HnPruneScore s)
{
    return names[s];
}

gboolean hn_prune_score_parse(const char *text, HnPruneScore *s)
{
    int k = 0;
    while (k < HN_PRUNE_SCORES && strcmp(names[k], text) != 0)
        k++;
    *s = (HnPruneScore)MIN(k, HN_PRUNE_SCORES - 1);
    return k < HN_PRUNE_SCORES;
}

/* --- scores of weights -------------------------------------------------------------------------------------------- */

static const HnNode *node_of(const HnPruneMap *map, const HnChannelMember *f)
{
    return hn_graph_find(map->model->graph, f->node)->producer;
}

/* Adds fn of the elements of t to the channel that each belongs to, along an axis with these classes. */
static void add_along(const HnPruneMap *map, int c, const HnTensor *t, int axis, const int *classes, gboolean squares,
                      double *score)
{
    int64_t inner = 1;
    for (int k = axis + 1; k < t->ndim; k++)
        inner *= t->dims[k];
    for (int64_t e = 0; e < t->n; e++) {
        const int k = classes[e / inner % t->dims[axis]];
        const double w = hn_tensor_get_f64(t, e);
        if (map->class_of[k] == c && isfinite(w))
            score[map->place_of[k]] += squares ? w * w : fabs(w);
    }
}

static gboolean is_float(const HnTensor *t)
{
    return t != NULL && (t->dtype == HN_F32 || t->dtype == HN_F64 || hn_dtype_is_half(t->dtype));
}

/* What n makes of a weight of integers and its scales; NULL: n has other inputs, too. */
static HnTensor *as_floats(const HnNode *n, const HnTensor *weight)
{
    g_autofree HnTensor **in = g_new0(HnTensor *, n->in->len + 1);
    HnTensor *y = NULL;
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = hn_node_in(n, (int)i);
        if (v != NULL && (v->is_input || v->weight == NULL))
            return NULL;
        in[i] = v != NULL ? v->weight : NULL;
    }
    HnEval e = { .node = n, .params = n->params, .n_in = (int)n->in->len, .n_out = 1, .in = in, .out = &y };
    const gboolean ok = n->out->len == 1 && hn_op_eval(&e, NULL);
    if (!ok || !is_float(y) || y->n != weight->n)
        g_clear_pointer(&y, hn_tensor_unref);
    return y;
}

static void add_member(const HnPruneMap *map, int c, const HnChannelMember *f, HnPruneScore s, double *score)
{
    const HnNode *n = node_of(map, f);
    HnTensor *weight = hn_node_in(n, f->input)->weight;
    const gboolean linear = hn_op_is_linear(n->op), norm = n->op == &hn_op_batchnormalization;
    g_autoptr(HnTensor) t = is_float(weight) ? hn_tensor_ref(weight) : as_floats(n, weight);
    if (t == NULL)
        return;
    if (s == HN_PRUNE_BN) {
        if (f->axis >= 0 && (norm ? f->input == 1 : linear && t->ndim > 1))
            add_along(map, c, t, f->axis, f->out, !norm, score);
        return;
    }
    if (f->axis >= 0 && s != HN_PRUNE_WANDA && s != HN_PRUNE_OBS)
        add_along(map, c, t, f->axis, f->out, s == HN_PRUNE_L2, score);
    if (f->in_axis >= 0)
        add_along(map, c, t, f->in_axis, f->in, s != HN_PRUNE_L1, score);
}

static void make_parts(double *score, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += score[i];
    for (int i = 0; i < n && sum > 0; i++)
        score[i] /= sum;
}

void hn_prune_weight_scores(const HnPruneMap *map, int c, HnPruneScore s, uint64_t seed, double *score)
{
    const HnPruneClass *k = map->classes->pdata[c];
    const GPtrArray *members = hn_channels_members(map->channels);
    memset(score, 0, (gsize)k->n * sizeof *score);
    if (s == HN_PRUNE_RANDOM) {
        const HnRng all = hn_rng(seed);
        HnRng rng = hn_rng_split(&all, (uint64_t)c);
        for (int i = 0; i < k->n; i++)
            score[i] = hn_rng_double(&rng);
        return;
    }
    if (s == HN_PRUNE_OBS || s == HN_PRUNE_WANDA) {
        for (guint i = 0; i < k->others->len && k->layers->len > 0; i++)
            add_member(map, c, members->pdata[g_array_index(k->others, int, i)], s, score);
        if (k->layers->len == 0) /* nobody says what is lost: who makes it counts, too */
            hn_prune_weight_scores(map, c, HN_PRUNE_L2, seed, score);
        make_parts(score, k->n);
        return;
    }
    for (guint i = 0; i < members->len; i++)
        add_member(map, c, members->pdata[i], s, score);
}

/* --- by the loss of readers --------------------------------------------------------------------------------------- */

/* A layer that reads the class: the inputs that each of its channels is, in each group. */
typedef struct {
    HnObs *obs;
    int64_t groups;
    GArray **at; /* [n, groups] of int64_t */
} Reader;

static void reader_clear(gpointer data)
{
    Reader *r = data;
    for (GArray **a = r->at; *a != NULL; a++)
        g_array_unref(*a);
    g_free(r->at);
}

static GArray *readers_of(const HnPruneMap *map, int c, HnObs *const *obs)
{
    const HnPruneClass *k = map->classes->pdata[c];
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Reader));
    g_array_set_clear_func(all, reader_clear);
    for (guint i = 0; i < k->layers->len; i++) {
        const int at = g_array_index(k->layers, int, i);
        const HnPruneLayer *l = map->layers->pdata[at];
        if (obs == NULL || obs[at] == NULL)
            continue;
        Reader r = { obs[at], l->rows.groups, g_new0(GArray *, (gsize)(k->n * l->rows.groups) + 1) };
        for (int p = 0; p < k->n; p++)
            for (int64_t g = 0; g < r.groups; g++) {
                GArray *inputs = g_array_new(FALSE, FALSE, sizeof(int64_t));
                hn_prune_inputs(map, l, c, p, g, inputs);
                r.at[p * r.groups + g] = inputs;
            }
        g_array_append_val(all, r);
    }
    return all;
}

static double loss_of(const GArray *readers, int place)
{
    double sum = 0;
    for (guint i = 0; i < readers->len; i++) {
        const Reader *r = &g_array_index(readers, Reader, i);
        double loss = 0;
        for (int64_t g = 0; g < r->groups; g++) {
            const GArray *at = r->at[place * r->groups + g];
            if (at->len > 0)
                loss += hn_obs_cost(r->obs, g, (const int64_t *)at->data, at->len);
        }
        sum += r->obs->energy > 0 ? loss / r->obs->energy : 0;
    }
    return sum;
}

/* What is there of it. */
static void remove_place(const GArray *readers, int place)
{
    for (guint i = 0; i < readers->len; i++) {
        const Reader *r = &g_array_index(readers, Reader, i);
        for (int64_t g = 0; g < r->groups; g++) {
            const GArray *at = r->at[place * r->groups + g];
            if (at->len > 0 && !r->obs->gone[g * r->obs->k + g_array_index(at, int64_t, 0)])
                hn_obs_remove(r->obs, g, (const int64_t *)at->data, at->len);
        }
    }
}

/* The channel with the least loss; -1: all have gone. */
static int least_place(const GArray *readers, const guint8 *gone, const double *others, int n, double *least)
{
    int best = -1;
    *least = INFINITY;
    for (int p = 0; p < n; p++) {
        const double now = gone[p] ? INFINITY : loss_of(readers, p) + others[p];
        if (now < *least || (best < 0 && !gone[p])) {
            *least = now;
            best = p;
        }
    }
    return best;
}

gboolean hn_prune_choose(const HnPruneMap *map, int c, HnObs *const *obs, const double *others, int most, int *order,
                         double *loss, const HnProgress *progress, GError **error)
{
    const HnPruneClass *k = map->classes->pdata[c];
    g_autoptr(GArray) readers = readers_of(map, c, obs);
    g_autofree guint8 *gone = g_new0(guint8, (gsize)k->n);
    double total = 0;
    for (int i = 0; i < most; i++) {
        double least;
        if (hn_progress_stop(progress, error))
            return FALSE;
        const int best = least_place(readers, gone, others, k->n, &least);
        if (best < 0)
            break;
        gone[best] = 1;
        order[i] = best;
        total += isfinite(least) ? least : 0;
        if (loss != NULL)
            loss[i] = total;
        remove_place(readers, best);
    }
    return TRUE;
}

/* FALSE: rounding is in the way of some inputs; all stay away. */
static gboolean restore_place(const GArray *readers, int place)
{
    gboolean ok = TRUE;
    for (guint i = 0; i < readers->len && ok; i++) {
        const Reader *r = &g_array_index(readers, Reader, i);
        for (int64_t g = 0; g < r->groups && ok; g++) {
            const GArray *at = r->at[place * r->groups + g];
            ok = at->len == 0 || hn_obs_restore(r->obs, g, (const int64_t *)at->data, at->len);
        }
    }
    if (!ok)
        remove_place(readers, place);
    return ok;
}

/* Products of an exchange, about. */
static double work_of(const GArray *readers)
{
    double sum = 0;
    for (guint i = 0; i < readers->len; i++) {
        const Reader *r = &g_array_index(readers, Reader, i);
        for (int64_t g = 0; g < r->groups; g++)
            sum += EXCHANGE * (double)r->at[g]->len * (double)r->obs->k * (double)(r->obs->k + r->obs->outs);
    }
    return sum;
}

gboolean hn_prune_exchange(const HnPruneMap *map, int c, HnObs *const *obs, const double *others, int n, int *order,
                           double *loss, const HnProgress *progress, GError **error)
{
    const HnPruneClass *k = map->classes->pdata[c];
    g_autoptr(GArray) readers = readers_of(map, c, obs);
    g_autofree guint8 *gone = g_new0(guint8, (gsize)k->n);
    gboolean any = readers->len > 0 && n < k->n && (double)n * work_of(readers) <= CHEAP;
    for (int i = 0; i < n; i++)
        gone[order[i]] = 1;
    for (int sweep = 0; sweep < SWEEPS && any; sweep++) {
        any = FALSE;
        for (int i = 0; i < n; i++) {
            const int back = order[i];
            double least;
            if (hn_progress_stop(progress, error))
                return FALSE;
            if (!restore_place(readers, back))
                continue;
            gone[back] = 0;
            const double own = loss_of(readers, back) + others[back];
            int best = least_place(readers, gone, others, k->n, &least);
            if (!(least < own * (1 - BETTER)))
                best = back;
            else
                *loss += least - own;
            any = any || best != back;
            gone[best] = 1;
            order[i] = best;
            remove_place(readers, best);
        }
    }
    return TRUE;
}

void hn_prune_take(const HnPruneMap *map, int c, HnObs *const *obs, const int *order, int n)
{
    g_autoptr(GArray) readers = readers_of(map, c, obs);
    for (int i = 0; i < n; i++)
        remove_place(readers, order[i]);
}
