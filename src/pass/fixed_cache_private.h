/*
 * What fixed_cache.c and its rules share.
 */
#pragma once

#include "ir/build.h"
#include "op/infer.h"
#include "pass/fixed_cache.h"

G_BEGIN_DECLS

/* What the elements behind the filled part are. */
typedef enum { HN_TAIL_ANY, HN_TAIL_FINITE, HN_TAIL_ZERO } HnTail;

typedef struct {
    const HnFixedCache *o;
    HnGraph *g;
    HnTypes *t;
    HnBuild b;
    HnDim past, total;
    GHashTable *names;    /* HN_PAST_ROWS -> &rows */
    int64_t rows;         /* that sizes are evaluated with: those in front of a step that fills the capacity */
    HnValue *length;      /* i64[1] */
    HnValue *filled;      /* bool[capacity]; NULL: not needed so far */
    GHashTable *tails;    /* HnValue * -> HnTail */
    GHashTable *masked;   /* HnValue * -> the same with -inf behind the filled part */
    GHashTable *computed; /* HnValue * -> integers that follow from n, as a value */
    GError *error;
} HnFix;

typedef gboolean (*HnFixRule)(HnFix *f, HnNode *n);

/* Sets the error, if there is none yet: node n cannot be done so. FALSE. */
gboolean hn_fix_refuse(HnFix *f, const HnNode *n, const char *why);

enum { HN_NO_AXIS = -1, HN_BAD_AXIS = -2 };
/* The only axis of v that grows, n + s long; HN_BAD_AXIS: something else is not a number. */
int hn_fix_grown(const HnFix *f, const HnValue *v);
int hn_fix_rank_of(const HnFix *f, const HnValue *v);
HnDim hn_fix_dim_of(const HnFix *f, const HnValue *v, int axis);
int hn_fix_axis_of(int64_t axis, int rank); /* counted from the front */
/* d where n is `rows`; FALSE: it follows from something else, too. */
gboolean hn_fix_number_of(const HnFix *f, HnDim d, int64_t rows, int64_t *n);
HnTail hn_fix_tail_of(const HnFix *f, const HnValue *v);
void hn_fix_set_tail(HnFix *f, const HnNode *n, HnTail tail); /* of all outputs */

/* v's elements follow from n, and not all of them are numbers. */
gboolean hn_fix_follows(const HnFix *f, const HnValue *v);
/* d = a * n + b; FALSE: it is something else. */
gboolean hn_fix_linear(const HnFix *f, HnDim d, int64_t *a, int64_t *b);
/* What stands for v, whose elements follow from n, in a calculation; NULL: they do not grow in even steps. */
HnValue *hn_fix_computed(HnFix *f, const HnValue *v);
/* Inputs from i on are shapes and bounds: what they are when the caches are full. */
gboolean hn_fix_settle_shape(HnFix *f, HnNode *n, int i);
/* Inputs are numbers to calculate with. */
gboolean hn_fix_settle_numbers(HnFix *f, HnNode *n);

/* New nodes and weights, in front of the node that is looked at. NULL: out of memory. */
HnValue *hn_fix_list(HnFix *f, const int64_t *x, int n); /* i64[n] */
HnValue *hn_fix_counting(HnFix *f, HnDtype dtype, int64_t n, double start, double delta);
HnValue *hn_fix_filled(HnFix *f);             /* bool[capacity]: the rows that are filled behind the step */
HnValue *hn_fix_masked(HnFix *f, HnValue *x); /* x, whose last axis grows, with -inf behind the filled part */

/* fixed_cache_rules.c. NULL: it is not known what n does. */
HnFixRule hn_fix_rule_of(const HnNode *n);

G_END_DECLS
