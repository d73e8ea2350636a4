/* hone-quantize --replay: the options and forms of a model's recipe, and whether the same bytes come of them. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/jsonread.h"
#include "check/recipe.h"
#include "cli/json.h"
#include "quantize.h"

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

static void warn_version(Quantize *q)
{
    const char *version = hn_json_string_at(q->recipe, "hone");
    if (g_strcmp0(version, hn_version()) != 0)
        hn_context_warn(q->ctx, "'%s' was made by version %s, this is %s: the bytes may differ", q->p->replay,
                        version != NULL ? version : "unknown", hn_version());
}

/* Whether all is there that a replay is held against: a missing hash would be equal to any. */
static gboolean is_complete(const Quantize *q, GError **error)
{
    JsonNode *data = hn_json_at(q->recipe, "calibration");
    JsonObject *numbers = hn_json_object_at(q->recipe, "cmd");
    const char *metric = hn_json_string_at(hn_json_object_at(q->recipe, "options"), "metric");
    double x;
    if (hn_json_string_at(q->recipe, "input") == NULL)
        return wrong(q, "'input'", error);
    if (data == NULL || (!JSON_NODE_HOLDS_NULL(data) && hn_json_string(data) == NULL))
        return wrong(q, "'calibration'", error);
    if (g_strcmp0(metric, "cmd") == 0 && !hn_json_number_at(numbers, "original", &x))
        return wrong(q, "'cmd'", error);
    return TRUE;
}

gboolean quantize_read_recipe(Quantize *q, GError **error)
{
    const HnOnnxOptions o = { .budget = q->ctx->budget, .verify_data = TRUE };
    const char *path = q->p->replay;
    g_autoptr(HnModel) made = hn_onnx_read_file(path, &o, error);
    if (made == NULL)
        return FALSE;
    const char *text = hn_model_metadata(made, HN_RECIPE);
    if (text != NULL && (q->recipe = hn_recipe_read(text, path, error)) == NULL)
        return FALSE;
    if (g_strcmp0(hn_json_string_at(q->recipe, "tool"), "hone-quantize") != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no recipe of hone-quantize in its metadata", path);
        return FALSE;
    }
    JsonObject *options = hn_json_object_at(q->recipe, "options");
    if (options == NULL)
        return wrong(q, "'options'", error);
    if (!hn_recipe_check_metric(q->recipe, path, q->p->metric, error) || !is_complete(q, error))
        return FALSE;
    warn_version(q);
    return set_options(q, options, error);
}

/* --- what went in ------------------------------------------------------------------------------------------------- */

static gboolean same(const Quantize *q, const char *name, const char *hash, const char *what, GError **error)
{
    const char *recorded = hn_json_string_at(q->recipe, name);
    if (g_strcmp0(recorded, hash) == 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "'%s' was made of %s: of %s, not %s", q->p->replay, what,
                recorded != NULL ? recorded : "none", hash != NULL ? hash : "none");
    return FALSE;
}

gboolean quantize_check_recipe(const Quantize *q, GError **error)
{
    return same(q, "input", q->model_hash, "another model", error) &&
           same(q, "calibration", q->p->calib != NULL ? q->data_hash : NULL, "other samples", error);
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

/* --- what came out ------------------------------------------------------------------------------------------------ */

/* The bytes of a model that lies in several files, as those of one. */
static GBytes *gather(const char *path, GBytes *file, HnBudget *budget, GError **error)
{
    HnModel *m = hn_onnx_read_file(path, &(HnOnnxOptions){ .budget = budget, .verify_data = TRUE }, error);
    GBytes *bytes = NULL;
    if (m != NULL && m->file_bytes > g_bytes_get_size(file))
        bytes = hn_onnx_write_bytes(m, budget, error);
    else if (m != NULL)
        bytes = g_bytes_ref(file);
    hn_model_free(m);
    return bytes;
}

gboolean quantize_compare_made(const Quantize *q, GError **error)
{
    g_autoptr(GBytes) file = hn_file_bytes(q->p->replay, q->ctx->budget, error);
    g_autoptr(GBytes) made = file != NULL ? gather(q->p->replay, file, q->ctx->budget, error) : NULL;
    g_autoptr(GBytes) now = made != NULL ? hn_onnx_write_bytes(q->result, q->ctx->budget, error) : NULL;
    if (now == NULL)
        return FALSE;
    if (g_bytes_equal(made, now))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "what the recipe of '%s' makes here has other bytes", q->p->replay);
    return FALSE;
}
