/*
 * Students: smaller models that begin with what a large one knows, in several ways.
 *
 *     channels   classes of channels lose as many as costs least (prune/widths.h), and weights are fitted anew
 *     uniform    all classes lose the same part, and weights are fitted anew
 *     blocks     first branches of sums, and layers that make as many numbers as they read, go as a whole, those that
 *                are missed least (prune/branches.h), then channels
 *     low rank   layers become two smaller ones each, of a lower rank (prune/low_rank.h)
 *
 * Which is best is seen when they have learned. The same is made on any machine where nobody measures how long they
 * take; who does makes those narrower that take too long, and can say later how often that was
 * (HnStudentOptions.narrower).
 */
#pragma once

#include "prune/prune.h"

G_BEGIN_DECLS

typedef struct {
    const char *how;
    HnModel *model;
    guint blocks; /* that are gone */
    double flops;
    int64_t weights; /* elements of floats */
    int narrower;    /* steps, for the sake of time */
    double time;     /* as HnStudentOptions.time says; NaN: nobody measured it */
    double as_wide;  /* the same with no step */
} HnStudent;

/* How often students were made narrower because they took too long, in the order in which they are made. */
#define HN_STUDENTS 5
typedef struct {
    int times[HN_STUDENTS];
} HnNarrower;

/* HnStudent.how, but for the second student of blocks, ending with NULL. */
extern const char *const hn_student_ways[];

void hn_student_free(HnStudent *s);

typedef struct {
    const HnBackend *backend;
    int threads;
    HnBudget *budget;
    const HnProgress *progress; /* may be NULL */
    const HnData *data;         /* whose inputs are the model's, in its order */
    int64_t n;                  /* of them, from the first on, weights are fitted to */
    uint64_t seed;
    double part;     /* of the operations that are left, at most */
    const char *way; /* of hn_student_ways: only that one; NULL: all */
    /* The part of the dense model's time that m, whose weights are not fitted yet, takes; it stays as it is. NULL: that
     * does not matter. Errors: its own. */
    gboolean (*time)(gpointer data, const HnModel *m, double *part, GError **error);
    gpointer time_data;
    double most_time;           /* of it: what takes more becomes narrower by steps, while that helps */
    const HnNarrower *narrower; /* known: nothing is measured; NULL: it is, if there is time() */
    void (*note)(gpointer data, const char *text); /* told what is tried; may be NULL */
    gpointer note_data;
} HnStudentOptions;

/* HnStudent *, at least one, no two the same: of `dense`, which is ready (hn_prune_ready()) and outlives them. flops:
 * its operations. narrower: what was done for the sake of time. Errors: UNSUPPORTED naming what keeps all channels from
 * going; GUARD: none gets as small, and how small it gets; those of running; BUDGET, INTERRUPTED. */
GPtrArray *hn_students_new(HnModel *dense, const HnStudentOptions *o, double *flops, HnNarrower *narrower,
                           GError **error);

G_END_DECLS
