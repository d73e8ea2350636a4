/*
 * Planning: values that lie in one another's memory, so that concatenations and splits copy nothing.
 *
 * A source of a concatenation is written straight into its place in the result where that place is one piece of memory,
 * or, channels last, where its pixels lie apart by the result's pitch and all who touch the source can do with that. A
 * part of a split is read from its place in the same way.
 */
#include "run/plan.h"

/* Do all steps that write or read the slot obey its pitch? But for the one that joins or splits it. */
static gboolean all_pitched(const HnPlan *p, const HnSlot *slot, const HnStep *but)
{
    for (guint i = 0; i < p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        gboolean touches = FALSE;
        for (int k = 0; k < s->n_in + s->n_hidden; k++)
            touches = touches || s->in[k].slot == slot;
        for (int k = 0; k < s->n_out; k++)
            touches = touches || s->out[k].slot == slot;
        if (touches && s != but && (s->kernel == NULL || !s->kernel->pitched))
            return FALSE;
    }
    return TRUE;
}

/* A value of the plan's own, made by one of its steps, that nobody asks for by name. */
static gboolean is_inner(const HnSlot *s)
{
    return s != NULL && s->root == NULL && !s->constant && !s->changing && !s->kept && s->tensor != NULL &&
           s->tensor->dtype != HN_STRING;
}

static int times_read(const HnStep *s, const HnSlot *slot)
{
    int n = 0;
    for (int i = 0; i < s->n_in + s->n_hidden; i++)
        n += s->in[i].slot == slot;
    return n;
}

/* `part` lies `offset` bytes into `whole`. */
static gboolean lay_into(HnPlan *p, HnSlot *part, HnSlot *whole, HnPlace how, gsize offset, const HnStep *s)
{
    if (how == HN_PLACE_NONE || (how == HN_PLACE_PIECE ? whole->pitch > 0 : !all_pitched(p, part, s)))
        return FALSE;
    if (how == HN_PLACE_PIXELS)
        part->pitch = whole->pitch > 0 ? whole->pitch : whole->tensor->dims[1];
    part->root = whole;
    part->offset = offset;
    return TRUE;
}

static void join(HnPlan *p, HnStep *s)
{
    HnSlot *whole = s->out[0].slot;
    gsize offset = 0;
    if (whole == NULL || whole->changing || (whole->kept && p->exec->owner != NULL))
        return;
    for (int i = 0; i < s->n_in; i++) {
        HnSlot *part = s->in[i].slot;
        if (!is_inner(part) || times_read(s, part) != 1)
            continue;
        HnPlace how = s->kernel->joins(s, i, &offset);
        s->in[i].joined = lay_into(p, part, whole, how, offset, s);
    }
}

static void split(HnPlan *p, HnStep *s)
{
    HnSlot *whole = s->in[0].slot;
    gsize offset = 0;
    if (whole == NULL || whole->constant)
        return;
    for (int k = 0; k < s->n_out; k++) {
        HnSlot *part = s->out[k].slot;
        if (!is_inner(part))
            continue;
        HnPlace how = s->kernel->splits(s, k, &offset);
        s->out[k].joined = lay_into(p, part, whole, how, offset, s);
    }
}

/* From the last step to the first: what a result is laid into is known before what is laid into it. */
void hn_plan_join(HnPlan *p)
{
    for (guint i = p->steps->len; i > 0; i--) {
        HnStep *s = p->steps->pdata[i - 1];
        if (s->kernel != NULL && s->kernel->joins != NULL)
            join(p, s);
    }
    for (guint i = 0; i < p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        if (s->kernel != NULL && s->kernel->splits != NULL)
            split(p, s);
    }
}
