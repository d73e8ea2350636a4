/* hone-prune: what was chosen, in recipes and in plans: widths of classes, zeros of layers, blocks. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/jsonread.h"
#include "cli/json.h"
#include "hone_prune.h"

#define SCHEMA "hone.prune-plan/1"
#define REPORT "hone.prune/1"
#define PATTERN "pattern" /* of the zeros */
#define WIDTHS "widths"   /* by class: channels that stay; those that are not there stay as they are */
#define ZEROS "zeros"     /* by layer: the part that was asked of it */
#define BLOCKS "blocks"   /* in order: those that went, "out" and "in" */

/* --- out ---------------------------------------------------------------------------------------------------------- */

static const char *layer_name(const Prune *q, guint i)
{
    const HnPruneLayer *l = q->map->layers->pdata[i];
    return hn_node_out(l->node, 0)->name;
}

void prune_add_chosen(const Prune *q, JsonObject *o)
{
    JsonObject *widths = json_object_new(), *zeros = json_object_new();
    JsonArray *blocks = json_array_new();
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
    if (q->budget == PRUNE_ZEROS)
        json_object_set_string_member(o, PATTERN, q->pattern);
    json_object_set_array_member(o, BLOCKS, blocks);
    json_object_set_object_member(o, WIDTHS, widths);
    json_object_set_object_member(o, ZEROS, zeros);
}

gboolean prune_write_plan(const Prune *q, GError **error)
{
    if (q->p->write_plan == NULL)
        return TRUE;
    g_autoptr(JsonNode) root = json_node_new(JSON_NODE_OBJECT);
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "schema", SCHEMA);
    prune_add_chosen(q, o);
    json_node_take_object(root, o);
    g_autofree char *text = hn_json_text(root);
    return hn_out_save(q->p->write_plan, text, strlen(text), error);
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

/* The widths that a report tells, as a plan. */
static gboolean widths_of_report(JsonObject *report, JsonObject *widths)
{
    JsonArray *classes = hn_json_array_at(report, "classes");
    for (guint i = 0; classes != NULL && i < json_array_get_length(classes); i++) {
        JsonObject *row = hn_json_object(json_array_get_element(classes, i));
        const char *name = hn_json_string_at(row, "name");
        double width;
        if (name == NULL || !hn_json_number_at(row, "width_after", &width))
            return FALSE;
        json_object_set_double_member(widths, name, width);
    }
    return classes != NULL && hn_json_at(report, ZEROS) == NULL;
}

/* What is there, and of another type or name, would be passed over. */
static gboolean has_right_members(const Prune *q, GError **error)
{
    const struct {
        const char *name;
        gboolean right;
    } members[] = { { "schema", TRUE },
                    { PATTERN, hn_json_string_at(q->plan, PATTERN) != NULL },
                    { WIDTHS, hn_json_object_at(q->plan, WIDTHS) != NULL },
                    { ZEROS, hn_json_object_at(q->plan, ZEROS) != NULL },
                    { BLOCKS, hn_json_array_at(q->plan, BLOCKS) != NULL } };
    guint known = 0;
    for (guint i = 0; i < G_N_ELEMENTS(members); i++) {
        known += hn_json_at(q->plan, members[i].name) != NULL;
        if (hn_json_at(q->plan, members[i].name) != NULL && !members[i].right) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has '%s' of another type than plans have", q->p->plan,
                        members[i].name);
            return FALSE;
        }
    }
    if (known < json_object_get_size(q->plan)) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                    "'%s' has members that plans do not have: these are pattern, widths, zeros and blocks", q->p->plan);
        return FALSE;
    }
    return TRUE;
}

gboolean prune_read_plan(Prune *q, GError **error)
{
    g_autoptr(JsonNode) json = hn_json_read_file(q->p->plan, HN_JSON_BYTES, q->ctx->budget, error);
    JsonObject *o = json != NULL ? hn_json_object(json) : NULL;
    const char *schema = hn_json_string_at(o, "schema");
    if (json == NULL)
        return FALSE;
    if (g_strcmp0(schema, SCHEMA) == 0) {
        q->plan = json_object_ref(o);
        return has_right_members(q, error);
    }
    g_autoptr(JsonObject) plan = json_object_new();
    JsonObject *widths = json_object_new();
    json_object_set_object_member(plan, WIDTHS, widths);
    if (g_strcmp0(schema, REPORT) != 0 || !widths_of_report(o, widths)) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                    "'%s' is no plan: '--write-plan' writes one, and a report of '--analyze --json' is taken for one",
                    q->p->plan);
        return FALSE;
    }
    if (hn_json_array_at(o, BLOCKS) != NULL)
        json_object_set_array_member(plan, BLOCKS, json_array_ref(hn_json_array_at(o, BLOCKS)));
    q->plan = g_steal_pointer(&plan);
    return TRUE;
}

JsonObject *prune_chosen(const Prune *q)
{
    return q->recipe != NULL ? q->recipe : q->plan;
}

const char *prune_chosen_pattern(const Prune *q)
{
    return hn_json_string_at(prune_chosen(q), PATTERN);
}

const char *prune_chosen_path(const Prune *q)
{
    return q->recipe != NULL ? q->p->replay : q->p->plan;
}

static gboolean bad(const Prune *q, const char *what, const char *name, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no possible %s for '%s'; '--explain' lists the classes",
                prune_chosen_path(q), what, name);
    return FALSE;
}

/* That member, where there is one: from `least` to `most`; *found counts those. */
static gboolean number_of(JsonObject *o, const char *name, double least, double most, double *x, guint *found)
{
    double got;
    if (o == NULL || hn_json_at(o, name) == NULL)
        return TRUE;
    if (!hn_json_number_at(o, name, &got) || !(got >= least && got <= most))
        return FALSE;
    *x = got;
    ++*found;
    return TRUE;
}

/* The first name in o that the model does not have. */
static const char *stranger(JsonObject *o, gboolean (*has)(const Prune *q, const char *name), const Prune *q)
{
    g_autoptr(GList) names = json_object_get_members(o);
    for (const GList *l = names; l != NULL; l = l->next)
        if (!has(q, l->data))
            return l->data;
    return NULL;
}

static gboolean has_class(const Prune *q, const char *name)
{
    for (guint c = 0; c < q->map->classes->len; c++)
        if (strcmp(((const HnPruneClass *)q->map->classes->pdata[c])->name, name) == 0)
            return TRUE;
    return FALSE;
}

static gboolean has_layer(const Prune *q, const char *name)
{
    for (guint i = 0; i < q->map->layers->len; i++)
        if (hn_zeros_takes(q->map->layers->pdata[i]) && strcmp(layer_name(q, i), name) == 0)
            return TRUE;
    return FALSE;
}

gboolean prune_take_chosen(Prune *q, GError **error)
{
    JsonObject *widths = hn_json_object_at(prune_chosen(q), WIDTHS), *zeros = hn_json_object_at(prune_chosen(q), ZEROS);
    guint found = 0;
    if ((zeros != NULL && json_object_get_size(zeros) > 0) != (q->budget == PRUNE_ZEROS) ||
        (q->budget == PRUNE_ZEROS && widths != NULL && json_object_get_size(widths) > 0)) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                    "'%s': either channels go, which have widths, or weights become 0, which have a pattern and parts",
                    prune_chosen_path(q));
        return FALSE;
    }
    for (guint c = 0; c < q->map->classes->len; c++) {
        const HnPruneClass *k = q->map->classes->pdata[c];
        double n = k->n;
        if (!number_of(widths, k->name, k->fixed ? k->n : 1, k->n, &n, &found) || n != floor(n))
            return bad(q, "width", k->name, error);
        q->keep[c] = (int)n;
    }
    if (widths != NULL && found < json_object_get_size(widths))
        return bad(q, "width", stranger(widths, has_class, q), error);
    found = 0;
    for (guint i = 0; q->zeros_part != NULL && i < q->map->layers->len; i++) {
        q->zeros_part[i] = 0;
        if (!number_of(zeros, layer_name(q, i), 0, 1, &q->zeros_part[i], &found) ||
            (q->zeros.of_four > 0 && q->zeros_part[i] > 0 && q->zeros_part[i] != PRUNE_OF_FOUR))
            return bad(q, "part of zeros", layer_name(q, i), error);
    }
    return q->zeros_part == NULL || zeros == NULL || found >= json_object_get_size(zeros) ||
           bad(q, "part of zeros", stranger(zeros, has_layer, q), error);
}

GArray *prune_chosen_blocks(const Prune *q, GError **error)
{
    JsonArray *list = hn_json_array_at(prune_chosen(q), BLOCKS);
    g_autoptr(GArray) blocks = prune_blocks_new();
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonObject *o = hn_json_object(json_array_get_element(list, i));
        const char *out = hn_json_string_at(o, "out"), *in = hn_json_string_at(o, "in");
        if (out == NULL || in == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has a block without 'out' or 'in'",
                        prune_chosen_path(q));
            return NULL;
        }
        const PruneBlock b = { g_strdup(out), g_strdup(in), 0, NAN };
        g_array_append_val(blocks, b);
    }
    return g_steal_pointer(&blocks);
}
