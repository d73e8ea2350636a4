#include "quant/search.h"

#include <math.h>
#include <string.h>

#include "check/layer_diff.h"
#include "quant/int8_partition.h"
#include "quant/fallback.h"
#include "quant/store.h"

#define ROUNDS 3    /* of choosing by time */
#define FASTER 0.99 /* of the time: a race is won by no less, and by an interval that does not reach 1 */

/* Tried one after the other: where the first choice makes the whole slower than it was, fewer nodes go. */
static const double bonuses[] = { HN_SEARCH_BONUS, 0.15, 0.4 };

static void sensitivity_free(gpointer data)
{
    HnSensitivity *s = data;
    g_free(s->name);
    g_free(s->op);
    g_free(s);
}

void hn_search_clear(HnSearch *s)
{
    g_clear_pointer(&s->nodes, g_ptr_array_unref);
    g_clear_pointer(&s->points, g_ptr_array_unref);
    g_clear_pointer(&s->plan, hn_quant_plan_free);
}

HnModel *hn_quant_build(const HnQuantPlan *p, const HnSearchOptions *o, HnQuantLog *log, GError **error)
{
    g_autoptr(HnModel) m = o->open(o->data, error);
    if (m == NULL)
        return NULL;
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(p);
    hn_quant_spread(spread, m);
    return hn_quant_apply(spread, m, hn_tune_memory(o->budget), log, error) ? g_steal_pointer(&m) : NULL;
}

/* --- by time ------------------------------------------------------------------------------------------------------ */

/* Times of nodes that have just been measured in integers are worth more than those before. */
static HnNodeTimes *merged(const HnNodeTimes *before, const HnNodeTimes *now)
{
    HnNodeTimes *t = hn_node_times_new();
    const HnNodeTimes *const both[] = { before, now };
    t->total_ms = now->total_ms;
    for (int k = 0; k < 2; k++) {
        GHashTableIter iter;
        gpointer name, at;
        g_hash_table_iter_init(&iter, both[k]->nodes);
        while (g_hash_table_iter_next(&iter, &name, &at))
            g_hash_table_insert(t->nodes, g_strdup(name), g_memdup2(at, sizeof(HnNodeTime)));
    }
    return t;
}

static void mark_slower(HnSearchState *s, const HnQuantPlan *before, const HnQuantPlan *now)
{
    for (guint i = 0; i < s->out->nodes->len; i++)
        if (hn_search_has(s, before, hn_search_node(s, i)) && !hn_search_has(s, now, hn_search_node(s, i)))
            hn_search_node(s, i)->why = "slower";
}

/* p instead of the plan so far, where it is faster. *won tells. */
static gboolean challenge(HnSearchState *s, HnQuantPlan *p, gboolean *won, GError **error)
{
    HnOutcome o;
    HnEffect effect;
    *won = FALSE;
    if (!hn_tune_try(&s->tune, p, "without slower ones", TRUE, &o, error))
        return FALSE;
    if (!o.met || (s->o->most_bytes > 0 && o.bytes > s->o->most_bytes))
        return TRUE;
    if (!hn_tune_race(&s->tune, s->out->plan, p, 1, FASTER, &effect, error))
        return FALSE;
    *won = effect.effect <= FASTER && hn_decide(&effect, 1) == HN_WON;
    if (!*won)
        return TRUE;
    mark_slower(s, s->out->plan, p);
    return hn_search_keep(s, hn_quant_plan_copy(p), &o, error);
}

/* One round; *more: something went. */
static gboolean drop_slow(HnSearchState *s, const HnNodeTimes *ints, gboolean *more, GError **error)
{
    guint before = hn_search_forms(s, s->out->plan), fewest = G_MAXUINT;
    *more = FALSE;
    for (gsize k = 0; k < G_N_ELEMENTS(bonuses) && !*more && !hn_tune_late(s->o->budget); k++) {
        const HnPartitionOptions o = { .f32 = s->f32, .integers = ints, .pinned = s->o->pinned, .bonus = bonuses[k] };
        g_autoptr(HnQuantPlan) p = hn_partition_choose(s->out->plan, s->model, &o);
        const guint left = hn_search_forms(s, p);
        if (left == before)
            break;
        if (left == fewest) /* the same as with a smaller bonus */
            continue;
        fewest = left;
        if (!challenge(s, p, more, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean settle_by_time(HnSearchState *s, GError **error)
{
    g_autoptr(HnNodeTimes) ints = NULL;
    for (int round = 0; round < ROUNDS && !hn_tune_late(s->o->budget); round++) {
        gboolean more;
        const gconstpointer plan = s->out->plan;
        const HnNodeTimes *now;
        if (!hn_tune_times(&s->tune, &plan, 1, &now, error))
            return FALSE;
        HnNodeTimes *both = merged(ints != NULL ? ints : s->all, now);
        hn_node_times_free(ints);
        ints = both;
        if (!drop_slow(s, ints, &more, error))
            return FALSE;
        s->out->slower = more && hn_search_forms(s, s->out->plan) == 0;
        if (!more || s->out->slower)
            break;
    }
    return TRUE;
}

/* What depends on the plan as a whole is made again for the one found, and kept where it loses no more. */
static gboolean refine(HnSearchState *s, GError **error)
{
    if (s->o->refine == NULL || s->out->plan == NULL || s->out->slower)
        return TRUE;
    if (hn_search_forms(s, s->out->plan) == hn_search_forms(s, s->base) || hn_tune_late(s->o->budget))
        return TRUE;
    g_autoptr(HnQuantPlan) p = hn_quant_plan_copy(s->out->plan);
    HnOutcome o;
    if (!s->o->refine(s->o->data, &p, error) || !hn_tune_try(&s->tune, p, "refined", TRUE, &o, error))
        return FALSE;
    s->out->refined = o.met && o.drop <= s->out->drop;
    return !s->out->refined || hn_search_keep(s, g_steal_pointer(&p), &o, error);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static double int_bytes(const HnNode *n, HnQuantForm form)
{
    const HnTensor *w = hn_quant_weight(n)->weight;
    return (double)w->n * (form == HN_FORM_W4 ? 0.5 : 1);
}

/* Of rounding to 127 steps to either side of 0, each channel by itself: what is known of a node's error before it has
 * been tried. */
static double noise_of(const HnNode *n)
{
    const HnTensor *w = hn_quant_weight(n)->weight;
    const int axis = hn_quant_scale_axis(n, w->ndim);
    const int64_t channels = axis >= 0 ? w->dims[axis] : 1;
    g_autofree float *most = g_new0(float, (gsize)channels + 1);
    double energy = 0, noise = 0;
    int64_t inner = 1;
    for (int i = axis + 1; i < w->ndim; i++)
        inner *= w->dims[i];
    for (int64_t i = 0; i < w->n; i++) {
        float x;
        memcpy(&x, (const char *)w->data + (gsize)i * sizeof x, sizeof x); /* perhaps not aligned */
        float *m = &most[i / inner % channels];
        *m = fmaxf(*m, fabsf(x));
        energy += (double)x * x;
    }
    for (int64_t c = 0; c < channels; c++)
        noise += (double)most[c] * most[c] / (127.0 * 127.0 * 12) * ((double)w->n / (double)channels);
    return energy > 0 ? noise / energy : 0;
}

static gboolean list_nodes(HnSearchState *s, GError **error)
{
    HnModel *m = s->model = s->o->open(s->o->data, error);
    if (m == NULL)
        return FALSE;
    g_autoptr(GPtrArray) found = hn_quant_candidates(m);
    for (guint i = 0; i < found->len; i++) {
        const HnNode *n = found->pdata[i];
        const HnQuantForm form = hn_quant_plan_form(s->base, n);
        if (form == HN_FORM_F32)
            continue;
        HnSensitivity *x = g_new0(HnSensitivity, 1);
        x->name = g_strdup(hn_quant_name(n));
        x->op = g_strdup(n->op_type);
        x->weight_bytes = (double)hn_quant_weight(n)->weight->bytes;
        x->int_bytes = int_bytes(n, form);
        s->weight_bytes += x->weight_bytes;
        x->less = form == HN_FORM_W4 ? hn_quant_form_fit(n, HN_FORM_W8, &s->base->o) : HN_FORM_F32;
        x->noise = s->o->quick ? noise_of(n) : 0;
        x->f32_ms = x->int_ms = x->drop = x->accumulated = NAN;
        g_ptr_array_add(s->out->nodes, x);
    }
    const HnOutcome f32 = { .score = s->out->original, .met = TRUE, .bytes = hn_model_weight_bytes(m) };
    g_autoptr(HnQuantPlan) none = hn_search_none(s->base);
    hn_tune_point(&s->tune, "f32", none, &f32);
    g_autoptr(GHashTable) regions = hn_partition_regions(s->base, m);
    for (guint i = 0; i < s->out->nodes->len; i++)
        hn_search_node(s, i)->region = GPOINTER_TO_UINT(g_hash_table_lookup(regions, hn_search_node(s, i)->name));
    return TRUE;
}

/* Errors at nodes' outputs, of one sample. */
static gboolean accumulate(HnSearchState *s, GError **error)
{
    HnQuantLog log;
    g_autoptr(HnModel) f32 = s->o->open(s->o->data, error);
    g_autoptr(HnModel) m = f32 != NULL ? hn_quant_build(s->base, s->o, &log, error) : NULL;
    const HnLayerDiffOptions o = {
        .per_layer = TRUE, .threads = s->o->threads, .budget = hn_tune_memory(s->o->budget), .progress = s->o->progress
    };
    const HnSide a = { .model = f32, .backend = s->o->backend }, b = { .model = m, .backend = s->o->backend };
    g_autoptr(HnLayerDiff) l = m != NULL ? hn_layer_diff_new(&a, &b, &o, error) : NULL;
    if (l == NULL || !hn_layer_diff_run(l, hn_scorer_inputs(s->o->scorer), error))
        return FALSE;
    g_autoptr(GHashTable) rows = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < hn_layer_diff_rows(l); i++)
        g_hash_table_insert(rows, hn_layer_diff_row(l, i)->match.a->name, (gpointer)hn_layer_diff_row(l, i));
    for (guint i = 0; i < s->out->nodes->len; i++) {
        const HnLayerDiffRow *row = g_hash_table_lookup(rows, hn_search_node(s, i)->name);
        if (row != NULL && row->accumulated.samples > 0)
            hn_search_node(s, i)->accumulated = row->accumulated.sqnr;
    }
    return TRUE;
}

static void set_forms(HnSearch *out)
{
    for (guint i = 0; i < out->nodes->len; i++) {
        HnSensitivity *n = out->nodes->pdata[i];
        n->form = out->plan != NULL ? (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(out->plan->forms, n->name))
                                    : HN_FORM_F32;
        if (n->form != HN_FORM_F32)
            n->why = NULL;
        else if (n->why == NULL)
            n->why = "error";
    }
}

void hn_search_insist(HnSearch *s, HnQuantPlan *p)
{
    hn_quant_plan_free(s->plan);
    s->plan = p;
    s->scored = s->tried_first;
    s->score = s->first_score;
    s->drop = s->first_drop;
    set_forms(s);
}

/* The base, or as much of it as the goals allow. */
static gboolean settle(HnSearchState *s, const char *what, GError **error)
{
    const HnSearchOptions *o = s->o;
    const HnQuantPlan *first = o->fixed != NULL ? o->fixed : s->base;
    HnOutcome all;
    if (!hn_tune_try(&s->tune, first, what, TRUE, &all, error))
        return FALSE;
    if (!s->out->tried_first) {
        s->out->tried_first = TRUE;
        s->out->first_score = all.score;
        s->out->first_drop = all.drop;
    }
    if (all.met && !hn_search_keep(s, hn_quant_plan_copy(first), &all, error))
        return FALSE;
    if (o->accumulated && !accumulate(s, error))
        return FALSE;
    if (o->quick && !all.met && !o->fixed) {
        if (!hn_search_quick(s, error))
            return FALSE;
        if (s->out->plan != NULL)
            return TRUE;
    }
    if (((!all.met && !o->fixed) || o->all_alone) && !hn_search_alone(s, error))
        return FALSE;
    return o->fixed != NULL || all.met || hn_search_by_error(s, all.part, error);
}

/* The base with more bits where there were 4; NULL: there were none. */
static HnQuantPlan *with_more_bits(HnSearchState *s)
{
    HnQuantPlan *p = hn_quant_plan_copy(s->base);
    gboolean any = FALSE;
    for (guint i = 0; i < s->out->nodes->len; i++) {
        HnSensitivity *n = hn_search_node(s, i);
        if (n->less == HN_FORM_F32 || hn_search_pinned(s, n))
            continue;
        any = TRUE;
        hn_quant_plan_set_form(p, n->name, n->less);
        n->int_bytes *= 2;
        n->less = HN_FORM_F32;
    }
    if (!any)
        g_clear_pointer(&p, hn_quant_plan_free);
    return p;
}

static gboolean search(HnSearchState *s, HnQuantPlan **wider, GError **error)
{
    const HnSearchOptions *o = s->o;
    if (!list_nodes(s, error))
        return FALSE;
    if (s->out->nodes->len == 0)
        return TRUE;
    if (o->by_time && (!o->fixed || o->all_alone) && !hn_search_time_all(s, error))
        return FALSE;
    if (!settle(s, o->fixed ? "the plan" : "all", error))
        return FALSE;
    if (!o->fixed && s->out->plan == NULL && !hn_tune_late(s->o->budget) && (*wider = with_more_bits(s)) != NULL) {
        s->base = *wider;
        if (!settle(s, "all with 8 bits", error))
            return FALSE;
    }
    if (!o->fixed && o->by_time && s->out->plan != NULL && !settle_by_time(s, error))
        return FALSE;
    return o->fixed != NULL || (refine(s, error) && hn_search_store(s, error));
}

gboolean hn_quant_search(const HnQuantPlan *base, const HnSearchOptions *o, HnSearch *out, GError **error)
{
    g_autoptr(HnJournal) own = o->journal == NULL ? hn_journal_new() : NULL;
    HnSearchState s;
    if (o->budget != NULL)
        hn_tune_start(o->budget);
    *out = (HnSearch){ .nodes = g_ptr_array_new_with_free_func(sensitivity_free), .points = hn_pareto_new() };
    hn_scorer_original(o->scorer, &out->original);
    hn_search_init(&s, base, o, own != NULL ? own : o->journal, out);
    g_autoptr(HnQuantPlan) wider = NULL;
    const gboolean ok = search(&s, &wider, error);
    set_forms(out);
    hn_pareto_finish(out->points, s.tune.journal);
    out->trials = s.tune.trials;
    out->out_of_time = o->budget != NULL && o->budget->late;
    hn_model_free(s.model);
    return ok;
}
