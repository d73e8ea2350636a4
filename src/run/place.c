/*
 * Planning, part 4: how long each value lives and where its elements are.
 */
#include <string.h>

#include "run/memory.h"
#include "run/plan.h"

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
}

/* May output 0 of step i take over the memory of input j, which dies there? Then that memory's slot. */
static HnSlot *dying_input(const HnStep *s, int i, int j)
{
    if (s->in[j].slot == NULL)
        return NULL;
    HnSlot *from = hn_slot_root(s->in[j].slot), *to = s->out[0].slot;
    if (!in_arena(from) || !in_arena(to) || from->last != i || slot_bytes(from) != slot_bytes(to) ||
        from->tensor->dtype != to->tensor->dtype || s->in[j].slot->tensor->ndim != to->tensor->ndim ||
        memcmp(s->in[j].slot->tensor->dims, to->tensor->dims, (size_t)to->tensor->ndim * sizeof(int64_t)) != 0)
        return NULL;
    for (int k = 0; k < s->n_in + s->n_hidden; k++)
        if (s->in[k].slot != NULL && s->in[k].slot != s->in[j].slot && hn_slot_root(s->in[k].slot) == from)
            return NULL;
    return from;
}

/* Input 0's memory; a group, which reads all inputs alike, can do with any. */
static HnSlot *inplace_source(const HnStep *s, int i)
{
    gboolean able = s->kernel != NULL ? s->kernel->inplace : s->op != NULL && (s->op->flags & HN_OP_INPLACE) != 0;
    HnSlot *from = NULL;
    if (!able || s->n_out < 1 || s->out[0].slot == NULL)
        return NULL;
    for (int j = 0; j < (s->group != NULL ? s->n_in : MIN(s->n_in, 1)) && from == NULL; j++)
        from = dying_input(s, i, j);
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

static gboolean allocate(HnPlan *p, const HnBlock *blocks, guint n, GError **error)
{
    HnBudget *budget = p->exec->env->o.budget;
    if (!p->exec->env->o.apart)
        return (p->arena = hn_budget_alloc(budget, p->arena_bytes, error)) != NULL;
    p->apart = g_ptr_array_sized_new(n);
    for (guint i = 0; i < n; i++) {
        void *block = hn_budget_alloc(budget, blocks[i].bytes, error);
        if (block == NULL)
            return FALSE;
        g_ptr_array_add(p->apart, block);
    }
    return TRUE;
}

/* Memory of its own, which is not in the arena. */
static gboolean owns_memory(const HnSlot *s)
{
    return s->root == NULL && !s->constant && !s->changing && s->tensor != NULL && s->first >= 0 && s->block < 0;
}

static gboolean within_limit(const HnPlan *p, GError **error)
{
    gsize bytes = p->arena_bytes;
    for (guint i = 0; i < p->slots->len; i++)
        if (owns_memory(p->slots->pdata[i]))
            bytes += slot_bytes(p->slots->pdata[i]);
    if (p->exec->env->most_bytes == 0 || bytes <= p->exec->env->most_bytes)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "a run would need %" G_GSIZE_FORMAT " bytes beside its inputs, more than %" G_GSIZE_FORMAT, bytes,
                p->exec->env->most_bytes);
    return FALSE;
}

static void *block_at(const HnPlan *p, const HnBlock *blocks, guint i)
{
    return p->apart != NULL ? p->apart->pdata[i] : (char *)p->arena + blocks[i].offset;
}

gboolean hn_plan_place(HnPlan *p, GError **error)
{
    g_autoptr(GArray) blocks = g_array_new(FALSE, FALSE, sizeof(HnBlock));
    for (int i = 0; i < (int)p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        HnSlot *from = inplace_source(s, i);
        if (from != NULL) {
            HnSlot *to = s->out[0].slot;
            to->block = from->block;
            g_array_index(blocks, HnBlock, to->block).last = to->last;
            s->inplace = TRUE;
        }
        for (int k = 0; k < s->n_out; k++) {
            HnSlot *o = s->out[k].slot;
            if (o == NULL || o->block >= 0 || !in_arena(o))
                continue;
            o->block = (int)blocks->len;
            HnBlock b = { slot_bytes(o), o->first, o->last, 0 };
            g_array_append_val(blocks, b);
        }
    }
    guint scratch = blocks->len;
    for (int i = 0; i < (int)p->steps->len; i++) {
        HnBlock b = { ((HnStep *)p->steps->pdata[i])->scratch_bytes, i, i, 0 };
        g_array_append_val(blocks, b);
    }
    HnBlock *at = (HnBlock *)(void *)blocks->data;
    p->arena_bytes = hn_memory_plan(at, (int)blocks->len);
    if (!p->exec->env->backend->computes)
        return TRUE;
    if (!within_limit(p, error))
        return FALSE;
    if (!allocate(p, at, blocks->len, error)) {
        g_prefix_error(error, "node '%s': ", largest_result(p));
        return FALSE;
    }
    for (guint i = 0; i < p->slots->len; i++) {
        HnSlot *s = p->slots->pdata[i];
        if (s->block >= 0)
            s->tensor->data = block_at(p, at, (guint)s->block);
    }
    for (guint i = 0; i < p->steps->len; i++) {
        HnStep *s = p->steps->pdata[i];
        s->scratch = s->scratch_bytes > 0 ? block_at(p, at, scratch + i) : NULL;
    }
    return TRUE;
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

/* Memory of its own for every result, and for what outlives the plan. */
gboolean hn_plan_own_memory(HnPlan *p, GError **error)
{
    for (guint i = 0; i < p->slots->len; i++) {
        HnSlot *s = p->slots->pdata[i];
        if (!owns_memory(s) || !p->exec->env->backend->computes)
            continue;
        HnTensor *t = s->layout != NULL ? tensor_in_layout(s, p->exec->env->o.budget, error)
                                        : hn_tensor_new(s->tensor->dtype, s->tensor->ndim, s->tensor->dims,
                                                        p->exec->env->o.budget, error);
        if (t == NULL) {
            const HnNode *n = s->value != NULL ? s->value->producer : NULL;
            g_prefix_error(error, "node '%s': ", n != NULL ? hn_node_label(n) : "reorder");
            return FALSE;
        }
        if (s->layout == NULL)
            g_ptr_array_add(p->fresh, s);
        hn_tensor_unref(s->tensor);
        s->tensor = t;
    }
    return TRUE;
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
