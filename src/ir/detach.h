/*
 * What the files of ir/ share about freeing and uses; nobody else includes this.
 *
 * Releasing frees an object and what it owns without a look at the values it uses: right where those go too.
 * Detaching comes first where they stay: it takes the uses out of their `users`.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

void hn_value_add_user(HnValue *v, HnNode *n);
/* One entry; the ends are searched first. */
void hn_value_drop_user(HnValue *v, HnNode *n);
void hn_value_release(HnValue *v);
/* v is called `name` from now on, which is taken and which no other value of its graph has. Second declarations under
 * the old name go. */
void hn_value_take_name(HnValue *v, char *name);
/* The names of a graph that came from elsewhere are used in the model. */
void hn_graph_note_names(const HnGraph *g);
/* About what a node and a value take, in bytes, with their names and their places in tables; ... */
#define HN_NODE_BYTES (sizeof(HnNode) + 96)
#define HN_VALUE_BYTES (sizeof(HnValue) + 96)
/* ... counted as they come and go. */
void hn_model_count(HnModel *m, gssize bytes);
void hn_graph_release(HnGraph *g);
void hn_node_release(HnNode *n);
void hn_attr_release(HnAttr *a);

/* Uses of values outside g by the nodes and outputs in g and below. */
void hn_graph_detach(HnGraph *g);
void hn_attr_detach(const HnAttr *a);

/* The graphs an attribute holds; 0 for other kinds. */
int64_t hn_attr_graphs(const HnAttr *a, HnGraph *const **graphs);
/* v belongs to g or to a graph inside g. */
gboolean hn_value_within(const HnValue *v, const HnGraph *g);
/* Removes the first or last entry that equals p, keeping the order. */
gboolean hn_array_drop(GPtrArray *array, gconstpointer p);

#define HN_TEXT_KINDS 15
extern const char *const hn_text_kinds[HN_TEXT_KINDS]; /* by HnAttrKind */
gboolean hn_text_is_bare(const char *name);            /* needs no quotes in text */
gboolean hn_text_is_number(const char *text);          /* begins with what reads as a number */

G_END_DECLS
