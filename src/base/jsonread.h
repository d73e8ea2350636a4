/*
 * JSON that comes from elsewhere: read within limits, and members of objects, where they are there and of the type that
 * is asked for; objects as text. Objects and nodes may be NULL; what is returned is the object's.
 *
 * Text is looked over in one pass before anything is built of it: it is JSON as RFC 8259 has it (no comments, no single
 * quotes, nothing behind the value), UTF-8 without NUL, at most HN_JSON_DEPTH levels deep, of at most HN_JSON_VALUES
 * values; numbers are within gint64 or finite doubles, and no object has two members of one name.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "base/budget.h"

G_BEGIN_DECLS

#define HN_JSON_DEPTH 100
#define HN_JSON_VALUES ((gsize)1 << 20) /* some 250 bytes each */
#define HN_JSON_BYTES ((gsize)64 << 20) /* of a file, where no less is expected */

/* A value of at most `most` bytes: json_node_unref(). The budget, which may be NULL, has room for it. Errors: FORMAT,
 * BUDGET. */
JsonNode *hn_json_read(const char *text, gsize n, gsize most, HnBudget *budget, GError **error);
/* The same from a file; "-" is stdin, and no more is read than is taken. Errors: IO, too. */
JsonNode *hn_json_read_file(const char *path, gsize most, HnBudget *budget, GError **error);

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
double hn_json_number_or_nan(JsonObject *o, const char *name); /* the same; NaN: there is none */

/* In one line, without its end; g_free. */
char *hn_json_line(JsonObject *o);
/* null where it is not finite. */
void hn_json_set_number(JsonObject *o, const char *name, double x);
/* A count; null below 0: not known. */
void hn_json_set_count(JsonObject *o, const char *name, gint64 n);
/* The shortest decimal form that reads back as x; x is finite. */
char *hn_json_number(double x);

G_END_DECLS
