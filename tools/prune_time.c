/* hone-prune: --time-budget covers all of it: choosing and repairing, learning where there is time, a race, writing. */
#include "base/jsonread.h"
#include "hone_prune.h"

#define RACE_LEAST 0.1  /* seconds of runs of each model */
#define RACE_MODELS 2.4 /* they, and what is beside their runs */
#define WRITE 0.2       /* seconds: the file is written, read and run */
#define NO_TIME "no_time_for"

void prune_start_clock(Prune *q)
{
    q->limits.halt = q->ctx->halt;
    hn_tune_start_at(&q->limits, q->ctx->since_ns);
    hn_tune_phase(&q->limits, 1, prune_reserve(q));
}

double prune_reserve(const Prune *q)
{
    return q->limits.last == 0 ? 0 : WRITE + hn_tune_race_seconds(&q->limits);
}

void prune_too_late(Prune *q, GError **failure)
{
    if (hn_tune_was_cut(&q->limits, failure))
        g_set_error(failure, HN_ERROR, HN_ERROR_BUDGET,
                    "the time of '--time-budget' was over before the model was pruned: %g s are too few for it and its "
                    "samples",
                    q->limits.seconds);
}

double prune_race_seconds(const Prune *q, double most)
{
    return CLAMP((hn_tune_left(&q->limits) - WRITE) / RACE_MODELS, RACE_LEAST, most);
}

/* --- what is learned, where there is time for it ------------------------------------------------------------------ */

/* There was none for it when the recipe was written. */
static gboolean was_left_out(const Prune *q, const char *name)
{
    JsonArray *names = hn_json_array_at(q->recipe, NO_TIME);
    for (guint i = 0; names != NULL && i < json_array_get_length(names); i++)
        if (g_strcmp0(hn_json_string(json_array_get_element(names, i)), name) == 0)
            return TRUE;
    return FALSE;
}

gboolean prune_in_time(Prune *q, const char *name, PruneLearnFn learn, GError **error)
{
    HnScore s;
    GError *failure = NULL;
    if (was_left_out(q, name)) {
        g_ptr_array_add(q->left_out, (gpointer)name);
        return TRUE;
    }
    hn_tune_phase(&q->limits, 1, prune_reserve(q));
    const gboolean ok = learn(q, name, &failure);
    if (ok) {
        (void)hn_tune_phase_end(&q->limits);
        return TRUE;
    }
    if (!hn_tune_was_cut(&q->limits, &failure)) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    hn_context_warn(q->ctx, "there was no time for '%s'", name);
    g_ptr_array_add(q->left_out, (gpointer)name);
    return hn_scorer_run(q->scorer, q->result, &s, error); /* what the report says of outputs is of the last run */
}

void prune_add_left_out(const Prune *q, JsonObject *recipe)
{
    JsonArray *names = json_array_new();
    for (guint i = 0; i < q->left_out->len; i++)
        json_array_add_string_element(names, q->left_out->pdata[i]);
    if (q->left_out->len > 0)
        json_object_set_array_member(recipe, NO_TIME, names);
    else
        json_array_unref(names);
}
