/*
 * Conversion of a model to another opset of the default domain, up or down.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/*
 * Converts m in place to opset `target`: nodes are rewritten as their records say (op/unbind.h), in sub-graphs too.
 * Names of inputs and outputs stay, as do other domains. Functions whose bodies are of another opset are inlined and
 * go. The IR version is raised where the target, or a weight that was made, needs a newer one; it is never lowered.
 *
 * FALSE with an error of code UNSUPPORTED where nodes have no equivalent in the target: then `blocked` (char * to be
 * g_free'd, appended) has a sentence for each of them, and m is only good to be freed: keep a copy to go on with.
 * Nothing is blocked where a version is outside [7,28] (UNSUPPORTED as well), or functions cannot be inlined.
 */
gboolean hn_convert_opset(HnModel *m, int64_t target, GPtrArray *blocked, GError **error);

/* Unfolds all functions, which go, and converts where `target` (0: the model's own opset) or the nodes that came out of
 * a function of another opset ask for it: as a file, the model means what it meant in memory. Operators of ONNX
 * Runtime's domain become those of the default one. Errors as above. */
gboolean hn_settle_opset(HnModel *m, int64_t target, GPtrArray *blocked, GError **error);
/* The same, but that these operators stay. */
gboolean hn_settle_calls(HnModel *m, int64_t target, GPtrArray *blocked, GError **error);

G_END_DECLS
