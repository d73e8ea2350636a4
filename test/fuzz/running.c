/* What bounds a target that runs models: how long, and how much there is to compute. */
#include "fuzz.h"
#include "op/infer.h"

#define MOST_FLOPS 3e7 /* of a plan: more is not run */
#define PATIENCE_S 2   /* then the budget says no to the next that asks, which ends a loop */

static struct {
    GMutex lock;
    HnBudget *budget; /* NULL: nothing is running */
    gint64 until;
} watch;

static gpointer watch_budget(gpointer data)
{
    (void)data;
    for (;;) {
        g_usleep(100000);
        g_mutex_lock(&watch.lock);
        if (watch.budget != NULL && g_get_monotonic_time() > watch.until)
            hn_budget_fail_at(watch.budget, 1);
        g_mutex_unlock(&watch.lock);
    }
    return NULL;
}

void fuzz_watch(HnBudget *budget)
{
    g_mutex_lock(&watch.lock);
    watch.budget = budget;
    watch.until = g_get_monotonic_time() + PATIENCE_S * G_USEC_PER_SEC;
    g_mutex_unlock(&watch.lock);
}

void fuzz_watch_init(void)
{
    g_thread_unref(g_thread_new("watch", watch_budget, NULL));
}

static HnType *slot_type(const HnSlot *s)
{
    return s != NULL && s->tensor != NULL ? hn_type_fixed(s->tensor->dtype, s->tensor->ndim, s->tensor->dims) : NULL;
}

static void add_cost(const HnStep *s, int depth, gpointer data)
{
    double *flops = data;
    (void)depth;
    if (s->op == NULL)
        return;
    g_autofree HnType **types = g_new0(HnType *, (gsize)(s->n_in + s->n_out) + 1);
    g_autofree HnTensor **values = g_new0(HnTensor *, (gsize)s->n_in + 1);
    g_autofree HnContents **contents = g_new0(HnContents *, (gsize)s->n_in + 1);
    gboolean fixed = TRUE;
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const HnSlot *slot = i < s->n_in ? s->in[i].slot : s->out[i - s->n_in].slot;
        types[i] = slot_type(slot);
        fixed = fixed && (slot == NULL || types[i] != NULL);
        if (i < s->n_in && slot != NULL && slot->constant)
            values[i] = slot->tensor;
    }
    HnInfer x = { .node = s->node,
                  .params = s->params,
                  .n_in = s->n_in,
                  .n_out = s->n_out,
                  .in = types,
                  .value = values,
                  .contents = contents,
                  .out = types + s->n_in };
    HnCost c = { 0 };
    if (fixed)
        hn_op_cost(&x, &c);
    if (c.flops > 0)
        *flops += c.flops;
    for (int i = 0; i < s->n_in + s->n_out; i++)
        hn_type_unref(types[i]);
}

gboolean fuzz_affordable(HnSession *s, HnTensor *const *in, GError **error)
{
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (int i = 0; i < hn_session_n_inputs(s); i++)
        g_ptr_array_add(types, hn_type_fixed(in[i]->dtype, in[i]->ndim, in[i]->dims));
    double flops = 0;
    if (!hn_session_prepare(s, (HnType *const *)types->pdata, error))
        return FALSE;
    hn_session_foreach_step(s, add_cost, &flops);
    return flops < MOST_FLOPS;
}
