/*
 * What pass.c and rewrite.c share; nobody else includes this.
 */
#pragma once

#include "pass/rewrite.h"

G_BEGIN_DECLS

struct HnRewrite {
    HnModel *model;
    const HnPassOptions *o;
    const HnPass *pass; /* at work */
    HnPassLog *log;
    gint64 bytes, begun; /* that the file grew by so far, and up to the latest rewrite in the log */
    HnTypes *types;
    GHashTable *live;  /* HnNode *: those that the walk may still visit */
    GPtrArray *loose;  /* HnNode *: may have lost their last user */
    GPtrArray *unused; /* HnValue * weights of which the same is true */
    GHashTable *misses;
    GHashTable *names; /* char *, owned: of the nodes of names_of, those that went too; NULL: nobody asked */
    const HnGraph *names_of;
    gboolean burying; /* nodes that go leave their places in the list until the walk is over */
    gboolean full;    /* no more rewrites are wanted */
    gboolean changed;
    GError *error;
};

/* Removes nodes and weights that nobody uses, beginning with those that the last rewrite left behind. */
void hn_rw_sweep(HnRewrite *r);
/* The latest rewrite in the log, if there is one, has done all it does. */
void hn_rw_weigh(HnRewrite *r);
/* What a node takes in a file: roughly, but for the tensors and graphs in it. */
gint64 hn_rw_node_bytes(const HnNode *n);
/* The same, beginning with all nodes of g and of the graphs inside it; TRUE: something went. */
gboolean hn_rw_sweep_all(HnRewrite *r, HnGraph *g);

G_END_DECLS
