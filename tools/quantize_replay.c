/* hone-quantize: the recipe of what is written, the same of the same run, and --replay, which makes the same bytes. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "check/recipe.h"
#include "quant/plan_file.h"
#include "hone_quantize.h"

/* --- hashes ------------------------------------------------------------------------------------------------------- */

gboolean quantize_take_hashes(Quantize *q, GError **error)
{
    return (q->model_hash = hn_recipe_hash_model(q->path, q->file, q->ctx->budget, error)) != NULL &&
           (q->data_hash = hn_recipe_hash_data(q->data, q->held_first + q->held, error)) != NULL;
}

/* --- the recipe --------------------------------------------------------------------------------------------------- */

JsonObject *quantize_options_json(const Quantize *q)
{
    return hn_recorded_json(&quantize_recorded, q->p, q->ctx->common.seed);
}

/* What the program of --metric gave for the result; NaN: none was asked, or not of this. */
static double made_number(const Quantize *q)
{
    return q->search.scored ? q->search.score.command : NAN;
}

/* What the program said, and not which one it was. Of an older recipe, which did, the words are kept: that the same
 * bytes come of it. */
static void add_program(const Quantize *q, JsonObject *recipe, JsonObject *options)
{
    const char *older = hn_json_string_at(hn_json_object_at(q->recipe, "options"), "metric");
    HnScore original;
    hn_scorer_original(q->scorer, &original);
    if (older == NULL || strcmp(older, "cmd") == 0)
        hn_recipe_add_numbers(recipe, original.command, made_number(q));
    else
        json_object_set_string_member(options, "metric", older);
}

/* Those that would have come to the same without a limit of time: the safe plan is one of '--mode weights', and what
 * there was no time for was not wanted. */
static JsonObject *options_of_result(const Quantize *q)
{
    QuantizeParams p = *q->p;
    g_autoptr(GPtrArray) tried = g_ptr_array_new();
    for (int k = 0; k < HN_REPAIRS && !q->is_safe; k++)
        if ((q->repairs.tried & q->repairs_wanted) >> k & 1)
            g_ptr_array_add(tried, (gpointer)hn_repair_name((HnRepair)k));
    if (tried->len == 0)
        g_ptr_array_add(tried, (gpointer) "none");
    g_ptr_array_add(tried, NULL);
    g_autofree char *list = g_strjoinv(",", (char **)tried->pdata);
    if (q->is_safe) {
        p.mode = (char *)"weights";
        p.format = NULL;
    }
    if (q->is_safe || q->cut)
        p.repair = list;
    if (q->cut && !q->is_safe && q->by_ranges)
        p.method = (char *)hn_calib_method_name(q->method);
    return hn_recorded_json(&quantize_recorded, &p, q->ctx->common.seed);
}

void quantize_write_recipe(const Quantize *q)
{
    JsonObject *o = json_object_new(), *options = options_of_result(q);
    g_autofree char *plan = hn_quant_plan_hash(q->search.plan);
    json_object_set_string_member(o, "target", q->p->target != NULL ? q->p->target : "any");
    json_object_set_string_member(o, "input", q->model_hash);
    json_object_set_string_member(o, "calibration", q->p->calib != NULL ? q->data_hash : NULL);
    json_object_set_string_member(o, "plan", plan);
    if (q->choice.command != NULL)
        add_program(q, o, options);
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(q->f32);
    JsonObject *forms = hn_quant_forms_json(q->search.plan, q->is_safe ? q->safe_base : q->base, nodes);
    if (forms != NULL)
        json_object_set_object_member(o, "forms", forms);
    if (q->search.refined || (q->fixed != NULL && json_object_has_member(q->recipe, "refined")))
        json_object_set_boolean_member(o, "refined", TRUE);
    hn_recipe_write(q->result, QUANTIZE_TOOL, options, o);
    hn_model_set_metadata(q->result, HN_SPEED_ONLY, q->p->speed_only ? "true" : NULL);
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

/* The command line names files and the program; all else is the recipe's. */
static gboolean set_options(Quantize *q, JsonObject *options, GError **error)
{
    const QuantizeParams *given = q->p;
    QuantizeParams *p = &q->replayed;
    *p = quantize_defaults;
    q->p = p;
    if (!hn_recorded_read(&quantize_recorded, options, p, &q->ctx->common.seed, error)) {
        g_prefix_error(error, "'%s': ", given->replay);
        return FALSE;
    }
    p->output = given->output;
    p->calib = given->calib;
    p->from = given->from;
    p->input = given->input;
    p->ranges = given->ranges;
    p->plan = given->plan;
    p->replay = given->replay;
    p->journal = p->timing_cache = (char *)"none";
    if (given->metric != NULL) {
        g_free(p->metric);
        p->metric = g_strdup(given->metric);
    }
    return TRUE;
}

void quantize_clear_replayed(Quantize *q)
{
    if (q->p == &q->replayed)
        hn_recorded_clear(&quantize_recorded, &q->replayed);
    g_clear_pointer(&q->recipe, json_object_unref);
}

gboolean quantize_read_recipe(Quantize *q, GError **error)
{
    const char *path = q->p->replay;
    q->recipe = hn_recipe_open(path, QUANTIZE_TOOL, q->ctx->budget, error);
    if (q->recipe == NULL || !hn_recipe_check_metric(q->recipe, path, q->p->metric, error))
        return FALSE;
    if (!hn_recipe_has_hash(q->recipe, path, "input", FALSE, error) ||
        !hn_recipe_has_hash(q->recipe, path, "calibration", TRUE, error) ||
        !hn_recipe_has_numbers(q->recipe, path, error))
        return FALSE;
    hn_tool_warn_version(q->ctx, path, hn_json_string_at(q->recipe, "hone"));
    return set_options(q, hn_json_object_at(q->recipe, "options"), error);
}

/* --- what went in ------------------------------------------------------------------------------------------------- */

gboolean quantize_check_recipe(const Quantize *q, GError **error)
{
    const char *path = q->p->replay, *data = q->p->calib != NULL ? q->data_hash : NULL;
    return hn_recipe_check_hash(q->recipe, path, "input", q->model_hash, "another model", error) &&
           hn_recipe_check_hash(q->recipe, path, "calibration", data, "other samples", error);
}

gboolean quantize_check_original(const Quantize *q, GError **error)
{
    HnScore original;
    hn_scorer_original(q->scorer, &original);
    return hn_recipe_check_number(q->recipe, q->p->replay, "original", "original", q->choice.command, original.command,
                                  error);
}

gboolean quantize_check_score(const Quantize *q, GError **error)
{
    return hn_recipe_check_number(q->recipe, q->p->replay, "made", "quantized", q->choice.command, made_number(q),
                                  error);
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

gboolean quantize_replay_plan(Quantize *q, GError **error)
{
    JsonObject *forms = hn_json_object_at(q->recipe, "forms");
    JsonNode *refined = hn_json_at(q->recipe, "refined");
    q->fixed = hn_quant_plan_copy(q->base);
    if (!hn_quant_forms_read(forms, q->fixed)) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "a form in the recipe of '%s' is missing or wrong", q->p->replay);
        return FALSE;
    }
    if (hn_json_is_switch(refined) && json_node_get_boolean(refined) && !quantize_refine(q, &q->fixed, error))
        return FALSE;
    q->so.fixed = q->fixed;
    return TRUE;
}
