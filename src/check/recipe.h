/*
 * How a model was made: entries of its metadata that the tool who wrote it leaves for others.
 *
 *     hone.recipe        JSON: tool, version, options, hashes of what went in. The same command gives the same text
 *     hone.checked       "not compared": it was never held against the model that it was made from
 *     hone.speed_only    "true": its numbers mean nothing, it is for measuring speed
 */
#pragma once

#include <json-glib/json-glib.h>

#include "ir/graph.h"

G_BEGIN_DECLS

#define HN_RECIPE "hone.recipe"
#define HN_CHECKED "hone.checked"
#define HN_NOT_COMPARED "not compared"
#define HN_SPEED_ONLY "hone.speed_only"

/* NULL: there is none. */
const char *hn_model_metadata(const HnModel *m, const char *key);
/* In the place of an entry of that key, else at the end; value NULL takes it away. */
void hn_model_set_metadata(HnModel *m, const char *key, const char *value);

gboolean hn_model_is_speed_only(const HnModel *m);

/*
 * A recipe is somebody else's text: it names neither programs nor files. Where a program judged the model, the recipe
 * says "cmd" for the metric, and the numbers that the program gave.
 */

/* text: the entry HN_RECIPE; path: the model's, for messages. json_object_unref(). Errors: UNSUPPORTED: there is none;
 * FORMAT. */
JsonObject *hn_recipe_read(const char *text, const char *path, GError **error);

/* Whether `metric`, that of the command line or NULL, is what the recipe needs: "cmd:PROGRAM" where a program judged
 * (else UNSUPPORTED), and nothing where none did (else USAGE). */
gboolean hn_recipe_check_metric(JsonObject *recipe, const char *path, const char *metric, GError **error);
gboolean hn_recipe_by_program(JsonObject *recipe);

G_END_DECLS
