/* hone-profile: what each node takes beside an earlier report, matched by name and shapes. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "hone_profile.h"

#define SCHEMA "hone.profile/1"

gboolean profile_read_old(Profiling *f, GError **error)
{
    if (f->p->compare == NULL)
        return TRUE;
    g_autoptr(JsonNode) json = hn_json_read_file(f->p->compare, HN_JSON_BYTES, f->ctx->budget, error);
    if (json == NULL)
        return FALSE;
    JsonObject *o = hn_json_object(json);
    double total;
    if (g_strcmp0(hn_json_string_at(o, "schema"), SCHEMA) != 0 || hn_json_array_at(o, "nodes") == NULL ||
        !hn_json_number_at(o, "total_ms", &total)) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no report of hone-profile --json", f->p->compare);
        return FALSE;
    }
    f->old = json_object_ref(o);
    return TRUE;
}

/* --- matching ----------------------------------------------------------------------------------------------------- */

static void add_types(GString *key, JsonArray *types)
{
    for (guint i = 0; types != NULL && i < json_array_get_length(types); i++) {
        const char *t = hn_json_string(json_array_get_element(types, i));
        g_string_append_printf(key, "\n%s", t != NULL ? t : "");
    }
}

/* Name and, where `shapes`, types and shapes of inputs and outputs; g_free. */
static char *key_of(JsonObject *node, gboolean shapes)
{
    const char *name = hn_json_string_at(node, "name");
    GString *key = g_string_new(name != NULL ? name : "");
    if (shapes) {
        add_types(key, hn_json_array_at(node, "in"));
        g_string_append_c(key, '\n');
        add_types(key, hn_json_array_at(node, "out"));
    }
    return g_string_free(key, FALSE);
}

/* Takes the first node with this key that nobody has taken; NULL: none. */
static JsonObject *take(GHashTable *by_key, GHashTable *taken, JsonObject *node, gboolean shapes)
{
    g_autofree char *key = key_of(node, shapes);
    const GPtrArray *list = g_hash_table_lookup(by_key, key);
    for (guint i = 0; list != NULL && i < list->len; i++)
        if (g_hash_table_add(taken, list->pdata[i]))
            return list->pdata[i];
    return NULL;
}

static GHashTable *index_nodes(JsonArray *nodes, gboolean shapes)
{
    GHashTable *by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    for (guint i = 0; i < json_array_get_length(nodes); i++) {
        JsonObject *node = hn_json_object(json_array_get_element(nodes, i));
        char *key = key_of(node, shapes);
        GPtrArray *list = g_hash_table_lookup(by_key, key);
        if (node == NULL) {
            g_free(key);
            continue;
        }
        if (list != NULL)
            g_free(key);
        else
            g_hash_table_insert(by_key, key, list = g_ptr_array_new());
        g_ptr_array_add(list, node);
    }
    return by_key;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static double ms_of(JsonObject *node)
{
    double ms;
    return node != NULL && hn_json_number_at(node, "ms", &ms) ? ms : 0;
}

/* One of a and b may be NULL: the node is new, or gone. */
static void add_row(JsonArray *rows, JsonObject *a, JsonObject *b, const char *match)
{
    JsonObject *o = json_object_new(), *named = b != NULL ? b : a;
    const double before = ms_of(a), after = ms_of(b);
    json_object_set_string_member(o, "name", hn_json_string_at(named, "name"));
    json_object_set_string_member(o, "op", hn_json_string_at(named, "op"));
    json_object_set_string_member(o, "shape", hn_json_string_at(named, "shape"));
    json_object_set_string_member(o, "match", match);
    hn_json_set_number(o, "old_ms", a != NULL ? before : NAN);
    hn_json_set_number(o, "ms", b != NULL ? after : NAN);
    hn_json_set_number(o, "diff_ms", after - before);
    hn_json_set_number(o, "ratio", a != NULL && b != NULL && before > 0 ? after / before : NAN);
    json_array_add_object_element(rows, o);
}

static gint larger_change_first(gconstpointer a, gconstpointer b)
{
    const double x = fabs(json_object_get_double_member(*(JsonObject *const *)a, "diff_ms")),
                 y = fabs(json_object_get_double_member(*(JsonObject *const *)b, "diff_ms"));
    return (x < y) - (x > y);
}

static JsonArray *sorted(JsonArray *rows)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    JsonArray *out = json_array_new();
    for (guint i = 0; i < json_array_get_length(rows); i++)
        g_ptr_array_add(list, json_array_get_object_element(rows, i));
    g_ptr_array_sort(list, larger_change_first);
    for (guint i = 0; i < list->len; i++)
        json_array_add_object_element(out, json_object_ref(list->pdata[i]));
    json_array_unref(rows);
    return out;
}

/* First by name and shapes, then what is left by name alone. An old report without shapes has the names. */
static JsonArray *rows_of(JsonArray *old, JsonArray *now)
{
    JsonArray *rows = json_array_new();
    g_autoptr(GHashTable) taken = g_hash_table_new(NULL, NULL), full = index_nodes(old, TRUE),
                          names = index_nodes(old, FALSE);
    g_autoptr(GPtrArray) left = g_ptr_array_new();
    for (guint i = 0; i < json_array_get_length(now); i++) {
        JsonObject *node = json_array_get_object_element(now, i), *before = take(full, taken, node, TRUE);
        if (before != NULL)
            add_row(rows, before, node, "same");
        else
            g_ptr_array_add(left, node);
    }
    for (guint i = 0; i < left->len; i++) {
        JsonObject *before = take(names, taken, left->pdata[i], FALSE);
        add_row(rows, before, left->pdata[i],
                before == NULL                           ? "new"
                : hn_json_array_at(before, "in") == NULL ? "name"
                                                         : "other shape");
    }
    for (guint i = 0; i < json_array_get_length(old); i++) {
        JsonObject *node = hn_json_object(json_array_get_element(old, i));
        if (node != NULL && !g_hash_table_contains(taken, node))
            add_row(rows, node, NULL, "gone");
    }
    return sorted(rows);
}

/* --- what else differs -------------------------------------------------------------------------------------------- */

static void differ(JsonArray *list, const char *what, const char *a, const char *b)
{
    if (g_strcmp0(a, b) != 0) {
        g_autofree char *text = g_strdup_printf("%s: '%s', and '%s' then", what, b, a);
        json_array_add_string_element(list, text);
    }
}

/* What makes two reports hard to compare. */
static JsonArray *conditions(const Profiling *f, JsonObject *root)
{
    JsonArray *list = json_array_new();
    JsonObject *a = hn_json_object_at(f->old, "env"), *b = hn_json_object_at(root, "env");
    double threads = 0;
    g_autofree char *now = g_strdup_printf("%d", f->ctx->common.threads);
    (void)hn_json_number_at(f->old, "threads", &threads);
    g_autofree char *then = g_strdup_printf("%.0f", threads);
    differ(list, "processor", hn_json_string_at(a, "cpu"), hn_json_string_at(b, "cpu"));
    differ(list, "instructions", hn_json_string_at(a, "isa"), hn_json_string_at(b, "isa"));
    differ(list, "threads", then, now);
    differ(list, "device", hn_json_string_at(f->old, "device"), f->ctx->common.device);
    return list;
}

void profile_add_compare(const Profiling *f, JsonObject *root)
{
    if (f->old == NULL)
        return;
    JsonObject *o = json_object_new();
    double before = 0;
    (void)hn_json_number_at(f->old, "total_ms", &before);
    json_object_set_string_member(o, "file", f->p->compare);
    json_object_set_string_member(o, "model", hn_json_string_at(f->old, "model"));
    json_object_set_array_member(o, "differs", conditions(f, root));
    hn_json_set_number(o, "old_total_ms", before);
    hn_json_set_number(o, "total_ms", f->profile.total_ms);
    hn_json_set_number(o, "ratio", before > 0 ? f->profile.total_ms / before : NAN);
    json_object_set_array_member(o, "nodes",
                                 rows_of(hn_json_array_at(f->old, "nodes"), hn_json_array_at(root, "nodes")));
    json_object_set_object_member(root, "compare", o);
}

static const HnColumn columns[] = {
    { "name", "changed most", HN_COL_TEXT },
    { "op", "type", HN_COL_TEXT },
    { "old_ms", "before", HN_COL_MS },
    { "ms", "now", HN_COL_MS },
    { "ratio", "ratio", HN_COL_NUMBER },
    { "match", "match", HN_COL_TEXT | HN_COL_MINOR },
    { "shape", "shapes", HN_COL_TEXT | HN_COL_MINOR },
    { 0 },
};

void profile_tell_compare(const Profiling *f, JsonObject *root, HnReport *report)
{
    if (f->old == NULL)
        return;
    JsonObject *o = hn_json_object_at(root, "compare");
    JsonArray *differs = hn_json_array_at(o, "differs"), *nodes = hn_json_array_at(o, "nodes");
    const double before = json_object_get_double_member(o, "old_total_ms");
    guint same = 0;
    for (guint i = 0; i < json_array_get_length(nodes); i++) {
        JsonObject *node = json_array_get_object_element(nodes, i);
        same += !json_object_get_null_member(node, "old_ms") && !json_object_get_null_member(node, "ms");
    }
    g_autofree char *a = hn_text_time(before * 1e-3), *b = hn_text_time(f->profile.total_ms * 1e-3);
    hn_report_section(report, "Compared");
    hn_report_top_table(report, "compare.nodes", columns, (guint)f->p->top);
    hn_report_line(report, "compared with '%s': %s instead of %s, %.3g; %u of %u nodes are in both", f->p->compare, b,
                   a, before > 0 ? f->profile.total_ms / before : NAN, same, json_array_get_length(nodes));
    for (guint i = 0; i < json_array_get_length(differs); i++)
        hn_report_line(report, "the two differ in more: %s", json_array_get_string_element(differs, i));
}
