/*
 * hn_free_batch(), inside: what walks over the nodes (free_batch.c) and what puts others in the place of one
 * (free_batch_graphs.c).
 */
#pragma once

#include "op/batch.h"

G_BEGIN_DECLS

typedef struct {
    HnModel *m;
    HnTypes *was, *now;
    HnDim n;
    int64_t n0;
    HnValue *first; /* input that tells the number of samples */
    int first_axis;
    HnValue *size;       /* i64[1]; NULL: not needed so far */
    GHashTable *places;  /* HnValue * -> HnBatchPlace * */
    GHashTable *symbols; /* names that the file has for sizes of inputs */
    GHashTable *wishes;  /* name -> wish, of all attempts */
    GPtrArray *choices;  /* Choice *, of this one, in order */
    GPtrArray *todo;     /* HnNode *: of the graph that is walked over; NULL: another node took its place along */
    guint at;            /* the one of these that is looked at */
    gboolean again;      /* others have come in front of it: there is another one now */
    HnNode *stuck;       /* the node that failed */
    guint n_apart;       /* as in HnFreedBatch */
    char *apart;
} HnFreeWalk;

HnBatchPlace hn_free_place(const HnFreeWalk *f, const HnValue *v);
void hn_free_set_place(HnFreeWalk *f, HnValue *v, HnBatchPlace at);
/* A node, and what it makes, of which f->was knows what it was. */
gboolean hn_free_node(HnFreeWalk *f, HnNode *n, GError **error);
/* y, which was `was`, is as the place says; its type is known as precisely as can be then. */
gboolean hn_free_check_out(HnFreeWalk *f, const HnValue *y, HnType *was, HnBatchPlace *at, GError **error);
/* Asks and edits for n. */
void hn_free_begin(HnFreeWalk *f, HnNode *n, HnBatch *b);
void hn_free_end(HnBatch *b);

/* HnBatch.select, .make, .apart; behind the latter, f->again: nothing was done so far. */
gboolean hn_free_select(HnBatch *b, HnGraph *const branch[2]);
HnValue *hn_free_make(HnBatch *b, const char *op, HnValue *const *in, int n_in, const char *attr, int64_t v, int k);
gboolean hn_free_apart(HnBatch *b);

G_END_DECLS
