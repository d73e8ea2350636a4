#include "prune/student.h"

#include <math.h>
#include <string.h>

#include "check/score.h"
#include "ir/copy.h"
#include "prune/branches.h"
#include "prune/count.h"
#include "prune/low_rank.h"
#include "prune/ready.h"

#define LANES 16         /* of the vectors that widths are chosen for, whatever this machine has */
#define LANES_LEFT 1.2   /* times the part of the operations: of the steps of vectors that are left, at most ... */
#define FEW_LAYERS 0.88  /* ... and without blocks, where nodes that are no layers take more of the rest */
#define ROUNDS 10        /* of widths that are tried, at most */
#define NEAR 0.97        /* of the operations is near enough ... */
#define FAR 0.5          /* ... and so much is not */
#define LOOKS 32         /* samples that a model without a block is judged by */
#define CHEAP 2e11       /* operations of samples: several choices of widths are compared */
#define MOST_JUDGED 128  /* samples for that */
#define STEPS_OF_PART 50 /* parts of uniform widths that are tried */
#define MOST_NARROWER 4  /* steps for the sake of time, ... */
#define NARROWER 0.85    /* ... each of which leaves so much of the budget */
#define GAINS 0.95       /* of the time: narrower widths that take more gain nothing */

static const double throughs[] = { 0.3, 1 }; /* HnPruneLoss.through */

typedef struct {
    const HnStudentOptions *o;
    HnModel *dense;
    HnSample *sample;      /* of whose size operations are counted */
    double flops, vectors; /* of the dense model */
    HnScorer *scorer;      /* on samples that weights are fitted to */
    double part;           /* HnStudentOptions.part, or less for the sake of time */
    double least;          /* operations that were reached, as a part */
    HnNarrower narrower;
    int tried;       /* students that channels went of, or would have */
    char *locked;    /* why some channels stay; NULL: not known */
    GPtrArray *made; /* HnStudent * */
} Work;

enum { BY_CHANNELS, UNIFORM, BY_BLOCKS, LOW_RANK };
const char *const hn_student_ways[] = { "channels", "uniform", "blocks", "low rank", NULL };

/* A model that channels go of: the dense one, or without blocks. */
typedef struct {
    HnModel *base;
    HnPruneMap *map;
    HnPruneOptions o;
    HnPruneCosts *vectors;
    double **loss; /* by class */
} Subject;

void hn_student_free(HnStudent *s)
{
    if (s == NULL)
        return;
    hn_model_free(s->model);
    g_free(s);
}

static void note(const Work *w, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void note(const Work *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    g_autofree char *text = g_strdup_vprintf(format, list);
    va_end(list);
    if (w->o->note != NULL)
        w->o->note(w->o->note_data, text);
}

/* --- a subject ---------------------------------------------------------------------------------------------------- */

static void subject_clear(Subject *s)
{
    for (guint c = 0; s->loss != NULL && c < s->map->classes->len; c++)
        g_free(s->loss[c]);
    g_free(s->loss);
    hn_prune_costs_free(s->vectors);
    hn_prune_map_free(s->map);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Subject, subject_clear)

/* For widths; base outlives it. */
static gboolean subject_open(Work *w, HnModel *base, Subject *s, GError **error)
{
    const HnStudentOptions *o = w->o;
    s->base = base;
    s->o = (HnPruneOptions){ .backend = o->backend,
                             .threads = o->threads,
                             .budget = o->budget,
                             .progress = o->progress,
                             .data = o->data,
                             .n = o->n,
                             .wanted = base != w->dense ? w->dense : NULL,
                             .score = HN_PRUNE_OBS,
                             .fit = TRUE,
                             .seed = o->seed };
    if ((s->map = hn_prune_map_new(base, o->budget, error)) == NULL)
        return FALSE;
    if (w->locked == NULL && s->map->locked->len > 0)
        w->locked = g_strdup(((const HnChannelGroup *)s->map->locked->pdata[0])->locked);
    s->vectors = hn_prune_costs_new(s->map);
    if (!hn_prune_flops_of_layers(base, w->sample->in, o->budget, s->vectors, error))
        return FALSE;
    hn_prune_costs_by_vectors(s->vectors, LANES);
    return TRUE;
}

static gboolean find_curves(Subject *s, GError **error)
{
    s->loss = g_new0(double *, s->map->classes->len + 1u);
    for (guint c = 0; c < s->map->classes->len; c++)
        s->loss[c] = g_new0(double, (gsize)((const HnPruneClass *)s->map->classes->pdata[c])->n);
    return hn_prune_curves(s->map, &s->o, s->loss, error);
}

static double all_vectors(const Subject *s)
{
    double sum = s->vectors->rest;
    for (guint i = 0; i < s->map->layers->len; i++)
        sum += s->vectors->layer[i];
    for (guint i = 0; i < s->vectors->others->len; i++)
        sum += ((const HnPruneOther *)s->vectors->others->pdata[i])->cost;
    return sum;
}

/* Steps of vectors, at most. */
static double limit_of(const Work *w, const Subject *s)
{
    return (s->base != w->dense ? FEW_LAYERS : LANES_LEFT) * w->part * w->vectors;
}

/* Operations of the model with these widths, as a part of the dense one's. */
static gboolean part_of(Work *w, const Subject *s, const int *keep, double *part, GError **error)
{
    g_autoptr(HnModel) m = hn_prune_narrow(s->map, &s->o, keep, error);
    double flops;
    if (m == NULL || !hn_prune_flops(m, w->sample->in, w->o->budget, NULL, &flops, error))
        return FALSE;
    *part = flops / w->flops;
    w->least = fmin(w->least, *part);
    return !hn_progress_stop(w->o->progress, error);
}

/* --- widths ------------------------------------------------------------------------------------------------------- */

/* Widths for a loss: the best so far, and what was tried last. */
typedef struct {
    const HnPruneLoss *loss;
    int *keep, *now;
    double best;  /* part of the operations with keep[]; 0: nothing was few enough */
    double part;  /* with now[] */
    gboolean met; /* now[] has no more steps of vectors than were asked for */
} Widths;

/* With so many steps of vectors at most. */
static gboolean try_widths(Work *w, const Subject *s, double goal, Widths *t, GError **error)
{
    t->met = hn_prune_allocate(s->vectors, t->loss, goal, hn_prune_steps(LANES), t->now);
    if (!part_of(w, s, t->now, &t->part, error))
        return FALSE;
    if (t->part <= w->part && t->part > t->best) {
        t->best = t->part;
        memcpy(t->keep, t->now, s->map->classes->len * sizeof *t->keep);
    }
    return TRUE;
}

/* The limit of steps is met by hardly anything: most of them are there whatever the widths. Then it is one of those
 * that widths decide. */
static gboolean try_wider(Work *w, const Subject *s, Widths *t, GError **error)
{
    for (guint c = 0; c < s->map->classes->len; c++)
        t->now[c] = ((const HnPruneClass *)s->map->classes->pdata[c])->fixed
                        ? ((const HnPruneClass *)s->map->classes->pdata[c])->n
                        : 1;
    double least = hn_prune_cost(s->vectors, t->now), most = least + w->part * (all_vectors(s) - least), goal = most;
    for (int i = 0; i < ROUNDS && t->best < NEAR * w->part; i++) {
        if (!try_widths(w, s, goal, t, error))
            return FALSE;
        if (t->part <= w->part && goal == most)
            break;
        *(t->part <= w->part ? &least : &most) = goal;
        goal = (least + most) / 2;
    }
    return TRUE;
}

/* Such that both operations and vectors are few enough; *met FALSE: there are none. */
static gboolean widths_by_loss(Work *w, const Subject *s, double through, int *keep, gboolean *met, GError **error)
{
    const HnPruneLoss loss = { s->loss, through };
    const double limit = limit_of(w, s);
    g_autofree int *now = g_new(int, s->map->classes->len + 1u);
    Widths t = { .loss = &loss, .keep = keep, .now = now };
    double goal = limit;
    for (int i = 0; i < ROUNDS; i++) {
        if (!try_widths(w, s, goal, &t, error))
            return FALSE;
        if (t.best >= NEAR * w->part || (t.part <= w->part && goal >= limit) || (t.part > w->part && !t.met))
            break;
        goal = fmin(goal * CLAMP(w->part / t.part, 0.7, 1.3), limit);
    }
    if (t.best < FAR * w->part && !try_wider(w, s, &t, error))
        return FALSE;
    *met = t.best > 0;
    return TRUE;
}

static gboolean uniform_widths(Work *w, const Subject *s, int *keep, gboolean *met, GError **error)
{
    const double limit = limit_of(w, s);
    double part = INFINITY;
    for (int i = 1; i <= STEPS_OF_PART && part > w->part; i++) {
        hn_prune_uniform(s->map, (double)i / STEPS_OF_PART, LANES, keep);
        if (hn_prune_cost(s->vectors, keep) <= limit && !part_of(w, s, keep, &part, error))
            return FALSE;
    }
    *met = part <= w->part;
    return TRUE;
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

/* Such that operations are few enough; *met FALSE: there are none. */
static gboolean ranks_of_part(Work *w, const HnLowRank *f, int *rank, gboolean *met, GError **error)
{
    double goal = w->part * w->flops, flops = INFINITY;
    *met = FALSE;
    for (int i = 0; i < ROUNDS && !*met && hn_low_rank_allocate(f, goal, rank); i++) {
        g_autoptr(HnModel) m = hn_low_rank_model(f, rank, error);
        if (m == NULL || !hn_prune_flops(m, w->sample->in, w->o->budget, NULL, &flops, error))
            return FALSE;
        *met = flops <= w->part * w->flops;
        w->least = fmin(w->least, flops / w->flops);
        goal *= NEAR * w->part * w->flops / flops;
    }
    return !hn_progress_stop(w->o->progress, error);
}

/* --- narrower, for the sake of time ------------------------------------------------------------------------------- */

/* How a student becomes small: widths by what they lose, or (through 0) the same part of all, or ranks. */
typedef struct {
    const Subject *s;
    double through;
    const HnLowRank *ranks; /* NULL: widths */
} Way;

/* Numbers that say how small: widths, or ranks. */
static guint numbers_of(const Way *way)
{
    return (way->ranks != NULL ? way->ranks->items->len : way->s->map->classes->len) + 1u;
}

/* Those of a budget. */
static gboolean find_numbers(Work *w, const Way *way, int *keep, gboolean *met, GError **error)
{
    if (way->ranks != NULL)
        return ranks_of_part(w, way->ranks, keep, met, error);
    return way->through > 0 ? widths_by_loss(w, way->s, way->through, keep, met, error)
                            : uniform_widths(w, way->s, keep, met, error);
}

static gboolean measure(Work *w, const Way *way, const int *keep, double *time, GError **error)
{
    g_autoptr(HnModel) m = way->ranks != NULL ? hn_low_rank_model(way->ranks, keep, error)
                                              : hn_prune_narrow(way->s->map, &way->s->o, keep, error);
    return m != NULL && w->o->time(w->o->time_data, m, time, error);
}

/* Of so many steps; *met FALSE: there are no such numbers. */
static gboolean numbers_behind(Work *w, const Way *way, int steps, int *keep, gboolean *met, GError **error)
{
    w->part = w->o->part * pow(NARROWER, steps);
    const gboolean ok = find_numbers(w, way, keep, met, error);
    w->part = w->o->part;
    return ok;
}

/* What narrow() found. */
typedef struct {
    int steps;
    double time, as_wide; /* NaN: not measured */
} Narrow;

/* keep[] becomes the widest of widths, or ranks, that take little enough time, or, where none does, of those that take
 * about the least. */
static gboolean narrow(Work *w, const Way *way, int *keep, Narrow *found, GError **error)
{
    const gsize size = numbers_of(way) * sizeof *keep;
    const int at = MIN(w->tried, HN_STUDENTS - 1), known = w->o->narrower != NULL ? w->o->narrower->times[at] : 0;
    g_autofree int *all = g_malloc0((MOST_NARROWER + 1) * size);
    double took[MOST_NARROWER + 1], least = INFINITY;
    int n = 0, steps = 0;
    w->tried++;
    *found = (Narrow){ CLAMP(known, 0, MOST_NARROWER), NAN, NAN };
    if (w->o->narrower != NULL || w->o->time == NULL) {
        gboolean met = TRUE;
        w->narrower.times[at] = found->steps;
        return known == 0 || numbers_behind(w, way, found->steps, keep, &met, error);
    }
    for (gboolean met = TRUE; n <= MOST_NARROWER && met && !(least <= w->o->most_time); n++) {
        int *now = all + (gsize)n * (size / sizeof *keep);
        memcpy(now, keep, size);
        if (n > 0 && !numbers_behind(w, way, n, now, &met, error))
            return FALSE;
        if (!met)
            break;
        if (!measure(w, way, now, &took[n], error))
            return FALSE;
        note(w, "%d steps narrower: %.3f of the time", n, took[n]);
        least = fmin(least, took[n]);
    }
    while (GAINS * took[steps] > fmax(least, GAINS * w->o->most_time))
        steps++;
    memcpy(keep, all + (gsize)steps * (size / sizeof *keep), size);
    w->narrower.times[at] = steps;
    *found = (Narrow){ steps, took[steps], took[0] };
    return TRUE;
}

/* --- what is made ------------------------------------------------------------------------------------------------- */

static int64_t weights_of(const HnModel *m)
{
    int64_t sum = 0;
    for (guint i = 0; i < m->graph->weights->len; i++) {
        const HnTensor *t = ((const HnValue *)m->graph->weights->pdata[i])->weight;
        sum += t != NULL && hn_dtype_in(t->dtype, HN_T_FLOATS) ? t->n : 0;
    }
    return sum;
}

/* One more, of m, which is taken. */
static gboolean add_student(Work *w, HnModel *m, const char *how, guint blocks, const Narrow *narrow, GError **error)
{
    HnStudent *s = g_new0(HnStudent, 1);
    *s = (HnStudent){ .how = how,
                      .model = m,
                      .blocks = blocks,
                      .weights = weights_of(m),
                      .narrower = narrow->steps,
                      .time = narrow->time,
                      .as_wide = narrow->as_wide };
    g_ptr_array_add(w->made, s);
    return hn_prune_flops(m, w->sample->in, w->o->budget, NULL, &s->flops, error);
}

static HnModel *with_widths(const Subject *s, const int *keep, GError **error)
{
    g_autoptr(HnPruned) p = hn_prune_run(s->map, &s->o, keep, error);
    return p != NULL ? hn_pruned_model(p, error) : NULL;
}

/* Widths whose model is nearest to the dense one, of some; *through 0: none meet the budget. */
static gboolean choose_widths(Work *w, Subject *s, const char *how, int *keep, HnModel **best, double *through,
                              GError **error)
{
    const gsize size = (s->map->classes->len + 1u) * sizeof(int);
    const guint choices = w->flops * (double)w->o->n * MAX(s->map->levels, 1) < CHEAP ? G_N_ELEMENTS(throughs) : 1;
    g_autofree int *now = g_malloc0(size), *last = g_malloc0(size);
    double best_db = 0;
    *through = 0;
    for (guint i = 0; i < choices; i++) {
        gboolean met;
        HnScore score;
        if (!widths_by_loss(w, s, throughs[i], now, &met, error))
            return FALSE;
        if (!met || memcmp(now, last, size) == 0)
            continue;
        memcpy(last, now, size);
        g_autoptr(HnModel) m = with_widths(s, now, error);
        if (m == NULL || !hn_scorer_run(w->scorer, m, &score, error))
            return FALSE;
        note(w, "%s, %u: %.2f dB", how, i + 1, score.sqnr);
        if (*best != NULL && !(score.sqnr > best_db))
            continue;
        hn_model_free(*best);
        *best = g_steal_pointer(&m);
        best_db = score.sqnr;
        *through = throughs[i];
        memcpy(keep, now, size);
    }
    return TRUE;
}

/* m, if it has these widths, or narrower ones. */
static gboolean add_narrow(Work *w, Subject *s, double through, int *keep, HnModel *made, const char *how, guint blocks,
                           GError **error)
{
    const gsize size = (s->map->classes->len + 1u) * sizeof(int);
    g_autoptr(HnModel) m = made;
    g_autofree int *first = g_memdup2(keep, size);
    Narrow found;
    if (!narrow(w, &(Way){ s, through, NULL }, keep, &found, error))
        return FALSE;
    if (m == NULL || memcmp(first, keep, size) != 0) {
        hn_model_free(m);
        m = with_widths(s, keep, error);
    }
    return m != NULL && add_student(w, g_steal_pointer(&m), how, blocks, &found, error);
}

/* None may meet the budget. */
static gboolean add_by_loss(Work *w, Subject *s, const char *how, guint blocks, GError **error)
{
    g_autofree int *keep = g_new0(int, s->map->classes->len + 1u);
    g_autoptr(HnModel) best = NULL;
    double through;
    if (!find_curves(s, error) || !choose_widths(w, s, how, keep, &best, &through, error))
        return FALSE;
    return best == NULL || add_narrow(w, s, through, keep, g_steal_pointer(&best), how, blocks, error);
}

static gboolean add_uniform(Work *w, Subject *s, GError **error)
{
    g_autofree int *keep = g_new0(int, s->map->classes->len + 1u);
    gboolean met;
    if (!uniform_widths(w, s, keep, &met, error))
        return FALSE;
    return !met || add_narrow(w, s, 0, keep, NULL, hn_student_ways[UNIFORM], 0, error);
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* m without the block that is missed least; *out is NULL where none may go. */
static gboolean without_one(const Work *w, const HnModel *m, HnModel **out, GError **error)
{
    g_autoptr(GArray) blocks = hn_prune_blocks(m);
    g_autoptr(HnModel) best = NULL;
    double best_db = 0;
    for (guint i = 0; i < blocks->len; i++) {
        const HnPruneBlock *b = &g_array_index(blocks, HnPruneBlock, i);
        g_autoptr(HnModel) less = hn_model_copy(m);
        HnScore score;
        hn_progress_tell(w->o->progress, "blocks", i, blocks->len);
        if (!hn_prune_skip(less, b->out->name, b->in->name))
            continue;
        if (!hn_prune_sweep(less, w->o->budget, error) || !hn_scorer_run(w->scorer, less, &score, error))
            return FALSE;
        if (best != NULL && !(score.sqnr > best_db))
            continue;
        hn_model_free(best);
        best = g_steal_pointer(&less);
        best_db = score.sqnr;
    }
    *out = g_steal_pointer(&best);
    return TRUE;
}

/* m, without so many blocks, brought to the budget by channels. */
static gboolean add_of_blocks(Work *w, HnModel *m, double flops, const char *how, guint blocks, GError **error)
{
    g_auto(Subject) s = { 0 };
    if (flops <= w->o->part * w->flops)
        return add_student(w, hn_model_copy(m), how, blocks, &(Narrow){ 0, NAN, NAN }, error);
    return subject_open(w, m, &s, error) && (s.map->classes->len == 0 || add_by_loss(w, &s, how, blocks, error));
}

/* Two of them: half of what goes is blocks, and as much as may be. */
static gboolean add_blocks(Work *w, GError **error)
{
    g_autoptr(HnModel) m = NULL;
    double flops = w->flops;
    guint taken = 0, half = 0;
    while (flops > w->o->part * w->flops) {
        HnModel *less = NULL;
        if (hn_progress_stop(w->o->progress, error) || !without_one(w, m != NULL ? m : w->dense, &less, error))
            return FALSE;
        if (less == NULL || weights_of(less) == 0) { /* nothing may go, or nothing is left that could learn */
            hn_model_free(less);
            break;
        }
        hn_model_free(m);
        m = less;
        taken++;
        if (!hn_prune_flops(m, w->sample->in, w->o->budget, NULL, &flops, error))
            return FALSE;
        w->least = fmin(w->least, flops / w->flops);
        if (half == 0 && flops <= (1 + w->o->part) / 2 * w->flops) {
            half = taken;
            if (!add_of_blocks(w, m, flops, hn_student_ways[BY_BLOCKS], taken, error))
                return FALSE;
        }
    }
    return taken == half ||
           add_of_blocks(w, m, flops, half > 0 ? "more blocks" : hn_student_ways[BY_BLOCKS], taken, error);
}

/* --- ranks of layers ---------------------------------------------------------------------------------------------- */

/* None may meet the budget. */
static gboolean add_low_rank(Work *w, const Subject *s, GError **error)
{
    g_autoptr(HnPruneCosts) flops = hn_prune_costs_new(s->map);
    if (!hn_prune_flops_of_layers(s->base, w->sample->in, w->o->budget, flops, error))
        return FALSE;
    g_autoptr(HnLowRank) f = hn_low_rank_new(s->map, &s->o, flops, error);
    if (f == NULL)
        return FALSE;
    g_autofree int *rank = g_new0(int, f->items->len + 1u);
    gboolean met;
    Narrow found;
    if (!ranks_of_part(w, f, rank, &met, error))
        return FALSE;
    if (!met)
        return TRUE;
    if (!narrow(w, &(Way){ s, 0, f }, rank, &found, error))
        return FALSE;
    HnModel *m = hn_low_rank_model(f, rank, error);
    return m != NULL && add_student(w, m, hn_student_ways[LOW_RANK], 0, &found, error);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static gboolean open_scorer(Work *w, GError **error)
{
    const HnStudentOptions *o = w->o;
    const HnScorerOptions so = {
        .backend = o->backend, .threads = o->threads, .budget = o->budget, .progress = o->progress
    };
    w->scorer = hn_scorer_new(hn_model_copy(w->dense), o->data, 0, MIN(o->n, MOST_JUDGED), &so, error);
    return w->scorer != NULL;
}

static gboolean none(const Work *w, guint classes, GError **error)
{
    if (w->o->way != NULL && !isfinite(w->least))
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "there is nothing that '%s' could make smaller in the teacher", w->o->way);
    else if (classes == 0 && !isfinite(w->least))
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "none of the teacher's channels may go: %s",
                    w->locked != NULL ? w->locked : "no layer with weights of its own reads them");
    else
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "no student with %.3g x of the teacher's operations can be made of it: the smallest has %.3g x",
                    w->o->part, w->least);
    return FALSE;
}

static gboolean is_asked(const Work *w, int way)
{
    return w->o->way == NULL || strcmp(w->o->way, hn_student_ways[way]) == 0;
}

static gboolean make_of_widths(Work *w, Subject *s, GError **error)
{
    if (s->map->classes->len == 0)
        return TRUE;
    if (is_asked(w, BY_CHANNELS) && !add_by_loss(w, s, hn_student_ways[BY_CHANNELS], 0, error))
        return FALSE;
    return !is_asked(w, UNIFORM) || add_uniform(w, s, error);
}

static gboolean make_all(Work *w, GError **error)
{
    g_auto(Subject) s = { 0 };
    if ((w->sample = hn_data_load(w->o->data, 0, error)) == NULL ||
        !hn_prune_flops(w->dense, w->sample->in, w->o->budget, NULL, &w->flops, error) || !open_scorer(w, error) ||
        !subject_open(w, w->dense, &s, error))
        return FALSE;
    w->vectors = all_vectors(&s);
    if (!make_of_widths(w, &s, error) || (is_asked(w, BY_BLOCKS) && !add_blocks(w, error)))
        return FALSE;
    if (is_asked(w, LOW_RANK) && !add_low_rank(w, &s, error))
        return FALSE;
    return w->made->len > 0 || none(w, s.map->classes->len, error);
}

GPtrArray *hn_students_new(HnModel *dense, const HnStudentOptions *o, double *flops, HnNarrower *narrower,
                           GError **error)
{
    Work w = { .o = o, .dense = dense, .part = o->part, .least = INFINITY };
    w.made = g_ptr_array_new_with_free_func((GDestroyNotify)hn_student_free);
    const gboolean ok = make_all(&w, error);
    *flops = w.flops;
    *narrower = w.narrower;
    hn_scorer_free(w.scorer);
    hn_sample_free(w.sample);
    g_free(w.locked);
    if (!ok)
        g_clear_pointer(&w.made, g_ptr_array_unref);
    return w.made;
}
