/*
 * Parameters of Einsum, for its record and for passes.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

enum {
    HN_EINSUM_LETTERS = 52, /* A..Z, a..z: labels 0 to 51, in the order of their characters */
    /* then the dimensions under '...', right-aligned: the last is HN_EINSUM_LABELS - 1 */
    HN_EINSUM_LABELS = HN_EINSUM_LETTERS + HN_MAX_RANK,
    HN_EINSUM_ELLIPSIS = HN_EINSUM_LABELS, /* in a term: stands for as many dimensions as there are to spare */
    HN_EINSUM_OPERANDS = 16,
    HN_EINSUM_TERM = HN_MAX_RANK + 1,
};

typedef struct {
    int n;
    uint8_t label[HN_EINSUM_TERM];
    gboolean ellipsis;
} HnEinsumTerm;

typedef struct {
    int n; /* operands */
    HnEinsumTerm in[HN_EINSUM_OPERANDS];
    HnEinsumTerm out;
    gboolean implicit; /* no "->": out is worked out from the terms */
} HnEinsum;

/* Labels of a term for a tensor of `rank`: one per dimension (HN_MAX_RANK places), '...' spelt out; how many. -1: the
 * rank does not fit. */
int hn_einsum_spell(const HnEinsumTerm *t, int rank, uint8_t *labels);

G_END_DECLS
