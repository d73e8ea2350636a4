/*
 * What hone-bench and hone-profile share where they train: batches, targets, trainers.
 */
#pragma once

#include "common.h"
#include "train/targets.h"
#include "train/train_data.h"

/* The options of both; also those of their tables. */
typedef struct {
    char *loss, *optimizer, *freeze, *checkpoint, *batch, *micro_batches;
    gboolean train, freeze_bn;
} HnToolTrainParams;

#define HN_TOOL_TRAIN_ENTRIES(Params, field)                                                                             \
    { "train",                                                                                                           \
      0,                                                                                                                 \
      0,                                                                                                                 \
      G_OPTION_ARG_NONE,                                                                                                 \
      HN_FIELD(Params, field.train),                                                                                     \
      "measure steps of training: forward, backward, update of the weights",                                             \
      NULL },                                                                                                            \
        { "loss",                                                                                                        \
          0,                                                                                                             \
          0,                                                                                                             \
          G_OPTION_ARG_STRING,                                                                                           \
          HN_FIELD(Params, field.loss),                                                                                  \
          "--train: what falls, such as ce, mse@features or 0.3*ce+0.7*kl:temperature=4 (default: ce)",                  \
          "TEXT" },                                                                                                      \
        { "optimizer",                                                                                                   \
          0,                                                                                                             \
          0,                                                                                                             \
          G_OPTION_ARG_STRING,                                                                                           \
          HN_FIELD(Params, field.optimizer),                                                                             \
          "--train: such as adamw, sgd:momentum=0.9 or lion:lr=1e-4 (default: adamw)",                                   \
          "TEXT" },                                                                                                      \
        { "batch",                                                                                                       \
          0,                                                                                                             \
          0,                                                                                                             \
          G_OPTION_ARG_STRING,                                                                                           \
          HN_FIELD(Params, field.batch),                                                                                 \
          "--train: samples in a step; auto: as many as fit --mem-limit, or the memory that is free (default: as the "   \
          "model says, else 1)",                                                                                         \
          "N" },                                                                                                         \
        { "micro-batches",                                                                                               \
          0,                                                                                                             \
          0,                                                                                                             \
          G_OPTION_ARG_STRING,                                                                                           \
          HN_FIELD(Params, field.micro_batches),                                                                         \
          "--train: parts of a batch, one after the other, whose gradients are added; auto: as few as fit "              \
          "--mem-limit (default: so many that one stays in the caches, where samples do not depend on each other)",      \
          "N" },                                                                                                         \
        { "micro-batch", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, HN_FIELD(Params, field.micro_batches), "", "N" }, \
        { "freeze",                                                                                                      \
          0,                                                                                                             \
          0,                                                                                                             \
          G_OPTION_ARG_STRING,                                                                                           \
          HN_FIELD(Params, field.freeze),                                                                                \
          "--train: weights whose names match stay as they are",                                                         \
          "REGEX" },                                                                                                     \
        { "checkpoint",                                                                                                  \
          0,                                                                                                             \
          0,                                                                                                             \
          G_OPTION_ARG_STRING,                                                                                           \
          HN_FIELD(Params, field.checkpoint),                                                                            \
          "--train: none; auto: what backward reads is computed twice where that takes hardly any time, and as "         \
          "far as --mem-limit asks for it; N: so that only what goes from one of N segments to another stays "           \
          "(default: auto)",                                                                                             \
          "HOW" },                                                                                                       \
    {                                                                                                                    \
        "freeze-bn", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(Params, field.freeze_bn),                                         \
            "--train: normalizations keep the moments that the file holds", NULL                                         \
    }

#define HN_TOOL_AUTO (-1)
/* Of --batch and --micro-batches: a number, "auto" (HN_TOOL_AUTO), or NULL (0). */
gboolean hn_tool_parse_count(const char *option, const char *text, int *n, GError **error);

/* A step of so many samples fits; FALSE without an error: it does not. */
typedef gboolean (*HnToolFitsFn)(gpointer data, gint64 batch, GError **error);
/* The largest batch up to *most, which `fits` may lower, of so many parts of one size: doubled until it is too much,
 * then what is between is halved, twice. 0: error, or not even one sample in each part fits. */
gint64 hn_tool_largest_batch(const HnContext *ctx, gint64 parts, const gint64 *most, HnToolFitsFn fits, gpointer data,
                             GError **error);
/* Says so, and why the last one did not fit; NULL: nobody knows. Errors: BUDGET. */
void hn_tool_no_batch(gint64 parts, const GError *why, GError **error);
/* Bytes that a step with --batch auto may take. */
gsize hn_tool_step_limit(const HnContext *ctx);

/* USAGE: some of them without --train. */
gboolean hn_tool_train_check(const HnToolTrainParams *p, GError **error);

typedef struct HnToolTraining HnToolTraining;

HnToolTraining *hn_tool_training_new(HnContext *ctx, const HnToolTrainParams *p, GError **error);
void hn_tool_training_free(HnToolTraining *t);

/* Batches for m, which is at path: of `source` (NULL: random) in its order, `most` at most. *data outlives them; names:
 * of the inputs, g_free(). */
gboolean hn_tool_training_open(HnToolTraining *t, const HnModel *m, const HnToolDataParams *from, const char *path,
                               const char *source, HnShapes *shapes, guint most, HnData **data, const char ***names,
                               GError **error);
/* --batch auto: whoever opens it says how many samples, and how much memory a step may take. */
gboolean hn_tool_train_any_batch(const HnToolTrainParams *p);
void hn_tool_training_set_batch(HnToolTraining *t, int batch, gsize limit);
guint hn_tool_training_sets(const HnToolTraining *t);
HnSample *hn_tool_training_set(const HnToolTraining *t, guint k); /* borrowed */
gboolean hn_tool_training_synthetic(const HnToolTraining *t);     /* targets are made up */
const char *hn_tool_training_loss(const HnToolTraining *t);
const char *hn_tool_training_optimizer(const HnToolTraining *t);

/* The model, read anew. */
typedef HnModel *(*HnToolReadFn)(gpointer data, GError **error);
/* Cuts a batch into as many parts as the options say, or decides that with the first trainer. */
HnTrainer *hn_tool_trainer_new(HnToolTraining *t, HnToolReadFn read, gpointer data, const HnBackend *backend,
                               int threads, HnDtype half, GError **error);
int hn_tool_training_parts(const HnToolTraining *t); /* behind the first trainer */
/* A step on batch i, modulo their number, and its loss. */
gboolean hn_tool_train(const HnToolTraining *t, HnTrainer *trainer, guint64 i, double *loss, GError **error);
