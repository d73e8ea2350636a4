/*
 * Operators of ONNX Runtime's own domain, com.microsoft, and those that it writes into the default domain: what its
 * optimizers and quantizers make. Each is spelled out as core operators of the newest opset, which lowering and kernels
 * know: but for DynamicQuantizeLSTM nothing computes them otherwise.
 */
#pragma once

#include "op/infer.h"

G_BEGIN_DECLS

#define HN_DOMAIN_CONTRIB "com.microsoft"
#define HN_DOMAIN_NCHWC "com.microsoft.nchwc" /* weights in an order that belongs to one processor */

/* n is such an operator, and there is a way to spell it out, in some forms at least. */
gboolean hn_contrib_knows(const HnNode *n);
/* One of these has a record of its own: it runs as it is, and faster. */
gboolean hn_contrib_runs(const HnNode *n);
/* Core operators take the place of n, which hn_contrib_knows(), and is freed. `types` holds what is known of its
 * inputs, and then of what was made, too. Errors: UNSUPPORTED, one sentence with the node's name, where the form has no
 * counterpart, or types that it depends on are not known; then the graph is of no use any more. */
gboolean hn_contrib_spell_out(HnNode *n, HnTypes *types, GError **error);

G_END_DECLS
