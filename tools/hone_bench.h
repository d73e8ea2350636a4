/*
 * hone-bench: what its files share. hone_bench.c opens all models once and goes through what is asked for,
 * bench_churn.c through the shapes that one session meets, bench_loop.c through generation, bench_options.c parses,
 * bench_subject.c opens models, bench_train.c those that are trained, bench_apart.c asks what memory each takes by
 * itself, bench_measure.c measures and compares them, bench_device.c looks at a GPU, bench_report.c tells, bench_plot.c
 * draws.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "cli/report.h"
#include "common.h"
#include "device_report.h"
#include "perf/measure.h"
#include "perf/noise.h"
#include "perf/outliers.h"
#include "perf/contest.h"
#include "train_setup.h"

#define BENCH_LOSSES 64   /* of the first steps of training that are told */
#define BENCH_SETS 32     /* samples that take turns, at most */
#define BENCH_LIMIT_S 10  /* of measuring until the interval is narrow enough */
#define BENCH_STREAMS 256 /* at most */

typedef struct BenchReport BenchReport;

typedef struct {
    char *warmup, *time, *ci, *data, *margin, *fail_if_slower, *on_noise, *precision, *batch_max, *hint, *io, *plot;
    char *baseline, *streams;
    char **input, **dim, **shapes;
    char **loop;
    gint64 runs, steps;
    int instances;
    gboolean strict, raw, churn;
    HnToolTrainParams training;
    HnToolDataParams from;
} BenchParams;

/* Where inputs are: the same ones in each run; copied into new memory as part of the run, as copying results out is;
 * the same, but not part of it; on the device, where results stay, too; HOST is another word for REUSE. */
typedef enum { BENCH_REUSE, BENCH_COPY, BENCH_FRESH, BENCH_DEVICE, BENCH_HOST } BenchIo;

#define BENCH_DEVICE_TIMES 6 /* of Subject.device_ms */

/* A value of an option that is swept. */
typedef struct {
    char *name, *text; /* "batch" and "8", "precision" and "bf16" */
    gboolean is_dim, is_number;
} Swept;

/* What is measured of each model: one of the combinations that a sweep names. */
typedef struct {
    int threads;
    char *precision; /* as asked for */
    BenchIo io;
    GArray *swept; /* Swept: what sets it apart */
    HnShapes *shapes;
    char *label;  /* what sets it apart from the others: "batch=8, 2 threads"; "" where there is one point */
    int streams;  /* 0: as the others say */
    double x;     /* the number that is swept alone, NaN: none or several are */
    char *x_name; /* what it is of; NULL as above */
    char *batch_dim;
    gint64 batch;       /* that --batch-max found for it, or --batch auto of --train; 0: not asked for */
    gsize step_limit;   /* of that, or of what is tried for it; 0: any */
    gboolean searching; /* and it is still tried */
} Point;

typedef struct {
    HnContext *ctx;
    const BenchParams *p;
    guint asked;      /* subjects whose peak was asked for, or that were opened before */
    gboolean checked; /* all models were opened before, and warned of */
    HnWarmup warmup;
    HnMeasureOptions measure;
    double margin, gate;
    gboolean ci_given, fail_on_noise;
    JsonNode *baseline;       /* of --baseline; NULL: none */
    char *hash[HN_MAX_SIDES]; /* of each model; NULL: not known yet */
    int streams;              /* 0: as many as threads; most of several; models are compared with one each */
    gint64 batch_limit;       /* of --batch-max, 0: not given */
    const HnBackend *backend;
    const HnBackend *second; /* of --device A,B: one model is compared on both; NULL mostly */
    GPtrArray *points;       /* Point * */
    char **labels;           /* per model: the last parts of its path, as many as tell the models apart */
    BenchReport *report;
    GError *verdict; /* why the exit status is not 0 although all was measured */
} Bench;

enum { BENCH_READ, BENCH_PARSE, BENCH_OPTIMIZE, BENCH_PREPARE, BENCH_FIRST_RUN, BENCH_PHASES };

/* A model ready to run. */
typedef struct {
    HnModel *model;
    HnSession *session;
    HnTensor **in[BENCH_SETS]; /* of each sample; borrowed unless `own` */
    guint n_sets;
    int n_in, n_out;
    gboolean own;
    BenchIo io;
    HnTensor **out, **copy_in, **copy_out;
    gpointer pad;       /* moves what is allocated after it */
    HnTrainer *trainer; /* of --train, instead of model and session; else NULL */
    const HnToolTraining *training;
    double last_loss;
    double losses[BENCH_LOSSES]; /* of the first steps */
    guint n_losses;
} Instance;

/* One model at one point, while it is measured. */
typedef struct {
    Bench *b;
    const Point *point;
    const char *path;
    const HnBackend *backend;
    guint number; /* of the model, or of its device, from 0 */
    char *label;
    GBytes *bytes; /* of the file */
    char *folder;  /* that it is in; NULL: stdin */
    HnToolInputs given;
    HnData *data;
    HnSample *sets[BENCH_SETS];
    guint n_sets;
    const char **names; /* of the inputs */
    gboolean vary;      /* not all of one shape */
    int plans;          /* that a session of it keeps */
    HnModel *model;
    Instance first, next;     /* next: the one that is measured, of several */
    HnToolTraining *training; /* of --train; else NULL */
    guint train_weights;
    gint64 train_elements;
    HnForecast forecast; /* of --train */
    gsize state_bytes;   /* of weights that are trained, and the optimizer's */
    double train_ms[HN_PHASES], last_loss, losses[BENCH_LOSSES];
    guint n_losses;

    gboolean ready;              /* prepared: there is something to tell */
    double phases[BENCH_PHASES]; /* ms, NaN: did not happen */
    HnSessionStats stats;
    int streams, threads; /* at once, and of each */
    HnWarmedUp warmed;
    HnMeasured measured;
    HnNoise noise;
    HnOutliers outliers;
    gboolean has_warmed, has_measured, has_outliers;
    double *round_ms; /* medians of instances, where there were several */
    guint n_rounds;
    double throughput; /* samples in a second, where it was measured */

    HnDeviceState device_before; /* before it was opened; this and all up to has_device: of a device with memory */
    HnDeviceNoise device_noise;
    HnDeviceBytes device_bytes;
    double device_ms[BENCH_DEVICE_TIMES];    /* medians: wall, kernels, upload, download, gaps, the host alone */
    guint device_runs;                       /* of these; 0: there is no clock */
    double device_segments, device_recorded; /* HnDeviceTimes, of a run */
    gboolean has_device;

    guint64 before, of_data;           /* private bytes: before opening, and what samples took */
    guint64 opened, running, peak_rss; /* bytes; 0: not known */
} Subject;

/* --- bench_options.c -----------------------------------------------------------------------------------------------
 */

gboolean bench_options(Bench *b, GError **error);
/* What is measured at each point: models, or one on two devices. */
int bench_sides(const Bench *b);
void bench_clear(Bench *b);

/* --- bench_points.c ------------------------------------------------------------------------------------------------
 */

/* b->points, of all that is swept. */
gboolean bench_points(Bench *b, GError **error);
void bench_points_free(Bench *b);

/* --- bench_subject.c -----------------------------------------------------------------------------------------------
 */

void subject_init(Subject *s, Bench *b, const Point *point, int model);
gboolean subject_open(Subject *s, GError **error); /* up to the first run, with the time and memory that it takes */
/* The same model at another point, whose shapes its session has not seen: nothing but the data is opened. */
gboolean subject_open_beside(Subject *s, const Subject *other, GError **error);
void subject_clear_beside(Subject *s);
void subject_retire(Subject *s); /* frees the first instance; what it was remains known */
void subject_clear(Subject *s);
guint64 subject_growth(const Subject *s); /* private bytes beyond those before it was opened, samples left out */
guint64 bench_peak_rss(void);
gint64 subject_batch(const Subject *s, guint set); /* samples in a run of that one: the first axis of its first input */

/* A further instance of a subject: everything once more, in other memory, as far as that goes. */
gboolean instance_open(const Subject *s, Instance *x, GError **error);
/* One that shares the first one's model and what was made of its weights, for a thread of its own. */
gboolean instance_share(const Subject *s, Instance *x, GError **error);
void instance_clear(Instance *x);
/* HnRunner.run, for an Instance *: nothing but the run is between the two stamps. */
gboolean instance_run(gpointer x, guint64 i, guint64 *start, guint64 *end, GError **error);

/* The largest batch up to the limit that fits the memory limit, for a model at a point: its first input's first
 * dimension *dim (g_free), 0 on failure. */
gint64 bench_batch_max(Bench *b, const Point *point, int model, char **dim, GError **error);

/* --- bench_train.c -------------------------------------------------------------------------------------------------
 */

/* The same for a model that is trained. */
gboolean subject_open_training(Subject *s, GError **error);
gboolean instance_train(const Subject *s, Instance *x, GError **error);
/* --batch auto: the largest batch of which a step fits, into point->batch. */
gboolean bench_batch_of_training(Bench *b, Point *point, GError **error);
gboolean instance_step(Instance *x, guint64 i, GError **error);
/* Forward, backward and update of the first instance, timed apart: s->train_ms. */
void subject_time_training(Subject *s);
void subject_retire_training(Subject *s);
void bench_report_training(const Subject *s, JsonObject *row);

/* --- bench_device.c ------------------------------------------------------------------------------------------------
 */

/* All four do nothing where the device has no memory of its own. Before it is opened; */
void subject_device_before(Subject *s);
/* around measuring; */
void subject_device_begin(Subject *s);
void subject_device_end(Subject *s);
/* behind it: further runs of the first instance, with marks of the device's clock in them, and its memory. */
void subject_time_device(Subject *s);
void bench_report_device(const Subject *s, JsonObject *row);
/* A remark; NULL: there is none (g_free). */
char *bench_device_line(const Subject *s);

/* --- bench_loop.c --------------------------------------------------------------------------------------------------
 */

/* --steps goes with the other options. */
gboolean bench_loop_check(const Bench *b, GError **error);
/* All models at all points, and the report. */
gboolean bench_loop(Bench *b, GError **error);
/* Sorts them; NaN: there are none. */
double bench_quantile(GArray *times, double part);

/* --- bench_churn.c -------------------------------------------------------------------------------------------------
 */

/* --churn goes with the other options. */
gboolean bench_churn_check(const Bench *b, GError **error);
/* All models, the points of each in one session, and the report. */
gboolean bench_churn(Bench *b, GError **error);

/* --- bench_apart.c -------------------------------------------------------------------------------------------------
 */

/* s->peak_rss becomes that of a process that opens and runs this subject alone. Where there is none it stays what it is
 * if no other was opened before, and is 0 else. */
void bench_apart_peak(Bench *b, Subject *s);
/* This is that process: nothing is to be done but to answer. */
gboolean bench_apart_is_asked(void);
gboolean bench_apart_answer(Bench *b, GError **error);

/* --- bench_measure.c -----------------------------------------------------------------------------------------------
 */

gboolean bench_alone(Bench *b, const Point *point, int model, GError **error);
gboolean bench_compare(Bench *b, const Point *point, GError **error); /* all models */

/* Remembers why the exit status shall not be 0; what is worse comes first. */
void bench_set_verdict(Bench *b, HnError code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* --- bench_baseline.c ----------------------------------------------------------------------------------------------
 */

/* A report of an earlier day, into b->baseline. */
gboolean bench_baseline_read(Bench *b, GError **error);
/* Several instances one after the other, until there are as many as asked for, or the baseline can be judged. */
gboolean bench_measure_instances(Subject *s, GError **error);
/* What was measured against the baseline, into the report and the exit status. */
void bench_judge_baseline(Bench *b, Subject *s);

/* --- bench_best.c --------------------------------------------------------------------------------------------------
 */

/* For each sweep of a batch: the one with most samples in a second, and the smallest that has nearly as many. */
JsonArray *bench_best(JsonArray *runs);

/* --- bench_report.c ------------------------------------------------------------------------------------------------
 */

BenchReport *bench_report_new(const Bench *b);
void bench_report_free(BenchReport *r);
void bench_report_add(BenchReport *r, Subject *s); /* s->throughput is filled in */
void bench_report_baseline(BenchReport *r, JsonObject *row, const char *line);
/* The report with its "env" as it will be; json_node_unref(). */
JsonNode *bench_report_env(const BenchReport *r);
/* The run that was added last. */
JsonObject *bench_report_last(const BenchReport *r);
void bench_report_compare(BenchReport *r, const Subject *a, const Subject *b, const HnEffect *e, guint rounds);
/* A report that holds nothing but these rows, and notes below them ("": none). */
gboolean bench_report_rows(const Bench *b, const char *name, JsonArray *rows, const HnColumn *columns,
                           const char *notes, GError **error);
gboolean bench_report_write(BenchReport *r, GError **error); /* nothing where no run was added */

/* --- bench_plot.c --------------------------------------------------------------------------------------------------
 */

typedef struct BenchPlot BenchPlot;

/* about: what the pictures are titled with: models and machine. */
BenchPlot *bench_plot_new(const char *about);
void bench_plot_free(BenchPlot *plot);
void bench_plot_add(BenchPlot *plot, const Subject *s); /* something that was measured */
/* Into a file that gnuplot draws. IO: it is not there or fails. */
gboolean bench_plot_write(const BenchPlot *plot, const char *path, GError **error);
/* Into a page. */
void bench_plot_report(const BenchPlot *plot, HnReport *report);
