/*
 * Plans as JSON: written by one run, read, perhaps edited, by another.
 *
 *     { "schema": "hone.plan/1",
 *       "options": { "activations": "u8", "symmetric": false, "per_tensor": false, "reduced": true, ... },
 *       "repairs": ["equalize"],
 *       "nodes": [ { "name": "conv1_out", "form": "int8" }, { "name": "scores", "form": "f32" } ],
 *       "spans": { "conv1_out": { "lo": -0.25, "hi": 6.1 }, ... } }
 *
 * A node is called after its first output; nodes that are not named stay f32. The report of hone-quantize
 * ("hone.quantize/1"), whose nodes look the same, is read as well: it has no options and no spans.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "quant/quant_plan.h"

G_BEGIN_DECLS

/* nodes: names to be listed, char *, in this order, f32 ones too; NULL: those with a form, by name. repairs: names,
 * ended by NULL; NULL: none. */
JsonNode *hn_quant_plan_json(const HnQuantPlan *p, const GPtrArray *nodes, const char *const *repairs);

/* Equal for plans with equal options, forms and spans and the same repairs: SHA-256, g_free. */
char *hn_quant_plan_hash(const HnQuantPlan *p);

/* What was chosen: forms of these nodes that p has otherwise than `base`, by name. NULL: there are none. */
JsonObject *hn_quant_forms_json(const HnQuantPlan *p, const HnQuantPlan *base, const GPtrArray *nodes);
/* Into p, which is as `base` was; forms may be NULL. FALSE: no form of a node that had one. */
gboolean hn_quant_forms_read(JsonObject *forms, HnQuantPlan *p);

typedef struct {
    HnQuantPlan *plan;
    gboolean has_options, has_spans; /* they were told */
    char **repairs;
} HnPlanFile;

/*
 * o: options where the file tells none. nodes: names that the model has, char *, of those that may have a form. Errors:
 * FORMAT; USAGE naming a node that is none of these.
 */
gboolean hn_quant_plan_read(JsonNode *root, const HnQuantOptions *o, const GPtrArray *nodes, HnPlanFile *out,
                            GError **error);
void hn_plan_file_clear(HnPlanFile *f);

G_END_DECLS
