#include "train/lr_range.h"

#include <math.h>
#include <string.h>

#define STEPS 60
#define FROM 1e-5
#define TO 1.0
#define SMOOTH 0.9 /* weight of the losses so far in their mean */
#define WORSE 4.0  /* times the least: what follows is no better */
#define SETTLED 5  /* steps before which the mean says nothing */

static GPtrArray *copy_states(HnTrainer *t, GError **error)
{
    g_autoptr(GPtrArray) copies = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    if (!hn_trainer_fetch(t, error))
        return NULL;
    for (guint i = 0; i < hn_trainer_n_states(t); i++) {
        const char *name;
        HnTensor *copy = hn_tensor_copy(hn_trainer_state(t, i, &name), NULL, error);
        if (copy == NULL)
            return NULL;
        g_ptr_array_add(copies, copy);
    }
    return g_steal_pointer(&copies);
}

static void restore_states(HnTrainer *t, const GPtrArray *copies, int64_t steps)
{
    for (guint i = 0; i < copies->len; i++) {
        const char *name;
        HnTensor *to = hn_trainer_state(t, i, &name);
        memcpy(to->data, ((const HnTensor *)copies->pdata[i])->data, to->bytes);
    }
    hn_trainer_wrote(t, steps);
}

/* Steps until it gets worse. */
static gboolean rise(const HnFeed *f, HnLrRange *found, GError **error)
{
    double mean = 0;
    *found = (HnLrRange){ .lowest = INFINITY };
    for (int i = 0; i < STEPS; i++) {
        const double lr = FROM * pow(TO / FROM, i / (double)(STEPS - 1));
        HnStepLoss made;
        if (!hn_feed_step(f, lr, &made, error))
            return FALSE;
        if (!isfinite(made.loss))
            break;
        mean = SMOOTH * mean + (1 - SMOOTH) * made.loss;
        found->steps++;
        const double now = mean / (1 - pow(SMOOTH, i + 1)); /* as if it had not begun with 0 */
        if (i >= SETTLED && now > WORSE * found->lowest)
            break;
        if (i < SETTLED || now < found->lowest) {
            found->lowest = now;
            found->lr = lr / 10;
        }
    }
    if (found->steps == 0)
        g_set_error_literal(error, HN_ERROR, HN_ERROR_GUARD, "the loss is not finite at any learning rate");
    return found->steps > 0;
}

gboolean hn_lr_range(const HnFeed *f, HnLrRange *found, GError **error)
{
    const HnBatchPlace place = hn_batches_place(f->batches);
    const int64_t steps = hn_trainer_steps(f->trainer);
    g_autoptr(GPtrArray) copies = copy_states(f->trainer, error);
    if (copies == NULL)
        return FALSE;
    const gboolean ok = rise(f, found, error);
    restore_states(f->trainer, copies, steps);
    return ok && hn_batches_go(f->batches, place, error);
}
