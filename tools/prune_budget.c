/* hone-prune: how many channels of each class stay, so that the model that is left meets the budget. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "hone_prune.h"
#include "prune/count.h"
#include "prune/meet.h"
#include "tune/timing.h"

#define NEAR 0.98      /* of the budget is near enough: operations and bytes */
#define USED 0.9       /* of it, at least, where widths are few */
#define LEAST_WIDTHS 2 /* HnPruneSteps.widths, where they fill vectors */
#define TIME_NEAR 0.02 /* the same of times, on both sides */
#define PROFILE_SECONDS 1.0
#define RACE_SECONDS 1.5 /* for one goal */
#define LONGER 4         /* times that, where it was too noisy */
#define HALF 0.5         /* of the channels: where a layer's time is measured a second time */

#define CHEAP 2e11     /* operations: several choices of widths are tried */
#define MEAN_THROUGH 2 /* the one where there is no time for others */

static const double throughs[] = { 3, 1, 0.3 }; /* HnPruneLoss.through */

/* Widths that are chosen by vectors (hn_prune_costs_by_vectors()) run faster with as many operations: they are taken
 * where errors are small, and this part of the results' squares larger at most. */
#define SMALL_ERROR 16.0 /* dB */
#define VECTORS_WORTH 1e-3

/* --- what a model costs ------------------------------------------------------------------------------------------- */

gboolean prune_count_flops(const Prune *q, HnModel *m, double *flops, GError **error)
{
    return hn_prune_flops(m, q->sample->in, q->ctx->budget, NULL, flops, error);
}

static HnModel *narrow(const Prune *q, const int *keep, GError **error)
{
    return hn_prune_narrow(q->map, &q->o, keep, error);
}

/* --- goals: models for them are made, and cost what they cost ----------------------------------------------------- */

typedef struct {
    gboolean (*layers)(Prune *q, HnPruneCosts *costs, GError **error);
    gboolean (*measure)(const Prune *q, HnModel *m, HnPruneTry *t, GError **error); /* NULL: times */
    const char *what;
} Kind;

typedef struct {
    Prune *q;
    const Kind *kind;
    const HnPruneMeet *meet;
    const HnPruneCosts *costs;
    HnPruneLoss loss;
    HnPruneSteps steps;
    guint round;
    int *keep;      /* of the last goal */
    HnModel *model; /* the same */
    HnEffect effect;
    gboolean new_effect; /* the journal does not know it */
} Meet;

static gboolean measure_flops(const Prune *q, HnModel *m, HnPruneTry *t, GError **error)
{
    const gboolean ok = prune_count_flops(q, m, &t->cost, error);
    t->lo = t->hi = t->cost;
    return ok;
}

static gboolean measure_size(const Prune *q, HnModel *m, HnPruneTry *t, GError **error)
{
    gsize bytes;
    if (!hn_onnx_size(m, q->ctx->budget, &bytes, error))
        return FALSE;
    t->cost = t->lo = t->hi = (double)bytes;
    return TRUE;
}

static void take_effect(HnPruneTry *t, const HnEffect *e, double unit)
{
    t->cost = unit * e->effect;
    t->lo = unit * e->sure_lo;
    t->hi = unit * e->sure_hi;
}

/* As a part of the dense model's, or in seconds. */
static gboolean measure_time(Meet *f, HnPruneTry *t, guint patience, GError **error)
{
    const Prune *q = f->q;
    g_autofree char *dense = prune_hash(q, NULL, "dense"), *hash = prune_hash(q, f->keep, "widths");
    HnSpeedup s;
    const HnSpeedupOptions o = { .threads = q->ctx->common.threads,
                                 .seconds = patience > 0 ? LONGER * RACE_SECONDS : RACE_SECONDS,
                                 .precision = TIME_NEAR,
                                 .budget = q->ctx->budget,
                                 .progress = &q->ctx->progress };
    if (!q->absolute && hn_journal_race(q->journal, dense, hash, &f->effect)) {
        take_effect(t, &f->effect, 1);
        if (f->meet->any || hn_prune_tells(f->meet, t))
            return TRUE;
    }
    if (!hn_measure_speedup(q->dense, f->model, q->backend, q->sample->in, &o, &s, error))
        return FALSE;
    f->effect = s.effect;
    f->new_effect = TRUE;
    take_effect(t, &s.effect, q->absolute ? s.old_ms * 1e-3 : 1);
    return !hn_progress_stop(&q->ctx->progress, error);
}

/* --- what it is made of ------------------------------------------------------------------------------------------- */

static gboolean flops_of_layers(Prune *q, HnPruneCosts *costs, GError **error)
{
    return hn_prune_flops_of_layers(q->base, q->sample->in, q->ctx->budget, costs, error);
}

static gboolean bytes_of_layers(Prune *q, HnPruneCosts *costs, GError **error)
{
    HnPruneTry all;
    if (!measure_size(q, q->base, &all, error))
        return FALSE;
    costs->rest = all.cost;
    for (guint i = 0; i < costs->map->layers->len; i++) {
        const HnPruneLayer *l = costs->map->layers->pdata[i];
        costs->layer[i] = (double)l->rows.w->bytes;
        costs->rest -= costs->layer[i];
    }
    for (guint i = 0; i < costs->others->len; i++) {
        HnPruneOther *o = costs->others->pdata[i];
        o->cost = hn_prune_other_bytes(costs, o);
        costs->rest -= o->cost;
    }
    return TRUE;
}

/* They are the journal's. keep: the widths of m; NULL: all. */
static const HnNodeTimes *times_of(const Prune *q, HnModel *m, const int *keep, GError **error)
{
    g_autofree char *hash = prune_hash(q, keep, "widths");
    const HnNodeTimes *known = hn_journal_times(q->journal, hash);
    if (known != NULL)
        return known;
    const HnTimingOptions o = { .backend = q->backend,
                                .threads = q->ctx->common.threads,
                                .in = q->sample->in,
                                .seconds = PROFILE_SECONDS,
                                .budget = q->ctx->budget,
                                .progress = &q->ctx->progress };
    HnNodeTimes *now = hn_node_times_measure(m, &o, error);
    return now != NULL && hn_journal_add_times(q->journal, hash, now, error) ? now : NULL;
}

typedef struct {
    const char *name; /* of a node's first result */
    double left;      /* of its products */
} Measured;

/* Time of all of it, and the part that does not fall with its channels: b = a * (fixed + (1 - fixed) * left). */
static void take_times(const Measured *m, const HnNodeTimes *whole, const HnNodeTimes *less, double *ms, double *fixed)
{
    const HnNodeTime *a = hn_node_time(whole, m->name), *b = hn_node_time(less, m->name);
    *ms = a != NULL ? a->ms : 0;
    if (a != NULL && b != NULL && a->ms > 0 && m->left < 1)
        *fixed = CLAMP((b->ms / a->ms - m->left) / (1 - m->left), 0, 1);
}

/* In ms: the dense model's, and those at half of the channels, which tell what does not fall with them. */
static gboolean find_ms(Prune *q, GError **error)
{
    if (q->ms != NULL)
        return TRUE;
    g_autofree int *half = g_new(int, q->map->classes->len + 1u);
    const HnNodeTimes *whole = times_of(q, q->base, NULL, error);
    if (whole == NULL)
        return FALSE;
    hn_prune_uniform(q->map, HALF, q->vector, half);
    g_autoptr(HnModel) m = narrow(q, half, error);
    const HnNodeTimes *less = m != NULL ? times_of(q, m, half, error) : NULL;
    if (less == NULL)
        return FALSE;
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(q->map);
    costs->rest = whole->total_ms;
    for (guint i = 0; i < costs->map->layers->len; i++) {
        const HnPruneLayer *l = costs->map->layers->pdata[i];
        const Measured of = { hn_node_out(l->node, 0)->name, hn_prune_layer_part(costs, (int)i, half) };
        take_times(&of, whole, less, &costs->layer[i], &costs->part[i]);
        costs->rest -= costs->layer[i];
    }
    for (guint i = 0; i < costs->others->len; i++) {
        HnPruneOther *o = costs->others->pdata[i];
        const Measured of = { o->node, hn_prune_other_part(costs, o, half) };
        take_times(&of, whole, less, &o->cost, &o->part);
        costs->rest -= o->cost;
    }
    costs->rest = MAX(costs->rest, 0);
    q->ms = g_steal_pointer(&costs);
    return TRUE;
}

/* Of the whole of them, or in seconds. */
static gboolean times_of_layers(Prune *q, HnPruneCosts *costs, GError **error)
{
    if (!find_ms(q, error))
        return FALSE;
    double unit = q->absolute ? 1e3 : q->ms->rest;
    for (guint i = 0; i < costs->map->layers->len && !q->absolute; i++)
        unit += q->ms->layer[i];
    for (guint i = 0; i < costs->others->len && !q->absolute; i++)
        unit += ((const HnPruneOther *)q->ms->others->pdata[i])->cost;
    for (guint i = 0; i < costs->map->layers->len; i++) {
        costs->layer[i] = q->ms->layer[i] / unit;
        costs->part[i] = q->ms->part[i];
    }
    for (guint i = 0; i < costs->others->len; i++) { /* of the same map */
        HnPruneOther *o = costs->others->pdata[i];
        *o = (HnPruneOther){ o->node, o->members, ((HnPruneOther *)q->ms->others->pdata[i])->cost / unit,
                             ((HnPruneOther *)q->ms->others->pdata[i])->part };
    }
    costs->rest = q->ms->rest / unit;
    return TRUE;
}

gboolean prune_find_costs(Prune *q, GError **error)
{
    g_autoptr(HnPruneCosts) bytes = hn_prune_costs_new(q->map);
    if ((q->backend->computes && !find_ms(q, error)) || !bytes_of_layers(q, bytes, error))
        return FALSE;
    q->bytes = g_steal_pointer(&bytes);
    return TRUE;
}

/* --- widths ------------------------------------------------------------------------------------------------------- */

static gboolean find_curves(Prune *q, GError **error)
{
    const guint n = q->map->classes->len;
    if (q->loss != NULL)
        return TRUE;
    q->loss = g_new0(double *, n + 1u);
    for (guint c = 0; c < n; c++)
        q->loss[c] = g_new0(double, (gsize)((const HnPruneClass *)q->map->classes->pdata[c])->n);
    return hn_prune_curves(q->map, &q->o, q->loss, error);
}

static const Kind kinds[] = {
    [PRUNE_FLOPS] = { flops_of_layers, measure_flops, "operations" },
    [PRUNE_LATENCY] = { times_of_layers, NULL, "time" },
    [PRUNE_SIZE] = { bytes_of_layers, measure_size, "bytes" },
};

static gboolean impossible(const Kind *k, double limit, double cost, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                "the %s cannot get to %.3g: with the narrowest classes that may go it is %.3g; '--explain' says what "
                "has to stay",
                k->what, limit, cost);
    return FALSE;
}

/* What is meant by the budget, in the unit of measure(). */
static double limit_of(const Prune *q)
{
    if (q->absolute || q->budget == PRUNE_LATENCY)
        return q->limit;
    return q->limit * (q->budget == PRUNE_SIZE ? (double)q->file_before : q->flops_before);
}

static const int *all_channels(const Prune *q, int *keep)
{
    for (guint c = 0; c < q->map->classes->len; c++)
        keep[c] = ((const HnPruneClass *)q->map->classes->pdata[c])->n;
    return keep;
}

/* Widths whose time is known, as a part of the dense model's. */
static gboolean note_timed(Prune *q, HnModel *m, const int *keep, double cost, GError **error)
{
    g_autofree int *all = g_new(int, q->map->classes->len + 1u);
    const double dense = q->absolute ? hn_prune_cost(q->ms, all_channels(q, all)) / 1e3 : 1;
    return prune_note_point(q, "widths for a time", m, keep, NULL, cost / dense, TRUE, error);
}

static gboolean attempt(gpointer data, HnPruneTry *t, guint patience, GError **error)
{
    Meet *f = data;
    if (patience == 0) {
        hn_progress_tell(&f->q->ctx->progress, "widths", (guint64)f->round++, HN_PRUNE_ROUNDS);
        t->least = !hn_prune_allocate(f->costs, &f->loss, t->goal, f->steps, f->keep);
        hn_model_free(f->model);
        f->new_effect = FALSE;
        if ((f->model = narrow(f->q, f->keep, error)) == NULL)
            return FALSE;
    }
    return f->kind->measure != NULL ? f->kind->measure(f->q, f->model, t, error) : measure_time(f, t, patience, error);
}

static gboolean settle(gpointer data, const HnPruneTry *t, gboolean best, GError **error)
{
    Meet *f = data;
    Prune *q = f->q;
    hn_context_note(q->ctx, 1, "widths for %.4g: %.4g (%.4g to %.4g) of %.4g", t->goal, t->cost, t->lo, t->hi,
                    f->meet->limit);
    if (best)
        memcpy(q->keep, f->keep, (q->map->classes->len + 1u) * sizeof *f->keep);
    if (q->budget != PRUNE_LATENCY)
        return TRUE;
    if (f->new_effect && (f->meet->any || hn_prune_tells(f->meet, t))) {
        g_autofree char *dense = prune_hash(q, NULL, "dense"), *hash = prune_hash(q, f->keep, "widths");
        if (!hn_journal_add_race(q->journal, dense, hash, &f->effect, error))
            return FALSE;
    }
    return note_timed(q, f->model, f->keep, t->cost, error);
}

static gboolean met(const Kind *k, double limit, HnPruneMeeting how, const HnPruneTry *best, GError **error)
{
    if (how == HN_PRUNE_UNKNOWN)
        g_set_error(error, HN_ERROR, HN_ERROR_NOISE,
                    "it is too noisy to tell widths that take %.3g: what takes %.3g may take %.3g to %.3g", limit,
                    best->cost, best->lo, best->hi);
    return how == HN_PRUNE_MET || (how == HN_PRUNE_IMPOSSIBLE && impossible(k, limit, best->cost, error));
}

/* What costs say of layers is not all: the model is made, and costs what it costs. */
static gboolean meet_in(Prune *q, const Kind *k, double through, gboolean vectors, HnPruneSteps steps,
                        HnPruneMeeting *how, HnPruneTry *best, GError **error)
{
    const gboolean times = q->budget == PRUNE_LATENCY;
    const double limit = limit_of(q);
    double goal = limit;
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(q->map);
    g_autofree int *keep = g_new(int, q->map->classes->len + 1u);
    Meet f = { .q = q, .kind = k, .costs = costs, .loss = { q->loss, through }, .steps = steps, .keep = keep };
    const HnPruneMeet m = { .limit = limit,
                            .lo = times ? limit * (1 - TIME_NEAR) : limit * NEAR,
                            .hi = times ? limit * (1 + TIME_NEAR) : limit,
                            .measured = times,
                            .any = q->p->force,
                            .attempt = attempt,
                            .settle = settle,
                            .data = &f };
    f.meet = &m;
    if (!k->layers(q, costs, error))
        return FALSE;
    if (vectors) {
        hn_prune_costs_by_vectors(costs, q->vector);
        goal *= hn_prune_cost(costs, all_channels(q, keep)) / q->flops_before;
    }
    const gboolean ok = hn_prune_meet(&m, goal, how, best, error);
    hn_model_free(f.model);
    return ok;
}

/* Few widths that fill vectors may miss the limit by far: then there are more of them. */
static gboolean meet(Prune *q, const Kind *k, double through, gboolean vectors, GError **error)
{
    const double limit = limit_of(q);
    HnPruneMeeting how;
    HnPruneTry best;
    int widths = vectors ? LEAST_WIDTHS : HN_PRUNE_WIDTHS;
    gboolean used = FALSE;
    for (; widths <= HN_PRUNE_WIDTHS && !used; widths *= 2) {
        if (!meet_in(q, k, through, vectors, (HnPruneSteps){ q->vector, widths }, &how, &best, error))
            return FALSE;
        used = how == HN_PRUNE_MET && best.cost >= USED * limit;
    }
    return met(k, limit, how, &best, error);
}

/* About what pruning and looking at the result takes: operations. */
static double work_of(const Prune *q)
{
    return q->flops_before * (double)q->calib * 2 * MAX(q->map->levels, 1);
}

HnPruned *prune_by(const Prune *q, const HnPruneOptions *o, const int *keep, GError **error)
{
    return q->budget == PRUNE_ZEROS ? hn_prune_zeros(q->map, o, &q->zeros, q->zeros_part, error)
                                    : hn_prune_run(q->map, o, keep, error);
}

/* Ways of weighing losses that are worth a trial. */
static guint n_throughs(const Prune *q)
{
    return q->zeros.of_four > 0 || work_of(q) > CHEAP ? 1 : G_N_ELEMENTS(throughs);
}

guint prune_n_widths(const Prune *q)
{
    const gboolean one = q->p->speed_only || q->p->explain || q->budget == PRUNE_RATIO || q->budget == PRUNE_LAYERS ||
                         q->budget == PRUNE_LATENCY || prune_chosen(q) != NULL;
    return one ? 1 : n_throughs(q) * (q->budget == PRUNE_FLOPS ? 2 : 1);
}

static double through_of(const Prune *q, guint i)
{
    const gboolean several = prune_n_widths(q) > 1 && n_throughs(q) > 1;
    return throughs[several ? i % G_N_ELEMENTS(throughs) : MEAN_THROUGH];
}

static gboolean by_vectors(const Prune *q, guint i)
{
    return prune_n_widths(q) > 1 && i >= n_throughs(q);
}

double prune_widths_noise(const Prune *q, guint i, const HnScore *score)
{
    const double noise = pow(10, -score->sqnr / 10);
    if (!by_vectors(q, i))
        return noise;
    return score->sqnr >= SMALL_ERROR ? noise - VECTORS_WORTH : INFINITY;
}

/* How many zeros each layer gets. */
static gboolean share_zeros(Prune *q, guint i, GError **error)
{
    gboolean any = FALSE;
    for (guint k = 0; k < q->map->layers->len; k++)
        any = any || hn_zeros_takes(q->map->layers->pdata[k]);
    if (!any) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "no layer can take zeros: none has weights of its own and sums over 64 products and more");
        return FALSE;
    }
    const gboolean by_loss = q->zeros.of_four == 0 && q->by == HN_PRUNE_OBS && q->o.data != NULL;
    if (by_loss && q->zeros_loss == NULL &&
        (q->zeros_loss = hn_zeros_curves_new(q->map, &q->o, &q->zeros, error)) == NULL)
        return FALSE;
    if (q->zeros_part == NULL)
        q->zeros_part = g_new0(double, q->map->layers->len + 1u);
    hn_zeros_share(q->map, q->zeros_loss, q->limit, through_of(q, i), q->zeros_part);
    return TRUE;
}

gboolean prune_find_widths(Prune *q, guint i, GError **error)
{
    if (q->keep == NULL)
        q->keep = g_new0(int, q->map->classes->len + 1u);
    if (prune_chosen(q) != NULL) {
        if (q->budget == PRUNE_ZEROS && q->zeros_part == NULL)
            q->zeros_part = g_new0(double, q->map->layers->len + 1u);
        return prune_take_chosen(q, error);
    }
    if (q->budget == PRUNE_ZEROS)
        return share_zeros(q, i, error);
    if (q->map->classes->len == 0 && q->budget != PRUNE_LAYERS) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "no channels of the model may go; '--explain' says why each of them has to stay");
        return FALSE;
    }
    hn_prune_uniform(q->map, q->budget == PRUNE_RATIO ? q->limit : 0.5, q->vector, q->keep);
    if (q->budget == PRUNE_LAYERS)
        for (guint c = 0; c < q->map->classes->len; c++)
            q->keep[c] = ((const HnPruneClass *)q->map->classes->pdata[c])->n;
    if ((q->budget == PRUNE_RATIO || q->budget == PRUNE_LAYERS) && !q->p->analyze)
        return TRUE;
    if (!find_curves(q, error))
        return FALSE;
    return q->budget == PRUNE_NO_BUDGET || q->budget == PRUNE_RATIO || q->budget == PRUNE_LAYERS ||
           meet(q, &kinds[q->budget], through_of(q, i), by_vectors(q, i), error);
}

gboolean prune_widths_for(Prune *q, double part, double *flops, GError **error)
{
    const HnPruneLoss loss = { q->loss, throughs[MEAN_THROUGH] };
    g_autoptr(HnPruneCosts) costs = hn_prune_costs_new(q->map);
    if (!flops_of_layers(q, costs, error))
        return FALSE;
    (void)hn_prune_allocate(costs, &loss, part * q->flops_before, hn_prune_steps(q->vector), q->keep);
    g_autoptr(HnModel) m = narrow(q, q->keep, error);
    return m != NULL && prune_count_flops(q, m, flops, error);
}
