/* hone-prune: the recipe of what is written, and --replay, which makes the same bytes of one. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "check/recipe.h"
#include "hone_prune.h"

#define WIDTHS "widths" /* by class: channels that stay; those that are not there stay as they are */
#define ZEROS "zeros"   /* by layer: the part that was asked of it */
#define BLOCKS "blocks" /* in order: those that went, "out" and "in" */

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

static const char *layer_name(const Prune *q, guint i)
{
    const HnPruneLayer *l = q->map->layers->pdata[i];
    return hn_node_out(l->node, 0)->name;
}

void prune_write_recipe(const Prune *q)
{
    JsonObject *o = json_object_new(), *widths = json_object_new(), *zeros = json_object_new();
    JsonArray *blocks = json_array_new();
    json_object_set_string_member(o, "input", q->model_hash);
    json_object_set_string_member(o, "calibration", q->data_hash);
    for (guint c = 0; c < q->map->classes->len; c++) {
        const HnPruneClass *k = q->map->classes->pdata[c];
        if (q->pruned->kept[c] < k->n)
            json_object_set_int_member(widths, k->name, q->pruned->kept[c]);
    }
    for (guint i = 0; q->zeros_part != NULL && i < q->map->layers->len; i++)
        if (hn_zeros_takes(q->map->layers->pdata[i]))
            json_object_set_double_member(zeros, layer_name(q, i), q->zeros_part[i]);
    for (guint i = 0; i < q->blocks->len; i++) {
        const PruneBlock *b = &g_array_index(q->blocks, PruneBlock, i);
        JsonObject *block = json_object_new();
        json_object_set_string_member(block, "out", b->out);
        json_object_set_string_member(block, "in", b->in);
        json_array_add_object_element(blocks, block);
    }
    json_object_set_array_member(o, BLOCKS, blocks);
    json_object_set_object_member(o, WIDTHS, widths);
    json_object_set_object_member(o, ZEROS, zeros);
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

static gboolean bad(const Prune *q, const char *what, const char *name, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s': its recipe has no possible %s for '%s'", q->p->replay, what,
                name);
    return FALSE;
}

/* That member, where there is one: from `least` to `most`. */
static gboolean number_of(JsonObject *o, const char *name, double least, double most, double *x)
{
    double got;
    if (o == NULL || hn_json_at(o, name) == NULL)
        return TRUE;
    if (!hn_json_number_at(o, name, &got) || got < least || got > most)
        return FALSE;
    *x = got;
    return TRUE;
}

gboolean prune_take_recipe(Prune *q, GError **error)
{
    JsonObject *widths = hn_json_object_at(q->recipe, WIDTHS), *zeros = hn_json_object_at(q->recipe, ZEROS);
    for (guint c = 0; c < q->map->classes->len; c++) {
        const HnPruneClass *k = q->map->classes->pdata[c];
        double n = k->n;
        if (!number_of(widths, k->name, k->fixed ? k->n : 1, k->n, &n))
            return bad(q, "width", k->name, error);
        q->keep[c] = (int)n;
    }
    for (guint i = 0; q->zeros_part != NULL && i < q->map->layers->len; i++) {
        q->zeros_part[i] = 0;
        if (!number_of(zeros, layer_name(q, i), 0, 1, &q->zeros_part[i]))
            return bad(q, "part of zeros", layer_name(q, i), error);
    }
    return TRUE;
}

GArray *prune_recipe_blocks(const Prune *q, GError **error)
{
    JsonArray *list = hn_json_array_at(q->recipe, BLOCKS);
    g_autoptr(GArray) blocks = prune_blocks_new();
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonObject *o = hn_json_object(json_array_get_element(list, i));
        const char *out = hn_json_string_at(o, "out"), *in = hn_json_string_at(o, "in");
        if (out == NULL || in == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s': its recipe has a block without 'out' or 'in'",
                        q->p->replay);
            return NULL;
        }
        const PruneBlock b = { g_strdup(out), g_strdup(in), 0, NAN };
        g_array_append_val(blocks, b);
    }
    return g_steal_pointer(&blocks);
}
