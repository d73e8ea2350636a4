/* hone-export: the recipe of what is written, and --replay, which makes the same bytes of one. */
#include "base/jsonread.h"
#include "check/recipe.h"
#include "hone_export.h"

#define SAMPLES "samples" /* their hash; null: none were given */
#define LONGER "longer"   /* true: what made the file longer stayed, since the model was faster */

/* --- out ---------------------------------------------------------------------------------------------------------- */

/* NULL: results were not compared, or on made-up samples. */
static char *samples_hash(const Export *e)
{
    if (e->p->data == NULL || e->verify == NULL)
        return NULL;
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    hn_samples_hash(hn_verify_samples(e->verify), sum);
    return g_strdup(g_checksum_get_string(sum));
}

gboolean export_add_recipe(Export *e, GError **error)
{
    if (e->p->clear_metadata)
        return TRUE;
    g_autofree char *samples = samples_hash(e);
    g_autofree char *model = hn_recipe_hash_model(e->path, e->bytes, e->ctx->budget, error);
    if (model == NULL)
        return FALSE;
    JsonObject *rest = json_object_new();
    json_object_set_string_member(rest, "input", model);
    json_object_set_string_member(rest, SAMPLES, samples);
    if (e->o.growth == HN_GROWTH_STAYS || (e->x.has_speedup && e->x.speedup.faster))
        json_object_set_boolean_member(rest, LONGER, TRUE);
    ExportParams said = *e->p;
    if (e->u8_said != NULL && e->u8_said[0] != NULL)
        said.u8_input = e->u8_said;
    hn_recipe_write(e->x.model, EXPORT_TOOL, hn_recorded_json(&export_recorded, &said, e->ctx->common.seed), rest);
    return TRUE;
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

gboolean export_read_recipe(Export *e, GError **error)
{
    const ExportParams *given = e->p;
    const char *path = given->replay;
    e->recipe = hn_recipe_open(path, EXPORT_TOOL, e->ctx->budget, error);
    if (e->recipe == NULL || !hn_recipe_has_hash(e->recipe, path, "input", FALSE, error) ||
        !hn_recipe_has_hash(e->recipe, path, SAMPLES, TRUE, error))
        return FALSE;
    hn_tool_warn_version(e->ctx, path, hn_json_string_at(e->recipe, "hone"));
    ExportParams *p = &e->replayed;
    *p = export_defaults;
    e->p = p;
    JsonObject *options = hn_json_object_at(e->recipe, "options");
    if (!hn_recorded_read(&export_recorded, options, p, &e->ctx->common.seed, error)) {
        g_prefix_error(error, "'%s': ", path);
        return FALSE;
    }
    p->replay = given->replay;
    p->output = given->output;
    p->data = given->data;
    p->input = given->input;
    p->from = given->from;
    JsonNode *longer = hn_json_at(e->recipe, LONGER);
    e->growth = hn_json_is_switch(longer) && json_node_get_boolean(longer) ? HN_GROWTH_STAYS : HN_GROWTH_GOES;
    return TRUE;
}

gboolean export_check_input(const Export *e, GError **error)
{
    g_autofree char *model = hn_recipe_hash_model(e->path, e->bytes, e->ctx->budget, error);
    return model != NULL && hn_recipe_check_hash(e->recipe, e->p->replay, "input", model, "another model", error);
}

gboolean export_check_samples(const Export *e, GError **error)
{
    g_autofree char *samples = samples_hash(e);
    return hn_recipe_check_hash(e->recipe, e->p->replay, SAMPLES, samples, "other samples", error);
}

void export_clear_replayed(Export *e)
{
    if (e->p == &e->replayed)
        hn_recorded_clear(&export_recorded, &e->replayed);
    g_clear_pointer(&e->recipe, json_object_unref);
}
