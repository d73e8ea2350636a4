/*
 * Planning: steps that a kernel runs together, such as those of an optimizer, which has one for each weight.
 *
 * Where they take little memory they wait until the plan's end: what they read lives longer then.
 */
#include "run/plan.h"

#define SMALL ((gsize)256 << 10) /* bytes of an output */

guint hn_plan_first_result(const HnPlan *p)
{
    guint at = p->steps->len;
    for (; at > 0; at--) {
        const HnStep *s = p->steps->pdata[at - 1];
        if (!hn_step_is_move(s) || s->out[0].slot->where != HN_HOST)
            break;
    }
    return at;
}

static gboolean is_small(const HnStep *s)
{
    if (s->kernel == NULL || s->kernel->run_many == NULL)
        return FALSE;
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k].slot != NULL && s->out[k].slot->tensor->bytes > SMALL)
            return FALSE;
    return TRUE;
}

/* Slots that steps which stay read, up to step `end`. */
static GHashTable *read_by_others(const HnPlan *p, GHashTable *waiting, guint end)
{
    GHashTable *read = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < end; i++) {
        const HnStep *s = p->steps->pdata[i];
        for (int k = 0; k < s->n_in + s->n_hidden && !g_hash_table_contains(waiting, s); k++)
            if (s->in[k].slot != NULL)
                g_hash_table_add(read, hn_slot_root(s->in[k].slot));
    }
    return read;
}

/* Those that can wait: nobody reads what they make but others of them. */
static GHashTable *find_waiting(const HnPlan *p, guint end)
{
    GHashTable *waiting = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < end; i++)
        if (is_small(p->steps->pdata[i]))
            g_hash_table_insert(waiting, p->steps->pdata[i], GINT_TO_POINTER(1));
    for (guint before = 0; before != g_hash_table_size(waiting);) {
        before = g_hash_table_size(waiting);
        g_autoptr(GHashTable) read = read_by_others(p, waiting, end);
        for (guint i = 0; i < end; i++) {
            const HnStep *s = p->steps->pdata[i];
            for (int k = 0; k < s->n_out; k++)
                if (s->out[k].slot != NULL && g_hash_table_contains(read, hn_slot_root(s->out[k].slot)))
                    g_hash_table_remove(waiting, s);
        }
    }
    return waiting;
}

/* 1 for steps that read nothing of the others that wait, else more than of those that make it. */
static int find_levels(const HnPlan *p, GHashTable *waiting, guint end)
{
    g_autoptr(GHashTable) made = g_hash_table_new(NULL, NULL);
    int most = 1;
    for (guint i = 0; i < end; i++) {
        HnStep *s = p->steps->pdata[i];
        int level = 1;
        if (!g_hash_table_contains(waiting, s))
            continue;
        for (int k = 0; k < s->n_in + s->n_hidden; k++)
            if (s->in[k].slot != NULL) {
                const int before = GPOINTER_TO_INT(g_hash_table_lookup(made, hn_slot_root(s->in[k].slot)));
                level = MAX(level, 1 + before);
            }
        for (int k = 0; k < s->n_out; k++)
            if (s->out[k].slot != NULL)
                g_hash_table_insert(made, hn_slot_root(s->out[k].slot), GINT_TO_POINTER(level));
        g_hash_table_insert(waiting, s, GINT_TO_POINTER(level));
        most = MAX(most, level);
    }
    return most;
}

/* Of one level those of a kernel follow each other, kernels in the order of their first steps. */
static void add_level(GPtrArray *steps, GPtrArray *level)
{
    while (level->len > 0) {
        const HnKernel *kernel = ((const HnStep *)level->pdata[0])->kernel;
        for (guint i = 0; i < level->len;) {
            HnStep *s = level->pdata[i];
            if (s->kernel == kernel)
                g_ptr_array_add(steps, g_ptr_array_remove_index(level, i));
            else
                i++;
        }
    }
}

void hn_plan_gather(HnPlan *p)
{
    const guint end = hn_plan_first_result(p);
    if (p->exec->env->backend->memory == NULL)
        return;
    g_autoptr(GHashTable) waiting = find_waiting(p, end);
    if (g_hash_table_size(waiting) < 2)
        return;
    const int levels = find_levels(p, waiting, end);
    g_autoptr(GPtrArray) steps = g_ptr_array_new(), level = g_ptr_array_new();
    for (int l = 0; l <= levels; l++) {
        for (guint i = 0; i < end; i++)
            if (GPOINTER_TO_INT(g_hash_table_lookup(waiting, p->steps->pdata[i])) == l)
                g_ptr_array_add(l == 0 ? steps : level, p->steps->pdata[i]);
        add_level(steps, level);
    }
    for (guint i = 0; i < end; i++)
        p->steps->pdata[i] = steps->pdata[i];
}

/* In no order: b touches nothing that a writes, and writes nothing that a reads. Memory of the arena may be another
 * value's before and after. */
static gboolean apart(const HnStep *a, const HnStep *b)
{
    for (int k = 0; k < b->n_out; k++) {
        const HnSlot *o = b->out[k].slot;
        if (o != NULL && o->block >= 0)
            return FALSE;
        for (int i = 0; o != NULL && i < a->n_in; i++)
            if (a->in[i].slot != NULL && hn_slot_root(a->in[i].slot)->tensor->data == o->tensor->data)
                return FALSE;
    }
    for (int k = 0; k < a->n_out; k++)
        for (int i = 0; a->out[k].slot != NULL && i < b->n_in + b->n_out; i++) {
            const HnSlot *x = i < b->n_in ? b->in[i].slot : b->out[i - b->n_in].slot;
            if (x != NULL && hn_slot_root((HnSlot *)x)->tensor->data == a->out[k].slot->tensor->data)
                return FALSE;
        }
    return TRUE;
}

int hn_plan_together(const HnPlan *p, int from, int end)
{
    const HnStep *first = p->steps->pdata[from];
    int n = 1;
    if (first->kernel == NULL || first->kernel->run_many == NULL || first->scratch_bytes > 0)
        return n;
    for (; from + n < end; n++) {
        const HnStep *s = p->steps->pdata[from + n];
        if (s->kernel != first->kernel || s->scratch_bytes > 0)
            return n;
        for (int i = 0; i < n; i++)
            if (!apart(p->steps->pdata[from + i], s))
                return n;
    }
    return n;
}
