/*
 * How a model was made: entries of its metadata that the tool who wrote it leaves for others.
 *
 *     hone.recipe        JSON: tool, version, options, hashes of what went in. The same command gives the same text
 *     hone.checked       "not compared": it was never held against the model that it was made from
 *     hone.speed_only    "true": its numbers mean nothing, it is for measuring speed
 */
#pragma once

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

G_END_DECLS
