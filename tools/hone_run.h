/*
 * What the files of hone-run share.
 */
#pragma once

#include "cli/report.h"
#include "common.h"
#include "run/feedback.h"

/* --- results for people: run_print.c ------------------------------------------------------------------------------ */

typedef struct {
    JsonArray *results;    /* a row for each output of each run */
    JsonArray *top, *best; /* classes of scores: the first five of each sample, and the first alone */
    GPtrArray *labels;     /* char *, of --labels; NULL: none */
    const char *labels_path;
    gboolean labelled;   /* some scores have as many classes as there are labels */
    int64_t runs;        /* that were printed */
    int64_t rows;        /* of one, at most */
    HnColumn columns[8]; /* of classes */
} RunPrint;

/* labels: a file of one name a line; NULL: none. Errors: IO, FORMAT. */
gboolean run_print_init(RunPrint *p, const char *labels, HnBudget *budget, GError **error);
void run_print_clear(RunPrint *p);

/* Of output `name` for a sample or a batch of them. */
void run_print_add(RunPrint *p, const HnSample *s, const char *name, const HnTensor *t);

/* Tables and JSON. Errors: FORMAT: the labels are of no output. */
gboolean run_print_report(RunPrint *p, HnReport *report, GError **error);

/* --- pictures: run_image.c ---------------------------------------------------------------------------------------- */

/* Whether a value looks like a picture, a mask or scores of classes for each pixel. */
gboolean run_image_fits(const HnTensor *t);

/* The rows of its first axis as PNG files: path, or path with -N in front of its suffix where `many` is set, N counting
 * from `first`. *what: how elements became colours, a constant. Errors: IO, UNSUPPORTED, BUDGET. */
gboolean run_image_write(const HnTensor *t, const char *path, gboolean many, int64_t first, HnBudget *budget,
                         const char **what, GError **error);

/* --- outputs that are fed back: run_loop.c ------------------------------------------------------------------------ */

typedef struct {
    const char *const *rules; /* of --loop; NULL: as names say */
    gboolean sample;          /* tokens by names are drawn */
    HnPicking picking;
    int64_t steps, stop;
    const HnSessionOptions *session;
} RunLoopOptions;

typedef struct RunLoop RunLoop;

/* Session and model are borrowed. Errors: USAGE: a rule that does not fit the model, or none that is known. */
RunLoop *run_loop_new(HnSession *s, const HnModel *m, const RunLoopOptions *o, GError **error);
void run_loop_free(RunLoop *l); /* NULL is fine */
/* Input i of the session is made by a rule, where nobody gives it. */
gboolean run_loop_makes(const RunLoop *l, int i);
gboolean run_loop_has_tokens(const RunLoop *l);
/* All steps. out: new references to the outputs of the last one, then the tokens, if there are any. */
gboolean run_loop_run(RunLoop *l, HnContext *ctx, HnTensor *const *in, HnTensor **out, GError **error);
/* How many steps, and how long they took. */
void run_loop_report(const RunLoop *l, HnReport *report);
