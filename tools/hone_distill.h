/*
 * What the files of hone-distill share.
 */
#pragma once

#include <stdio.h>

#include "check/recorded.h"
#include "check/speedup.h"
#include "cli/report.h"
#include "common.h"
#include "onnx/onnx.h"
#include "train/lesson.h"
#include "train/lr_range.h"
#include "train/train_fit.h"
#include "train_setup.h"
#include "tune/halving.h"
#include "tune/journal.h"

#define DISTILL_TOOL "hone-distill" /* in recipes */
#define DISTILL_AUTO "auto:"        /* what --student begins with that is made of the teacher */
#define DISTILL_FIRST_PART 0.125    /* of the epochs: how long settings are tried at first */
#define DISTILL_NARROWER "narrower" /* the same: distill_narrower() */
#define DISTILL_MADE "student"      /* the same: that the student was made of the teacher, as --student says it */

typedef struct {
    char *output, *student, *teacher, *data, *val, *loss, *optimizer, *lr, *schedule, *warmup, *freeze, *train,
        *augment, *init, *checkpoint, *resume, *external, *kd, *cache, *log, *plot, *replay, *pair, *precision,
        *time_budget, *journal, *batch, *micro_batches;
    double clip, ema, val_part, temperature;
    int epochs, tune, patience, checkpoint_every;
    gboolean freeze_bn, train_bn, straight, no_labels, no_cache, last, force, list_trainable;
    char **input;
    HnToolDataParams from;
} DistillParams;

/* How long things take, and what there is time for. */
typedef struct {
    double open_s, epoch_s; /* opening a run, an epoch with judging */
    double choosing;        /* runs that choosing a student takes, as parts of one */
    int epochs;
    guint settings; /* that are tried; less than 2: none are */
    double trials_s, learning_s;
} DistillCost;

typedef struct DistillAuto DistillAuto; /* students that were made of the teacher */
typedef struct DistillTune DistillTune; /* settings that were tried */

typedef struct {
    HnContext *ctx;
    const DistillParams *p;
    DistillParams filled; /* the same with defaults that depend on others, where there are some */
    const HnBackend *backend;
    HnExternal external;
    HnKd kd;
    GPtrArray *objectives; /* HnObjective * */
    HnUpdateRule *rule;
    HnDtype half;       /* HnTrainerOptions.half */
    HnAugment *augment; /* NULL: none */
    HnLrSchedule schedule;
    double warmup; /* steps, or, below 1, a part of them */
    gboolean lr_auto;
    gboolean init;
    guint64 init_seed;
    const char *auto_way; /* of hn_student_ways; NULL: whichever learns best */
    double auto_part;     /* of the teacher's operations, that a student made of it gets; 0: --student names one */
    GBytes *file;         /* of the student, as it was given */
    GBytes *teacher_file; /* NULL: there is none */
    char *teacher_folder;
    GBytes *start;            /* the same with new weights, or the one made of the teacher; NULL: it keeps its own */
    DistillAuto *derived;     /* NULL: --student names one */
    DistillTune *tune;        /* NULL: nothing was tried */
    int tuned_epochs;         /* of the run that a trial is a short form of; 0: this is none */
    gboolean timing;          /* it is opened for a trial, or to see how long steps take: no student is chosen */
    char *made;               /* distill_narrower(), for checkpoints */
    char *narrower;           /* how students of a run that this one repeats were made narrower; NULL: times tell */
    gboolean begins;          /* it goes on with a journal, so that a checkpoint may not be there yet */
    double time_budget;       /* seconds; 0: any */
    char *folder;             /* where its weights in other files are */
    HnModel *plain;           /* the student, whose inputs the data are for; becomes what is written */
    GPtrArray *inputs;        /* HnValue * of it */
    int batch, parts;         /* samples of a step, and into how many parts they are cut; 0: not known yet */
    int parts_asked;          /* 0: not; HN_TOOL_AUTO: as few as fit */
    gboolean any_batch;       /* --batch auto ... */
    char *batch_text;         /* ... found that; NULL: nothing so far */
    char *parts_text;         /* the parts that were found; NULL: --micro-batches says how many */
    gsize step_limit;         /* bytes that a step may take; 0: what --mem-limit leaves */
    HnData *all, *data, *val; /* as it was opened; what is trained with; what is validated with, NULL: nothing */
    HnData *val_all;          /* val with those that are learned from, too; NULL: there are none of these */
    HnData *judged;           /* what the student is judged by at the end: val, or some of data */
    HnSample *sample;         /* the first batch */
    HnForward *teacher;       /* NULL: none */
    GArray *pairs;            /* distill_pairs.c; NULL: none */
    guint n_judged;           /* objectives that students are judged by: those of pairs come behind */
    HnTargets targets;        /* of the trainer */
    GPtrArray *judged_by;     /* the first n_judged objectives, borrowed */
    HnTargets judge_targets;
    HnTeacherCache *cache; /* NULL: the teacher is asked each time */
    HnDevice *device;
    HnTrainer *trainer;
    HnBatches *batches;
    HnJudge *judge;
    GPtrArray *compared; /* HnType *: of each objective in a batch */
    gboolean keep_statistics;
    const char *kept_why; /* why they are kept; NULL: they are not, or there are none */
    HnLrRange range;      /* of --lr auto; steps 0: there was none */
    HnFit *fit;
    double lr;
    DistillParams replayed; /* of a recipe, with the files of the command line */
    JsonObject *recipe;     /* NULL: nothing is replayed */
    FILE *log;              /* NULL: none */
    char *student_hash, *data_hash, *val_hash, *teacher_hash, *recipe_hash;
    HnJudgement before, after, taught; /* taught: the teacher; of no samples where there is none */
    HnSpeedup speedup;                 /* from the teacher to the student; old_ms 0: not measured */
    guint64 began_ns, seconds_ns;      /* of training */
    int64_t resumed;                   /* steps that another run had made */
    guint64 file_after;
} Distill;

/* distill_options.c */
extern const DistillParams distill_defaults;
extern const GOptionEntry distill_entries[];
extern const HnRecorded distill_recorded;
gboolean distill_parse(Distill *q, GError **error);

/* distill_model.c: the student, data, the teacher, and the trainer of all that */
HnModel *distill_student(const Distill *q, GError **error); /* anew, with new weights where these are asked for */
HnForwardOptions distill_forward(const Distill *q);
gboolean distill_open(Distill *q, GError **error);
/* q->parts are found where they are not known. */
HnTrainer *distill_trainer(Distill *q, HnDevice *device, gboolean keep_statistics, GError **error);
/* Of each objective the type of what it compares in a batch: HnType *. */
GPtrArray *distill_compared(const Distill *q, const HnTrainer *t);
/* Why normalizations keep their moments; NULL: they do not. */
const char *distill_why_keep(const Distill *q);
void distill_clear(Distill *q);

/* distill_auto.c: --student auto, else nothing */
gboolean distill_parse_auto(Distill *q, GError **error);
gboolean distill_make_students(Distill *q, GError **error);  /* of q->plain, the teacher; the first is the student */
gboolean distill_choose_student(Distill *q, GError **error); /* by what they have learned after a while */
double distill_choosing(const Distill *q);                   /* how long that takes, as a part of the run */
void distill_report_auto(const Distill *q, HnReport *report);
/* How students became narrower because they took too long, as text, for what repeats this run: a new one. NULL: there
 * is no --student auto. */
char *distill_narrower(const Distill *q);
void distill_record_auto(const Distill *q, JsonObject *recipe);
void distill_auto_free(DistillAuto *a);

/* distill_batch.c */
gboolean distill_open_batches(Distill *q, GError **error); /* of q->batch samples */
/* --batch auto, else nothing: the largest of which a step fits. */
gboolean distill_find_batch(Distill *q, GError **error);
void distill_keep_parts(Distill *q); /* as an option, for the recipe, where none says how many */
/* Samples of d that the teacher is asked of, and students are judged by, where steps have so many parts. */
int distill_at_once(const Distill *q, int parts, const HnData *d);
/* What is taken of --mem-limit already, or will be while students are judged. */
gboolean distill_taken(const Distill *q, int parts, gsize *bytes, GError **error);

/* distill_train.c */
gboolean distill_train(Distill *q, GError **error);
gboolean distill_goes_on(const Distill *q); /* with a checkpoint */
/* To the end of its epochs without judging, checkpoints and logs. Errors as hn_fit_run(). */
gboolean distill_try(Distill *q, GError **error);
/* The file's model with the weights that a run keeps, as it will be read by others, judged as `judge`, which may be the
 * same, judges students. */
gboolean distill_judge_fit(const Distill *run, Distill *judge, HnJudgement *made, GError **error);

/* distill_tune.c: --tune and --time-budget, else nothing. Tries settings in short runs; those that learned best, for as
 * many epochs as there is time for, become q->p. */
gboolean distill_tune(Distill *q, GError **error);
void distill_end_tune(Distill *q, const GError *why); /* at the end of it all; NULL: it was written */
void distill_report_tune(const Distill *q, HnReport *report);
void distill_tune_free(DistillTune *t);

/* distill_budget.c */
HnHalving distill_halving(guint n, int epochs); /* of n settings */
/* Of a step, by some; batches begin anew. */
gboolean distill_time_steps(const Distill *q, const HnFeed *feed, double *seconds, GError **error);
/* Of a run that was opened since began_ns: how long that took, and an epoch will. */
gboolean distill_measure(const Distill *q, guint64 began_ns, DistillCost *c, GError **error);
/* c->epochs and ->settings come down to what fits into so many seconds since the program began (0: any); that is said,
 * and noted. */
gboolean distill_plan_time(const Distill *q, double seconds, DistillCost *c, HnJournal *journal, GError **error);
gboolean distill_known_cost(const HnJournal *journal, DistillCost *c); /* FALSE: nothing was noted */

/* distill_journal.c; q: a run that is open, p: what it was asked */
gboolean distill_open_journal(const Distill *q, const DistillParams *p, HnJournal **journal, GError **error);
void distill_close_journal(const Distill *q, HnJournal *journal,
                           const GError *why); /* takes it; NULL: it was written */
char *distill_trial_name(const Distill *q, const DistillParams *p);
gboolean distill_known(const HnJournal *journal, const char *name, HnJudgement *j);
gboolean distill_note_trial(HnJournal *journal, const char *name, const HnJudgement *j, GError **error);

/* distill_losses.c: finds the objectives, or checks those that there are */
gboolean distill_choose_losses(Distill *q, GError **error);
gboolean distill_read_teacher(const Distill *q, HnModel **m, GError **error); /* anew; NULL: there is none */

/* distill_gain.c: the teacher beside what was trained, before it is written */
gboolean distill_compare(Distill *q, GError **error);

/* distill_pairs.c: losses of pairs of features, behind the other objectives; maps, where work is the step's copy */
gboolean distill_open_pairs(Distill *q, GError **error);
gboolean distill_add_maps(const Distill *q, HnModel *work, GError **error);
/* The values of the student that they compare are outputs of m, which is a copy of it. */
void distill_show_pairs(const Distill *q, HnModel *m);

/* distill_cache.c: what the teacher makes of the samples, once */
gboolean distill_open_cache(Distill *q, GError **error);

/* distill_log.c: --log and --plot */
gboolean distill_open_log(Distill *q, gboolean append, GError **error);
void distill_log_step(const Distill *q, const HnFitStep *s, int64_t epoch);
void distill_log_epoch(const Distill *q, const HnEpoch *e);
gboolean distill_close_log(Distill *q, GError **error);
gboolean distill_plot(const Distill *q, GError **error);

/* distill_replay.c */
gboolean distill_read_recipe(Distill *q, GError **error);
gboolean distill_check_recipe(const Distill *q, GError **error); /* the same went in */
void distill_clear_replayed(Distill *q);

/* distill_list.c: --list-trainable */
gboolean distill_list(Distill *q, GError **error);

/* distill_report.c */
double distill_metric(const HnJudgement *j, const char **name); /* what decides which one is better: "top1", ... */
gboolean distill_report(const Distill *q, GError **error);
