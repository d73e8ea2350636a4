#include "train/train_data.h"

#include <string.h>

#include "base/rng.h"

GPtrArray *hn_train_inputs(const HnModel *m)
{
    GPtrArray *inputs = g_ptr_array_new();
    for (guint i = 0; i < m->graph->inputs->len; i++)
        if (!hn_value_is_weight(m->graph->inputs->pdata[i]))
            g_ptr_array_add(inputs, m->graph->inputs->pdata[i]);
    return inputs;
}

GPtrArray *hn_train_types(const HnSample *s, GError **error)
{
    g_autoptr(GPtrArray) types = g_ptr_array_new_with_free_func((GDestroyNotify)hn_type_unref);
    for (int i = 0; i < s->n; i++) {
        if (s->in[i] == NULL) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s: input %d is absent, which training cannot do with",
                        s->name != NULL ? s->name : "sample", i);
            return NULL;
        }
        g_ptr_array_add(types, hn_type_fixed(s->in[i]->dtype, s->in[i]->ndim, s->in[i]->dims));
    }
    g_ptr_array_add(types, NULL);
    return g_steal_pointer(&types);
}

HnTensor **hn_train_fixed(HnSample *const *samples, guint n)
{
    HnTensor **fixed = g_new0(HnTensor *, n > 0 ? samples[0]->n + 1 : 1);
    for (int i = 0; n > 0 && i < samples[0]->n; i++) {
        HnTensor *t = samples[0]->in[i];
        gboolean same = t != NULL && t->n == 1 && hn_dtype_in(t->dtype, HN_T_INTS | HN_BIT(HN_BOOL));
        for (guint k = 1; same && k < n; k++)
            same = samples[k]->in[i] != NULL && hn_tensor_equal(t, samples[k]->in[i]);
        fixed[i] = same ? t : NULL;
    }
    return fixed;
}

HnTensor *hn_train_random_target(const HnType *type, int64_t classes, uint64_t seed, HnBudget *budget, GError **error)
{
    int64_t dims[HN_MAX_RANK];
    HnRng rng = hn_rng(seed);
    hn_type_is_fixed(type, dims);
    HnTensor *t = hn_tensor_new(type->dtype, type->rank, dims, budget, error);
    for (int64_t i = 0; t != NULL && i < t->n; i++) {
        if (hn_dtype_in(type->dtype, HN_T_INTS))
            hn_tensor_set_i64(t, i, (int64_t)(hn_rng_double(&rng) * (double)MAX(classes, 1)));
        else
            hn_tensor_set_f64(t, i, hn_rng_range(&rng, -1, 1));
    }
    return t;
}
