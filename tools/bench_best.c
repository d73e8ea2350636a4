/* hone-bench: which batch is the best. */
#include <string.h>

#include "base/jsonread.h"
#include "cli/json.h"
#include "hone_bench.h"

#define NEARLY 0.9 /* of the most samples in a second: a larger batch is mostly a longer wait */

/* The first axis of the first input; 0: there is none. */
static gint64 first_axis(JsonObject *run)
{
    JsonObject *shapes = hn_json_object_at(run, "shapes");
    g_autoptr(GList) inputs = json_object_get_members(shapes);
    JsonArray *dims = inputs ? hn_json_array_at(shapes, inputs->data) : NULL;
    return dims && json_array_get_length(dims) > 0 ? json_array_get_int_element(dims, 0) : 0;
}

/* Samples in a second. Of one stream by the median of its runs: what others do meanwhile is in the sum of all. */
static double per_s(JsonObject *run)
{
    JsonObject *t = hn_json_object_at(run, "throughput"), *ms = hn_json_object_at(run, "latency_ms");
    double x = 0, median = 0, streams = 0;
    if (hn_json_number_at(run, "streams", &streams) && streams == 1 && ms && hn_json_number_at(ms, "p50", &median) &&
        median > 0)
        return (double)first_axis(run) * 1e3 / median;
    return t && hn_json_number_at(t, "samples_per_s", &x) ? x : 0;
}

/* The dimension that is swept and is the batch; NULL: none. *other: the model and all else that sets the run apart. */
static const char *batch_dim(JsonObject *run, char **other)
{
    JsonObject *swept = hn_json_object_at(run, "swept");
    g_autoptr(GList) names = json_object_get_members(swept);
    g_autoptr(GString) key = g_string_new(json_object_get_string_member(run, "model"));
    const char *dim = NULL;
    for (GList *l = names; l; l = l->next) {
        JsonNode *value = hn_json_at(swept, l->data);
        if (!dim && strcmp(l->data, "threads") != 0 && hn_json_is_number(value) &&
            json_node_get_int(value) == first_axis(run)) {
            dim = l->data;
            continue;
        }
        g_autofree char *text = hn_json_text(value);
        g_string_append_printf(key, " %s=%s", (const char *)l->data, g_strstrip(text));
    }
    *other = g_strdup(key->str);
    return dim;
}

/* The runs that differ from others of that key by the batch alone. */
static GPtrArray *runs_of(JsonArray *runs, const char *key, const char **dim)
{
    GPtrArray *found = g_ptr_array_new();
    for (guint i = 0; i < json_array_get_length(runs); i++) {
        JsonObject *run = json_array_get_object_element(runs, i);
        g_autofree char *other = NULL;
        const char *name = batch_dim(run, &other);
        if (!name || strcmp(other, key) != 0)
            continue;
        *dim = name;
        g_ptr_array_add(found, run);
    }
    return found;
}

/* NULL: there is nothing to choose from. */
static JsonObject *best_of(JsonArray *runs, const char *key)
{
    const char *dim = NULL;
    g_autoptr(GPtrArray) all = runs_of(runs, key, &dim);
    JsonObject *most = NULL, *knee = NULL;
    for (guint i = 0; i < all->len; i++)
        if (!most || per_s(all->pdata[i]) > per_s(most))
            most = all->pdata[i];
    for (guint i = 0; i < all->len; i++)
        if (per_s(all->pdata[i]) >= NEARLY * per_s(most) && (!knee || first_axis(all->pdata[i]) < first_axis(knee)))
            knee = all->pdata[i];
    if (all->len < 2 || per_s(most) <= 0)
        return NULL;
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "of", key);
    json_object_set_string_member(o, "dim", dim);
    json_object_set_int_member(o, "best", first_axis(most));
    json_object_set_double_member(o, "samples_per_s", per_s(most));
    json_object_set_int_member(o, "knee", first_axis(knee));
    json_object_set_double_member(o, "knee_part", per_s(knee) / per_s(most));
    return o;
}

JsonArray *bench_best(JsonArray *runs)
{
    JsonArray *all = json_array_new();
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < json_array_get_length(runs); i++) {
        char *key = NULL;
        const char *dim = batch_dim(json_array_get_object_element(runs, i), &key);
        JsonObject *best = dim && !g_hash_table_contains(seen, key) ? best_of(runs, key) : NULL;
        if (best)
            json_array_add_object_element(all, best);
        g_hash_table_add(seen, key);
    }
    return all;
}
