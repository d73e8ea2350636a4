/*
 * What the files of hone-prune share.
 */
#pragma once

#include "check/recorded.h"
#include "check/score.h"
#include "check/speedup.h"
#include "cli/report.h"
#include "common.h"
#include "onnx/onnx.h"
#include "prune/prune.h"
#include "prune/rounds.h"
#include "prune/widths.h"
#include "prune/zeros.h"
#include "tune/journal.h"
#include "tune/tune_budget.h"

#define PRUNE_TOOL "hone-prune" /* in recipes */
#define PRUNE_MOST_HELD 128     /* samples that results are looked at */
#define PRUNE_LITTLE 13.0       /* dB: outputs of which less is left are named */
#define PRUNE_WORTH 0.9         /* of the time: where nothing else is asked for than a loss */
#define PRUNE_OF_FOUR 0.5       /* part of the weights that pattern 2:4 makes 0 */

typedef struct {
    char *output, *calib, *score, *repair, *flops, *latency, *size, *metric, *max_drop_text, *exclude, *external,
        *pattern, *store, *replay, *plan, *write_plan, *journal, *timing_cache, *augment, *time_budget;
    char **dim, **shapes;
    int samples, round, layers, finetune, steps;
    double ratio, sparsity;
    gboolean structured, analyze, explain, force, speed_only, resume;
    HnToolDataParams from;
    char **input;
} PruneParams;

typedef enum {
    PRUNE_NO_BUDGET,
    PRUNE_RATIO,
    PRUNE_FLOPS,
    PRUNE_LATENCY,
    PRUNE_SIZE,
    PRUNE_ZEROS,
    PRUNE_LAYERS,
    PRUNE_PLANNED /* widths as a plan has them */
} PruneBudget;

/* What was tried, and what came of it. */
typedef struct {
    char *what, *hash;
    double flops, bytes, latency; /* parts of the dense model's; NaN: not measured */
    double top1, db;              /* the same */
    gboolean within;              /* the loss is not more than --max-drop */
    gboolean best;                /* no other one that was judged is better in one of these and as good in the others */
    gboolean chosen;
} PrunePoint;

/* A block that goes: values of the model. */
typedef struct {
    char *out, *in;
    guint layers;
    double db; /* of the model without it and those before it, as nothing makes up for them; NaN: not known */
} PruneBlock;

typedef struct {
    const char *name;
    gboolean kept;
    double before, after; /* dB on samples that are held out */
} PruneRepair;

/* How an output did on samples that had no part in it. */
typedef struct {
    HnOutputScore score;
    double db;   /* how far its error is below what it varies by */
    double seen; /* the same on samples that weights were fitted to; NaN: not known */
} PruneOutput;

typedef struct {
    HnContext *ctx;
    const PruneParams *p;
    const char *path;
    JsonObject *recipe;   /* to be done again; NULL: none */
    PruneParams replayed; /* its options */
    JsonObject *plan;     /* of --plan; NULL: none */
    char *model_hash, *data_hash;
    HnJournal *journal; /* NULL where nothing is made */
    GBytes *file;       /* of a model from stdin */
    const HnBackend *backend;
    HnShapes *shapes;
    HnExternal external;
    HnMetricChoice choice;
    double max_drop;    /* NaN: not said */
    PruneBudget budget; /* what is said beside it */
    double limit;       /* part of the dense model's, or, where `absolute`, what it says */
    gboolean absolute;
    HnPruneScore by;
    gboolean fit, norm, bias, heal; /* repairs */
    gboolean instead;               /* norm and bias, where fit is not kept */
    gboolean store_sparse;
    HnZerosOptions zeros;
    const char *pattern;       /* of zeros, its name */
    HnZerosCurves *zeros_loss; /* NULL: not needed, or not yet */
    double *zeros_part;        /* by layer */
    int vector;                /* widths are multiples of it where there are many channels */
    guint64 file_before, file_after;
    HnModel *dense; /* prepared */
    HnModel *base;  /* without blocks that go; the same where none does */
    GArray *blocks; /* PruneBlock: those */
    HnPruneMap *map;
    HnData *all, *drawn; /* as it was opened, and in the order that is drawn from */
    HnData *data;        /* the samples that are used, none twice; NULL: none */
    HnData *lessons;     /* all that are not held out: what is learned from. NULL: nothing learns */
    int64_t calib, held_first, held;
    HnSample *sample;  /* for times and operations */
    HnSample *largest; /* memory is planned for it; NULL: it is not limited */
    HnScorer *scorer;  /* on samples that are held out */
    HnScorer *chooser; /* on those that layers are fitted to; NULL: there is nothing to choose */
    HnPruneOptions o;
    HnPruneMemory memory; /* of q->o, where it is limited */
    HnPruneLearner learner;
    double *taylor;           /* by hn_channels_class() of q->map; NULL: not needed, or not yet */
    double **loss;            /* by class; NULL: was not needed */
    HnPruneCosts *ms, *bytes; /* of q->base, by layer; NULL: were not needed */
    int *keep;
    double flops_before, flops_after;
    HnPruned *pruned;
    HnModel *result;
    HnTuneBudget limits; /* of time; its memory is ctx's */
    GPtrArray *left_out; /* names of what there was no time to learn */
    HnPruned **folds;    /* of few samples: by sample, what comes of the others; NULL: some are held out */
    HnScore score, original;
    gboolean has_speedup;
    HnSpeedup speedup;
    GArray *repairs;   /* PruneRepair */
    GArray *outputs;   /* PruneOutput */
    GArray *points;    /* PrunePoint */
    int stored_sparse; /* weights */
    double mask_error; /* largest difference to the model that is only masked, relative to the largest result */
} Prune;

/* What came of pruning and repairs: of a Prune, to which it can be given back. */
typedef struct {
    HnPruned *pruned, **folds;
    int64_t n_folds;
    HnScore score;
    GArray *repairs;
} PruneJudged;

/* prune_options.c */
extern const PruneParams prune_defaults;
extern const GOptionEntry prune_entries[];
extern const HnRecorded prune_recorded;
gboolean prune_parse(Prune *q, GError **error);

/* prune_model.c: the model, and samples for it */
gboolean prune_open(Prune *q, GError **error);
gboolean prune_open_chooser(Prune *q, GError **error);
/* Refuses what the limit of memory is too low for, by a forecast, and shares out what there is. */
gboolean prune_plan_memory(Prune *q, GError **error);
/* On those samples; NULL: error. */
HnScorer *prune_scorer_on(const Prune *q, int64_t first, int64_t n, GError **error);
HnModel *prune_open_given(const Prune *q, GError **error);

/* prune_blocks.c: q->base */
gboolean prune_take_blocks(Prune *q, GError **error);
GArray *prune_blocks_new(void); /* PruneBlock */
void prune_clear_blocks(Prune *q);

/* prune_budget.c: q->keep */
gboolean prune_count_flops(const Prune *q, HnModel *m, double *flops, GError **error);
/* q->ms and q->bytes */
gboolean prune_find_costs(Prune *q, GError **error);
guint prune_n_widths(const Prune *q); /* choices of widths that are worth a trial */
gboolean prune_find_widths(Prune *q, guint i, GError **error);
/* Error of choice i as a part of the results' squares, less what it is worth that these widths run faster. */
double prune_widths_noise(const Prune *q, guint i, const HnScore *score);
/* For that part of the operations, as far as what is known of layers tells. */
gboolean prune_widths_for(Prune *q, double part, double *flops, GError **error);

/* prune_points.c: what was tried */
GArray *prune_points_new(void); /* PrunePoint */
/* Widths keep, and zeros of q, unless they are known. m: the model, NULL: to be made; s: NULL: not judged, latency NaN:
 * not measured. */
gboolean prune_note_point(Prune *q, const char *what, HnModel *m, const int *keep, const HnScore *s, double latency,
                          gboolean within, GError **error);
/* Which of them q->pruned is, and which are the best. */
void prune_finish_points(Prune *q);

/* What comes of the model by the samples that o names, with widths keep where channels go. */
HnPruned *prune_by(const Prune *q, const HnPruneOptions *o, const int *keep, GError **error);

/* prune_repair.c */
gboolean prune_score(HnScorer *by, const HnPruned *p, HnScore *s, GError **error);
/* q->score of q->pruned, whose weights become those that are better on samples that had no part in it. */
gboolean prune_repair(Prune *q, GError **error);
/* q->outputs, of what is written. */
gboolean prune_look_at_outputs(Prune *q, GError **error);
void prune_clear_folds(Prune *q);
/* Are samples so few that each is judged by a model that is made of the others? */
gboolean prune_leaves_out(const Prune *q);
void prune_take_judged(Prune *q, PruneJudged *j);
/* j is empty after that. */
gboolean prune_put_judged(Prune *q, PruneJudged *j, GError **error);
void prune_judged_clear(PruneJudged *j);

/* prune_search.c: q->pruned */
gboolean prune_choose(Prune *q, GError **error);

/* prune_time.c: --time-budget; without it nothing is cut, and there is time for all */
void prune_start_clock(Prune *q);
/* Seconds that the race at the end and writing need. */
double prune_reserve(const Prune *q);
/* A failure that comes of the phase's end says so. */
void prune_too_late(Prune *q, GError **failure);
/* Of each model's runs, in a race. */
double prune_race_seconds(const Prune *q, double most);
/* q->result is better than before, or was not changed. */
typedef gboolean (*PruneLearnFn)(Prune *q, const char *name, GError **error);
/* The same where there is time; else it is as it was, and the recipe says so. */
gboolean prune_in_time(Prune *q, const char *name, PruneLearnFn learn, GError **error);
void prune_add_left_out(const Prune *q, JsonObject *recipe);

/* prune_heal.c: q->result, where other weights are better on samples that are held out */
gboolean prune_heal(Prune *q, GError **error);
/* m's copy with what it learned of the dense model, and of labels; epochs 0: as many as are cheap. NULL: error. */
HnModel *prune_learn(const Prune *q, const HnModel *m, const char *what, int epochs, gboolean labels, GError **error);

/* HnPruneLearner.heal, data being q */
gboolean prune_heal_between(gpointer data, HnModel **m, GError **error);
/* q->result in --steps, where that is better */
gboolean prune_in_steps(Prune *q, GError **error);
/* prune_taylor.c: HnPruneLearner.score, data being q */
gboolean prune_taylor(gpointer data, const HnPruneMap *map, double *score, GError **error);

/* prune_journal.c: what was tried, and how long it took, is known to a run that goes on */
gboolean prune_open_journal(Prune *q, GError **error);
void prune_close_journal(Prune *q, const GError *why); /* NULL: all is well */
/* The model with these widths, and what else is chosen: of the options alone it is "dense"; g_free. */
char *prune_hash(const Prune *q, const int *keep, const char *judged);
/* By that name; FALSE: not known. */
gboolean prune_known_score(const Prune *q, const char *hash, HnScore *s);
gboolean prune_note_score(const Prune *q, const char *hash, const char *what, const HnScore *s, GError **error);

/* prune_replay.c */
gboolean prune_take_hashes(Prune *q, GError **error);
void prune_write_recipe(const Prune *q);
gboolean prune_read_recipe(Prune *q, GError **error);
void prune_clear_replayed(Prune *q);

/* prune_plan.c: what was chosen before: by the run that a recipe is of, or a plan */
gboolean prune_read_plan(Prune *q, GError **error);
gboolean prune_write_plan(const Prune *q, GError **error);
void prune_add_chosen(const Prune *q, JsonObject *o); /* of q->pruned */
JsonObject *prune_chosen(const Prune *q);             /* NULL: nothing was */
const char *prune_chosen_path(const Prune *q);        /* the file that says so */
const char *prune_chosen_pattern(const Prune *q);     /* NULL: it makes no zeros */
/* Its widths and zeros. */
gboolean prune_take_chosen(Prune *q, GError **error);
GArray *prune_chosen_blocks(const Prune *q, GError **error); /* PruneBlock; NULL: error */

/* prune_report.c */
gboolean prune_report(const Prune *q, GError **error);
gboolean prune_explain(const Prune *q, GError **error);
