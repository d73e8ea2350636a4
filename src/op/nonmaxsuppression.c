/*
 * NonMaxSuppression: per batch and class, boxes by falling score, those left out that overlap one taken before by more
 * than a threshold (intersection over union).
 */
#include <inttypes.h>
#include <math.h>

#include "op/move.h"

typedef struct {
    gboolean center; /* boxes are [x_center, y_center, width, height], else [y1, x1, y2, x2] of any two corners */
} HnNms;

static void nonmaxsuppression_bind(HnBind *b, void *params)
{
    int64_t center = hn_bind_int(b, "center_point_box", 0);
    ((HnNms *)params)->center = center == 1;
    if (center != 0 && center != 1)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'center_point_box' cannot be %" PRId64, center);
}

static void nonmaxsuppression_infer(HnInfer *x)
{
    HnDim dims[2] = { hn_dim_unknown(), hn_dim(3) };
    for (int i = 0; i < 2; i++)
        if (hn_infer_rank(x, i) >= 0 && hn_infer_rank(x, i) != 3)
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions instead of 3", i, hn_infer_rank(x, i));
    if (hn_dim_differ(hn_infer_dim(x, 0, 2), hn_dim(4)) ||
        hn_dim_differ(hn_infer_dim(x, 0, 0), hn_infer_dim(x, 1, 0)) ||
        hn_dim_differ(hn_infer_dim(x, 0, 1), hn_infer_dim(x, 1, 2)))
        hn_infer_fail(x, HN_ERROR_SHAPE, "boxes and scores do not fit");
    hn_infer_out(x, 0, HN_I64, 2, dims);
}

typedef struct {
    double y0, x0, y1, x1, area;
    int64_t index;
} Box;

static Box box_read(const float *v, gboolean center)
{
    Box b;
    if (center) {
        double hw = v[2] / 2.0, hh = v[3] / 2.0;
        b = (Box){ v[1] - hh, v[0] - hw, v[1] + hh, v[0] + hw, 0, 0 };
    } else {
        b = (Box){ MIN(v[0], v[2]), MIN(v[1], v[3]), MAX(v[0], v[2]), MAX(v[1], v[3]), 0, 0 };
    }
    b.area = (b.y1 - b.y0) * (b.x1 - b.x0);
    return b;
}

static gboolean box_overlaps(const Box *a, const Box *b, double threshold)
{
    double h = MIN(a->y1, b->y1) - MAX(a->y0, b->y0), w = MIN(a->x1, b->x1) - MAX(a->x0, b->x0);
    if (!(h > 0 && w > 0 && a->area > 0 && b->area > 0))
        return FALSE;
    return h * w / (a->area + b->area - h * w) > threshold;
}

typedef struct {
    float score;
    int64_t index;
} Candidate;

/* Is a taken before b: the larger score, or of equal ones the lower index? A NaN comes last. */
static gboolean comes_before(const Candidate *a, const Candidate *b)
{
    if (a->score > b->score || a->score < b->score)
        return a->score > b->score;
    if (a->score != b->score && isnan(a->score) != isnan(b->score))
        return isnan(b->score);
    return a->index < b->index;
}

/* Candidate `at` of a heap of m finds its place among those below it. */
static void sink(Candidate *c, int64_t m, int64_t at)
{
    const Candidate item = c[at];
    for (int64_t child; (child = 2 * at + 1) < m; at = child) {
        if (child + 1 < m && comes_before(&c[child + 1], &c[child]))
            child++;
        if (!comes_before(&c[child], &item))
            break;
        c[at] = c[child];
    }
    c[at] = item;
}

typedef struct {
    gboolean center, has_score;
    int64_t most;
    double iou, score;
} Limits;

/* Boxes of one class, into `taken`: how many. c is a heap, since mostly a few of many candidates are looked at. */
static int64_t select_boxes(const float *boxes, const float *scores, int64_t n, const Limits *l, Candidate *c,
                            Box *taken)
{
    int64_t m = 0, k = 0;
    for (int64_t i = 0; i < n; i++)
        if (!l->has_score || scores[i] > l->score)
            c[m++] = (Candidate){ scores[i], i };
    for (int64_t i = m / 2; i-- > 0;)
        sink(c, m, i);
    while (m > 0 && k < l->most) {
        Box b = box_read(boxes + 4 * c[0].index, l->center);
        gboolean keep = TRUE;
        for (int64_t j = 0; j < k && keep; j++)
            keep = !box_overlaps(&b, &taken[j], l->iou);
        b.index = c[0].index;
        if (keep)
            taken[k++] = b;
        c[0] = c[--m];
        sink(c, m, 0);
    }
    return k;
}

static gboolean nms_limits(HnEval *e, Limits *l)
{
    const HnTensor *iou = hn_eval_in(e, 3), *score = hn_eval_in(e, 4);
    *l = (Limits){ .center = ((const HnNms *)e->params)->center, .has_score = score != NULL };
    if (hn_eval_in(e, 2) != NULL && !hn_eval_int(e, 2, &l->most))
        return FALSE;
    if ((iou != NULL && iou->n != 1) || (score != NULL && score->n != 1)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "a threshold is not a scalar");
        return FALSE;
    }
    l->iou = iou != NULL ? hn_tensor_get_f64(iou, 0) : 0;
    l->score = score != NULL ? hn_tensor_get_f64(score, 0) : 0;
    return TRUE;
}

static void nonmaxsuppression_ref(HnEval *e)
{
    const HnTensor *boxes = hn_eval_in(e, 0), *scores = hn_eval_in(e, 1);
    Limits l;
    const gboolean good = boxes->ndim == 3 && boxes->dims[2] == 4 && boxes->dtype == HN_F32;
    const gboolean paired = good && scores->ndim == 3 && scores->dtype == HN_F32;
    if (!paired || boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2]) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "boxes and scores do not fit");
        return;
    }
    if (!nms_limits(e, &l))
        return;
    int64_t classes = scores->dims[1], n = scores->dims[2];
    Candidate *c = hn_eval_scratch(e, n, sizeof *c);
    Box *taken = c != NULL ? hn_eval_scratch(e, n, sizeof *taken) : NULL;
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, 3 * sizeof(int64_t));
    for (int64_t i = 0; taken != NULL && n > 0 && i < scores->n / n; i++) {
        int64_t batch = i / classes;
        int64_t k = select_boxes((const float *)boxes->data + batch * n * 4, (const float *)scores->data + i * n, n, &l,
                                 c, taken);
        for (int64_t j = 0; j < k; j++) {
            int64_t row[3] = { batch, i % classes, taken[j].index };
            g_array_append_val(found, row);
        }
    }
    if (e->error == NULL) {
        int64_t dims[2] = { found->len, 3 }, *y = hn_eval_out(e, 0, HN_I64, 2, dims);
        for (int64_t i = 0; y != NULL && i < 3 * dims[0]; i++)
            y[i] = ((const int64_t *)(const void *)found->data)[i];
    }
    hn_eval_scratch_free(e, taken);
    hn_eval_scratch_free(e, c);
}

const HnOp hn_op_nonmaxsuppression = {
    .name = "NonMaxSuppression",
    .flags = HN_OP_DYNAMIC,
    .since = { 10, 11 },
    .in = "ffiff",
    .out = "i",
    .min_in = 2,
    .params_size = sizeof(HnNms),
    .bind = nonmaxsuppression_bind,
    .infer = nonmaxsuppression_infer,
    .ref = nonmaxsuppression_ref,
};
