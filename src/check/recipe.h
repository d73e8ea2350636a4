/*
 * How a model was made: entries of its metadata that the tool who wrote it leaves for others.
 *
 *     hone.recipe        JSON: tool, version, options, hashes of what went in. The same command gives the same text
 *     hone.checked       "not compared": it was never held against the model that it was made from
 *     hone.speed_only    "true": its numbers mean nothing, it is for measuring speed
 */
#pragma once

#include <json-glib/json-glib.h>

#include "data/data.h"
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
 * says "cmd" for the metric, and the numbers that the program gave. It begins with the tool, the version of hone and
 * the options that are not as by default (check/recorded.h); the rest is what went in, as hashes, and what measuring
 * chose.
 */

/* Into the metadata. Both objects are taken; `rest` in the order of its members. */
void hn_recipe_write(HnModel *m, const char *tool, JsonObject *options, JsonObject *rest);

/* Of the model in a file, with options in it: json_object_unref(). Errors: those of reading and of hn_recipe_read();
 * FORMAT: it is none of `tool`. */
JsonObject *hn_recipe_open(const char *path, const char *tool, HnBudget *budget, GError **error);

/* text: the entry HN_RECIPE; path: the model's, for messages. json_object_unref(). Errors: UNSUPPORTED: there is none;
 * FORMAT. */
JsonObject *hn_recipe_read(const char *text, const char *path, GError **error);

/* Whether `metric`, that of the command line or NULL, is what the recipe needs: "cmd:PROGRAM" where a program judged
 * (else UNSUPPORTED), and nothing where none did (else USAGE). */
gboolean hn_recipe_check_metric(JsonObject *recipe, const char *path, const char *metric, GError **error);
gboolean hn_recipe_by_program(JsonObject *recipe);
/* What a program gave for the original, and for what was made; NaN: it gave none. */
void hn_recipe_add_numbers(JsonObject *recipe, double original, double made);
/* Errors: FORMAT: a program judged, and the first of these is missing. */
gboolean hn_recipe_has_numbers(JsonObject *recipe, const char *path, GError **error);
/* GUARD where `command` now gives another number of that name: for the `of` model. Older recipes say none. */
gboolean hn_recipe_check_number(JsonObject *recipe, const char *path, const char *name, const char *of,
                                const char *command, double now, GError **error);

/* --- what went in, and what came out --- */

/* Of the file, as sha256sum prints it; with weights in files of their own, of the bytes of these too. `file`: its bytes
 * where it has no path (g_free). */
char *hn_recipe_hash_model(const char *path, GBytes *file, HnBudget *budget, GError **error);
/* Of the first n samples, labels too (g_free). */
char *hn_recipe_hash_data(const HnData *d, int64_t n, GError **error);
/* A tensor of the samples, into a SHA-256. */
void hn_recipe_hash_tensor(GChecksum *sum, const HnTensor *t);

/* Is that member a hash, or null where nothing may have gone in? What is missing would equal anything. Errors: FORMAT.
 */
gboolean hn_recipe_has_hash(JsonObject *recipe, const char *path, const char *name, gboolean may_be_null,
                            GError **error);
/* GUARD where that member is not `hash` (NULL: none): "'m.onnx' was made of another model: of ..., not ...". */
gboolean hn_recipe_check_hash(JsonObject *recipe, const char *path, const char *name, const char *hash,
                              const char *another, GError **error);

/* GUARD where the model at `path` has other bytes than m; one in several files is taken as one. */
gboolean hn_recipe_check_bytes(const char *path, const HnModel *m, HnBudget *budget, GError **error);

G_END_DECLS
