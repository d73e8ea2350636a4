/*
 * HnTypes: what is known of every value of a model beside the graph: type, elements, symbolic integer contents.
 *
 * The same rules serve two ends. With the file's symbolic types it is shape inference as tools show it. With fixed
 * input types it is the first half of planning: shapes become numbers, shape arithmetic becomes constants.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

typedef struct HnTypes HnTypes;

HnTypes *hn_types_new(const HnModel *m);
/* What `t` knows now; later changes do not show in the copy. */
HnTypes *hn_types_copy(const HnTypes *t);
void hn_types_free(HnTypes *t);
/* Where elements that are computed on the way come from; copies made later have the same. NULL, as at first: unlimited.
 */
void hn_types_set_budget(HnTypes *t, HnBudget *budget);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnTypes, hn_types_free)
/* From now on a dimension of which nothing is known becomes a symbol of its own: what has the size of the same value is
 * seen to be of one size. For whoever does not write the types down. */
void hn_types_name_unknown(HnTypes *t);

/* References are taken. Setting elements sets the type and, for small integers, the contents. */
void hn_types_set(HnTypes *t, const HnValue *v, HnType *type);
void hn_types_set_value(HnTypes *t, const HnValue *v, HnTensor *elements);
/* Borrowed; NULL: nothing known. */
HnType *hn_types_get(const HnTypes *t, const HnValue *v);
HnTensor *hn_types_value(const HnTypes *t, const HnValue *v);
const HnContents *hn_types_contents(const HnTypes *t, const HnValue *v);

/* Weights of g (not of graphs inside it) become known elements; other inputs get their declared types when
 * `inputs` says so. A sparse weight is made dense. */
gboolean hn_types_enter(HnTypes *t, HnGraph *g, gboolean inputs, GError **error);
/* Binds and infers one node. With fold_bytes > 0, a node that always gives the same and whose inputs are all known
 * is computed, unless its outputs need more than fold_bytes and twice its inputs. Sub-graphs are looked into. */
gboolean hn_types_node(HnTypes *t, HnNode *n, gsize fold_bytes, GError **error);

/* Walks over all nodes of g and the graphs inside it, from the declared types of its inputs; a node that is unknown or
 * fails leaves its outputs as declared and is not bound afterwards. Nodes whose record has one of the flags `whole` are
 * not computed. The table may be used again after the graph was edited: values made since then find their place. */
gboolean hn_types_graph(HnTypes *t, HnGraph *g, gsize fold_bytes, uint32_t whole, GError **error);
/* What n, which is bound, costs with the types that the table has. FALSE: not all of them are fixed. */
gboolean hn_types_cost(const HnTypes *t, const HnNode *n, HnCost *c);
/* Forgets all that is known of v. */
void hn_types_forget(HnTypes *t, const HnValue *v);

/* Types of all values of g and the graphs inside it, from the declared types of its inputs; results are stored as the
 * values' types where they say more than what is declared. With `strict`, a node that is unknown or fails is an
 * error; otherwise its outputs stay as declared. */
gboolean hn_graph_infer(HnGraph *g, gboolean strict, GError **error);

G_END_DECLS
