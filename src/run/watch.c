/*
 * Values that somebody looks at while a plan runs.
 */
#include "run/plan.h"

gboolean hn_plan_watches(const HnPlan *p, const HnValue *v)
{
    const HnWatch *w = p->exec->env->o.watch;
    return w != NULL && w->wants(v, w->data);
}

static gboolean has_gaps(const HnSlot *s)
{
    return s->layout != NULL && s->layout->bytes != s->tensor->bytes;
}

gboolean hn_plan_watch_step(HnPlan *p, const HnStep *s, GError **error)
{
    for (int k = 0; k < s->n_out; k++) {
        HnSlot *o = s->out[k].slot;
        if (o == NULL || o->value == NULL || o->tensor == NULL || (!has_gaps(o) && o->where == HN_HOST) ||
            !hn_plan_watches(p, o->value))
            continue;
        HnSlot *plain = hn_plan_in_layout(p, o, NULL, error);
        if (plain == NULL || (plain = hn_plan_moved(p, plain, HN_HOST, error)) == NULL)
            return FALSE;
        plain->value = o->value;
    }
    return TRUE;
}

void hn_plan_watch_slots(HnPlan *p)
{
    for (guint i = 0; i < p->slots->len && p->exec->env->o.watch != NULL; i++) {
        HnSlot *s = p->slots->pdata[i];
        s->watched = s->value != NULL && !s->constant && s->where == HN_HOST && !(s->tensor != NULL && has_gaps(s)) &&
                     hn_plan_watches(p, s->value);
    }
}

void hn_plan_look(const HnPlan *p, const HnSlot *s)
{
    const HnWatch *w = p->exec->env->o.watch;
    const HnTensor *t = s->tensor;
    if (hn_tensor_is_list(t)) /* nobody looks into values that hold values */
        return;
    const int64_t width = s->pitch > 0 ? t->dims[1] : t->n;
    const HnSeen seen = { .dtype = t->dtype,
                          .data = t->data,
                          .rows = width > 0 ? t->n / width : 0,
                          .width = width,
                          .pitch = s->pitch > 0 ? s->pitch : width };
    w->saw(s->value, &seen, w->data);
}
