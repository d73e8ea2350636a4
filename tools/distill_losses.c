/* hone-distill: which losses fall, where nobody says which, and whether those that somebody chose suit. */
#include <math.h>

#include "hone_distill.h"
#include "train/lesson.h"

static gboolean prepared(HnModel *m, GError **error)
{
    return m != NULL && hn_model_prepare(m, error);
}

static HnLesson *look(const Distill *q, const HnModel *student, GError **error)
{
    const HnForwardOptions f = distill_forward(q);
    const HnLessonOptions o = { .student = student,
                                .forward = &f,
                                .data = q->data,
                                .labels = q->p->no_labels ? NULL : q->sample->label,
                                .kd = q->kd,
                                .temperature = isnan(q->p->temperature) ? 0 : q->p->temperature,
                                .steps = hn_batches_per_epoch(q->batches) * MAX(q->p->epochs, q->tuned_epochs) };
    HnModel *teacher, *run = distill_student(q, error);
    if (run == NULL || !distill_read_teacher(q, &teacher, error)) {
        hn_model_free(run);
        return NULL;
    }
    return hn_lesson_new(&o, run, teacher, error);
}

static gboolean has_something_to_learn(const Distill *q, GError **error)
{
    if (q->p->teacher != NULL || q->sample->label != NULL)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                "'%s' has no array 'label' to learn from, and no '--teacher' says what is right", q->p->data);
    return FALSE;
}

/* Those that somebody chose; with --force what does not suit is said, and learned from. */
static gboolean check_losses(const Distill *q, const HnLesson *l, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (hn_lesson_check(l, q->objectives, &why))
        return TRUE;
    if (q->p->force)
        hn_context_warn(q->ctx, "%s", why->message);
    else
        g_propagate_error(error, g_steal_pointer(&why));
    return q->p->force;
}

gboolean distill_choose_losses(Distill *q, GError **error)
{
    g_autoptr(HnModel) student = distill_student(q, error);
    if (!prepared(student, error) || !has_something_to_learn(q, error))
        return FALSE;
    g_autoptr(HnLesson) l = look(q, student, error);
    if (l == NULL)
        return FALSE;
    if (q->objectives != NULL) {
        hn_lesson_place(l, q->objectives);
        return check_losses(q, l, error);
    }
    if ((q->objectives = hn_lesson_objectives(l, error)) == NULL)
        return FALSE;
    g_autofree char *text = hn_objectives_describe(q->objectives);
    hn_context_note(q->ctx, 1, "loss %s", text);
    return TRUE;
}
