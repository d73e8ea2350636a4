/*
 * HnLowered: what runs, as a graph of its own.
 *
 * A plan has nodes of a graph and fixed types for them. The lowered graph holds copies of those that have to run, and
 * then passes put one operator where several nodes spell it out, records of domain "hone" included: ordinary nodes with
 * a ref, which any backend may have kernels for. What was known ahead is a weight of it, what comes from elsewhere an
 * input, and what somebody else reads an output, so that nothing is computed away that is asked for.
 *
 * Nodes are of different versions of the default domain, as in the file. A node with sub-graphs has no attributes that
 * hold them: these belong to the graph before, and what they capture are further inputs.
 */
#pragma once

#include "pass/pass.h"

G_BEGIN_DECLS

typedef struct {
    HnModel *model; /* that has nothing but the graph */
    HnTypes *types; /* of the graph's values; NULL behind hn_lowered_settle() */
    const HnGraph *from;
    int start, end;
    gboolean *live;
    GPtrArray *origin; /* by HnValue.id: the HnValue that this one stands for; NULL: only the lowered graph has it */
    GHashTable *parts; /* hn_lowered_parts(); NULL before */
} HnLowered;

/* What is to be lowered: nodes that are bound. */
typedef struct {
    const HnGraph *graph;
    int start, end;       /* of its nodes */
    const gboolean *live; /* does node start + i have to run? */
    const HnTypes *types;
    /* Is v, made by one of these nodes, read by somebody else? */
    gboolean (*is_kept)(const HnValue *v, gpointer data);
    gboolean (*runs)(const HnDraft *d, gpointer data); /* HnPassOptions.runs */
    gpointer data;
    gboolean plain; /* no passes */
    HnBudget *budget;
} HnLowering;

HnLowered *hn_lower(const HnLowering *o, GError **error);
#define HN_LOWER_MOVES 8 /* nodes that only move bytes between what unpacks a constant and who reads it */
/* Can what n makes be had at any time? It unpacks what is known (HN_OP_UNPACK), or moves what a node of its graph does,
 * through up to `moves` of them. */
gboolean hn_lower_unpacks(const HnTypes *types, const HnNode *n, int moves);
void hn_lowered_free(HnLowered *l);
/* All is planned: the types go. */
void hn_lowered_settle(HnLowered *l);
/* The value that v stands for, be it of the lowered graph or of the one before; v itself where there is none. */
const HnValue *hn_lowered_origin(const HnLowered *l, const HnValue *v);
/* The node whose work n does, or whose first result it makes; n itself where there is none. */
const HnNode *hn_lowered_node(const HnLowered *l, const HnNode *n);
/* All nodes that n stands for, in order: HnNode *, owned by l. */
const GPtrArray *hn_lowered_parts(HnLowered *l, const HnNode *n);
/* A model like l's that prints, can be read again, and runs: sub-graphs are in their place. */
HnModel *hn_lowered_model(const HnLowered *l);

/* The passes that lower, in the order of running (lower/lower.def), ending with NULL: some that change files too, and
 * such as do not. The last one runs when all nodes went through the others. */
extern const HnPass *const hn_lower_passes[];

G_END_DECLS
