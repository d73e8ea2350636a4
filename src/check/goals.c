#include "check/goals.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

static const char *const names[HN_METRICS] = { "top1", "cos", "sqnr", "scores", "r2", "cmd", "none" };
static const double defaults[HN_METRICS] = { 0.01, 0.001, 0.01, 0.02, 0.002, 0.01, 0 };

const char *hn_metric_name(HnMetric metric)
{
    return names[metric];
}

/* n characters of name are one of the first `most` metrics. */
static gboolean parse_name(const char *name, gsize n, int most, HnMetric *metric)
{
    for (int i = 0; i < most; i++)
        if (i != HN_METRIC_CMD && strlen(names[i]) == n && strncmp(name, names[i], n) == 0) {
            *metric = (HnMetric)i;
            return TRUE;
        }
    return FALSE;
}

static gboolean wrong_name(const char *text, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                "metric '%s' is none of top1, cos, sqnr, scores, r2, cmd:PROGRAM, and no list of METRIC@OUTPUT", text);
    return FALSE;
}

gboolean hn_metric_choice_parse(const char *text, HnMetricChoice *out, GError **error)
{
    *out = (HnMetricChoice){ .all = HN_METRIC_CMD };
    if (g_str_has_prefix(text, "cmd:") && text[4] != '\0') {
        out->given = TRUE;
        out->command = text + 4;
        return TRUE;
    }
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    out->of = g_malloc0_n(g_strv_length(parts) + 1, sizeof *out->of);
    if (parts[0] == NULL)
        return wrong_name(text, error);
    for (int i = 0; parts[i] != NULL; i++) {
        const char *at = strchr(parts[i], '@');
        const gsize n = at != NULL ? (gsize)(at - parts[i]) : strlen(parts[i]);
        HnMetric *to = at != NULL ? &out->of[out->n].metric : &out->all;
        const gboolean twice = at == NULL && out->given;
        if (twice || (at != NULL && at[1] == '\0') ||
            !parse_name(parts[i], n, at != NULL ? HN_METRICS : HN_METRIC_CMD, to)) {
            return wrong_name(text, error);
        }
        if (at != NULL)
            out->of[out->n++].output = g_strdup(at + 1);
        else
            out->given = TRUE;
    }
    return TRUE;
}

void hn_metric_choice_clear(HnMetricChoice *c)
{
    for (guint i = 0; i < c->n; i++)
        g_free(c->of[i].output);
    g_clear_pointer(&c->of, g_free);
    c->n = 0;
}

double hn_score_drop(HnMetric metric, const HnScore *score, const HnScore *original)
{
    switch (metric) {
    case HN_METRIC_TOP1:
        return original->top1 - score->top1;
    case HN_METRIC_COS:
        return original->cos - score->cos;
    case HN_METRIC_SQNR:
        return pow(10, -score->sqnr / 20);
    case HN_METRIC_SCORES: /* is a change itself */
        return isnan(original->scores) ? 0 : isnan(score->scores) ? INFINITY : score->scores;
    case HN_METRIC_R2:
        return isnan(original->r2) ? 0 : isnan(score->r2) ? INFINITY : original->r2 - score->r2;
    case HN_METRIC_CMD: {
        const double less = original->command - score->command;
        return original->command != 0 ? less / fabs(original->command) : less;
    }
    default:
        return INFINITY;
    }
}

void hn_goals_add(HnGoals *g, HnMetric metric, double most)
{
    g->goal[g->n].metric = metric;
    g->goal[g->n++].most = isnan(most) ? defaults[metric] : most;
}

gboolean hn_goals_met(const HnGoals *g, const HnScore *score, const HnScore *original)
{
    for (int i = 0; i < g->n; i++)
        if (!(hn_score_drop(g->goal[i].metric, score, original) <= g->goal[i].most))
            return FALSE;
    return TRUE;
}

double hn_goals_part(const HnGoals *g, const HnScore *score, const HnScore *original)
{
    double worst = 0;
    for (int i = 0; i < g->n; i++) {
        const double drop = hn_score_drop(g->goal[i].metric, score, original), most = g->goal[i].most;
        const double part = most > 0 ? drop / most : drop > 0 ? INFINITY : 0;
        worst = isnan(part) ? INFINITY : fmax(worst, part);
    }
    return worst;
}

double hn_goals_drop(const HnGoals *g, const HnScore *score, const HnScore *original, int *which)
{
    double worst = -INFINITY, found = 0;
    int at = 0;
    for (int i = 0; i < g->n; i++) {
        const double drop = hn_score_drop(g->goal[i].metric, score, original), most = g->goal[i].most;
        const double part = !(drop <= most) ? 2 + drop - most : most > 0 ? drop / most : 1;
        if (i == 0 || part > worst) {
            worst = part;
            found = drop;
            at = i;
        }
    }
    if (which != NULL)
        *which = at;
    return found;
}
