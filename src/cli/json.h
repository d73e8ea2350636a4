/*
 * JSON text out of a tree of JsonNodes: two blanks per level, arrays of plain numbers on one line, numbers as short as
 * they can be read back exactly, null for what is not finite, names that are no UTF-8 repaired.
 */
#pragma once

#include <glib.h>
#include <json-glib/json-glib.h>

G_BEGIN_DECLS

char *hn_json_text(JsonNode *node); /* ends with a line break */

/* The node at a dotted path below node ("latency_ms.ci95.0"; the last name may hold dots itself), NULL where there is
 * none. Not a copy. */
JsonNode *hn_json_find(JsonNode *node, const char *path);

G_END_DECLS
