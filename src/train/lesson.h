/*
 * What a student learns where nobody says it: a loss for each of its outputs, by what these hold
 * (check/output_score.h).
 *
 *     classes      KL at temperature 4, 2 in a short run (Hinton et al., 2015); or of standardised logits (Sun et al.,
 *                  CVPR 2024); or the squares of differences of logits (Kim et al., IJCAI 2021)
 *     scores       binary cross-entropy of what is within [0, 1]
 *     embedding    1 - cosine
 *     numbers, state, mixed   squares of differences, as parts of the variance
 *     labels       nothing
 *
 * Where there are labels, too, the first output is held against them by cross-entropy with 0.3 of the weight.
 */
#pragma once

#include "check/output_score.h"
#include "train/targets.h"

G_BEGIN_DECLS

#define HN_LESSON_SHORT 120 /* steps: a run of fewer is short */

typedef enum { HN_KD_STANDARD, HN_KD_MSE, HN_KD_STANDARDIZE } HnKd;

/* "standard", "mse", "standardize". Errors: USAGE. */
gboolean hn_kd_parse(const char *text, HnKd *kd, GError **error);

typedef struct {
    const HnModel *student; /* prepared; outlives the lesson */
    const HnForwardOptions *forward;
    const HnData *data; /* some samples of it tell what outputs hold */
    HnTensor *labels;   /* of the first batch; NULL: there are none, or they are not to be used */
    HnKd kd;
    double temperature; /* 0: by the steps */
    int64_t steps;      /* of the run */
} HnLessonOptions;

typedef struct HnLesson HnLesson;

/* Looks at what the models, both of which are taken, make of some samples: the student as it begins, and the teacher;
 * NULL: there is none, and labels say all. Errors: those of running them. */
HnLesson *hn_lesson_new(const HnLessonOptions *o, HnModel *student, HnModel *teacher, GError **error);
void hn_lesson_free(HnLesson *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnLesson, hn_lesson_free)

/* HnObjective *, at least one. Errors: UNSUPPORTED: no output holds what can be learned. */
GPtrArray *hn_lesson_objectives(const HnLesson *l, GError **error);

/* Losses that somebody chose, and did not say along which axis classes lie: along the one that a softmax or the labels
 * tell. */
void hn_lesson_place(const HnLesson *l, const GPtrArray *objectives);

/* Losses that somebody chose: whether they suit what they compare, and whether that are probabilities instead of
 * logits. Errors: USAGE naming the output and what suits it. */
gboolean hn_lesson_check(const HnLesson *l, const GPtrArray *objectives, GError **error);

G_END_DECLS
