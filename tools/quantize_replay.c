/* hone-quantize --replay: the options and forms of a model's recipe, and whether the same bytes come of them. */
#include <string.h>

#include "base/file.h"
#include "base/jsonread.h"
#include "check/recipe.h"
#include "quantize.h"

static gboolean wrong(const Quantize *q, const char *what, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "%s in the recipe of '%s' is missing or wrong", what, q->p->replay);
    return FALSE;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Strings live as long as the recipe. */
static gboolean set_texts(JsonNode *n, char ***out)
{
    JsonArray *list = JSON_NODE_HOLDS_ARRAY(n) ? json_node_get_array(n) : NULL;
    const guint count = list != NULL ? json_array_get_length(list) : 0;
    g_auto(GStrv) texts = g_new0(char *, count + 1);
    for (guint i = 0; i < count; i++) {
        JsonNode *text = json_array_get_element(list, i);
        if (hn_json_string(text) == NULL)
            return FALSE;
        texts[i] = g_strdup(hn_json_string(text));
    }
    if (list == NULL)
        return FALSE;
    *out = g_steal_pointer(&texts);
    return TRUE;
}

static gboolean set_option(QuantizeParams *p, const GOptionEntry *e, JsonNode *n)
{
    const glong at = (glong)GPOINTER_TO_SIZE(e->arg_data);
    switch (e->arg) {
    case G_OPTION_ARG_NONE:
        if (hn_json_is_switch(n))
            G_STRUCT_MEMBER(gboolean, p, at) = json_node_get_boolean(n);
        return hn_json_is_switch(n);
    case G_OPTION_ARG_INT: {
        const double x = hn_json_is_number(n) ? json_node_get_double(n) : -1;
        if (x >= 0 && x <= G_MAXINT)
            G_STRUCT_MEMBER(int, p, at) = (int)x;
        return x >= 0 && x <= G_MAXINT;
    }
    case G_OPTION_ARG_DOUBLE:
        if (hn_json_is_number(n))
            G_STRUCT_MEMBER(double, p, at) = json_node_get_double(n);
        return hn_json_is_number(n);
    case G_OPTION_ARG_STRING:
        G_STRUCT_MEMBER(const char *, p, at) = hn_json_string(n);
        return hn_json_string(n) != NULL;
    case G_OPTION_ARG_STRING_ARRAY:
        return set_texts(n, &G_STRUCT_MEMBER(char **, p, at));
    default:
        return FALSE;
    }
}

static const GOptionEntry *entry_of(const char *name)
{
    for (const GOptionEntry *e = quantize_entries; e->long_name != NULL; e++)
        if (!strcmp(e->long_name, name) && quantize_is_recorded(e))
            return e;
    return NULL;
}

/* The command line names files; all else is the recipe's. */
static gboolean set_options(Quantize *q, JsonObject *options, GError **error)
{
    const QuantizeParams *given = q->p;
    QuantizeParams *p = &q->replayed;
    JsonObjectIter iter;
    const char *name;
    JsonNode *n;
    *p = quantize_defaults;
    p->output = given->output;
    p->calib = given->calib;
    p->ranges = given->ranges;
    p->plan = given->plan;
    p->replay = given->replay;
    p->journal = p->timing_cache = (char *)"none";
    q->p = p;
    json_object_iter_init(&iter, options);
    while (json_object_iter_next(&iter, &name, &n)) {
        const GOptionEntry *e = entry_of(name);
        if (!strcmp(name, "seed") && hn_json_is_number(n))
            q->ctx->common.seed = (guint64)json_node_get_int(n);
        else if (e == NULL || !set_option(p, e, n)) {
            g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "option '%s' in the recipe of '%s' is not known here",
                        name, given->replay);
            return FALSE;
        }
    }
    return TRUE;
}

static void warn_version(Quantize *q)
{
    const char *version = hn_json_string_at(q->recipe, "hone");
    if (g_strcmp0(version, hn_version()) != 0)
        hn_context_warn(q->ctx, "'%s' was made by version %s, this is %s: the bytes may differ", q->p->replay,
                        version != NULL ? version : "unknown", hn_version());
}

gboolean quantize_read_recipe(Quantize *q, GError **error)
{
    const HnOnnxOptions o = { .budget = q->ctx->budget, .verify_data = TRUE };
    g_autoptr(HnModel) made = hn_onnx_read_file(q->p->replay, &o, error);
    if (made == NULL)
        return FALSE;
    g_autoptr(JsonParser) parser = json_parser_new();
    const char *text = hn_model_metadata(made, HN_RECIPE);
    JsonNode *root =
        text != NULL && json_parser_load_from_data(parser, text, -1, NULL) ? json_parser_get_root(parser) : NULL;
    if (g_strcmp0(hn_json_string_at(hn_json_object(root), "tool"), "hone-quantize") != 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no recipe of hone-quantize in its metadata",
                    q->p->replay);
        return FALSE;
    }
    q->recipe = json_object_ref(hn_json_object(root));
    JsonObject *options = hn_json_object_at(q->recipe, "options");
    warn_version(q);
    return options != NULL ? set_options(q, options, error) : wrong(q, "'options'", error);
}

/* --- what went in ------------------------------------------------------------------------------------------------- */

static gboolean same(const Quantize *q, const char *name, const char *hash, const char *what, GError **error)
{
    const char *recorded = hn_json_string_at(q->recipe, name);
    if (recorded == NULL || g_strcmp0(recorded, hash) == 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "'%s' was made of %s: of %s, not %s", q->p->replay, what, recorded,
                hash);
    return FALSE;
}

gboolean quantize_check_recipe(const Quantize *q, GError **error)
{
    return same(q, "input", q->model_hash, "another model", error) &&
           same(q, "calibration", q->data_hash, "other samples", error);
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

gboolean quantize_compare_made(const Quantize *q, GError **error)
{
    g_autoptr(GBytes) made = hn_file_bytes(q->p->replay, q->ctx->budget, error);
    g_autoptr(GBytes) now = made != NULL ? hn_onnx_write_bytes(q->result, q->ctx->budget, error) : NULL;
    if (now == NULL)
        return FALSE;
    if (g_bytes_equal(made, now))
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "what the recipe of '%s' makes here has other bytes", q->p->replay);
    return FALSE;
}
