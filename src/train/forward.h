/*
 * HnForward: what losses compare, computed by a model as it is used: normalizations with their own moments, nothing
 * dropped. Of a student while it is validated, and of a teacher.
 */
#pragma once

#include "run/session.h"
#include "train/objective.h"

G_BEGIN_DECLS

typedef struct {
    const HnBackend *backend;
    int threads;
    gboolean bf16;
    HnBudget *budget;
    const GPtrArray
        *inputs;          /* HnValue *: in their order it is fed; those of its own are found by name, else by place */
    const HnGraph *like;  /* the student's, which objectives are about, where m is a teacher: a value of the same
                             name is taken, else the result in the same place. NULL: m is the student */
    const HnWatch *watch; /* outlives it; NULL: nobody looks */
} HnForwardOptions;

typedef struct HnForward HnForward;

/* Takes m. Batches may have any length, whatever the file says of the first axis. Errors: those of preparing it; USAGE:
 * it has no such value, or other inputs. */
HnForward *hn_forward_new(HnModel *m, const GPtrArray *objectives, const HnForwardOptions *o, GError **error);
void hn_forward_free(HnForward *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnForward, hn_forward_free)

guint hn_forward_count(const HnForward *f); /* objectives */
/* The values that these are, whatever is made of them: a new text. */
char *hn_forward_describe(const HnForward *f);
/* out: of each objective what it compares, new references; the next run overwrites them. Errors: those of running. */
gboolean hn_forward_run(HnForward *f, HnTensor *const *in, HnTensor **out, GError **error);

G_END_DECLS
