#include "train/targets.h"

#include <float.h>
#include <math.h>

static HnTensor *from_labels(const HnObjective *o, const HnData *d, const HnSample *s, const HnType *compared,
                             const HnType *type, HnBudget *budget, GError **error)
{
    int64_t dims[HN_MAX_RANK], n = 0;
    hn_type_is_fixed(type, dims);
    if (!hn_dims_count(type->rank, dims, &n))
        return NULL;
    const HnLabels labels = {
        .classes = hn_objective_classes(o, compared), .ignores = TRUE, .ignored = hn_objective_ignored(o), .count = n
    };
    g_autoptr(HnTensor) x = hn_batch_labels(d, s, &labels, budget, error);
    return x != NULL ? hn_tensor_reshaped(x, type->rank, dims) : NULL;
}

/* Integers as numbers of the type, where there are as many. */
static HnTensor *from_integers(const HnTensor *label, const HnType *type, const int64_t *dims, HnBudget *budget,
                               GError **error)
{
    HnTensor *t = hn_tensor_new_uninit(type->dtype, type->rank, dims, budget, error);
    for (int64_t i = 0; t != NULL && i < t->n; i++)
        hn_tensor_set_f64(t, i, hn_tensor_get_f64(label, i));
    return t;
}

/* The array `label` itself, under the type's dims. */
static HnTensor *from_tensor(const HnSample *s, const HnType *type, HnBudget *budget, GError **error)
{
    int64_t dims[HN_MAX_RANK], n = 0;
    hn_type_is_fixed(type, dims);
    if (s->label == NULL) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no array 'label' to learn from", s->name);
        return NULL;
    }
    const gboolean right = s->label->dtype == type->dtype,
                   fits = hn_dims_count(type->rank, dims, &n) && n == s->label->n;
    if (right && fits)
        return hn_tensor_reshaped(s->label, type->rank, dims);
    if (fits && hn_dtype_in(s->label->dtype, HN_T_INTS))
        return from_integers(s->label, type, dims, budget, error);
    g_autofree char *want = hn_type_describe(type), *got = hn_tensor_describe(s->label);
    g_set_error(error, HN_ERROR, right ? HN_ERROR_SHAPE : HN_ERROR_TYPE,
                "the loss compares with %s, and the array 'label' of '%s' is %s", want, s->name, got);
    return NULL;
}

/* What a softmax read, but for a number that is the same in each row. */
static HnTensor *logarithms(const HnTargets *t, HnTensor *x, GError **error)
{
    HnTensor *y = hn_tensor_copy(x, t->budget, error);
    for (int64_t i = 0; y != NULL && i < y->n; i++)
        hn_tensor_set_f64(y, i, log(fmax(hn_tensor_get_f64(y, i), FLT_MIN)));
    return y;
}

static HnTensor *from_teacher(const HnTargets *t, guint i, HnTensor *made, const HnType *type, GError **error)
{
    int64_t dims[HN_MAX_RANK], n = 0;
    hn_type_is_fixed(type, dims);
    if (made->dtype == type->dtype && hn_dims_count(type->rank, dims, &n) && n == made->n) {
        g_autoptr(HnTensor) y = hn_tensor_reshaped(made, type->rank, dims);
        return ((const HnObjective *)t->objectives->pdata[i])->log_target ? logarithms(t, y, error)
                                                                          : g_steal_pointer(&y);
    }
    g_autofree char *want = hn_type_describe(type), *got = hn_tensor_describe(made);
    g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "the teacher makes %s of a batch, and the student %s", got, want);
    return NULL;
}

static gboolean has_labels(const HnObjective *o)
{
    return o->op->loss.target == HN_TARGET_LABELS;
}

HnTensor *hn_target_given(const HnObjective *o, const HnData *d, const HnSample *s, const HnType *compared,
                          HnBudget *budget, GError **error)
{
    g_autoptr(HnType) type = hn_objective_target(o, compared, error);
    return type == NULL    ? NULL
           : has_labels(o) ? from_labels(o, d, s, compared, type, budget, error)
                           : from_tensor(s, type, budget, error);
}

void hn_target_sums_add(HnTargetSums *s, const HnTensor *t)
{
    for (int64_t i = 0; i < t->n; i++) {
        const double x = hn_tensor_get_f64(t, i);
        s->sum += x;
        s->squares += x * x;
    }
    s->n += (double)t->n;
}

double hn_target_sums_weight(const HnTargetSums *s)
{
    const double n = fmax(s->n, 1), v = s->squares / n - s->sum / n * (s->sum / n);
    const double variance = isfinite(v) ? fmax(v, 1e-6 * s->squares / n) : 0;
    return variance > 0 ? 1 / variance : 0;
}

gboolean hn_targets_want_labels(const HnTargets *t)
{
    for (guint i = 0; i < t->objectives->len; i++)
        if (t->teacher == NULL || has_labels(t->objectives->pdata[i]))
            return TRUE;
    return FALSE;
}

void hn_targets_clear(const HnTargets *t, HnTensor **out)
{
    for (guint i = 0; i < t->objectives->len; i++)
        g_clear_pointer(&out[i], hn_tensor_unref);
}

static gboolean check_labels(const HnTargets *t, const HnObjective *o, const HnData *d, const HnType *compared,
                             GError **error)
{
    HnLabels labels = { .classes = hn_objective_classes(o, compared),
                        .ignores = TRUE,
                        .ignored = hn_objective_ignored(o) };
    for (int64_t k = 0; k < hn_data_count(d); k++) {
        g_autoptr(HnSample) s = hn_data_load_label(d, k, error);
        if (s == NULL || s->label == NULL)
            return s != NULL;
        labels.count = s->label->n;
        g_autoptr(HnTensor) x = hn_batch_labels(d, s, &labels, t->budget, error);
        if (x == NULL)
            return FALSE;
    }
    return TRUE;
}

gboolean hn_targets_check(const HnTargets *t, const HnData *d, HnType *const *compared, GError **error)
{
    for (guint i = 0; i < t->objectives->len; i++)
        if (has_labels(t->objectives->pdata[i]) && !check_labels(t, t->objectives->pdata[i], d, compared[i], error))
            return FALSE;
    return TRUE;
}

static HnTensor *make(const HnTargets *t, guint i, const HnData *d, const HnSample *s, const HnType *compared,
                      HnTensor *const *made, GError **error)
{
    const HnObjective *o = t->objectives->pdata[i];
    if (t->teacher == NULL || has_labels(o))
        return hn_target_given(o, d, s, compared, t->budget, error);
    g_autoptr(HnType) type = hn_objective_target(o, compared, error);
    return type != NULL ? from_teacher(t, i, made[i], type, error) : NULL;
}

/* What the teacher makes of the batch. */
static gboolean ask(const HnTargets *t, const HnData *d, const HnSample *s, HnTensor **made, GError **error)
{
    if (t->teacher == NULL)
        return TRUE;
    if (!hn_teacher_cache_is_of(t->cache, d))
        return hn_forward_run(t->teacher, s->in, made, error);
    for (guint i = 0; i < t->objectives->len; i++)
        if ((made[i] = hn_teacher_cache_rows(t->cache, s, i, error)) == NULL)
            return FALSE;
    return TRUE;
}

gboolean hn_targets_make(const HnTargets *t, const HnData *d, const HnSample *s, HnType *const *compared,
                         HnTensor **out, GError **error)
{
    const guint n = t->objectives->len, n_made = t->teacher != NULL ? hn_forward_count(t->teacher) : 0;
    g_autofree HnTensor **made = g_new0(HnTensor *, n_made + 1);
    gboolean ok = ask(t, d, s, made, error);
    for (guint i = 0; i < n; i++)
        out[i] = NULL;
    for (guint i = 0; ok && i < n; i++)
        ok = (out[i] = make(t, i, d, s, compared[i], made, error)) != NULL;
    for (guint i = 0; i < n_made; i++)
        g_clear_pointer(&made[i], hn_tensor_unref);
    if (!ok)
        hn_targets_clear(t, out);
    return ok;
}
