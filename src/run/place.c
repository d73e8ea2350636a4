/*
 * Planning, part 4: how long each value lives and where its elements are.
 */
#include "run/memory.h"
#include "run/plan.h"

#define PINNED_LEAST 1024 /* bytes of a result */

/* --- 4. memory --------------------------------------------------------------------------------------------------- */

static gsize slot_bytes(const HnSlot *s)
{
    return s->layout != NULL ? s->layout->bytes : s->tensor->bytes;
}

/* Does the slot's memory belong into the plan's arena? */
static gboolean in_arena(const HnSlot *s)
{
    return s->root == NULL && !s->constant && !s->changing && !s->kept && s->first >= 0 && s->tensor != NULL &&
           s->tensor->dtype != HN_STRING;
}

/* Lists are held by reference: whoever reads one last gives it back. */
static void note_deaths(HnPlan *p)
{
    for (int i = 0; i < (int)p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        for (int k = 0; k < s->n_in + s->n_hidden; k++) {
            const HnSlot *from = s->in[k].slot;
            s->in[k].dies = from != NULL && from->changing && from->spare != NULL && !from->kept && from->last == i;
        }
    }
}

void hn_plan_lifetimes(HnPlan *p)
{
    for (int i = 0; i < (int)p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        for (int k = 0; k < s->n_out; k++) {
            HnSlot *o = s->out[k].slot != NULL ? hn_slot_root(s->out[k].slot) : NULL;
            if (o == NULL)
                continue;
            o->first = o->first < 0 ? i : MIN(o->first, i); /* a source of a concatenation may come before it */
            o->last = MAX(o->last, i);
        }
        for (int k = 0; k < s->n_in + s->n_hidden; k++)
            if (s->in[k].slot != NULL && !s->in[k].unread)
                hn_slot_root(s->in[k].slot)->last = i;
    }
    note_deaths(p);
}

/* Would output k have the very form of input j, whose memory no other input looks at? */
static gboolean may_take_over(const HnStep *s, int k, int j)
{
    const HnSlot *to = s->out[k].slot, *in = s->in[j].slot;
    const HnSlot *from = hn_slot_root(s->in[j].slot);
    if (from->where != to->where || slot_bytes(from) != slot_bytes(to) || from->tensor->dtype != to->tensor->dtype ||
        !hn_tensor_same_form(in->tensor, to->tensor))
        return FALSE;
    for (int i = 0; i < s->n_in + s->n_hidden; i++)
        if (i != j && s->in[i].slot != NULL && (s->in[i].slot != in || k > 0) && hn_slot_root(s->in[i].slot) == from)
            return FALSE;
    return TRUE;
}

/* May output k of step i take over the memory of input j, which dies there? Then that memory's slot. */
static HnSlot *dying_input(const HnStep *s, int i, int k, int j)
{
    HnSlot *from = s->in[j].slot != NULL ? hn_slot_root(s->in[j].slot) : NULL;
    if (from == NULL || !in_arena(from) || !in_arena(s->out[k].slot) || from->last != i)
        return NULL;
    return may_take_over(s, k, j) ? from : NULL;
}

/* The step can write output k over what it reads: over input k, or, of a group, over any input. */
static gboolean is_inplace(const HnStep *s, int k)
{
    const guint32 flags = s->op != NULL ? s->op->flags : 0;
    const gboolean each = s->kernel != NULL ? s->kernel->inplace_each : (flags & HN_OP_INPLACE_EACH) != 0,
                   able = s->kernel != NULL ? s->kernel->inplace : (flags & HN_OP_INPLACE) != 0;
    return (each || (able && k == 0)) && k < MIN(s->n_out, HN_INPLACE_MAX) && s->out[k].slot != NULL;
}

/* Input k's memory; a group, which reads all inputs alike, can do with any. */
static HnSlot *inplace_source(const HnStep *s, int i, int k)
{
    HnSlot *from = NULL;
    if (!is_inplace(s, k))
        return NULL;
    for (int j = s->group != NULL ? 0 : k; j < (s->group != NULL ? s->n_in : MIN(s->n_in, k + 1)) && from == NULL; j++)
        from = dying_input(s, i, k, j);
    return from;
}

/* For messages: the node whose result takes most of the arena. */
static const char *largest_result(const HnPlan *p)
{
    const HnStep *most = NULL;
    gsize bytes = 0;
    for (guint i = 0; i < p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        for (int k = 0; k < s->n_out; k++) {
            const HnSlot *o = s->out[k].slot;
            if (s->node != NULL && o != NULL && o->block >= 0 && (most == NULL || slot_bytes(o) > bytes)) {
                bytes = slot_bytes(o);
                most = s;
            }
        }
    }
    return most != NULL ? hn_node_label(most->node) : "scratch";
}

static void *place_alloc(const HnRunEnv *env, HnWhere where, gsize bytes, GError **error)
{
    return where == HN_HOST ? hn_budget_alloc(env->o.budget, bytes, error)
                            : env->backend->memory->alloc(env->device, bytes, error);
}

static void place_free(const HnRunEnv *env, HnWhere where, void *data)
{
    if (where == HN_HOST)
        hn_budget_free(env->o.budget, data);
    else if (data != NULL)
        env->backend->memory->free(env->device, data);
}

static gboolean allocate(HnPlan *p, HnWhere where, const HnBlock *blocks, guint n, GError **error)
{
    const HnRunEnv *env = p->exec->env;
    HnArena *a = &p->arena[where];
    if (!env->o.apart)
        return (a->data = place_alloc(env, where, a->bytes, error)) != NULL;
    a->apart = g_ptr_array_sized_new(n);
    for (guint i = 0; i < n; i++) {
        void *block = place_alloc(env, where, blocks[i].bytes, error);
        if (block == NULL)
            return FALSE;
        g_ptr_array_add(a->apart, block);
    }
    return TRUE;
}

void hn_plan_free_memory(HnPlan *p)
{
    for (HnWhere w = HN_HOST; w < HN_PLACES; w++) {
        HnArena *a = &p->arena[w];
        place_free(p->exec->env, w, a->data);
        for (guint i = 0; a->apart != NULL && i < a->apart->len; i++)
            place_free(p->exec->env, w, a->apart->pdata[i]);
        g_clear_pointer(&a->apart, g_ptr_array_unref);
    }
}

/* Memory of its own, which is not in the arena. */
static gboolean owns_memory(const HnSlot *s)
{
    return s->root == NULL && !s->constant && !s->changing && s->tensor != NULL && s->first >= 0 && s->block < 0;
}

static gboolean within_limit(const HnPlan *p, GError **error)
{
    gsize bytes = p->arena[HN_HOST].bytes + p->arena[HN_DEVICE].bytes;
    for (guint i = 0; i < p->slots->len; i++)
        if (owns_memory(p->slots->pdata[i]))
            bytes += slot_bytes(p->slots->pdata[i]) * (gsize)p->parts;
    if (p->exec->env->most_bytes == 0 || bytes <= p->exec->env->most_bytes)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "a run would need %" G_GSIZE_FORMAT " bytes beside its inputs, more than %" G_GSIZE_FORMAT, bytes,
                p->exec->env->most_bytes);
    return FALSE;
}

static void *block_at(const HnArena *a, const HnBlock *blocks, guint i)
{
    return a->apart != NULL ? a->apart->pdata[i] : (char *)a->data + blocks[i].offset;
}

/* Memory for the blocks in one place: those of values, then scratch memory for each step. */
static gboolean place_blocks(HnPlan *p, HnWhere where, GArray *blocks, GError **error)
{
    const guint scratch = blocks->len;
    for (int i = 0; i < (int)p->steps->len; i++) {
        const HnStep *s = p->steps->pdata[i];
        HnBlock b = { hn_step_where(p, s) == where ? s->scratch_bytes : 0, i, i, 0 };
        g_array_append_val(blocks, b);
    }
    HnBlock *at = (HnBlock *)(void *)blocks->data;
    HnArena *a = &p->arena[where];
    a->bytes = hn_memory_plan(at, (int)blocks->len);
    if (!hn_env_computes(p->exec->env))
        return TRUE;
    if (!within_limit(p, error))
        return FALSE;
    if (!allocate(p, where, at, blocks->len, error)) {
        g_prefix_error(error, "node '%s': ", largest_result(p));
        return FALSE;
    }
    for (guint i = 0; i < p->slots->len; i++) {
        HnSlot *s = p->slots->pdata[i];
        if (s->block >= 0 && s->where == where)
            s->tensor->data = block_at(a, at, (guint)s->block);
    }
    for (guint i = 0; i < p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        if (s->scratch_bytes > 0 && hn_step_where(p, s) == where)
            s->scratch = block_at(a, at, scratch + i);
    }
    return TRUE;
}

/* The blocks of values in one place. */
static GArray *blocks_of(HnPlan *p, HnWhere where)
{
    GArray *blocks = g_array_new(FALSE, FALSE, sizeof(HnBlock));
    for (int i = 0; i < (int)p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        for (int k = 0; k < s->n_out; k++) {
            HnSlot *o = s->out[k].slot, *from = inplace_source(s, i, k);
            if (from != NULL && from->where == where && o->block < 0) {
                o->block = from->block;
                g_array_index(blocks, HnBlock, o->block).last = o->last;
                s->inplace |= 1u << k;
            }
            if (o == NULL || o->block >= 0 || o->where != where || !in_arena(o))
                continue;
            o->block = (int)blocks->len;
            HnBlock b = { slot_bytes(o), o->first, o->last, 0 };
            g_array_append_val(blocks, b);
        }
    }
    return blocks;
}

gboolean hn_plan_place(HnPlan *p, GError **error)
{
    const HnWhere places = p->exec->env->backend->memory != NULL ? HN_PLACES : HN_DEVICE;
    for (HnWhere w = HN_HOST; w < places; w++) {
        g_autoptr(GArray) blocks = blocks_of(p, w);
        if (!place_blocks(p, w, blocks, error))
            return FALSE;
    }
    return TRUE;
}

typedef struct {
    HnDevice *device;
    void (*free)(gpointer device, void *data);
    void *data;
    HnBudget *budget; /* that `bytes` are charged to; NULL mostly */
    gsize bytes;
} Lent;

static void give_back(gpointer data)
{
    Lent *l = data;
    l->free(l->device->handle, l->data);
    hn_budget_uncharge(l->budget, l->bytes);
    hn_budget_unref(l->budget);
    hn_device_unref(l->device);
    g_free(l);
}

static HnTensor *tensor_lent(const HnSlot *s, const Lent *lent)
{
    HnTensor *t = hn_tensor_new_borrowed(s->tensor->dtype, s->tensor->ndim, s->tensor->dims, lent->data);
    t->owner = g_bytes_new_with_free_func(lent->data, lent->bytes, give_back, g_memdup2(lent, sizeof *lent));
    return t;
}

HnTensor *hn_plan_tensor_there(const HnPlan *p, const HnSlot *s, GError **error)
{
    HnDevice *d = p->exec->env->engine->device;
    void *data = place_alloc(p->exec->env, HN_DEVICE, slot_bytes(s), error);
    if (data == NULL)
        return NULL;
    return tensor_lent(
        s,
        &(Lent){ .device = hn_device_ref(d), .free = d->backend->memory->free, .data = data, .bytes = slot_bytes(s) });
}

/* A result that comes from the device in each run, to the same place, and is no single number. */
static gboolean is_pinned(const HnPlan *p, const HnSlot *s)
{
    const HnRunEnv *env = p->exec->env;
    const HnMemory *m = env->backend->memory;
    if (m == NULL || m->alloc_pinned == NULL || p->exec->owner != NULL || env->o.lasting)
        return FALSE;
    return s->where == HN_HOST && s->layout == NULL && s->tensor->bytes >= PINNED_LEAST &&
           hn_step_is_move(p->steps->pdata[s->first]);
}

/* NULL without an error: there is no such memory. */
static HnTensor *tensor_pinned(const HnPlan *p, const HnSlot *s, GError **error)
{
    HnDevice *d = p->exec->env->engine->device;
    HnBudget *budget = p->exec->env->o.budget;
    const gsize bytes = s->tensor->bytes;
    if (!hn_budget_charge(budget, bytes, error))
        return NULL;
    void *data = d->backend->memory->alloc_pinned(d->handle, bytes, error);
    if (data == NULL) {
        hn_budget_uncharge(budget, bytes);
        return NULL;
    }
    return tensor_lent(s, &(Lent){ .device = hn_device_ref(d),
                                   .free = d->backend->memory->free_pinned,
                                   .data = data,
                                   .budget = hn_budget_ref(budget),
                                   .bytes = bytes });
}

static HnTensor *tensor_on_host(const HnPlan *p, const HnSlot *s, GError **error)
{
    GError *failure = NULL;
    HnTensor *t = is_pinned(p, s) ? tensor_pinned(p, s, &failure) : NULL;
    if (failure != NULL) {
        g_propagate_error(error, failure);
        return NULL;
    }
    return t != NULL ? t
                     : hn_tensor_new(s->tensor->dtype, s->tensor->ndim, s->tensor->dims, p->exec->env->o.budget, error);
}

/* A tensor of the slot's logical dims whose bytes are what its layout needs. */
static HnTensor *tensor_in_layout(const HnSlot *s, HnBudget *budget, GError **error)
{
    int64_t bytes = (int64_t)s->layout->bytes;
    HnTensor *raw = hn_tensor_new_uninit(HN_U8, 1, &bytes, budget, error);
    if (raw == NULL)
        return NULL;
    HnTensor *t = hn_tensor_new_borrowed(s->tensor->dtype, s->tensor->ndim, s->tensor->dims, raw->data);
    t->owner = g_bytes_new_with_free_func(raw->data, raw->bytes, (GDestroyNotify)hn_tensor_unref, raw);
    return t;
}

/* The step makes `to` in the memory of `old`, which it reads: then it is told so. */
static gboolean writes_over(HnStep *s, const HnSlot *to, const HnSlot *old)
{
    for (int k = 0; k < MIN(s->n_out, s->n_in); k++)
        if (s->out[k].slot == to && s->in[k].slot == old && is_inplace(s, k) && may_take_over(s, k, k)) {
            s->inplace |= 1u << k;
            return TRUE;
        }
    return FALSE;
}

/* The variable that the slot's value replaces, where nobody reads the old elements any more when the new ones are made,
 * or the step that makes them may write over them; else NULL. */
static HnTensor *variable_memory(const HnPlan *p, const HnSlot *s)
{
    const HnEngine *e = p->exec->env->engine;
    if (p->exec->owner != NULL || p->before != NULL || !p->last || s->layout != NULL)
        return NULL;
    for (guint i = 0; i < e->variables->len; i++) {
        const HnVariableState *v = e->variables->pdata[i];
        const HnSlot *old = p->inputs->pdata[e->inputs->len + i];
        HnTensor *place = hn_engine_place(e, i, s->where);
        if (v->next < 0 || p->results->pdata[v->next] != s || old->kept || place == NULL ||
            !hn_tensor_same_form(s->tensor, place))
            continue;
        if (old->where != s->where || old->last < s->first) /* steps on the host read copies of what is on the device */
            return place;
        return old->last == s->first && writes_over(p->steps->pdata[s->first], s, old) ? place : NULL;
    }
    return NULL;
}

/* Memory of its own for every result, and for what outlives the plan. */
gboolean hn_plan_own_memory(HnPlan *p, GError **error)
{
    for (guint i = 0; i < p->slots->len; i++) {
        HnSlot *s = p->slots->pdata[i];
        if (!owns_memory(s) || p->parts > 1 || !hn_env_computes(p->exec->env))
            continue;
        HnBudget *budget = p->exec->env->o.budget;
        HnTensor *variable = variable_memory(p, s);
        if (variable != NULL) {
            hn_tensor_unref(s->tensor);
            s->tensor = hn_tensor_ref(variable);
            continue;
        }
        HnTensor *t = s->where == HN_DEVICE ? hn_plan_tensor_there(p, s, error)
                      : s->layout != NULL   ? tensor_in_layout(s, budget, error)
                                            : tensor_on_host(p, s, error);
        if (t == NULL) {
            const HnNode *n = s->value != NULL ? s->value->producer : NULL;
            g_prefix_error(error, "node '%s': ", n != NULL ? hn_node_label(n) : "reorder");
            return FALSE;
        }
        if (s->layout == NULL && s->where == HN_HOST)
            g_ptr_array_add(p->fresh, s);
        hn_tensor_unref(s->tensor);
        s->tensor = t;
    }
    return p->parts == 1 || hn_plan_own_wholes(p, error);
}

void hn_plan_resolve_aliases(HnPlan *p)
{
    for (guint i = 0; i < p->slots->len; i++) {
        HnSlot *s = p->slots->pdata[i], *r;
        if (s->root == NULL)
            continue;
        r = hn_slot_root(s);
        s->tensor->data = hn_slot_place(s);
        if (r->block < 0 && !r->constant)
            g_ptr_array_add(p->aliases, s);
    }
}
