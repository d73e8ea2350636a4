/* hone-profile: memory over the steps of a run, and weights. */
#include "hone_profile.h"
#include "perf/weight_stats.h"
#include "weight_json.h"

const char *profile_point_name(const HnMemoryPoint *p)
{
    return p->node ? hn_node_label(p->node) : "reorder";
}

void profile_add_memory(const Profiling *f, const HnMemoryTimeline *t, JsonObject *root)
{
    HnSessionStats stats;
    hn_session_stats(f->session, &stats);
    JsonObject *memory = json_object_new();
    JsonArray *timeline = json_array_new(), *alive = json_array_new();
    for (guint i = 0; i < t->points->len; i++) {
        const HnMemoryPoint *p = &g_array_index(t->points, HnMemoryPoint, i);
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "node", profile_point_name(p));
        json_object_set_int_member(o, "bytes", (gint64)p->bytes);
        json_array_add_object_element(timeline, o);
    }
    for (guint i = 0; i < t->alive->len; i++) {
        const HnMemoryTensor *x = &g_array_index(t->alive, HnMemoryTensor, i);
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "name", x->name);
        json_object_set_string_member(o, "type", x->type);
        json_object_set_string_member(o, "kind", x->kind);
        json_object_set_string_member(o, "node", x->source ? hn_node_label(x->source) : NULL);
        json_object_set_int_member(o, "bytes", (gint64)x->bytes);
        json_array_add_object_element(alive, o);
    }
    const HnMemoryPoint *peak = t->points->len ? &g_array_index(t->points, HnMemoryPoint, t->peak) : NULL;
    json_object_set_int_member(memory, "peak", peak ? (gint64)peak->bytes : 0);
    json_object_set_string_member(memory, "peak_node", peak ? profile_point_name(peak) : NULL);
    json_object_set_int_member(memory, "arena", (gint64)stats.arena_bytes);
    json_object_set_int_member(memory, "outputs", (gint64)stats.output_bytes);
    json_object_set_int_member(memory, "weights", (gint64)hn_model_weight_bytes(f->model));
    json_object_set_int_member(memory, "packed", (gint64)stats.packed_bytes);
    json_object_set_array_member(memory, "alive", alive);
    json_object_set_array_member(memory, "timeline", timeline);
    json_object_set_object_member(root, "memory_bytes", memory);
}

static gint larger_weight_first(gconstpointer a, gconstpointer b)
{
    gsize x = ((const HnWeightReport *)a)->tensor->bytes, y = ((const HnWeightReport *)b)->tensor->bytes;
    return (x < y) - (x > y);
}

void profile_add_weights(const Profiling *f, JsonObject *root)
{
    g_autoptr(GArray) weights = hn_weights_report(f->model->graph);
    JsonArray *list = json_array_new();
    g_array_sort(weights, larger_weight_first);
    for (guint i = 0; i < weights->len; i++) {
        json_array_add_object_element(list, hn_tool_weight_json(&g_array_index(weights, HnWeightReport, i)));
    }
    json_object_set_array_member(root, "weights", list);
}
