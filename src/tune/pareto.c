#include "tune/pareto.h"

#include <math.h>
#include <string.h>

static void point_free(gpointer data)
{
    HnParetoPoint *p = data;
    g_free(p->what);
    g_free(p->plan);
    g_free(p);
}

GPtrArray *hn_pareto_new(void)
{
    return g_ptr_array_new_with_free_func(point_free);
}

HnParetoPoint *hn_pareto_find(const GPtrArray *points, const char *plan)
{
    for (guint i = 0; i < points->len; i++) {
        HnParetoPoint *p = points->pdata[i];
        if (strcmp(p->plan, plan) == 0)
            return p;
    }
    return NULL;
}

void hn_pareto_add(GPtrArray *points, const HnParetoPoint *p)
{
    if (hn_pareto_find(points, p->plan) != NULL) /* the same by another way */
        return;
    HnParetoPoint *copy = g_memdup2(p, sizeof *p);
    copy->what = g_strdup(p->what);
    copy->plan = g_strdup(p->plan);
    g_ptr_array_add(points, copy);
}

void hn_pareto_choose(GPtrArray *points, const char *plan)
{
    for (guint i = 0; i < points->len; i++) {
        HnParetoPoint *p = points->pdata[i];
        p->chosen = strcmp(p->plan, plan) == 0;
    }
}

static gboolean beats(const HnParetoPoint *a, const HnParetoPoint *b)
{
    const double x = isnan(a->ms) ? 0 : a->ms, y = isnan(b->ms) ? 0 : b->ms;
    if (isnan(a->ms) != isnan(b->ms) || !(a->drop <= b->drop) || x > y || a->bytes > b->bytes)
        return FALSE;
    return a->drop < b->drop || x < y || a->bytes < b->bytes;
}

void hn_pareto_finish(GPtrArray *points, const HnJournal *j)
{
    for (guint i = 0; i < points->len; i++) {
        HnParetoPoint *p = points->pdata[i];
        const HnNodeTimes *t = hn_journal_times(j, p->plan);
        if (t == NULL)
            continue;
        p->ms = t->total_ms;
        p->predicted = FALSE;
    }
    for (guint i = 0; i < points->len; i++) {
        HnParetoPoint *p = points->pdata[i];
        p->best = TRUE;
        for (guint k = 0; k < points->len; k++)
            p->best = p->best && !beats(points->pdata[k], p);
    }
}
