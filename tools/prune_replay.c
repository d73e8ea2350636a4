/* hone-prune: the recipe of what is written, and --replay, which makes the same bytes of one. */
#include "base/jsonread.h"
#include "check/recipe.h"
#include "hone_prune.h"

/* --- out ---------------------------------------------------------------------------------------------------------- */

gboolean prune_take_hashes(Prune *q, GError **error)
{
    if ((q->model_hash = hn_recipe_hash_model(q->path, q->file, q->ctx->budget, error)) == NULL)
        return FALSE;
    if (q->p->calib != NULL && (q->data_hash = hn_recipe_hash_data(q->data, hn_data_count(q->data), error)) == NULL)
        return FALSE;
    return q->recipe == NULL ||
           (hn_recipe_check_hash(q->recipe, q->p->replay, "input", q->model_hash, "another model", error) &&
            hn_recipe_check_hash(q->recipe, q->p->replay, "calibration", q->data_hash, "other samples", error));
}

void prune_write_recipe(const Prune *q)
{
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "input", q->model_hash);
    json_object_set_string_member(o, "calibration", q->data_hash);
    prune_add_chosen(q, o);
    prune_add_left_out(q, o);
    hn_recipe_write(q->result, PRUNE_TOOL, hn_recorded_json(&prune_recorded, q->p, q->ctx->common.seed), o);
    hn_model_set_metadata(q->result, HN_SPEED_ONLY, q->p->speed_only ? "true" : NULL);
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

gboolean prune_read_recipe(Prune *q, GError **error)
{
    const PruneParams *given = q->p;
    const char *path = given->replay;
    q->recipe = hn_recipe_open(path, PRUNE_TOOL, q->ctx->budget, error);
    if (q->recipe == NULL || !hn_recipe_check_metric(q->recipe, path, given->metric, error) ||
        !hn_recipe_has_hash(q->recipe, path, "input", FALSE, error) ||
        !hn_recipe_has_hash(q->recipe, path, "calibration", TRUE, error))
        return FALSE;
    hn_tool_warn_version(q->ctx, path, hn_json_string_at(q->recipe, "hone"));
    PruneParams *p = &q->replayed;
    *p = prune_defaults;
    q->p = p;
    if (!hn_recorded_read(&prune_recorded, hn_json_object_at(q->recipe, "options"), p, &q->ctx->common.seed, error)) {
        g_prefix_error(error, "'%s': ", path);
        return FALSE;
    }
    p->replay = given->replay;
    p->output = given->output;
    p->calib = given->calib;
    p->from = given->from;
    p->input = given->input;
    if (given->metric != NULL) {
        g_free(p->metric);
        p->metric = g_strdup(given->metric);
    }
    return TRUE;
}

void prune_clear_replayed(Prune *q)
{
    if (q->p == &q->replayed)
        hn_recorded_clear(&prune_recorded, &q->replayed);
    g_clear_pointer(&q->recipe, json_object_unref);
    g_free(q->model_hash);
    g_free(q->data_hash);
}
