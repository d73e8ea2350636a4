/*
 * What the files of hone-quantize share.
 */
#pragma once

#include "check/recorded.h"
#include "cli/report.h"
#include "common.h"
#include "onnx/onnx.h"
#include "check/calibrate.h"
#include "quant/calib_method.h"
#include "quant/repair.h"
#include "quant/search.h"

#define QUANTIZE_TOOL "hone-quantize" /* in recipes */

typedef struct {
    char *output, *calib, *ranges, *write_ranges, *method, *mode, *format, *metric, *target, *activations, *exclude,
        *external, *repair, *plan, *write_plan, *journal, *timing_cache, *time_budget, *size, *only_ops, *replay;
    char **dim, **shapes, **set;
    int samples, bits, block;
    double min_speedup, percentile;
    char *max_drop_text;
    gboolean per_tensor, per_channel, symmetric, analyze, force, allow_larger, speed_only, resume;
    HnToolDataParams from;
    char **input;
} QuantizeParams;

typedef struct QuantizeFold QuantizeFold;

typedef enum {
    QUANTIZE_CALIBRATION,
    QUANTIZE_REPAIRS,
    QUANTIZE_FOLDS,
    QUANTIZE_SEARCH,
    QUANTIZE_RACES,
    QUANTIZE_PHASES
} QuantizePhase;

typedef struct {
    HnContext *ctx;
    const QuantizeParams *p;
    QuantizeParams replayed; /* with --replay what p is */
    JsonObject *recipe;      /* of --replay; NULL: none */
    const char *path;
    GBytes *file;      /* of a model from stdin */
    HnModel *prepared; /* the model whose copies plans are carried out on */
    const HnBackend *backend;
    HnShapes *shapes;
    gboolean looked;                  /* what the scorer says of outputs is of `result` */
    HnMetricChoice choice;            /* of --metric */
    gboolean has_data;                /* samples that are not made up */
    gboolean weights_only, by_ranges; /* the latter: those of activations are asked for */
    HnQuantForm form;                 /* of all nodes, where they can take it */
    HnExternal external;
    double max_drop;     /* NaN: not said */
    HnTuneBudget limits; /* time and memory of all phases */
    guint64 most_bytes;  /* of --size; 0: none */
    GHashTable *pinned;  /* nodes of --set */
    char *plan_repairs;  /* of --plan: names with commas between, or "none"; NULL: there is no plan */
    gboolean plan_spans; /* the plan has spans */
    HnJournal *journal;
    char *best_path; /* of the best model so far; NULL: is not kept */
    char *model_hash, *data_hash;
    HnModel *f32;                    /* prepared */
    HnData *all, *data;              /* as it was opened, and the samples of it that are used: none twice */
    int64_t calib, held_first, held; /* samples to calibrate with, and to score with */
    HnQuantPlan *base, *fixed;       /* fixed: what --replay says, else NULL */
    HnCalibMethod method;
    HnCalibMethod *method_without; /* [held]: chosen by all samples but i; NULL: by all of them */
    HnCalibrator *shown;           /* what samples showed of f32, each apart; NULL: it is not kept */
    GPtrArray *shown_values;       /* HnValue * of f32: what it knows that the plan wants */
    HnScorer *scorer;
    HnSearchOptions so;
    HnRepairLog repairs;
    HnSearch search;
    HnModel *untouched;           /* `prepared` before repairs */
    HnQuantPlan *blank;           /* `base` before ranges and repairs */
    gboolean seen;                /* the samples that are scored had a part in ranges or repairs ... */
    QuantizeFold *folds;          /* ... but each is left out in turn: `held` of them; NULL: it is not */
    double mean_db, lo_db, hi_db; /* `looked`: of a sample, and where that of a further one is with 95 % */
    HnModel *result;
    HnQuantLog log;
    HnQuantPlan *safe_base; /* weights alone, of all nodes; NULL: no such plan is looked for */
    HnSearch safe;          /* what was found from there */
    HnModel *safe_result;   /* before anything was repaired; NULL: none */
    HnQuantLog safe_log;
    HnTuneCost safe_cost;        /* of making it */
    double sample_seconds;       /* that the original takes for a sample, opening it included */
    HnTuneCost samples_cost;     /* of all that are held out */
    gboolean is_safe;            /* q->result is that one */
    gboolean cut;                /* calibration or repairs had no time for all that they would have tried */
    guint repairs_wanted;        /* set of bits */
    double trial_seconds;        /* of a plan: building its model and running it on the samples; 0: not known */
    double phase_from, phase_to; /* parts of all work before and behind the present phase */
    gint told;                   /* thousandths of it that the bar has shown; atomic */
    gboolean search_long;        /* not all nodes may be in integers */
    gboolean has_speedup;
    HnSpeedup speedup;
    guint64 file_before, file_after;
    gsize forecast;             /* bytes of calibration */
    gsize trial_bytes, reserve; /* of --mem-limit: what a trial needs, and the largest phase behind the search */
    gsize program_bytes;        /* of it: what quantize_charge_program() found */
    gsize safe_bytes;           /* beyond `reserve`: what phases need beside a safe plan's model that is kept */
} Quantize;

/* hone_quantize.c: as a file, after it was read back and run */
gboolean quantize_write(Quantize *q, const HnModel *m, const char *path, GError **error);

/* quantize_options.c */
extern const QuantizeParams quantize_defaults;
extern const GOptionEntry quantize_entries[];
extern const HnRecorded quantize_recorded; /* those that have a part in the result */
gboolean quantize_parse_mode(Quantize *q, GError **error);
gboolean quantize_parse_options(Quantize *q, HnQuantOptions *o, GError **error);

/* quantize_model.c */
HnModel *quantize_open_given(const Quantize *q, GError **error);    /* the model as it was given */
HnModel *quantize_open_prepared(gpointer quantize, GError **error); /* a fresh copy for a plan */
gboolean quantize_prepare(Quantize *q, GError **error);
gboolean quantize_base_plan(Quantize *q, GError **error); /* all nodes that may be quantized, in q->base */
gboolean quantize_open_data(Quantize *q, GError **error);

/* quantize_ranges.c: the spans of q->base */
gboolean quantize_calibrate(Quantize *q, GError **error);
/* Those of each method, for the model as it is now: p[HN_CALIB_METHODS]. same_units: it makes the numbers of f32. */
gboolean quantize_recalibrate(Quantize *q, HnQuantPlan *const *p, gboolean same_units, GError **error);
/* Those of q->base by the method that was chosen, of all samples but i of those that `shown` knows. */
gboolean quantize_spans_without(Quantize *q, guint64 i, GError **error);

/* Those of q->base by the method that was chosen. */
gboolean quantize_spans(Quantize *q, GError **error);

/* Knows by name what p wants of m, *values (HnValue *; NULL: is not asked for). */
HnCalibrator *quantize_open_calibrator(const Quantize *q, HnModel *m, const HnQuantPlan *p, HnBudget *budget,
                                       GPtrArray **values, GError **error);

/* quantize_memory.c: --mem-limit */
/* BUDGET, with what each phase needs, where that is more than the limit; nothing has run by then. */
gboolean quantize_forecast(Quantize *q, GError **error);
/* The search and what follows have the memory that they need, and `more`. */
/* Program, libraries' data, graphs: what no budget counts is taken from --mem-limit, as it is now. */
gboolean quantize_charge_program(Quantize *q, GError **error);
gboolean quantize_has_room(const Quantize *q, gsize more);

/* quantize_repair.c: q->base, made less wrong */
gboolean quantize_repair(Quantize *q, GError **error);
void quantize_report_repairs(const Quantize *q, HnReport *report);
gboolean quantize_refine(gpointer quantize, HnQuantPlan **p, GError **error); /* biases of another plan */
/* A set of bits of them, whatever comes of it. */
gboolean quantize_repair_as(Quantize *q, HnQuantPlan **p, guint repairs, GError **error);
/* Weights' integers of each of p[calib] by all samples but one. */
gboolean quantize_round_without(Quantize *q, HnQuantPlan *const *p, GError **error);

/* quantize_unseen.c: of few samples each is scored by a model that is made without it */
gboolean quantize_wants_folds(const Quantize *q);          /* as far as is known before repairs */
gboolean quantize_make_folds(Quantize *q, GError **error); /* behind repairs, before the search */
void quantize_clear_folds(Quantize *q);
/* Models that are made and run at a time: as many as there are threads, or samples; where memory is limited, one. */
int quantize_workers(const Quantize *q);
gboolean quantize_look(Quantize *q, GError **error); /* at the result: what each output and each sample lose */

/* quantize_replay.c */
gboolean quantize_take_hashes(Quantize *q, GError **error);
JsonObject *quantize_options_json(const Quantize *q);
void quantize_write_recipe(const Quantize *q);                     /* into the result's metadata */
gboolean quantize_read_recipe(Quantize *q, GError **error);        /* options: q->p */
gboolean quantize_check_recipe(const Quantize *q, GError **error); /* GUARD: made of something else */
/* GUARD: the metric's program says something else. Both are TRUE where there is none. */
gboolean quantize_check_original(const Quantize *q, GError **error);
gboolean quantize_check_score(const Quantize *q, GError **error);
gboolean quantize_replay_plan(Quantize *q, GError **error); /* q->fixed */
void quantize_clear_replayed(Quantize *q);

/* quantize_budget.c: --time-budget */
void quantize_start_clock(Quantize *q);
/* q->safe: weights alone, to be written where time is over before anything better is known. */
gboolean quantize_find_safe(Quantize *q, GError **error);
gboolean quantize_has_safe(const Quantize *q);
void quantize_take_safe(Quantize *q); /* as the result */
/* Seconds for a last race and for writing, and for the latter alone. */
double quantize_reserve(const Quantize *q);
double quantize_reserve_write(const Quantize *q);
/* *failure, as it is to be told: FALSE. */
gboolean quantize_too_late(Quantize *q, GError *failure, GError **error);
void quantize_clear_safe(Quantize *q);

/* quantize_progress.c: what is said of how long it takes */
void quantize_hint(Quantize *q); /* behind calibration, which shows how long a trial takes */
void quantize_phase(Quantize *q, QuantizePhase phase);

/* quantize_journal.c */
gboolean quantize_open_journal(Quantize *q, GError **error);
gboolean quantize_improved(gpointer quantize, const HnQuantPlan *p, GError **error);
void quantize_close_journal(Quantize *q, const GError *why); /* NULL: all is well */
gboolean quantize_read_plan(Quantize *q, const HnQuantOptions *o, const GPtrArray *nodes, GError **error);
gboolean quantize_write_plan(const Quantize *q, GError **error);

/* quantize_report.c */
char *quantize_goals(const Quantize *q); /* "1 % of top1"; g_free */
/* "r2 of 'boxes'", the output that decided; g_free */
char *quantize_metric_at(const Quantize *q, HnMetric metric, const HnScore *score);
gboolean quantize_report(const Quantize *q, GError **error);

/* quantize_plot.c: pictures of a page, of what root holds and what was tried */
void quantize_plot(const Quantize *q, JsonObject *root, HnReport *report);
