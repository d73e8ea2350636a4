#include "weight_json.h"

#include "base/jsonread.h"

JsonObject *hn_tool_weight_json(const HnWeightReport *w)
{
    JsonObject *o = json_object_new();
    g_autofree char *type = hn_tensor_describe(w->tensor);
    json_object_set_string_member(o, "name", w->value->name);
    json_object_set_string_member(o, "type", type);
    json_object_set_string_member(o, "node", w->user != NULL ? hn_node_label(w->user) : NULL);
    json_object_set_int_member(o, "bytes", (gint64)w->tensor->bytes);
    hn_json_set_number(o, "zeros", w->zeros);
    hn_json_set_number(o, "min", w->min);
    hn_json_set_number(o, "max", w->max);
    hn_json_set_number(o, "mean", w->mean);
    hn_json_set_number(o, "stddev", w->stddev);
    json_object_set_int_member(o, "not_finite", w->not_finite);
    if (w->axis >= 0) {
        json_object_set_int_member(o, "channels", w->channels);
        json_object_set_int_member(o, "dead", w->dead);
    } else {
        json_object_set_null_member(o, "channels");
        json_object_set_null_member(o, "dead");
    }
    return o;
}
