/* hone-distill: the teacher beside the student, in what both get right and in time. */
#include <string.h>

#include "hone_distill.h"
#include "train/train_data.h"

#define SECONDS 1.0 /* of runs of each side */

/* By the student's judge, who knows what the teacher says of the samples. */
static gboolean judge_teacher(Distill *q, GError **error)
{
    HnModel *m;
    return distill_read_teacher(q, &m, error) && hn_judge_run_like(q->judge, m, q->plain->graph, &q->taught, error);
}

/* Both are fed the same tensors in the same order. */
static gboolean fed_alike(const Distill *q, const HnModel *teacher)
{
    g_autoptr(GPtrArray) in = hn_train_inputs(teacher);
    gboolean alike = in->len == q->inputs->len;
    for (guint i = 0; alike && in->len > 1 && i < in->len; i++)
        alike = strcmp(((HnValue *)in->pdata[i])->name, ((HnValue *)q->inputs->pdata[i])->name) == 0;
    return alike;
}

static gboolean race(Distill *q, HnModel *teacher, HnModel *student, GError **error)
{
    const HnSpeedupOptions o = {
        .threads = q->ctx->common.threads, .seconds = SECONDS, .budget = q->ctx->budget, .progress = &q->ctx->progress
    };
    g_autoptr(HnSample) one = hn_data_load(q->data, 0, error);
    return one != NULL && hn_fit_store(q->fit, student, error) &&
           hn_measure_speedup(teacher, student, q->backend, one->in, &o, &q->speedup, error);
}

gboolean distill_compare(Distill *q, GError **error)
{
    if (q->p->teacher == NULL)
        return TRUE;
    g_autoptr(HnModel) student = distill_student(q, error);
    HnModel *m = NULL;
    if (student == NULL || !judge_teacher(q, error) || !distill_read_teacher(q, &m, error))
        return FALSE;
    g_autoptr(HnModel) teacher = m;
    return !fed_alike(q, teacher) || race(q, teacher, student, error);
}
