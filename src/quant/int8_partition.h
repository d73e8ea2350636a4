/*
 * Which nodes integers make faster, conversions at the borders included.
 *
 * What each node takes as f32 and as integers was measured; where integers and floats meet, a value has to be
 * converted, which costs time for each element. The choice with the least sum is a minimal cut between the two forms,
 * found as a maximal flow (L. R. Ford and D. R. Fulkerson, "Maximal flow through a network", 1956), so that a node that
 * is a little slower in integers stays where the two conversions around it would cost more, and a node that is a little
 * faster does not go alone.
 */
#pragma once

#include "quant/quant_plan.h"
#include "tune/timing.h"

G_BEGIN_DECLS

typedef struct {
    const HnNodeTimes *f32, *integers; /* of the model as it is, and of the plan carried out */
    GHashTable *pinned;                /* names of nodes whose form stays; may be NULL */
    GHashTable *penalty;               /* name -> double *: ms that a node in integers counts as more; may be NULL */
    double bonus; /* part of its time that a node in integers may take more than in f32: 0.03 keeps what is even */
} HnPartitionOptions;

/* A copy of p without the int8 nodes with weights that are better left alone. m: with types, stays as it is; p need not
 * be spread. */
HnQuantPlan *hn_partition_choose(const HnQuantPlan *p, HnModel *m, const HnPartitionOptions *o);

/* What a run is expected to take with p carried out: the f32 model's time, with nodes' own times exchanged, and
 * conversions. Penalty and bonus have no part in it. */
double hn_partition_ms(const HnQuantPlan *p, HnModel *m, const HnPartitionOptions *o);

/* Maximal chains of integer nodes: name of each integer node with weights -> number of its region, from 1. */
GHashTable *hn_partition_regions(const HnQuantPlan *p, HnModel *m);

/* Of a node as integers, by what its form is made of: sums in integers (`NAME_sums`) and, where operators are on
 * integers, a quantized result (`NAME_q`) too, which is a conversion otherwise. NaN: not measured. */
double hn_node_integer_ms(const HnNodeTimes *t, const char *name, gboolean operators);

G_END_DECLS
