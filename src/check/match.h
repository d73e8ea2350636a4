/*
 * Which value of one graph stands for which of another: the same model in two forms, before and after a tool changed
 * it.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

typedef enum {
    HN_MATCH_NAME,   /* both are called the same */
    HN_MATCH_OUTPUT, /* both are input or output number k */
    HN_MATCH_ORDER,  /* results of the same operator, in the same order between two that are matched otherwise */
} HnMatchKind;

typedef struct {
    HnValue *a, *b;
    HnMatchKind by;
} HnMatch;

/*
 * Array of HnMatch: first the inputs of b that are no weights, then results of b's nodes in their order. No value
 * occurs twice. Values inside sub-graphs are not looked at.
 */
GArray *hn_match_values(const HnGraph *a, const HnGraph *b);

G_END_DECLS
