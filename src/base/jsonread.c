#include "base/jsonread.h"

#include <math.h>

static GType type_of(JsonNode *n)
{
    return n != NULL && JSON_NODE_HOLDS_VALUE(n) ? json_node_get_value_type(n) : G_TYPE_INVALID;
}

const char *hn_json_string(JsonNode *n)
{
    return type_of(n) == G_TYPE_STRING ? json_node_get_string(n) : NULL;
}

JsonObject *hn_json_object(JsonNode *n)
{
    return n != NULL && JSON_NODE_HOLDS_OBJECT(n) ? json_node_get_object(n) : NULL;
}

gboolean hn_json_is_switch(JsonNode *n)
{
    return type_of(n) == G_TYPE_BOOLEAN;
}

gboolean hn_json_is_number(JsonNode *n)
{
    return type_of(n) == G_TYPE_DOUBLE || type_of(n) == G_TYPE_INT64;
}

JsonNode *hn_json_at(JsonObject *o, const char *name)
{
    return o != NULL ? json_object_get_member(o, name) : NULL;
}

const char *hn_json_string_at(JsonObject *o, const char *name)
{
    return hn_json_string(hn_json_at(o, name));
}

JsonObject *hn_json_object_at(JsonObject *o, const char *name)
{
    return hn_json_object(hn_json_at(o, name));
}

JsonArray *hn_json_array_at(JsonObject *o, const char *name)
{
    JsonNode *n = hn_json_at(o, name);
    return n != NULL && JSON_NODE_HOLDS_ARRAY(n) ? json_node_get_array(n) : NULL;
}

gboolean hn_json_number_at(JsonObject *o, const char *name, double *x)
{
    JsonNode *n = hn_json_at(o, name);
    if (!hn_json_is_number(n))
        return FALSE;
    *x = json_node_get_double(n);
    return isfinite(*x);
}
