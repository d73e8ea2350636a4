/* hone-quantize --replay: the options and forms of a model's recipe, and whether the same bytes come of them. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/jsonread.h"
#include "check/recipe.h"
#include "cli/json.h"
#include "hone_quantize.h"

static gboolean wrong(const Quantize *q, const char *what, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "%s in the recipe of '%s' is missing or wrong", what, q->p->replay);
    return FALSE;
}

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

/* Whether all is there that a replay is held against: a missing hash would be equal to any. */
static gboolean is_complete(const Quantize *q, GError **error)
{
    JsonObject *numbers = hn_json_object_at(q->recipe, "cmd");
    const char *path = q->p->replay, *metric = hn_json_string_at(hn_json_object_at(q->recipe, "options"), "metric");
    double x;
    if (!hn_recipe_has_hash(q->recipe, path, "input", FALSE, error) ||
        !hn_recipe_has_hash(q->recipe, path, "calibration", TRUE, error))
        return FALSE;
    return g_strcmp0(metric, "cmd") != 0 || hn_json_number_at(numbers, "original", &x) || wrong(q, "'cmd'", error);
}

gboolean quantize_read_recipe(Quantize *q, GError **error)
{
    const char *path = q->p->replay;
    q->recipe = hn_recipe_open(path, QUANTIZE_TOOL, q->ctx->budget, error);
    if (q->recipe == NULL || !hn_recipe_check_metric(q->recipe, path, q->p->metric, error) || !is_complete(q, error))
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

static gboolean same_number(const Quantize *q, const char *name, const char *of, double now, GError **error)
{
    JsonObject *numbers = hn_json_object_at(q->recipe, "cmd");
    double then;
    if (q->command == NULL || numbers == NULL) /* older recipes say no numbers */
        return TRUE;
    if (!hn_json_number_at(numbers, name, &then))
        then = NAN;
    if (then == now || (isnan(then) && isnan(now)))
        return TRUE;
    g_autofree char *was = isnan(then) ? g_strdup("none") : hn_json_number(then);
    g_autofree char *is = isnan(now) ? g_strdup("none") : hn_json_number(now);
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "'%s' gives %s for the %s model, where the recipe of '%s' says %s",
                q->command, is, of, q->p->replay, was);
    return FALSE;
}

gboolean quantize_check_original(const Quantize *q, GError **error)
{
    HnScore original;
    hn_scorer_original(q->scorer, &original);
    return same_number(q, "original", "original", original.command, error);
}

gboolean quantize_check_score(const Quantize *q, GError **error)
{
    return same_number(q, "made", "quantized", q->made_number, error);
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

gboolean quantize_replay_plan(Quantize *q, GError **error)
{
    JsonObject *forms = hn_json_object_at(q->recipe, "forms");
    JsonNode *refined = hn_json_at(q->recipe, "refined");
    JsonObjectIter iter;
    const char *name;
    JsonNode *n;
    q->fixed = hn_quant_plan_copy(q->base);
    if (forms != NULL)
        json_object_iter_init(&iter, forms);
    while (forms != NULL && json_object_iter_next(&iter, &name, &n)) {
        HnQuantForm form;
        if (!g_hash_table_contains(q->base->forms, name) || hn_json_string(n) == NULL ||
            !hn_quant_form_parse(hn_json_string(n), &form))
            return wrong(q, "a form", error);
        hn_quant_plan_set_form(q->fixed, name, form);
    }
    if (hn_json_is_switch(refined) && json_node_get_boolean(refined) && !quantize_refine(q, &q->fixed, error))
        return FALSE;
    q->so.fixed = q->fixed;
    return TRUE;
}
