/* hone-distill: what its command line says. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "cli/plot.h"
#include "hone_distill.h"

#define UNSAID (-1)
#define BATCH 64
#define EPOCHS 10
#define EPOCHS_OF_PART 40 /* of a student that is made of its teacher */
#define FROM_NEW 8.0      /* times the usual rate, where weights are new, or a part of another model's */

const DistillParams distill_defaults = { .clip = 1, .ema = NAN, .val_part = 0.1, .temperature = NAN, .epochs = UNSAID };

const GOptionEntry distill_entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, output),
      "write the trained student to PATH, '-' is stdout", "PATH" },
    { "student", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, student),
      "the model that learns; auto:0.25x: one that is made of the teacher, with that part of its operations", "MODEL" },
    { "teacher", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, teacher),
      "the model whose results it learns, where the loss compares with a tensor", "MODEL" },
    { "data", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, data),
      "samples to learn from, labels in the array 'label': a test set or a folder of them, FILE.npz, FILE.npy, a "
      "folder of these, '-'",
      "SRC" },
    { "val", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, val),
      "other samples, to judge the student by behind each epoch", "SRC" },
    { "val-part", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(DistillParams, val_part),
      "without --val: this part of the samples is held out for that, 0: none (default: 0.1)", "P" },
    { "cache-teacher", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, cache),
      "keep what the teacher says of each sample in FILE, for other runs (default: in memory, where it takes less than "
      "1 GB and samples are not changed)",
      "FILE" },
    { "no-cache-teacher", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(DistillParams, no_cache), "ask it again in each epoch",
      NULL },
    { "loss", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, loss),
      "ce, bce, kl, mse, l1, cosine, with numbers as in kl:temperature=4, and sums as in 0.3*ce+0.7*kl; @NAME "
      "compares that value (default: by what outputs hold; of classes 0.7*kl:temperature=4+0.3*ce, the teacher's part "
      "alone without labels, ce without a teacher)",
      "LOSS" },
    { "kd", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, kd),
      "how the default compares a teacher's classes: standard (default), standardize, or mse of logits", "HOW" },
    { "temperature", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(DistillParams, temperature),
      "of the default loss of classes (default: 4, in runs of less than 120 steps 2)", "T" },
    { "tune", 0, 0, G_OPTION_ARG_INT, HN_FIELD(DistillParams, tune),
      "first try N settings of what is not said of rate, temperature and --kd, in short runs of which the better half "
      "goes on; takes as long as three runs, about",
      "N" },
    { "time-budget", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, time_budget),
      "take about T (30s, 10m) for all of it: fewer epochs, and fewer settings of --tune, where these take longer",
      "T" },
    { "journal", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, journal),
      "note in FILE what --tune and --time-budget found, 'none' in no file (default: OUT.journal); with --resume they "
      "go "
      "on with it",
      "FILE" },
    { "pair", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, pair),
      "features T of the teacher that S of the student are to be like, too, by their mean squared difference; where "
      "one "
      "axis differs a linear map of S that learns, and is not written; several with commas",
      "T:S" },
    { "no-labels", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(DistillParams, no_labels),
      "labels are not looked at, where there are some", NULL },
    { "epochs", 0, 0, G_OPTION_ARG_INT, HN_FIELD(DistillParams, epochs),
      "times that all samples are seen (default: 10, with --student auto 40)", "N" },
    { "batch", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, batch),
      "samples of a step; auto: as many as fit --mem-limit, or the memory that is free (default: 64)", "N" },
    { "micro-batches", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, micro_batches),
      "parts of a batch, one after the other, whose gradients are added; auto: as few as fit --mem-limit (default: so "
      "many that one stays in the caches, where samples do not depend on each other)",
      "N" },
    { "optimizer", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, optimizer),
      "adamw (default), sgd, lion, with numbers as in sgd:momentum=0.9", "NAME" },
    { "lr", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, lr),
      "learning rate; auto: by a range test (default: that of the optimizer, 8 times that with new weights, 0.3 times "
      "that of a quantized student)",
      "LR" },
    { "schedule", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, schedule),
      "how the rate changes: cosine (default), linear, step, constant", "NAME" },
    { "warmup", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, warmup),
      "steps, or a part of all steps, in which the rate rises first (default: 0.05)", "N" },
    { "clip", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(DistillParams, clip),
      "largest norm of all gradients together, 0: any (default: 1)", "NORM" },
    { "precision", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, precision),
      "compute steps in f32 (default), bf16 or f16; weights stay f32", "TYPE" },
    { "ema", 0, 0, G_OPTION_ARG_DOUBLE, HN_FIELD(DistillParams, ema),
      "averages of the weights are judged and written, that decay so in a step (0.999)", "DECAY" },
    { "freeze", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, freeze), "weights whose names match stay", "REGEX" },
    { "train", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, train),
      "weights whose names match are trained, and no others", "REGEX" },
    { "freeze-bn", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(DistillParams, freeze_bn),
      "normalizations use the means and variances of the file and leave them (default for less than 300 samples or 8 "
      "a micro-batch, unless --init is random)",
      NULL },
    { "train-bn", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(DistillParams, train_bn),
      "they use those of the batch, however small it is", NULL },
    { "straight-through", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(DistillParams, straight),
      "gradients pass Round, Floor, Ceil and Sign as if these were the identity (default for a quantized student)",
      NULL },
    { "augment", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, augment),
      "random changes of samples: shift:2,flip-x,noise:0.01,scale:0.1", "LIST" },
    { "init", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, init),
      "keep (default): the file's weights; random or random:SEED: new ones", "HOW" },
    { "patience", 0, 0, G_OPTION_ARG_INT, HN_FIELD(DistillParams, patience),
      "end when N epochs in a row were no better", "N" },
    { "last", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(DistillParams, last),
      "write the weights of the last epoch, not of the best one", NULL },
    { "checkpoint-file", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, checkpoint),
      "keep all that it takes to go on in FILE, written behind each epoch and at Ctrl-C", "FILE" },
    { "checkpoint-every", 0, 0, G_OPTION_ARG_INT, HN_FIELD(DistillParams, checkpoint_every),
      "write it every N steps, too", "N" },
    { "resume", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, resume),
      "go on with a checkpoint, and keep it so unless --checkpoint-file names another; where both name one file that "
      "is "
      "not there yet, begin",
      "FILE" },
    { "log", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, log),
      "losses of all steps, and what epochs are judged, as FILE.csv or FILE.jsonl", "FILE" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, plot),
      "draw losses and the metric over epochs, as FILE.svg or FILE.png (gnuplot)", "FILE" },
    { "replay", 0, 0, G_OPTION_ARG_FILENAME, HN_FIELD(DistillParams, replay),
      "do again what the recipe in model FILE says, with the files of the command line, and write it where the same "
      "bytes come of it; see hone-replay",
      "FILE" },
    { "list-trainable", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(DistillParams, list_trainable),
      "list the student's weights, and why some are not trained; train nothing", NULL },
    { "external", 0, 0, G_OPTION_ARG_STRING, HN_FIELD(DistillParams, external),
      "auto: weights beside the model where it exceeds 2 GB (default); inline; one-file: PATH.HASH.data", "WHERE" },
    { "force", 0, 0, G_OPTION_ARG_NONE, HN_FIELD(DistillParams, force), "write although a guard was missed", NULL },
    { "input", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, HN_FIELD(DistillParams, input),
      "feed input NAME with a file, zeros, ones, random, a number or [a,list] in every sample; may be repeated",
      "NAME=VALUE" },
    HN_TOOL_DATA_ENTRIES(DistillParams, from),
    G_OPTION_ENTRY_NULL,
};

static const char *const left_out[] = {
    HN_TOOL_DATA_NAMES, "tune",  "time-budget", "checkpoint-every", "checkpoint-file", "resume", "list-trainable",
    "external",         "force", NULL
};

const HnRecorded distill_recorded = { .entries = distill_entries, .left_out = left_out, .defaults = &distill_defaults };

static gboolean parse_lr(Distill *q, GError **error)
{
    const char *text = q->p->lr;
    q->lr_auto = g_strcmp0(text, "auto") == 0;
    if (text == NULL && (q->init || q->auto_part > 0) && isnan(hn_terms_get(q->rule->terms, "lr")))
        q->rule->lr *= FROM_NEW;
    if (text == NULL || q->lr_auto)
        return TRUE;
    if (hn_parse_double(text, 0, 1e6, &q->rule->lr, error) && q->rule->lr > 0)
        return TRUE;
    if (error != NULL && *error == NULL)
        return hn_tool_usage(error, "option '--lr': a learning rate is above 0");
    g_prefix_error(error, "option '--lr': ");
    return FALSE;
}

/* "100": steps; "0.05": a part of them. */
static gboolean parse_warmup(Distill *q, GError **error)
{
    q->warmup = 0.05;
    if (q->p->warmup == NULL)
        return TRUE;
    if (!hn_parse_double(q->p->warmup, 0, 1e9, &q->warmup, error)) {
        g_prefix_error(error, "option '--warmup': ");
        return FALSE;
    }
    return q->warmup < 1 || q->warmup == floor(q->warmup) ||
           hn_tool_usage(error, "option '--warmup' is a part below 1, or a number of steps");
}

static gboolean parse_init(Distill *q, GError **error)
{
    const char *how = q->p->init != NULL ? q->p->init : "keep";
    q->init = g_str_has_prefix(how, "random");
    q->init_seed = q->ctx->common.seed;
    if (strcmp(how, "keep") == 0 || strcmp(how, "random") == 0)
        return TRUE;
    if (g_str_has_prefix(how, "random:") &&
        g_ascii_string_to_unsigned(how + 7, 10, 0, G_MAXUINT64, &q->init_seed, NULL))
        return TRUE;
    return hn_tool_usage(error, "option '--init' is keep, random, or random:SEED");
}

static gboolean parse_numbers(Distill *q, GError **error)
{
    const DistillParams *p = q->p;
    if (p->epochs < 1 || p->patience < 0 || p->checkpoint_every < 0)
        return hn_tool_usage(error, "a number of epochs and steps is positive");
    if (!(p->clip >= 0 && isfinite(p->clip)))
        return hn_tool_usage(error, "option '--clip' is a norm, or 0");
    if (!isnan(p->ema) && !(p->ema > 0 && p->ema < 1))
        return hn_tool_usage(error, "option '--ema' is between 0 and 1");
    if (!(p->val_part >= 0 && p->val_part <= 0.9))
        return hn_tool_usage(error, "option '--val-part' is between 0 and 0.9");
    if (p->freeze_bn && p->train_bn)
        return hn_tool_usage(error, "'--freeze-bn' excludes '--train-bn'");
    if (!hn_tool_train_precision(q->ctx, p->precision, &q->half, error))
        return FALSE;
    q->rule->clip = p->clip;
    q->rule->ema = isnan(p->ema) ? 0 : p->ema;
    return TRUE;
}

static gboolean parse_batch(Distill *q, GError **error)
{
    if (!hn_tool_parse_count("--batch", q->p->batch, &q->batch, error) ||
        !hn_tool_parse_count("--micro-batches", q->p->micro_batches, &q->parts_asked, error))
        return FALSE;
    q->any_batch = q->batch == HN_TOOL_AUTO && q->recipe == NULL;
    q->batch = q->batch > 0 ? q->batch : BATCH;
    if (q->any_batch && q->p->tune > 0)
        return hn_tool_usage(error, "'--tune' tries settings of one batch: '--batch' says which");
    if (q->any_batch && q->parts_asked == HN_TOOL_AUTO)
        return hn_tool_usage(error,
                             "of '--batch' and '--micro-batches' one can be 'auto': in small enough parts any batch "
                             "fits");
    /* those of a recipe divide a batch of all samples, where these are fewer */
    return q->any_batch || q->recipe != NULL || q->parts_asked <= 1 || q->batch % q->parts_asked == 0 ||
           hn_tool_usage(error, "option '--micro-batches' divides '--batch'");
}

static gboolean parse_files(const Distill *q, GError **error)
{
    const DistillParams *p = q->p;
    if (q->ctx->n_args > 0 && p->replay == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "what is '%s'? '--student' names the model that learns",
                    q->ctx->args[0]);
        return FALSE;
    }
    if (p->student == NULL)
        return hn_tool_usage(error, "which model learns? '--student' names it");
    if (p->plot != NULL && !hn_plot_check(p->plot, error))
        return FALSE;
    if (p->log != NULL && !g_str_has_suffix(p->log, ".csv") && !g_str_has_suffix(p->log, ".jsonl"))
        return hn_tool_usage(error, "option '--log' names a file that ends in .csv or .jsonl");
    if (p->list_trainable)
        return TRUE;
    if (p->data == NULL)
        return hn_tool_usage(error, "what does it learn from? '--data' says so");
    if (p->no_labels && p->teacher == NULL)
        return hn_tool_usage(error, "without labels, which '--no-labels' says, and without a '--teacher' there is "
                                    "nothing to learn from");
    return TRUE;
}

static gboolean compares_with(const Distill *q, HnLossTarget target)
{
    for (guint i = 0; i < q->objectives->len; i++)
        if (((const HnObjective *)q->objectives->pdata[i])->op->loss.target == target)
            return TRUE;
    return FALSE;
}

static gboolean parse_objectives(Distill *q, GError **error)
{
    const DistillParams *p = q->p;
    if (p->loss != NULL && p->kd != NULL)
        return hn_tool_usage(error, "'--loss' says what '--kd' would");
    if (p->kd != NULL && p->teacher == NULL)
        return hn_tool_usage(error, "'--kd' is about a '--teacher', and there is none");
    if (p->loss != NULL && (q->objectives = hn_objectives_parse(p->loss, error)) == NULL)
        return FALSE;
    if (!isnan(p->temperature) && !(p->temperature >= 0.1 && p->temperature <= 1000))
        return hn_tool_usage(error, "option '--temperature' is between 0.1 and 1000");
    if (p->loss != NULL && !isnan(p->temperature))
        return hn_tool_usage(error, "'--loss' says the temperature, as in kl:temperature=4");
    if (p->teacher != NULL && q->objectives != NULL && !compares_with(q, HN_TARGET_LIKE))
        return hn_tool_usage(error, "the loss compares with labels alone, so that a teacher has nothing to say: 'kl', "
                                    "'mse', 'l1' or 'cosine' compares with its results");
    if (p->no_labels && q->objectives != NULL && compares_with(q, HN_TARGET_LABELS))
        return hn_tool_usage(error, "'--loss' compares with labels, which '--no-labels' leaves out");
    return (p->kd == NULL || hn_kd_parse(p->kd, &q->kd, error)) &&
           (q->rule = hn_update_rule_parse(p->optimizer != NULL ? p->optimizer : "adamw", error)) != NULL &&
           hn_lr_curve_parse(p->schedule != NULL ? p->schedule : "cosine", &q->schedule.curve, error);
}

static gboolean parse_tune(Distill *q, GError **error)
{
    const DistillParams *p = q->p;
    if (p->tune == 0 && p->time_budget == NULL)
        return p->journal == NULL || p->replay != NULL ||
               hn_tool_usage(error, "'--journal' keeps what '--tune' and '--time-budget' find");
    if (p->time_budget != NULL && !hn_parse_seconds(p->time_budget, &q->time_budget, error)) {
        g_prefix_error(error, "option '--time-budget': ");
        return FALSE;
    }
    if (p->time_budget != NULL && !(q->time_budget > 0))
        return hn_tool_usage(error, "option '--time-budget' is above 0");
    const gboolean by_stdin = g_strcmp0(p->student, "-") == 0 || strcmp(p->data, "-") == 0 ||
                              g_strcmp0(p->teacher, "-") == 0 || g_strcmp0(p->val, "-") == 0;
    if (by_stdin)
        return hn_tool_usage(error, "'--tune' and '--time-budget' read files again and again: stdin is none");
    if (p->tune == 0)
        return TRUE;
    if (p->tune < 2)
        return hn_tool_usage(error, "option '--tune' tries two settings or more");
    if (q->auto_part > 0)
        return hn_tool_usage(error, "'--tune' is for a student that there is");
    return !q->lr_auto || hn_tool_usage(error, "'--tune' finds the rate that '--lr auto' would");
}

static void fill_in(Distill *q)
{
    if (q->p->epochs != UNSAID)
        return;
    DistillParams *p = q->p == &q->replayed ? &q->replayed : &q->filled;
    *p = *q->p;
    p->epochs = q->auto_part > 0 ? EPOCHS_OF_PART : EPOCHS;
    q->p = p;
}

gboolean distill_parse(Distill *q, GError **error)
{
    if (!parse_files(q, error) || !distill_parse_auto(q, error))
        return FALSE;
    fill_in(q);
    const DistillParams *p = q->p;
    if (!parse_objectives(q, error) || !parse_init(q, error) || !parse_lr(q, error))
        return FALSE;
    if (!parse_warmup(q, error) || !parse_numbers(q, error) || !parse_batch(q, error) || !parse_tune(q, error))
        return FALSE;
    return (p->augment == NULL || (q->augment = hn_augment_parse(p->augment, error)) != NULL) &&
           hn_tool_parse_external(p->external, &q->external, error);
}
