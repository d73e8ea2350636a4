#include "quant/repair.h"

#include <math.h>
#include <string.h>

#include "quant/correct.h"
#include "quant/equalize.h"
#include "quant/rounding.h"

#define TINY 1e-12 /* of an error: nothing is better */
#define TRIALS 24  /* of methods for some tensors */
#define DEPTH 8    /* nodes that move numbers between Softmax or Sigmoid and an output */
#define GAIN 0.99  /* times the error, at most: what is less is chance */
#define FITTED 1.5 /* over the root of the samples that judge: a part of the error that chance may hide ... */
#define LEAST 0.4  /* ... but no more than the rest */

static const char *const names[] = { "rounding", "equalize", "smooth", "ranges", "bias" };

const char *hn_repair_name(HnRepair r)
{
    return names[r];
}

gboolean hn_repair_parse(const char *list, guint *set, GError **error)
{
    *set = 0;
    if (!strcmp(list, "auto") || !strcmp(list, "none")) {
        *set = list[0] == 'a' ? HN_REPAIR_ALL : 0;
        return TRUE;
    }
    g_auto(GStrv) parts = g_strsplit(list, ",", -1);
    for (int i = 0; parts[i] != NULL; i++) {
        int k = 0;
        while (k < HN_REPAIRS && strcmp(parts[i], names[k]) != 0)
            k++;
        if (k == HN_REPAIRS) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                        "repair '%s' is none of auto, none, rounding, equalize, smooth, ranges, bias", parts[i]);
            return FALSE;
        }
        *set |= 1u << k;
    }
    return TRUE;
}

double hn_repair_error(const HnScore *s)
{
    const double product = fmax(pow(10, -s->sqnr / 10), TINY) * fmax(2 * (1 - s->cos), TINY);
    return isnan(s->scores) ? sqrt(product) : pow(product * fmax(s->scores, sqrt(TINY)), 0.4);
}

double hn_repair_db(const HnScore *s)
{
    return -10 * log10(hn_repair_error(s));
}

void hn_repair_log_clear(HnRepairLog *log)
{
    for (guint i = 0; log->steps != NULL && i < log->steps->len; i++)
        g_free(g_array_index(log->steps, HnRepairStep, i).what);
    g_clear_pointer(&log->steps, g_array_unref);
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnRepairOptions *o;
    HnRepairLog *log;
    HnScorer *scorer;
    GPtrArray *inner; /* char *: values that are scored like outputs */
    GArray *covered;  /* int: outputs that are not, therefore */
    double error;     /* of the plan as it is */
    gboolean changes; /* the repair that is tried has done something */
} Repair;

/* What Softmax and Sigmoid at the end make nearly 0 or 1 says little of all errors but the largest: what they make it
 * from is scored in its place. TRUE: that is all of v. */
static gboolean find_inner(const HnValue *v, GPtrArray *found, int depth)
{
    const HnNode *n = v->producer;
    if (n == NULL || n->op == NULL || depth == 0)
        return v->weight != NULL;
    if (n->op->quant.kind == HN_Q_FIXED_RANGE) {
        const HnValue *x = hn_node_in(n, 0);
        if (x == NULL || x->producer == NULL || x->is_output || x->graph != v->graph ||
            hn_type_dtype(x->type) != HN_F32)
            return FALSE;
        if (!g_ptr_array_find_with_equal_func(found, x->name, g_str_equal, NULL))
            g_ptr_array_add(found, g_strdup(x->name));
        return TRUE;
    }
    if (n->op->quant.bytes != HN_QB_MOVES && (n->op->flags & HN_OP_VIEW) == 0)
        return FALSE;
    gboolean all = TRUE;
    for (guint i = 0; i < n->in->len; i++)
        if (n->in->pdata[i] != NULL)
            all = find_inner(n->in->pdata[i], found, depth - 1) && all;
    return all;
}

static gboolean show_inner(const Repair *r, HnModel *m, GError **error)
{
    for (guint i = 0; i < r->inner->len; i++) {
        HnValue *v = g_hash_table_lookup(m->graph->values, r->inner->pdata[i]);
        if (v == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "'%s' is lost", (const char *)r->inner->pdata[i]);
            return FALSE;
        }
        hn_graph_add_output(m->graph, v);
    }
    for (guint k = r->covered->len; k-- > 0;)
        hn_graph_remove_output(m->graph, g_array_index(r->covered, int, k));
    return TRUE;
}

static gboolean open_scorer(Repair *r, GError **error)
{
    const HnCaptureOptions *t = &r->o->samples;
    const HnScorerOptions so = {
        .backend = t->backend, .threads = t->threads, .budget = t->budget, .progress = t->progress
    };
    g_autoptr(HnModel) m = r->o->search->open(r->o->search->data, error);
    if (m == NULL)
        return FALSE;
    for (int k = 0; k < (int)m->graph->outputs->len; k++)
        if (find_inner(m->graph->outputs->pdata[k], r->inner, DEPTH))
            g_array_append_val(r->covered, k);
    if (!show_inner(r, m, error))
        return FALSE;
    r->scorer = hn_scorer_new(g_steal_pointer(&m), t->data, r->o->held_first, r->o->held, &so, error);
    return r->scorer != NULL;
}

static gboolean score_of(const Repair *r, const HnQuantPlan *p, HnScore *score, GError **error)
{
    HnQuantLog log;
    g_autoptr(HnQuantPlan) copy = hn_quant_plan_copy(p);
    copy->o.integers = FALSE; /* the same numbers, and values keep their names */
    g_autoptr(HnModel) m = hn_quant_build(copy, r->o->search, &log, error);
    return m != NULL && show_inner(r, m, error) && hn_scorer_run(r->scorer, m, score, error);
}

static gboolean score_part(const Repair *r, const HnQuantPlan *p, HnQuantPart part, HnScore *score, GError **error)
{
    g_autoptr(HnQuantPlan) copy = hn_quant_plan_copy(p);
    copy->o.part = part;
    return score_of(r, copy, score, error);
}

static HnModel *open_copy(gpointer data, GError **error)
{
    const Repair *r = data;
    return r->o->search->open(r->o->search->data, error);
}

static HnModel *build_copy(gpointer data, const HnQuantPlan *p, GError **error)
{
    const Repair *r = data;
    HnQuantLog log;
    g_autoptr(HnQuantPlan) named = hn_quant_plan_copy(p);
    named->o.integers = FALSE; /* the same numbers, and each value is there under its name */
    return hn_quant_build(named, r->o->search, &log, error);
}

/* Copies of p with the spans of each method. */
typedef struct {
    HnQuantPlan *of[HN_CALIB_METHODS];
} Methods;

static void methods_clear(Methods *m)
{
    for (int k = 0; k < HN_CALIB_METHODS; k++)
        g_clear_pointer(&m->of[k], hn_quant_plan_free);
}

static gboolean methods_of(const Repair *r, const HnQuantPlan *p, gboolean same_units, Methods *m, GError **error)
{
    for (int k = 0; k < HN_CALIB_METHODS; k++)
        m->of[k] = hn_quant_plan_copy(p);
    return r->o->calibrate(r->o->data, m->of, same_units, error);
}

static void use_spans(HnQuantPlan *p, const HnQuantPlan *from)
{
    GHashTableIter iter;
    gpointer name, span;
    g_hash_table_iter_init(&iter, from->spans);
    while (g_hash_table_iter_next(&iter, &name, &span))
        hn_quant_plan_set_span(p, name, ((const HnQuantSpan *)span)->lo, ((const HnQuantSpan *)span)->hi);
}

/* Times the error, at most, for a repair to be kept. Ranges and factors that are fitted to samples clip what reaches
 * further: rare, and dear, so that few samples that judge may show none of it. */
static double most_of(const Repair *r, HnRepair k)
{
    const gboolean fitted = k == HN_REPAIR_EQUALIZE || k == HN_REPAIR_SMOOTH || k == HN_REPAIR_RANGES;
    return fitted ? CLAMP(1 - FITTED / sqrt((double)r->o->held), LEAST, GAIN) : GAIN;
}

/* p gets the spans of the best method in the model's new units; a plan that was read has its own. */
static gboolean calibrate(const Repair *r, HnQuantPlan *p, GError **error)
{
    const gboolean one = r->o->one_method || r->o->anyway;
    if (r->o->calibrate == NULL)
        return TRUE;
    Methods m = { 0 };
    int best = (int)r->o->method;
    double least = INFINITY;
    gboolean ok = methods_of(r, p, FALSE, &m, error);
    for (int k = 0; k < HN_CALIB_METHODS && ok && !one; k++) {
        HnScore score;
        ok = score_of(r, m.of[k], &score, error);
        if (ok && hn_repair_error(&score) < least) {
            least = hn_repair_error(&score);
            best = k;
        }
    }
    if (ok)
        use_spans(p, m.of[best]);
    methods_clear(&m);
    return ok;
}

static gboolean round_weights(Repair *r, HnQuantPlan **p, char **what, GError **error)
{
    HnRoundingLog log;
    g_autoptr(HnModel) m = open_copy(r, error);
    if (m == NULL || !hn_quant_round(*p, m, &r->o->samples, &log, error))
        return FALSE;
    r->changes = log.weights > 0;
    *what = g_strdup_printf("%u weights, their error %.2f times that of the nearest integers", log.weights,
                            log.before > 0 ? log.after / log.before : 1);
    return TRUE;
}

static gboolean change_units(Repair *r, HnQuantPlan **p, gboolean from_samples, char **what, GError **error)
{
    HnEqualizeLog log;
    g_autoptr(HnModel) m = open_copy(r, error);
    if (m == NULL || !hn_quant_equalize(*p, m, from_samples, &r->o->samples, &log, error))
        return FALSE;
    *what = g_strdup_printf("%u of %u channels may change, in %u sets; %.2f times the noise are promised", log.free,
                            log.channels, log.sets, log.noise);
    r->changes = log.sets > 0 && (r->o->anyway || log.noise < 1);
    if (!r->changes)
        return TRUE;
    g_hash_table_remove_all((*p)->integers); /* of other weights */
    g_autofree char *rounded = NULL;
    return r->o->replace(r->o->data, m, error) &&
           ((r->log->kept & 1u << HN_REPAIR_ROUNDING) == 0 || round_weights(r, p, &rounded, error)) &&
           calibrate(r, *p, error);
}

static gboolean equalize(Repair *r, HnQuantPlan **p, char **what, GError **error)
{
    return change_units(r, p, FALSE, what, error);
}

static gboolean smooth(Repair *r, HnQuantPlan **p, char **what, GError **error)
{
    return change_units(r, p, TRUE, what, error);
}

/* Tensors of a model in its order, some of which get the spans of another method. */
typedef struct {
    guint from, to;
} Stretch;

static gboolean use_some(HnQuantPlan *p, const HnQuantPlan *from, const GPtrArray *values, Stretch s)
{
    gboolean changes = FALSE;
    for (guint i = s.from; i < s.to; i++) {
        const HnValue *v = values->pdata[i];
        const HnQuantSpan *now = hn_quant_plan_span(p, v), *other = hn_quant_plan_span(from, v);
        if (other == NULL || (now != NULL && now->lo == other->lo && now->hi == other->hi))
            continue;
        hn_quant_plan_set_span(p, v->name, other->lo, other->hi);
        changes = TRUE;
    }
    return changes;
}

/* All methods for ever shorter stretches of the model: halves, quarters, ... p becomes the best plan found. */
static gboolean mix_methods(const Repair *r, HnQuantPlan **p, const Methods *m, const GPtrArray *values, guint *taken,
                            GError **error)
{
    g_autoptr(GArray) stretches = g_array_new(FALSE, FALSE, sizeof(Stretch));
    const Stretch all = { 0, values->len };
    double least = r->error;
    guint trials = 0;
    g_array_append_val(stretches, all);
    for (guint i = 0; i < stretches->len && trials < TRIALS; i++) {
        const Stretch s = g_array_index(stretches, Stretch, i);
        for (int k = 0; k < HN_CALIB_METHODS; k++) {
            g_autoptr(HnQuantPlan) copy = hn_quant_plan_copy(*p);
            HnScore score;
            if (!use_some(copy, m->of[k], values, s))
                continue;
            hn_progress_tell(r->o->search->progress, "ranges", trials++, TRIALS);
            if (hn_progress_stop(r->o->search->progress, error) || !score_of(r, copy, &score, error))
                return FALSE;
            if (hn_repair_error(&score) >= GAIN * least)
                continue;
            HnQuantPlan *old = *p;
            *p = g_steal_pointer(&copy);
            copy = old;
            least = hn_repair_error(&score);
            *taken += 1;
        }
        const Stretch halves[] = { { s.from, (s.from + s.to) / 2 }, { (s.from + s.to) / 2, s.to } };
        if (s.to - s.from > 1)
            g_array_append_vals(stretches, halves, 2);
    }
    return TRUE;
}

static gboolean choose_ranges(Repair *r, HnQuantPlan **p, char **what, GError **error)
{
    Methods m = { 0 };
    guint taken = 0;
    if (r->o->anyway || r->o->calibrate == NULL) { /* its spans are the choice, or there are none */
        r->changes = r->o->anyway;
        *what = g_strdup(r->o->anyway ? "as the plan says" : "no ranges of samples");
        return TRUE;
    }
    g_autoptr(HnModel) model = open_copy(r, error);
    if (model == NULL)
        return FALSE;
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(*p);
    hn_quant_spread(spread, model);
    g_autoptr(GPtrArray) values = hn_quant_wanted(spread, model);
    const gboolean same = (r->log->kept & (1u << HN_REPAIR_EQUALIZE | 1u << HN_REPAIR_SMOOTH)) == 0;
    const gboolean ok = methods_of(r, *p, same, &m, error) && mix_methods(r, p, &m, values, &taken, error);
    methods_clear(&m);
    r->changes = taken > 0;
    *what = g_strdup_printf("%u tensors, other methods for %u stretches of them", values->len, taken);
    return ok;
}

static gboolean correct_biases(Repair *r, HnQuantPlan **p, char **what, GError **error)
{
    HnCorrectLog log;
    const HnCorrectOptions o = { .open = open_copy, .build = build_copy, .data = r, .capture = r->o->samples };
    if (!hn_quant_correct(*p, &o, &log, error))
        return FALSE;
    r->changes = log.nodes > 0;
    *what = g_strdup_printf("%u nodes, shifted by %.3g of their output", log.nodes, sqrt(log.before));
    return TRUE;
}

/* Each fills in *p, a copy, which may become another one. */
static gboolean (*const repairs[HN_REPAIRS])(Repair *r, HnQuantPlan **p, char **what, GError **error) = {
    [HN_REPAIR_EQUALIZE] = equalize,      [HN_REPAIR_SMOOTH] = smooth,       [HN_REPAIR_RANGES] = choose_ranges,
    [HN_REPAIR_ROUNDING] = round_weights, [HN_REPAIR_BIAS] = correct_biases,
};

/* Where none has to be better than what was before, weights get their integers once: integers say nothing of factors.
 */
static const HnRepair units_first[HN_REPAIRS] = { HN_REPAIR_EQUALIZE, HN_REPAIR_SMOOTH, HN_REPAIR_ROUNDING,
                                                  HN_REPAIR_RANGES, HN_REPAIR_BIAS };

/* BUDGET: what follows the repairs would lack memory. */
static gboolean leaves_enough(const Repair *r, GError **error)
{
    const gsize limit = hn_budget_limit(r->o->samples.budget), used = hn_budget_used(r->o->samples.budget);
    if (limit == 0 || (used <= limit && limit - used >= r->o->reserve))
        return TRUE;
    g_set_error_literal(error, HN_ERROR, HN_ERROR_BUDGET, "it would leave too little memory for what follows");
    return FALSE;
}

static gboolean try_repair(Repair *r, HnRepair k, HnQuantPlan **p, HnScore *score, GError **error)
{
    HnRepairStep step = { .repair = k, .before = *score };
    const gboolean units = k == HN_REPAIR_EQUALIZE || k == HN_REPAIR_SMOOTH;
    g_autoptr(HnModel) as_it_was = units ? open_copy(r, error) : NULL;
    g_autoptr(HnQuantPlan) copy = hn_quant_plan_copy(*p);
    if (units && as_it_was == NULL)
        return FALSE;
    r->error = hn_repair_error(score);
    hn_progress_tell(r->o->search->progress, names[k], 0, 0);
    if (hn_progress_stop(r->o->search->progress, error))
        return FALSE;
    GError *failure = NULL;
    r->changes = TRUE;
    gboolean ok = repairs[k](r, &copy, &step.what, &failure) && leaves_enough(r, &failure);
    if (ok && r->changes && !r->o->anyway)
        ok = score_of(r, copy, &step.after, &failure);
    else
        step.after = *score;
    if (ok)
        r->log->tried |= 1u << k;
    step.kept = ok && r->changes && (r->o->anyway || hn_repair_error(&step.after) < most_of(r, k) * r->error);
    if (g_error_matches(failure, HN_ERROR, HN_ERROR_BUDGET)) { /* others may need less */
        g_free(step.what);
        step.what = g_strdup(failure->message);
        step.after = *score;
        g_clear_error(&failure);
        ok = TRUE;
    }
    if (step.kept) {
        HnQuantPlan *old = *p;
        *p = g_steal_pointer(&copy);
        copy = old;
        *score = step.after;
        r->log->kept |= 1u << k;
    }
    g_array_append_val(r->log->steps, step);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return ok && (!units || step.kept || r->o->replace(r->o->data, as_it_was, error));
}

static gboolean repair(Repair *r, HnQuantPlan **p, GError **error)
{
    HnRepairLog *log = r->log;
    HnScore score = { NAN, NAN, NAN, NAN, NAN, NAN, NAN, { 0 } };
    if (!r->o->anyway) {
        if (!open_scorer(r, error) || !score_of(r, *p, &score, error))
            return FALSE;
        log->full = log->repaired = score;
        if (r->o->parts && (!score_part(r, *p, HN_PART_WEIGHTS, &log->weights, error) ||
                            !score_part(r, *p, HN_PART_ACTIVATIONS, &log->activations, error)))
            return FALSE;
        log->has_parts = r->o->parts;
    }
    for (int i = 0; i < HN_REPAIRS && !hn_tune_late(r->o->search->budget); i++) {
        const HnRepair k = r->o->anyway ? units_first[i] : (HnRepair)i;
        if ((r->o->wanted & 1u << k) != 0 && !try_repair(r, k, p, &score, error))
            return FALSE;
        log->repaired = score;
    }
    return TRUE;
}

gboolean hn_quant_repair(HnQuantPlan **p, const HnRepairOptions *o, HnRepairLog *log, GError **error)
{
    Repair r = { .o = o, .log = log, .inner = g_ptr_array_new_with_free_func(g_free) };
    r.covered = g_array_new(FALSE, FALSE, sizeof(int));
    *log = (HnRepairLog){ .steps = g_array_new(FALSE, FALSE, sizeof(HnRepairStep)) };
    const gboolean ok = (o->wanted == 0 && !o->parts) || repair(&r, p, error);
    hn_scorer_free(r.scorer);
    g_ptr_array_unref(r.inner);
    g_array_unref(r.covered);
    return ok;
}
