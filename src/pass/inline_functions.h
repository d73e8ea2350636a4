/*
 * Calls of a model's own functions become the nodes of their bodies, and operators of ONNX Runtime's domain those that
 * they consist of (expand_contrib.h).
 */
#pragma once

#include "ir/graph.h"

/* Replaces every call in the model's graph, in sub-graphs and, one inside the other, in function bodies. Attributes
 * that a body refers to take the call's values or the function's defaults; references without either disappear. The
 * functions themselves stay. Inlined nodes keep the opset versions that their function imports.
 * How much that comes to is known before the first call is replaced. Errors: GRAPH for functions that call themselves,
 * UNSUPPORTED where calls unfold to 16 times the nodes of the file and more than 100,000, or nest more than 100 graphs.
 */
gboolean hn_inline_functions(HnModel *m, GError **error);
/* Only the first of both: operators of ONNX Runtime's domain stay. */
gboolean hn_inline_calls(HnModel *m, GError **error);
