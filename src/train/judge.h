/*
 * HnJudge: losses and accuracy of a model, as it is used, on samples that it is validated with.
 */
#pragma once

#include "base/progress.h"
#include "train/targets.h"

G_BEGIN_DECLS

typedef struct {
    double loss;      /* weighted sum of means */
    double top1;      /* part of the labels whose class has the largest score; NaN: there are none */
    double agreement; /* part of the rows whose largest score is where the teacher's is; NaN: nothing says classes */
    int64_t samples;
} HnJudgement;

typedef struct {
    const HnData *data;       /* all of them; outlives the judge, as what follows does */
    const HnTargets *targets; /* objectives and teacher */
    HnForwardOptions forward; /* of the models that are judged */
    int batch;
    gboolean blind; /* labels are not looked at */
    const HnProgress *progress;
} HnJudgeOptions;

typedef struct HnJudge HnJudge;

/* What a teacher makes of the samples is kept from one model to the next where it is small. */
HnJudge *hn_judge_new(const HnJudgeOptions *o);
void hn_judge_free(HnJudge *j);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnJudge, hn_judge_free)

/* Takes m. Errors: those of running it, of targets, and of progress. */
gboolean hn_judge_run(HnJudge *j, HnModel *m, HnJudgement *made, GError **error);
/* The same of a model whose values are those of `like`, by name or else by place among the outputs, such as a teacher.
 */
gboolean hn_judge_run_like(HnJudge *j, HnModel *m, const HnGraph *like, HnJudgement *made, GError **error);

/* Do parts of n samples, such as those that are right, differ by more than two standard errors? */
gboolean hn_parts_differ(double x, double y, int64_t n);

/* More labels right; where that is not known, more agreement, by more than two standard errors of so many samples;
 * where neither tells, less loss. */
gboolean hn_judgement_better(const HnJudgement *a, const HnJudgement *b);

G_END_DECLS
