/*
 * HnLoop: a model that is run again and again, with outputs of a step as inputs of the next.
 *
 *     g_autoptr(GArray) feeds = hn_feeds_usual(session);
 *     HnLoop *l = hn_loop_new(session, model, &(HnLoopOptions){ .feeds = feeds, .steps = 256, .session = options });
 *     hn_loop_start(l, in, &error);
 *     while (!hn_loop_done(l) && hn_loop_step(l, &error)) ...
 *
 * Outputs are handed on by reference. A cache that grows by each step's rows would be of another shape each time, so
 * that each step would be planned: after the first step, which reads the whole prompt, the model is rewritten to caches
 * of a fixed size (pass/fixed_cache.h) into which rows are written in place. Where that cannot be done the session
 * plans for each shape, and hn_loop_plans() says why.
 */
#pragma once

#include "run/session.h"

G_BEGIN_DECLS

typedef enum {
    HN_FEED_STATE,     /* output `out` */
    HN_FEED_TOKEN,     /* the class that output `out` says, its last row for each of the batch */
    HN_FEED_ONES,      /* as many ones as there are rows, the new ones included: a mask */
    HN_FEED_POSITIONS, /* the numbers of the new rows */
    HN_FEED_PAST,      /* how many rows there were */
    HN_FEED_TOTAL,     /* and are, with the new ones */
    HN_FEED_STARTED,   /* whether there were any */
} HnFeedKind;

typedef struct {
    HnFeedKind kind;
    int out, in;     /* numbers of the session's outputs and inputs; out is -1 where no output is needed */
    gboolean sample; /* of a token: drawn as HnPicking says, else the likeliest */
} HnFeed;

/*
 * texts: ended by NULL, each one of
 *     OUT=IN            that output is that input's next value; a '*' in OUT stands for any text, and for the same in
 * IN OUT:argmax=IN     a token, the likeliest one OUT:sample=IN     a token that is drawn
 *     @ones=IN @positions=IN @past=IN @total=IN @started=IN
 * Errors: USAGE: no such input or output, or an input that is fed twice.
 */
GArray *hn_feeds_parse(const HnSession *s, const char *const *texts, GError **error);
/* What names of inputs and outputs as Optimum exports them mean; empty: nothing is known. Tokens are drawn where
 * `sample` is set. */
GArray *hn_feeds_usual(const HnSession *s, gboolean sample);
/* The rule that feeds input i; NULL: none. */
const HnFeed *hn_feeds_of(const GArray *feeds, int i);
/* Nobody has to give that input for the first step: counts, and states beside tokens, which begin empty. */
gboolean hn_feeds_make(const GArray *feeds, const HnFeed *f);

/* How tokens are drawn: from the `top_k` likeliest (0: all), and of those from the fewest that are likely by top_p
 * together (1: all), logits divided by the temperature. */
typedef struct {
    double temperature, top_p;
    int top_k;
    uint64_t seed;
} HnPicking;

typedef struct {
    const GArray *feeds; /* HnFeed, borrowed */
    HnPicking picking;
    int64_t steps;            /* at most */
    int64_t stop;             /* token that ends a row; -1: none */
    HnSessionOptions session; /* those of the session, which is `lasting` */
    gboolean plans;           /* plans for each shape in any case */
} HnLoopOptions;

typedef struct HnLoop HnLoop;

/* Session and model, which it is one of, are borrowed. */
HnLoop *hn_loop_new(HnSession *s, const HnModel *m, const HnLoopOptions *o);
void hn_loop_free(HnLoop *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnLoop, hn_loop_free)

/* The inputs of the first step: NULL for what a rule makes (an empty state, a mask of ones, positions). Begins anew.
 * Errors: USAGE: an input is missing. */
gboolean hn_loop_start(HnLoop *l, HnTensor *const *in, GError **error);
/* One step. Errors: those of hn_session_run(). */
gboolean hn_loop_step(HnLoop *l, GError **error);
/* All steps are done, or all rows have ended. */
gboolean hn_loop_done(const HnLoop *l);
int64_t hn_loop_steps(const HnLoop *l);
/* i64[batch, steps so far]; NULL: no rule makes tokens, or BUDGET. A new reference. */
HnTensor *hn_loop_tokens(const HnLoop *l, GError **error);
/* Output k of the last step, without the room of a fixed cache; a new reference. NULL: BUDGET. */
HnTensor *hn_loop_output(const HnLoop *l, int k, GError **error);
/* Why each step is planned; NULL: caches are of a fixed size, or do not grow. */
const char *hn_loop_plans(const HnLoop *l);

/* --- picking ------------------------------------------------------------------------------------------------------ */

/* The class that logits x[n] say; u in [0,1) decides where `sample` is set. Room: n numbers. */
int64_t hn_pick(const float *x, int64_t n, const HnPicking *p, gboolean sample, double u, int32_t *room);

G_END_DECLS
