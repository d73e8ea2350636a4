/*
 * JSON that comes from elsewhere: members of objects, where they are there and of the type that is asked for. Objects
 * and nodes may be NULL; what is returned is the object's.
 */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

const char *hn_json_string(JsonNode *n); /* a string; NULL: it is none */
JsonObject *hn_json_object(JsonNode *n); /* NULL: it is none */
gboolean hn_json_is_switch(JsonNode *n); /* true or false */
gboolean hn_json_is_number(JsonNode *n); /* for json_node_get_double() */

JsonNode *hn_json_at(JsonObject *o, const char *name);
const char *hn_json_string_at(JsonObject *o, const char *name);
JsonObject *hn_json_object_at(JsonObject *o, const char *name);
JsonArray *hn_json_array_at(JsonObject *o, const char *name);
/* FALSE: it is no finite number. */
gboolean hn_json_number_at(JsonObject *o, const char *name, double *x);

G_END_DECLS
