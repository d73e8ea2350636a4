#include "cpu/int8/int8_gemm.h"

#include <math.h>
#include <string.h>

/* --- what a step says ----------------------------------------------------------------------------------------------
 */

gboolean hn_int8_conv_plan(const HnStep *s, HnConvPlan *plan)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *x = hn_int8_input(s, in->x), *w = hn_int8_input(s, in->w);
    return hn_conv_plan(s->params, x->ndim, x->dims, w->ndim, w->dims, plan, NULL);
}

static const HnQuantProduct *limits_of(const HnStep *s)
{
    return hn_int8_inputs(s)->internal ? s->params : NULL;
}

gboolean hn_int8_by_rows(const HnStep *s)
{
    const HnQuantProduct *p = limits_of(s);
    return !hn_int8_inputs(s)->matrix || (p != NULL && p->turned);
}

static gboolean is_byte(const HnTensor *t)
{
    return t->dtype == HN_U8 || t->dtype == HN_I8;
}

int64_t hn_int8_variant(const HnStep *s, guint64 how)
{
    return (int64_t)hn_pack_mix(how, hn_int8_input(s, hn_int8_inputs(s)->w_zero));
}

HnInt8Weights hn_int8_weights(const HnStep *s)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *zero = hn_int8_input(s, in->w_zero);
    gboolean none = TRUE;
    for (int64_t i = 0; none && zero != NULL && i < zero->n; i++)
        none = hn_int8_byte(zero, i) == 0;
    return (HnInt8Weights){ hn_int8_input(s, in->w), none ? NULL : zero };
}

/* The smallest and the largest of t's bytes. */
static void range_of(const HnTensor *t, int *lo, int *hi)
{
    const uint8_t flip = t->dtype == HN_I8 ? 0x80 : 0, *const bytes = t->data;
    uint8_t least = 255, most = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const uint8_t v = bytes[i] ^ flip;
        least = MIN(least, v);
        most = MAX(most, v);
    }
    *lo = least - flip;
    *hi = most - flip;
}

/* All are from -most - 1 to most. */
static gboolean weights_fit(const HnStep *s, int64_t channels, gboolean by_rows, int most)
{
    const HnInt8Weights weights = hn_int8_weights(s);
    const int64_t n = weights.w->n;
    int lo, hi, least = 0, largest = 0;
    if (weights.w->dtype == HN_I8 && weights.zero == NULL) /* most files' are so */
        return TRUE;
    range_of(weights.w, &lo, &hi);
    if (weights.zero != NULL)
        range_of(weights.zero, &least, &largest);
    if (lo - largest >= -most - 1 && hi - least <= most)
        return TRUE;
    for (int64_t i = 0; i < n; i++) {
        const int v = hn_int8_weight(&weights, i, by_rows ? MAX(1, n / channels) : 0, channels);
        if (v < -most - 1 || v > most)
            return FALSE;
    }
    return TRUE;
}

/* Constant, of one element or one per channel. */
static gboolean is_parameter(const HnStep *s, int i, int64_t channels)
{
    const HnTensor *t = hn_int8_input(s, i);
    return t == NULL || (s->in[i].slot->constant && (t->n == 1 || (t->ndim == 1 && t->n == channels)));
}

static gboolean all_finite(const HnTensor *t)
{
    for (int64_t i = 0; t != NULL && i < t->n; i++) {
        const float v = ((const float *)t->data)[i];
        if (!isfinite(v) || v <= 0)
            return FALSE;
    }
    return TRUE;
}

static gboolean fits_bits(const HnStep *s, int64_t channels, int most)
{
    return weights_fit(s, channels, hn_int8_by_rows(s), most);
}

static gboolean is_late(const HnStep *s, int i)
{
    return hn_int8_input(s, i) != NULL && !s->in[i].slot->constant;
}

gboolean hn_int8_is_late(const HnStep *s)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    return is_late(s, in->x_scale) || is_late(s, in->x_zero);
}

/* The activation's: of one element. */
static gboolean is_step(const HnStep *s, int i, gboolean late)
{
    const HnTensor *t = hn_int8_input(s, i);
    return t == NULL || (t->n == 1 && (late || s->in[i].slot->constant));
}

const char *hn_int8_reject_wide(const HnStep *s, int64_t channels)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *y = s->out[0].slot->tensor, *bias = hn_int8_input(s, in->bias);
    const HnTensor *zeros[] = { hn_int8_input(s, in->x_zero), hn_int8_input(s, in->y_zero) };
    const HnTensor *scales[] = { hn_int8_input(s, in->x_scale), hn_int8_input(s, in->w_scale),
                                 hn_int8_input(s, in->y_scale) };
    if (!is_byte(hn_int8_input(s, in->x)) || !is_byte(hn_int8_input(s, in->w)) ||
        (!is_byte(y) && y->dtype != HN_F32 && y->dtype != HN_I32))
        return "only 8-bit integers";
    if (y->n == 0 || hn_int8_input(s, in->x)->n == 0)
        return "nothing to compute";
    if (!s->in[in->w].slot->constant)
        return "weights that are known only at run time";
    for (guint i = 0; i < G_N_ELEMENTS(scales); i++)
        if (scales[i] != NULL && scales[i]->dtype != HN_F32)
            return "scales of another type than f32";
    const gboolean numbers = y->dtype == HN_F32 || y->dtype == HN_I32;
    if (!is_step(s, in->x_scale, numbers) || !is_step(s, in->x_zero, numbers) || !is_parameter(s, in->y_scale, 1) ||
        !is_parameter(s, in->y_zero, 1))
        return "scales or zero points of data that are known only at run time, or more than one";
    if (!is_parameter(s, in->w_scale, channels) || !is_parameter(s, in->w_zero, channels) ||
        !is_parameter(s, in->bias, channels))
        return "parameters of weights that are known only at run time, or of another size";
    if (bias != NULL && (bias->n != channels || (bias->dtype != HN_I32 && bias->dtype != HN_F32)))
        return "a bias of another size than the output's channels";
    for (guint i = 0; i < G_N_ELEMENTS(zeros); i++)
        if (zeros[i] != NULL && !is_byte(zeros[i]))
            return "a zero point of another type";
    for (guint i = 0; i < G_N_ELEMENTS(scales); i++)
        if (!(i == 0 && is_late(s, in->x_scale)) && !all_finite(scales[i]))
            return "scales that are no numbers above 0";
    return fits_bits(s, channels, 254) ? NULL : "weights of more than 9 bits without their zero point";
}

const char *hn_int8_reject(const HnStep *s, int64_t channels)
{
    const char *reason = hn_int8_reject_wide(s, channels);
    if (reason != NULL)
        return reason;
    if (hn_int8_is_late(s))
        return "parameters that are known only at run time, or of another size";
    return fits_bits(s, channels, 127) ? NULL : "weights of more than 8 bits without their zero point";
}

/* --- packing -------------------------------------------------------------------------------------------------------
 */

typedef struct {
    const HnInt8Gemm *p;
    const int8_t *w;
} Source;

/* The weights of a group in a column: where they begin, and how many of the 4 there are. */
typedef struct {
    int64_t from, n;
} Group;

static Group group_of(const HnInt8Gemm *p, int64_t g)
{
    const int64_t seg = g / p->seg_groups, at = g % p->seg_groups * HN_INT8_GROUP;
    return (Group){ seg * p->depth + at, CLAMP(p->depth - at, 0, HN_INT8_GROUP) };
}

static void load_group(const int8_t *column, Group g, int8_t *w)
{
    if (g.n == HN_INT8_GROUP) {
        memcpy(w, column + g.from, HN_INT8_GROUP);
        return;
    }
    for (int64_t i = 0; i < HN_INT8_GROUP; i++)
        w[i] = i < g.n ? column[g.from + i] : 0;
}

/* A group that may be multiplied together with its neighbour: what both are, and which of them it is. */
typedef struct {
    Group one[2];
    int64_t which;
    gboolean two;
} Split;

static Split split_of(const HnInt8Gemm *p, int64_t g, gboolean two)
{
    const int64_t at = g % p->seg_groups, which = at % 2;
    Split s = { .one = { group_of(p, g), group_of(p, g) }, .which = which };
    s.two = two && (at ^ 1) < p->seg_groups;
    if (s.two)
        s.one[1 - which] = group_of(p, which == 0 ? g + 1 : g - 1);
    return s;
}

/* The group's weights in a column, and what is taken from them for an extra group; FALSE: nothing. */
static gboolean split_group(const Split *s, const int8_t *column, int8_t *w, int8_t *rest, gboolean *fits)
{
    int8_t both[2 * HN_INT8_GROUP], rests[2 * HN_INT8_GROUP];
    if (!s->two) {
        load_group(column, s->one[s->which], w);
        return hn_int8_split(w, rest);
    }
    load_group(column, s->one[0], both);
    load_group(column, s->one[1], both + HN_INT8_GROUP);
    hn_int8_split_two(both, rests, fits);
    memcpy(w, both + s->which * HN_INT8_GROUP, HN_INT8_GROUP);
    memcpy(rest, rests + s->which * HN_INT8_GROUP, HN_INT8_GROUP);
    return memcmp(rest, &(int32_t){ 0 }, HN_INT8_GROUP) != 0;
}

static int64_t column_length(const HnInt8Gemm *p)
{
    return p->segs * p->depth;
}

static int cols_of(const HnInt8Gemm *p, int64_t unit)
{
    return (int)MIN(hn_int8_cols(), p->out - unit % p->panels * hn_int8_cols());
}

/* The unit's first one; the others follow. */
static const int8_t *first_column(const HnInt8Gemm *p, const int8_t *w, int64_t unit)
{
    return w + (unit / p->panels * p->out + unit % p->panels * hn_int8_cols()) * column_length(p);
}

static HnSparseColumns unit_columns(const HnInt8Gemm *p, const int8_t *w, int64_t unit)
{
    return (HnSparseColumns){ .w = first_column(p, w, unit),
                              .length = column_length(p),
                              .cols = cols_of(p, unit),
                              .segs = p->segs,
                              .depth = p->depth };
}

static void pack_panels(void *to, const HnTensor *t, gconstpointer data)
{
    (void)t;
    const Source *from = data;
    const HnInt8Gemm *p = from->p;
    const int cols = hn_int8_cols();
    const int64_t length = column_length(p);
    for (int64_t u = 0; u < p->n_groups * p->panels; u++) {
        const HnInt8Panel *panel = &p->panel[u];
        const int8_t *column = first_column(p, from->w, u);
        int8_t *b = (int8_t *)to + panel->b, rest[HN_INT8_GROUP];
        gboolean fits;
        if (panel->sparse) {
            const HnSparseColumns columns = unit_columns(p, from->w, u);
            hn_sparse_bytes_pack(&columns, &panel->lists, b);
            continue;
        }
        memset(b, 0, (gsize)((panel->groups + panel->extras) * cols * HN_INT8_GROUP));
        for (int64_t g = 0; g < panel->groups; g++) {
            const Group group = group_of(p, g);
            const Split split = split_of(p, g, panel->two);
            for (int j = 0; j < panel->cols; j++) {
                int8_t *w = b + (g * cols + j) * HN_INT8_GROUP;
                if (panel->extras > 0)
                    split_group(&split, column + j * length, w, rest, &fits);
                else
                    load_group(column + j * length, group, w);
            }
        }
        for (int64_t e = 0; e < panel->extras; e++) {
            const Split split = split_of(p, p->extra[panel->extra + e], panel->two);
            for (int j = 0; j < panel->cols; j++) {
                int8_t w[HN_INT8_GROUP];
                split_group(&split, column + j * length, w, b + ((panel->groups + e) * cols + j) * HN_INT8_GROUP,
                            &fits);
            }
        }
    }
}

/* Groups of the panel in which sums could saturate go to the list, and how many is returned; -1: more than `most`. */
static int64_t find_extras(const HnInt8Gemm *p, const int8_t *w, int64_t unit, gboolean two, int64_t most, GArray *list)
{
    const HnInt8Panel *panel = &p->panel[unit];
    const int8_t *column = first_column(p, w, unit);
    const int64_t length = column_length(p);
    const guint before = list->len;
    gboolean fits = TRUE;
    for (int64_t g = 0; g < panel->groups && fits && list->len - before <= most; g++) {
        const Split split = split_of(p, g, two);
        gboolean any = FALSE;
        for (int j = 0; j < panel->cols && (two || !any); j++) { /* by twos all columns have to fit */
            int8_t four[HN_INT8_GROUP], rest[HN_INT8_GROUP];
            any = split_group(&split, column + j * length, four, rest, &fits) || any;
        }
        if (any) {
            const int32_t at = (int32_t)g;
            g_array_append_val(list, at);
        }
    }
    if (fits && list->len - before <= most)
        return list->len - before;
    g_array_set_size(list, before);
    return -1;
}

/* By twos groups take three quarters of the time: unless that means many more extra ones. */
static void choose_extras(const HnInt8Gemm *p, const int8_t *w, int64_t unit, GArray *list)
{
    HnInt8Panel *panel = &p->panel[unit];
    panel->extras = find_extras(p, w, unit, TRUE, panel->groups / 5, list);
    panel->two = panel->extras >= 0;
    if (!panel->two)
        panel->extras = find_extras(p, w, unit, FALSE, panel->groups, list);
}

static double cost_of_lists(const HnInt8Gemm *p, const int8_t *w, int64_t unit, HnSparseLists *lists)
{
    const HnSparseColumns columns = unit_columns(p, w, unit);
    *lists = hn_sparse_bytes_count(&columns);
    return hn_sparse_bytes_cost(lists, p->rows);
}

static double dense_cost(const HnInt8Gemm *p, int64_t unit, gboolean two, int64_t extras)
{
    const int64_t vectors = cols_of(p, unit) > hn_int8_cols() / 2 ? 2 : 1, all = p->segs * p->seg_groups;
    const int64_t groups = two ? (all * 3 + 3) / 4 : all; /* by twos they take three quarters of the time */
    return hn_sparse_dense_cost((groups + extras) * vectors, p->rows);
}

gboolean hn_int8_gemm_has_lists(const HnInt8Gemm *p, const int8_t *w, double gain)
{
    double dense = 0, sparse = 0;
    HnInt8Gemm of = *p;
    HnSparseLists lists;
    of.seg_groups = (p->depth + HN_INT8_GROUP - 1) / HN_INT8_GROUP;
    of.panels = (p->out + hn_int8_cols() - 1) / hn_int8_cols();
    for (int64_t u = 0; u < of.n_groups * of.panels; u++) {
        const double one = dense_cost(&of, u, hn_int8_saturates(), 0), other = cost_of_lists(&of, w, u, &lists);
        dense += one;
        sparse += MIN(one, other);
    }
    return sparse * gain < dense;
}

static gsize lay_out_panels(HnInt8Gemm *p, const int8_t *w)
{
    const int cols = hn_int8_cols();
    GArray *extra = g_array_new(FALSE, FALSE, sizeof(int32_t));
    gsize bytes = 0;
    for (int64_t u = 0; u < p->n_groups * p->panels; u++) {
        HnInt8Panel *panel = &p->panel[u];
        panel->groups = p->segs * p->seg_groups;
        panel->extra = extra->len;
        if (hn_int8_saturates())
            choose_extras(p, w, u, extra);
        panel->b = bytes;
        panel->sparse =
            p->sparse && cost_of_lists(p, w, u, &panel->lists) < dense_cost(p, u, panel->two, panel->extras);
        if (panel->sparse) {
            g_array_set_size(extra, (guint)panel->extra);
            panel->extras = 0;
        }
        bytes += panel->sparse ? hn_sparse_bytes_size(&panel->lists)
                               : (gsize)((panel->groups + panel->extras) * cols * HN_INT8_GROUP);
    }
    p->n_extra = extra->len;
    p->extra = (int32_t *)(void *)g_array_free(extra, FALSE);
    return bytes;
}

/* Sums begin with the bias, less what the zero point of the activations adds to each. */
static void set_begins(HnInt8Gemm *p, const HnStep *s, const int8_t *w)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *zero = hn_int8_input(s, in->x_zero), *bias = hn_int8_input(s, in->bias);
    const gboolean is_signed = hn_int8_input(s, in->x)->dtype == HN_I8;
    const uint32_t z = zero != NULL && !is_late(s, in->x_zero) ? (uint32_t)hn_tensor_get_i64(zero, 0) : 0;
    for (int64_t u = 0; u < p->n_groups * p->panels; u++)
        for (int j = 0; j < p->panel[u].cols; j++) {
            const int8_t *column = first_column(p, w, u) + j * column_length(p);
            const int64_t m = u / p->panels * p->out + u % p->panels * hn_int8_cols() + j, at = u * hn_int8_cols() + j;
            uint32_t sum = 0;
            int64_t weight = 0;
            for (int64_t k = 0; k < p->segs * p->depth; k++) {
                sum += (uint32_t)(int32_t)column[k];
                weight += ABS(column[k]);
            }
            if (p->weight_sum != NULL)
                p->weight_sum[at] = (int32_t)sum;
            const uint32_t first = bias != NULL && bias->dtype == HN_I32 ? (uint32_t)hn_tensor_get_i64(bias, m) : 0;
            p->begin_signed[at] = (int32_t)(first - z * sum);
            /* no sum in between is further from 0 than all of its products together */
            p->most[at] = fabs((double)(int32_t)first) + 2 * 383.0 * (double)weight;
            p->begin[at] = (int32_t)(first - (z + (is_signed ? 128 : 0)) * sum);
        }
}

static float element(const HnTensor *t, int64_t i)
{
    return t != NULL ? (float)hn_tensor_get_f64(t, t->n > 1 ? i : 0) : 1;
}

static void set_finish(HnInt8Gemm *p, const HnStep *s)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const HnTensor *bias = hn_int8_input(s, in->bias), *ys = hn_int8_input(s, in->y_scale);
    const HnTensor *y_zero = hn_int8_input(s, in->y_zero);
    const HnQuantProduct *limits = limits_of(s), none = { .lo = -INFINITY, .hi = INFINITY };
    const HnDtype dtype = s->out[0].slot->tensor->dtype;
    const float xs = is_late(s, in->x_scale) ? 1 : element(hn_int8_input(s, in->x_scale), 0), step = element(ys, 0);
    HnInt8Out *o = &p->finish;
    *o = (HnInt8Out){ .dtype = dtype, .scale = p->scale, .lo = -INFINITY, .hi = INFINITY, .small = TRUE };
    for (int64_t u = 0; u < p->n_groups * p->panels; u++)
        for (int j = 0; j < p->panel[u].cols; j++) {
            const int64_t m = u / p->panels * p->out + u % p->panels * hn_int8_cols() + j, at = u * hn_int8_cols() + j;
            const float scale = xs * element(hn_int8_input(s, in->w_scale), m);
            p->scale[at] = ys != NULL ? scale / step : scale;
            if (bias != NULL && bias->dtype == HN_F32) {
                p->shift[at] = ys != NULL ? element(bias, m) / step : element(bias, m);
                o->shift = p->shift;
            }
            o->small = o->small && p->most[at] * (double)p->scale[at] + fabs((double)p->shift[at]) < 1e9;
        }
    if (dtype == HN_F32 && limits != NULL) {
        o->lo = limits->lo;
        o->hi = limits->hi;
    } else if (dtype != HN_F32 && dtype != HN_I32) {
        o->zero = y_zero != NULL ? (int)hn_tensor_get_i64(y_zero, 0) : 0;
        const HnQuantBounds b = hn_quant_bounds(limits != NULL ? limits : &none, dtype, step, o->zero);
        o->lo = b.lo;
        o->hi = b.hi;
    }
}

/* Tells packed weights apart: how they were cut, and what was taken from them. */
static int64_t variant_of(const HnInt8Gemm *p, const HnStep *s)
{
    const int64_t how[] = { p->n_groups, p->segs, p->depth, p->seg_groups, p->out };
    guint64 hash = 14695981039346656037u;
    for (guint i = 0; i < G_N_ELEMENTS(how); i++)
        hash = (hash ^ (guint64)how[i]) * 1099511628211u;
    for (int64_t u = 0; u < p->n_groups * p->panels; u++) /* which are lists depends on how many rows there are */
        hash = (hash ^ (guint64)p->panel[u].sparse) * 1099511628211u;
    return hn_int8_variant(s, hash);
}

void hn_int8_gemm_columns(HnInt8Gemm *p, const HnStep *s, const int8_t *w)
{
    const int cols = hn_int8_cols();
    p->panels = (p->out + cols - 1) / cols;
    const gsize units = (gsize)(p->n_groups * p->panels), n = units * (gsize)cols;
    p->panel = g_new0(HnInt8Panel, units);
    p->begin = g_new0(int32_t, n);
    p->begin_signed = g_new0(int32_t, n);
    p->scale = g_new0(float, n);
    p->shift = g_new0(float, n);
    p->most = g_new0(double, n);
    p->weight_sum = hn_int8_is_late(s) ? g_new0(int32_t, n) : NULL;
    for (gsize u = 0; u < units; u++)
        p->panel[u].cols = cols_of(p, (int64_t)u);
    set_begins(p, s, w);
    set_finish(p, s);
}

gboolean hn_int8_gemm_prepare(HnInt8Gemm *p, HnStep *s, const int8_t *w, GError **error)
{
    p->seg_groups = (p->depth + HN_INT8_GROUP - 1) / HN_INT8_GROUP;
    if (p->blocks) {
        p->chunks = (p->depth + 63) / 64;
        p->chunk = (int)((p->depth + p->chunks - 1) / p->chunks + HN_INT8_GROUP - 1) / HN_INT8_GROUP * HN_INT8_GROUP;
        p->seg_groups = p->chunks * p->chunk / HN_INT8_GROUP;
    }
    hn_int8_gemm_columns(p, s, w);
    const gsize bytes = lay_out_panels(p, w);
    const Source from = { p, w };
    const int port = hn_int8_inputs(s)->w;
    for (int i = 0; i < s->n_in; i++)
        s->in[i].unread = i != hn_int8_inputs(s)->x && (i == hn_int8_inputs(s)->w || !is_late(s, i));
    return hn_pack_own(s, port, pack_panels, variant_of(p, s), bytes, &from, &p->packed, error);
}

void hn_int8_gemm_clear(HnInt8Gemm *p)
{
    hn_pack_unref(p->packed);
    g_free(p->panel);
    g_free(p->extra);
    g_free(p->begin);
    g_free(p->begin_signed);
    g_free(p->scale);
    g_free(p->shift);
    g_free(p->most);
    g_free(p->weight_sum);
}

static gsize columns_of(const HnInt8Gemm *p)
{
    return (gsize)(p->n_groups * p->panels) * (gsize)hn_int8_cols();
}

gsize hn_int8_late_bytes(const HnInt8Gemm *p)
{
    return p->weight_sum != NULL ? columns_of(p) * (2 * sizeof(int32_t) + sizeof(float)) : 0;
}

void hn_int8_gemm_now(const HnInt8Gemm *p, const HnStep *s, HnInt8Gemm *now, void *scratch)
{
    const HnInt8Inputs *in = hn_int8_inputs(s);
    const gsize n = columns_of(p);
    *now = *p;
    if (is_late(s, in->x_zero)) {
        const uint32_t z = (uint32_t)hn_tensor_get_i64(hn_int8_input(s, in->x_zero), 0);
        now->begin = scratch;
        now->begin_signed = now->begin + n;
        for (gsize i = 0; i < n; i++) {
            now->begin[i] = (int32_t)((uint32_t)p->begin[i] - z * (uint32_t)p->weight_sum[i]);
            now->begin_signed[i] = (int32_t)((uint32_t)p->begin_signed[i] - z * (uint32_t)p->weight_sum[i]);
        }
    }
    if (is_late(s, in->x_scale)) {
        const float x_scale = *(const float *)hn_cpu_data(&s->in[in->x_scale]);
        now->scale = (float *)(void *)((int32_t *)scratch + 2 * n);
        for (gsize i = 0; i < n; i++)
            now->scale[i] = x_scale * p->scale[i];
        now->finish.scale = now->scale;
    }
}

/* --- run -----------------------------------------------------------------------------------------------------------
 */

void hn_int8_offsets(HnInt8Run *r)
{
    const HnInt8Gemm *p = r->p;
    for (int64_t e = 0; e < p->n_extra; e++)
        r->at[e] = (int32_t)(r->seg_at[p->extra[e] / p->seg_groups] + p->extra[e] % p->seg_groups * HN_INT8_GROUP);
}

static char *result(const HnInt8Run *r, int64_t row, int64_t unit)
{
    const HnInt8Gemm *p = r->p;
    const int64_t column = unit / p->panels * p->out + unit % p->panels * hn_int8_cols();
    return r->y + (gsize)(row * r->y_pitch + column) * r->y_size;
}

void hn_int8_gemm_exchange(HnInt8Gemm *p, HnInt8Out *finish, const HnStep *s)
{
    hn_int8_lut_once(&p->map, s->table);
    finish->table = s->table;
    finish->map = s->table != NULL ? &p->map : NULL;
}

/* Rows [from, to) of a block's sums, whose first is row `first` of those that are apart. */
static void finish_block(const HnInt8Run *r, const int32_t *c, int64_t first, int64_t from, int64_t to, int64_t row,
                         int64_t line, int64_t valid, int64_t u)
{
    const HnInt8Gemm *p = r->p;
    const int64_t cols = hn_int8_cols();
    for (int64_t i = from; i < to;) {
        const int64_t at = first + i, left = valid - at % line;
        if (left <= 0) {
            i += line - at % line;
            continue;
        }
        const int64_t n = line == valid ? to - i : MIN(to - i, left);
        hn_int8_finish(&r->finish, result(r, row + at / line * valid + at % line, u), r->y_pitch, c + i * cols, n,
                       p->panel[u].cols, u * cols);
        i += n;
    }
}

#define STRIP_COST 2                    /* what a strip of rows takes besides its rows, in rows */
#define FINISHED (4 * HN_INT8_MAX_ROWS) /* rows of sums that become results at a time */

static int64_t strips_of(int64_t rows)
{
    return (rows + hn_int8_rows() - 1) / hn_int8_rows();
}

static void lines_of(const HnInt8Run *r, const uint8_t *a, int64_t line, int64_t lines, int64_t step, int64_t n,
                     int64_t row, int64_t u0, int64_t u1)
{
    const HnInt8Gemm *p = r->p;
    const int64_t cols = hn_int8_cols();
    /* short lines are taken together, with what lies between them, where their rows are equally far apart */
    const int64_t between = line % step == 0 ? line / step : n, all = (lines - 1) * between + n;
    const gboolean together =
        lines > 1 && line % step == 0 && all + STRIP_COST * strips_of(all) < lines * (n + STRIP_COST * strips_of(n));
    const int64_t apart = together ? between : n; /* rows whose sums are computed for a line */
    const int64_t of_line = together ? all : n, strips = strips_of(of_line);
    int32_t c[FINISHED * HN_INT8_MAX_COLS] __attribute__((aligned(64)));
    for (int64_t u = u0; u < u1; u++) {
        const HnInt8Panel *panel = &p->panel[u];
        const gboolean whole = panel->cols > cols / 2;
        const HnInt8KernelFn *fns = panel->two ? hn_int8_two_fns(whole) : hn_int8_fns(panel->cols);
        HnInt8Kernel t = { .step = step,
                           .seg_at = r->seg_at,
                           .segs = p->segs,
                           .groups = p->seg_groups,
                           .more_at = r->at + panel->extra,
                           .more = panel->extras,
                           .b = r->b + panel->b,
                           .begin = p->begin + u * cols };
        const uint8_t *base = a + u / p->panels * r->group_step;
        HnSparseTile halves[2] = { { .step = step, .seg_at = r->seg_at }, { .step = step, .seg_at = r->seg_at } };
        const HnSparseTileFn *tiles = panel->sparse ? hn_sparse_bytes_fns() : NULL;
        const int lists =
            panel->sparse ? hn_sparse_bytes_open(halves, &panel->lists, r->b + panel->b, t.begin, panel->cols) : 0;
        int64_t first = 0, end = 0; /* rows whose sums wait in c */
        for (int64_t k = 0; k < (together ? 1 : lines); k++, base += line)
            for (int64_t i = 0; i < strips; i++) {
                const int64_t from = of_line * i / strips, count = of_line * (i + 1) / strips - from;
                if (end - first + count > FINISHED) {
                    finish_block(r, c, first, 0, end - first, row, apart, n, u);
                    first = end;
                }
                t.a = base + from * step;
                t.c = c + (end - first) * cols;
                for (int h = 0; h < lists; h++) {
                    halves[h].a = t.a;
                    halves[h].c = t.c + h * cols / 2;
                    tiles[count - 1](&halves[h]);
                }
                if (lists == 0)
                    fns[count - 1](&t);
                end += count;
            }
        finish_block(r, c, first, 0, end - first, row, apart, n, u);
    }
}

#define FIRST_CACHE (24 * 1024) /* of A: half of it */

void hn_int8_lines(const HnInt8Run *r, const uint8_t *a, int64_t line, int64_t lines, int64_t step, int64_t n,
                   int64_t row, int64_t u0, int64_t u1)
{
    /* lists take so little time that rows have to be near */
    const int64_t fit = MAX(2 * hn_int8_rows(), FIRST_CACHE / MAX(1, step));
    const int64_t blocks = r->p->sparse && lines == 1 ? (n + fit - 1) / fit : 1;
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t from = n * i / blocks, end = n * (i + 1) / blocks;
        lines_of(r, a + from * step, line, lines, step, end - from, row + from, u0, u1);
    }
}

/* Rows [from, to), at least 16. */
static void rows_of_panels(const HnInt8Run *r, const uint8_t *a, int64_t step, int64_t row, int64_t from, int64_t to,
                           int64_t line, int64_t valid, int64_t u0, int64_t u1)
{
    const HnInt8Gemm *p = r->p;
    const int64_t cols = hn_int8_cols(), rows = to - from;
    int32_t c[2][HN_INT8_BLOCK * HN_INT8_MAX_COLS] __attribute__((aligned(64)));
    struct {
        int64_t first, from, to, u;
    } before = { 0 }; /* the block whose sums lie in the other half: finished while the next one is under way */
    int turn = 0;
    for (int64_t u = u0; u < u1; u++) {
        HnInt8Block b = { .a_step = step,
                          .seg_at = r->seg_at,
                          .segs = p->segs,
                          .chunks = p->chunks,
                          .chunk = p->chunk,
                          .b = r->b + p->panel[u].b,
                          .begin = (r->is_signed ? p->begin_signed : p->begin) + u * cols,
                          .cols = p->panel[u].cols > 16 ? 32 : 16,
                          .is_signed = r->is_signed };
        for (int64_t i = 0; i < rows; turn ^= 1) {
            const int64_t left = rows - i, n = left > 16 && rows >= 32 ? 32 : 16, first = MIN(i, rows - n);
            b.rows = (int)n;
            b.a = a + (from + first) * step + u / p->panels * r->group_step;
            b.c = c[turn];
            hn_int8_block(&b);
            finish_block(r, c[turn ^ 1], before.first, before.from, before.to, row, line, valid, before.u);
            before.first = from + first;
            before.from = i - first;
            before.to = n;
            before.u = u;
            i = first + n;
            b.same_b = p->segs * p->chunks == 1;
        }
    }
    finish_block(r, c[turn ^ 1], before.first, before.from, before.to, row, line, valid, before.u);
}

void hn_int8_rows_apart(const HnInt8Run *r, const uint8_t *a, int64_t step, int64_t row, int64_t rows, int64_t line,
                        int64_t valid, int64_t u0, int64_t u1)
{
    /* rows that stay in the first cache for all panels */
    const int64_t at_once = MAX(2 * HN_INT8_BLOCK, FIRST_CACHE / MAX(1, step) / HN_INT8_BLOCK * HN_INT8_BLOCK);
    for (int64_t from = 0, to; from < rows; from = to) {
        to = rows - from < at_once + HN_INT8_BLOCK ? rows : from + at_once;
        rows_of_panels(r, a, step, row, from, to, line, valid, u0, u1);
    }
}
