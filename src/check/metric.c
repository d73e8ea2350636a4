#include "check/metric.h"

#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "base/text.h"

gboolean hn_metric_parse(const char *name, int *k, GError **error)
{
    gint64 n;
    if (!g_str_has_prefix(name, "top") || !hn_parse_int(name + 3, 1, 999, &n, NULL)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' is not a metric: top1, top5 or another topK", name);
        return FALSE;
    }
    *k = (int)n;
    return TRUE;
}

/* x before y, both at their places in the row */
static gboolean ranks_before(double x, int64_t at_x, double y, int64_t at_y)
{
    if (isnan(x) || isnan(y))
        return isnan(y) && (!isnan(x) || at_x < at_y);
    return x > y || (x == y && at_x < at_y);
}

static gboolean is_hit(const HnTensor *scores, int64_t row, int64_t classes, int64_t label, int k)
{
    if (label < 0 || label >= classes)
        return FALSE;
    double own = hn_tensor_get_f64(scores, row * classes + label);
    int before = 0;
    for (int64_t c = 0; c < classes && before < k; c++)
        before += ranks_before(hn_tensor_get_f64(scores, row * classes + c), c, own, label);
    return before < k && !isnan(own);
}

gboolean hn_metric_topk(const HnTensor *scores, const HnTensor *labels, int k, int64_t *right, int64_t *total,
                        GError **error)
{
    if (!hn_dtype_in(labels->dtype, HN_T_INTS) || !hn_dtype_in(scores->dtype, HN_T_NUM)) {
        g_autofree char *a = hn_tensor_describe(scores), *b = hn_tensor_describe(labels);
        g_set_error(error, HN_ERROR, HN_ERROR_TYPE, "%s are not scores, or %s not labels", a, b);
        return FALSE;
    }
    int64_t classes = scores->ndim > 0 ? scores->dims[scores->ndim - 1] : 0;
    if (classes <= 0 || scores->n / classes != labels->n) {
        g_autofree char *a = hn_tensor_describe(scores), *b = hn_tensor_describe(labels);
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "%s has not one row of scores for each label of %s", a, b);
        return FALSE;
    }
    for (int64_t i = 0; i < labels->n; i++)
        *right += is_hit(scores, i, classes, hn_tensor_get_i64(labels, i), k);
    *total += labels->n;
    return TRUE;
}
