/*
 * Planning: values that lie in one another's memory, so that concatenations and splits copy nothing.
 *
 * A source of a concatenation is written straight into its place in the result where that place is one piece of memory,
 * or, channels last, where its pixels lie apart by the result's pitch and all who touch the source can do with that. A
 * part of a split is read from its place in the same way.
 */
#include "run/plan.h"

/* Of a slot: steps that touch it and obey no pitch. */
typedef struct {
    const HnStep *last; /* of them */
    int n;
} Stiff;

typedef struct {
    HnPlan *p;
    GHashTable *stiff; /* HnSlot * -> Stiff *; made when somebody asks */
} Join;

static void touch(GHashTable *stiff, HnSlot *slot, const HnStep *s)
{
    Stiff *t = slot != NULL ? g_hash_table_lookup(stiff, slot) : NULL;
    if (slot != NULL && t == NULL)
        g_hash_table_insert(stiff, slot, t = g_new0(Stiff, 1));
    if (t != NULL && t->last != s) {
        t->last = s;
        t->n++;
    }
}

static gboolean is_stiff(const HnStep *s)
{
    return s->kernel == NULL || !s->kernel->pitched;
}

static void find_stiff(Join *j)
{
    j->stiff = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (guint i = 0; i < j->p->steps->len; i++) {
        const HnStep *s = j->p->steps->pdata[i];
        for (int k = 0; k < s->n_in + s->n_hidden && is_stiff(s); k++)
            touch(j->stiff, s->in[k].slot, s);
        for (int k = 0; k < s->n_out && is_stiff(s); k++)
            touch(j->stiff, s->out[k].slot, s);
    }
}

/* Do all steps that write or read the slot obey its pitch? But for the one that joins or splits it. */
static gboolean all_pitched(Join *j, const HnSlot *slot, const HnStep *but)
{
    if (j->stiff == NULL)
        find_stiff(j);
    const Stiff *t = g_hash_table_lookup(j->stiff, slot);
    return !slot->dense && (t == NULL || t->n == (is_stiff(but) ? 1 : 0));
}

/* A value of the plan's own, made by one of its steps, that nobody asks for by name. */
static gboolean is_inner(const HnSlot *s)
{
    return s != NULL && s->root == NULL && !s->constant && !s->changing && !s->kept && s->tensor != NULL &&
           s->tensor->dtype != HN_STRING;
}

/* `part` lies `offset` bytes into `whole`, whose own place is known. */
static gboolean lay_into(Join *j, HnSlot *part, HnSlot *whole, HnPlace how, gsize offset, const HnStep *s)
{
    if (how == HN_PLACE_NONE || (how == HN_PLACE_PIECE ? whole->pitch > 0 : !all_pitched(j, part, s)))
        return FALSE;
    if (how == HN_PLACE_PIXELS)
        part->pitch = whole->pitch > 0 ? whole->pitch : whole->tensor->dims[1];
    for (part->offset = offset; whole->root != NULL; whole = whole->root) /* of views and parts of parts */
        part->offset += whole->offset;
    part->root = whole;
    return TRUE;
}

static void join(Join *j, HnStep *s)
{
    HnSlot *whole = s->out[0].slot;
    gsize offset = 0;
    if (whole == NULL || whole->changing || (whole->kept && (j->p->exec->owner != NULL || j->p->exec->env->o.lasting)))
        return;
    g_autoptr(GHashTable) once = g_hash_table_new(NULL, NULL), more = g_hash_table_new(NULL, NULL);
    for (int i = 0; i < s->n_in + s->n_hidden; i++)
        if (!g_hash_table_add(once, s->in[i].slot))
            g_hash_table_add(more, s->in[i].slot);
    for (int i = 0; i < s->n_in; i++) {
        HnSlot *part = s->in[i].slot;
        if (!is_inner(part) || g_hash_table_contains(more, part))
            continue;
        HnPlace how = s->kernel->joins(s, i, &offset);
        s->in[i].joined = lay_into(j, part, whole, how, offset, s);
    }
}

static void split(Join *j, HnStep *s)
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
        s->out[k].joined = lay_into(j, part, whole, how, offset, s);
    }
}

/* From the last step to the first: what a result is laid into is known before what is laid into it. */
void hn_plan_join(HnPlan *p)
{
    Join j = { .p = p };
    for (guint i = p->steps->len; i > 0; i--) {
        HnStep *s = p->steps->pdata[i - 1];
        if (s->kernel != NULL && s->kernel->joins != NULL)
            join(&j, s);
    }
    for (guint i = 0; i < p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        if (s->kernel != NULL && s->kernel->splits != NULL)
            split(&j, s);
    }
    if (j.stiff != NULL)
        g_hash_table_unref(j.stiff);
}
