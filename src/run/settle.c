/*
 * Planning: new elements of variables on a device, which stay there.
 *
 * Mostly a step makes them in the variable's own place (place.c). Others are copied there behind all other steps on the
 * device; such that lie in a variable themselves, which may be replaced as well, through a place of their own.
 */
#include "run/plan.h"

gboolean hn_plan_stays(const HnPlan *p, guint k, const HnSlot *s)
{
    const HnEngine *e = p->exec->env->engine;
    gboolean any = FALSE;
    if (p->exec->owner != NULL || s->where != HN_DEVICE || s->layout != NULL || s->tensor == NULL)
        return FALSE;
    for (guint i = 0; i < e->variables->len; i++) {
        if (((const HnVariableState *)e->variables->pdata[i])->next != (int)k)
            continue;
        const HnTensor *there = hn_engine_place(e, i, HN_DEVICE);
        if (there == NULL || !hn_tensor_same_form(s->tensor, there))
            return FALSE;
        any = TRUE;
    }
    return any;
}

static gboolean settle_run(HnStep *s, GError **error)
{
    const HnMemory *m = s->state;
    const HnTensor *from = s->in[0].slot->tensor, *to = s->out[0].slot->tensor;
    return m->copy(s->stream, to->data, from->data, from->bytes, error);
}

static const HnKernel settle_kernel = { .name = "run.settle", .run = settle_run };

/* Where: in front of the results' copies to the host, so that it is recorded with what is before them; but a result
 * that is a variable as it was is copied first. */
static guint place_of_copies(const HnPlan *p)
{
    const guint first = hn_plan_first_result(p);
    for (guint i = first; i < p->steps->len; i++)
        if (hn_slot_root(((const HnStep *)p->steps->pdata[i])->in[0].slot)->variable)
            return p->steps->len;
    return first;
}

/* By step *at of the plan, whose memory is there already. */
static HnSlot *copy_to(HnPlan *p, guint *at, HnSlot *from, HnTensor *place)
{
    HnStep *s = hn_step_new(p, NULL, 1, 0, 1);
    HnSlot *to = hn_plan_new_slot(p);
    to->tensor = hn_tensor_ref(place);
    to->where = HN_DEVICE;
    to->changing = TRUE;
    s->in[0].slot = from;
    s->out[0].slot = to;
    s->kernel = &settle_kernel;
    s->state = (gpointer)p->exec->env->backend->memory;
    g_ptr_array_insert(p->steps, (gint)(*at)++, s);
    return to;
}

/* The slot with what replaces variable i, where it does not lie there; else NULL. */
static HnSlot *elsewhere(const HnPlan *p, guint i)
{
    const HnEngine *e = p->exec->env->engine;
    const HnVariableState *v = e->variables->pdata[i];
    HnSlot *s = v->next >= 0 ? p->results->pdata[v->next] : NULL;
    return s != NULL && s->where == HN_DEVICE && hn_slot_place(s) != hn_engine_place(e, i, HN_DEVICE)->data ? s : NULL;
}

gboolean hn_plan_settle(HnPlan *p, GError **error)
{
    const HnEngine *e = p->exec->env->engine;
    if (p->exec->owner != NULL || !p->last || e->residents == NULL || !hn_env_computes(p->exec->env))
        return TRUE;
    guint at = place_of_copies(p);
    g_autofree HnSlot **from = g_new0(HnSlot *, e->variables->len + 1);
    for (guint i = 0; i < e->variables->len; i++) {
        if ((from[i] = elsewhere(p, i)) == NULL || !hn_slot_root(from[i])->variable)
            continue;
        HnTensor *own = hn_plan_tensor_there(p, from[i], error);
        if (own == NULL)
            return FALSE;
        from[i] = copy_to(p, &at, from[i], own);
        hn_tensor_unref(own);
    }
    for (guint i = 0; i < e->variables->len; i++)
        if (from[i] != NULL)
            copy_to(p, &at, from[i], hn_engine_place(e, i, HN_DEVICE));
    return TRUE;
}
