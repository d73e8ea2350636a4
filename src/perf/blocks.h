/*
 * Blocks: rows of a profile that belong together, as people think of a model.
 *
 * Most exporters name nodes by scopes: "/encoder/layer.0/attention/MatMul" is in three blocks, one within the other.
 * A node with sub-graphs is a block of what runs in them. Of blocks with the same rows there is the innermost one, and
 * none of a single row.
 *
 * Where less than half of the rows have scopes, the graph itself says what belongs together. Blocks are then what lies
 * between two places at which one value alone is on its way: a residual block, an inception module. Values that follow
 * from weights and shapes do not count for that, nor those that are on their way through more than half of the model,
 * such as a mask for all layers.
 */
#pragma once

#include "perf/profile.h"

G_BEGIN_DECLS

typedef struct {
    char *name;      /* "/encoder/layer.0"; without scopes of the first and last row: "conv2 .. add5" */
    GPtrArray *rows; /* HnProfileRow *, two at least */
    int parent;      /* index of the smallest block around it; -1: none */
} HnProfileBlock;

/* HnProfileBlock *, inner: g_ptr_array_unref(). Blocks come behind those around them. */
GPtrArray *hn_profile_blocks(const HnProfile *p);

G_END_DECLS
