/* What a search of forms is to the trials of any job (tune/trial.h). */
#include "quant/search_state.h"

#include <math.h>

#include "quant/plan_file.h"
#include "quant/int8_partition.h"

HnSensitivity *hn_search_node(const HnSearchState *s, guint i)
{
    return s->out->nodes->pdata[i];
}

static HnQuantForm form_in(const HnQuantPlan *p, const HnSensitivity *n)
{
    return (HnQuantForm)GPOINTER_TO_INT(g_hash_table_lookup(p->forms, n->name));
}

gboolean hn_search_has(const HnSearchState *s, const HnQuantPlan *p, const HnSensitivity *n)
{
    return form_in(p, n) == form_in(s->base, n);
}

gboolean hn_search_pinned(const HnSearchState *s, const HnSensitivity *n)
{
    return s->o->pinned != NULL && g_hash_table_contains(s->o->pinned, n->name);
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

static GPtrArray *left_alone(gpointer data, gconstpointer plan)
{
    const HnSearchState *s = data;
    const HnQuantPlan *p = plan;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < s->out->nodes->len; i++)
        if (form_in(p, hn_search_node(s, i)) == HN_FORM_F32)
            g_ptr_array_add(names, g_strdup(hn_search_node(s, i)->name));
    return names;
}

double hn_search_ms(const HnSearchState *s, const HnQuantPlan *p)
{
    const HnPartitionOptions o = { .f32 = s->f32, .integers = s->all };
    return s->all != NULL ? hn_partition_ms(p, s->model, &o) : NAN;
}

static double expected_ms(gpointer data, gconstpointer plan)
{
    return hn_search_ms(data, plan);
}

static char *hash(gconstpointer plan)
{
    return hn_quant_plan_hash(plan);
}

static HnModel *build(gpointer data, gconstpointer plan, GError **error)
{
    const HnSearchState *s = data;
    HnQuantLog log;
    return hn_quant_build(plan, s->o, &log, error);
}

static gboolean score_of(gpointer data, gconstpointer plan, HnModel *m, HnScore *score, GError **error)
{
    const HnSearchState *s = data;
    return s->o->score != NULL ? s->o->score(s->o->data, plan, score, error)
                               : hn_scorer_run(s->o->scorer, m, score, error);
}

static void tell(gpointer data, gconstpointer plan, guint number, const char *what, const HnScore *score, double drop)
{
    const HnSearchState *s = data;
    const HnTrial trial = { plan, number, what, *score, drop };
    if (s->o->trial != NULL)
        s->o->trial(s->o->data, &trial);
}

void hn_search_init(HnSearchState *s, const HnQuantPlan *base, const HnSearchOptions *o, HnJournal *journal,
                    HnSearch *out)
{
    *s = (HnSearchState){ .o = o, .base = base, .out = out };
    s->tune = (HnTune){ .job = { s, hash, build, left_alone, expected_ms, score_of, tell },
                        .scorer = o->scorer,
                        .goals = &o->goals,
                        .original = &out->original,
                        .journal = journal,
                        .points = out->points,
                        .backend = o->backend,
                        .threads = o->threads,
                        .budget = o->budget,
                        .progress = o->progress };
}

/* p is the best plan so far; taken. */
gboolean hn_search_keep(HnSearchState *s, HnQuantPlan *p, const HnOutcome *o, GError **error)
{
    hn_quant_plan_free(s->out->plan);
    s->out->plan = p;
    s->out->scored = TRUE;
    s->out->score = o->score;
    s->out->drop = o->drop;
    hn_tune_choose(&s->tune, p);
    return s->o->improved == NULL || s->o->improved(s->o->data, p, error);
}

HnQuantPlan *hn_search_plan(const HnSearchState *s, const gboolean *wanted, gboolean less)
{
    HnQuantPlan *p = hn_quant_plan_copy(s->base);
    for (guint i = 0; i < s->out->nodes->len; i++)
        if (!wanted[i])
            hn_quant_plan_set_form(p, hn_search_node(s, i)->name, less ? hn_search_node(s, i)->less : HN_FORM_F32);
    return p;
}

/* --- times -------------------------------------------------------------------------------------------------------- */

HnQuantPlan *hn_search_none(const HnQuantPlan *p)
{
    HnQuantPlan *none = hn_quant_plan_copy(p);
    g_hash_table_remove_all(none->forms);
    return none;
}

static double ms_at(const HnNodeTimes *t, const char *name)
{
    const HnNodeTime *at = hn_node_time(t, name);
    return at != NULL ? at->ms : NAN;
}

/* All nodes as f32, and all candidates as integers. */
gboolean hn_search_time_all(HnSearchState *s, GError **error)
{
    g_autoptr(HnQuantPlan) none = hn_search_none(s->base);
    if (s->f32 != NULL)
        return TRUE;
    const gconstpointer plans[] = { none, s->base };
    const HnNodeTimes *times[2];
    if (!hn_tune_times(&s->tune, plans, 2, times, error))
        return FALSE;
    s->f32 = times[0];
    s->all = times[1];
    for (guint i = 0; i < s->out->nodes->len; i++) {
        HnSensitivity *n = hn_search_node(s, i);
        n->f32_ms = ms_at(s->f32, n->name);
        n->int_ms = hn_node_integer_ms(s->all, n->name, s->base->o.integers);
        s->f32_ms += isfinite(n->f32_ms) ? n->f32_ms : 0;
    }
    return TRUE;
}

guint hn_search_forms(const HnSearchState *s, const HnQuantPlan *p)
{
    guint n = 0;
    for (guint i = 0; i < s->out->nodes->len; i++)
        n += hn_search_has(s, p, hn_search_node(s, i));
    return n;
}
