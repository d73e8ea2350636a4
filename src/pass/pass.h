/*
 * Passes: rewrites of a model that leave what it computes as it was.
 *
 * A pass looks at one node (or one graph) at a time and edits around it with the calls of pass/rewrite.h. The driver
 * visits all nodes of the graph, of the graphs inside it and of function bodies, pass by pass, round by round, until a
 * round changes nothing. Types, symbolic shapes and known elements are there throughout; what nobody uses any more is
 * swept away behind each rewrite, and the graph is verified behind each pass that changed it.
 *
 * A run is deterministic, and each of its rewrites has a number: whoever wants one undone runs again on a fresh copy
 * with that rewrite banned, and whoever looks for a bad one runs with fewer (`most`).
 *
 * To add a pass: <name>.c, where src/pass/passes.def says, with `const HnPass hn_pass_<name>`, its line in that list
 * (the order there is the order of running), and test/pass/<name>.txt with its cases.
 */
#pragma once

#include "base/progress.h"
#include "op/infer.h"

G_BEGIN_DECLS

typedef struct HnRewrite HnRewrite; /* pass/rewrite.h */

typedef struct {
    const char *name;    /* "fold-constants" */
    const char *summary; /* one line for --list-passes */
    int level;           /* 1: only less to do; 2: other operators take over */
    /* One of the two; TRUE: the graph was changed. node: n and whatever became useless may be gone then. */
    gboolean (*node)(HnRewrite *r, HnNode *n);
    gboolean (*graph)(HnRewrite *r, HnGraph *g);
} HnPass;

/* All passes in the order of running, ending with NULL. */
const HnPass *const *hn_pass_all(void);
const HnPass *hn_pass_find(const char *name); /* NULL: none of that name */

/* A rewrite that was made, or nearly: where, and why not. */
typedef struct {
    const HnPass *pass;
    char *op;     /* of the node it began with; "" for a whole graph */
    char *site;   /* name of the node's first output */
    char *why;    /* of a near miss; else NULL */
    gint64 bytes; /* that the file grew by: exact for weights, roughly for nodes; negative where it shrank */
} HnSite;

typedef struct {
    GPtrArray *made;   /* HnSite *, in order */
    GPtrArray *missed; /* HnSite *, each once; only with `explain` */
    GPtrArray *spared; /* HnSite *, each once; only with `lean`: what is computed as before, and what it would add */
    guint rounds;
} HnPassLog;

void hn_pass_log_init(HnPassLog *log);
void hn_pass_log_clear(HnPassLog *log);

/* An operator that is about to be made. */
typedef struct {
    const HnOp *op;
    gconstpointer params;
    HnTensor *const *in; /* constants, or such without data that have only a type and dims; NULL: absent */
    int n_in;
    HnTensor *out; /* has only these */
} HnDraft;

typedef struct {
    int level;                   /* passes of a higher one are left out */
    const char *const *only;     /* NULL-terminated names; NULL: all */
    const char *const *skip;     /* the same; NULL: none */
    const HnPass *const *passes; /* these instead of hn_pass_all(), ending with NULL; NULL: those */
    guint64 most;                /* rewrites; 0: no limit */
    GHashTable *banned;          /* set of hn_site_key(): not made; NULL: none */
    gsize fold_bytes;            /* constants longer than this are made only where they replace longer ones */
    gboolean lean;               /* nothing is stored that is much longer than the weights that it is computed from */
    gboolean explain;
    gboolean lowering; /* hn_rw_lowers() */
    gboolean unroll;   /* hn_rw_unrolls() */
    gboolean trains;   /* hn_rw_trains() */
    /* hn_rw_runs(); NULL: all that there is does. */
    gboolean (*runs)(const HnDraft *d, gpointer data);
    gpointer data;
    HnBudget *budget;           /* of tensors that are made; NULL: unlimited */
    const HnProgress *progress; /* NULL: cannot be interrupted */
} HnPassOptions;

#define HN_FOLD_BYTES ((gsize)1 << 20)

/* Those of o->passes that o->only and o->skip leave, of any level, once, in order, at each node of m's graph, whose
 * functions were inlined and whose types are known already; `types` follows. On failure m is only good to be freed. */
gboolean hn_pass_apply(HnModel *m, HnTypes *types, const HnPassOptions *o, GError **error);

/* To be g_free'd. */
char *hn_site_key(const HnPass *pass, const char *site);

/*
 * Runs the passes on m. On failure the last entry of log->made is the rewrite during which or behind which it went
 * wrong, and m is only good to be freed. Errors: GRAPH and those of inference, with the pass in front; BUDGET;
 * INTERRUPTED.
 */
gboolean hn_pass_run(HnModel *m, const HnPassOptions *o, HnPassLog *log, GError **error);

G_END_DECLS
