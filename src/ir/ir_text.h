/*
 * Models as text, for people and for tests:
 *
 *     opset 17                                   # one line per domain: opset ai.onnx.ml 3
 *     graph main(%x:f32[N,8,4,4]) -> (%y) {
 *       b:f32[8]={1,2,3,4,5,6,7,8}
 *       %1 = Conv(%x, w:f32[8,8,3,3], b) pads=[1,1,1,1] @'first'
 *       %y:f32[N,8,4,4] = com.acme::Clip(%1, -, hi:f32={6.0}) mode='soft' scale=0.5
 *     }
 *
 *   - %name is what a node produces or the graph takes in; a name without % is a weight, declared with its type by
 *     itself or where it is used first. Names with other characters than letters, digits, _ . / ' stand in double
 * quotes;
 *   - a weight holds ={elements}, =fill(seed,lo,hi) (random), or, with neither, random elements from its name, the same
 *     at each reading: floats in [-1,1), integers in [-8,8) or [0,16);
 *   - Softmax<11>(...) is a node of another version than its domain's opset has;
 *   - "-" is an absent input or output; @'name' is the node's name; a # starts a comment; line ends are blanks;
 *   - types are printed as by hn_type_print(); f32[] and f32 are scalars, f32[...] has an unknown rank;
 *   - attributes: 1 (int), 1.0 (float), 'text', [1,2], [1.0,2.0], ['a','b'], floats[], strings[], f32[2]={1,2}
 * (tensor), sparse[3,4](f32[2]={1,2},i64[2]={0,5}), type(f32[2]), graph(%i) -> (%o) { ... }, lists of the last four,
 * and
 *     @alpha:float (in a function: the value of its attribute);
 *   - functions: function com.acme::Foo(%a) -> (%b) alpha beta=1.0 { opset 17 ... }, before the graph;
 *   - the short form has node lines only: what nothing produces is an input, what nobody uses is an output.
 *
 * Doc strings, metadata, unknown fields and denotations have no text.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/* Appends; weights and tensor attributes of more than max_elems elements by type only (-1: all elements). */
void hn_model_print(const HnModel *m, int64_t max_elems, GString *out);
/* A graph alone, as in the body of an attribute. */
void hn_graph_print(const HnGraph *g, int64_t max_elems, GString *out);
void hn_tensor_print(const HnTensor *t, int64_t max_elems, GString *out);

/* Not verified: call hn_model_verify(). Errors: FORMAT with the line's number, and BUDGET for the weights. */
HnModel *hn_model_parse(const char *text, HnBudget *budget, GError **error);
/* "f32[2]={1,2}", "i64={3}", "f32[2,3]" (random from the text). Moves *text behind what it read. */
HnTensor *hn_tensor_parse(const char **text, HnBudget *budget, GError **error);
/* Attributes by blanks, up to the end of the text, set on n. */
gboolean hn_node_parse_attrs(HnNode *n, const char *text, HnBudget *budget, GError **error);

G_END_DECLS
