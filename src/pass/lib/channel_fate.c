/*
 * Channels that go together: what has to go from the rest of a model when one of them does.
 */
#include <string.h>

#include "op/attention.h"
#include "op/linear.h"
#include "op/ops.h"
#include "op/quantize.h"
#include "op/recurrent.h"
#include "op/reduce.h"
#include "op/softmax.h"
#include "pass/lib/channel_place.h"

#define OTHER_AXIS "it reads channels along another axis"
#define NOT_CONSTANT "its weights are not constant"

static HnTensor *known(gconstpointer of, HnValue *v)
{
    return hn_types_value(((const HnChannels *)of)->types, v);
}

static int rank_of(const HnChannels *c, const HnValue *v)
{
    const HnType *t = hn_channels_type(c, v);
    return t != NULL ? t->rank : -1;
}

/* Some of v may go. */
static const HnChannelPlace *held(const HnChannels *c, const HnValue *v)
{
    const HnChannelPlace *p = hn_channels_place(c, v);
    return p != NULL && (p->at != NULL || p->ids != NULL) ? p : NULL;
}

/* Places from..from+n of a list go together. */
static void unite_all(HnChannels *c, const int *at, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        hn_channels_unite(c, at[0], at[i]);
}

/* Elements of tensors of numbers of classes go together; what fills is of none. */
static void unite_ids(HnChannels *c, float a, float b)
{
    if (a > 0 && b > 0)
        hn_channels_unite(c, (int)a - 1, (int)b - 1);
}

/* --- element by element ------------------------------------------------------------------------------------------- */

/* The operand with the most channels; NULL: none has any, or elements are held apart. */
static const HnValue *widest(const HnChannels *c, const HnNode *n, gboolean *apart)
{
    const HnValue *x = NULL;
    *apart = FALSE;
    for (guint i = 0; i < n->in->len; i++) {
        const HnChannelPlace *p = held(c, n->in->pdata[i]), *q = held(c, x);
        *apart = *apart || (p != NULL && p->at == NULL);
        if (p != NULL && p->at != NULL && (q == NULL || p->n > q->n))
            x = n->in->pdata[i];
    }
    return x;
}

/* Dims of an operand as those of a result of `rank` axes, with ones in front. FALSE: they are not known. */
static gboolean spread_dims(const HnChannels *c, const HnValue *v, int rank, int64_t *dims)
{
    const HnType *t = hn_channels_type(c, v);
    int64_t own[HN_MAX_RANK];
    if (v->weight != NULL)
        memcpy(own, v->weight->dims, (gsize)v->weight->ndim * sizeof *own);
    else if (t == NULL || !hn_type_is_fixed(t, own))
        return FALSE;
    const int have = v->weight != NULL ? v->weight->ndim : t->rank;
    for (int i = 0; i < rank; i++)
        dims[i] = i < rank - have ? 1 : own[i - (rank - have)];
    return have <= rank;
}

/* Where element i of a tensor of these dims lies in an operand that is spread over them. */
static int64_t place_in(int64_t i, int rank, const int64_t *dims, const int64_t *operand)
{
    int64_t at = 0, step = 1;
    for (int k = rank - 1; k >= 0; k--) {
        at += operand[k] > 1 ? i % dims[k] * step : 0;
        step *= operand[k];
        i /= dims[k];
    }
    return at;
}

/* All elements of y that one element of v meets go together; where v is of no channel itself, those that differ in v's
 * axes do: it cannot be made smaller. */
static const char *join_elements(HnChannels *c, const HnValue *v, HnTensor *y)
{
    int64_t dims[HN_MAX_RANK], other[HN_MAX_RANK];
    float *id = y->data;
    if (!spread_dims(c, v, y->ndim, dims))
        return "an operand's shape is not known";
    if (held(c, v) == NULL) {
        for (int k = 0; k < y->ndim; k++)
            other[k] = dims[k] > 1 ? 1 : y->dims[k];
        g_autofree float *first = g_new0(float, (gsize)y->n + 1);
        for (int64_t i = 0; i < y->n; i++) {
            float *f = &first[place_in(i, y->ndim, y->dims, other)];
            *f = *f > 0 ? *f : id[i];
            unite_ids(c, *f, id[i]);
        }
        return NULL;
    }
    g_autoptr(HnTensor) ids = hn_channels_ids(c, v);
    for (int64_t i = 0; ids != NULL && i < y->n; i++) {
        const float of = ((const float *)ids->data)[place_in(i, y->ndim, y->dims, dims)];
        id[i] = id[i] > 0 ? id[i] : of;
        unite_ids(c, id[i], of);
    }
    return ids != NULL ? NULL : "there is too much of it";
}

/* Elements of operands that are held apart go together one by one. */
static const char *elements(HnChannels *c, const HnNode *n)
{
    const HnValue *y = hn_node_out(n, 0);
    const HnType *t = hn_channels_type(c, y);
    const char *reason = NULL;
    int64_t dims[HN_MAX_RANK];
    if (!hn_channels_is_data(c, y) || !hn_type_is_fixed(t, dims))
        return "its result is no number, or of no known size";
    g_autoptr(HnTensor) ids = hn_tensor_new(HN_F32, t->rank, dims, c->budget, &c->error);
    for (int held_ones = 1; held_ones >= 0 && ids != NULL; held_ones--)
        for (guint i = 0; i < n->in->len && reason == NULL; i++) {
            const HnValue *v = n->in->pdata[i];
            if (v != NULL && (held(c, v) != NULL) == held_ones)
                reason = join_elements(c, v, ids);
        }
    if (ids == NULL || reason != NULL)
        return reason != NULL ? reason : "there is too much of it";
    hn_channels_settle(c, ids);
    return hn_channels_set_ids(c, y, ids, 1) ? NULL : "there is too much of it";
}

/* Operand i beside channels along `axis`, counted from the back, of the result. */
static const char *operand(HnChannels *c, const HnNode *n, int i, const HnChannelPlace *p, int axis)
{
    const HnValue *v = hn_node_in(n, i);
    const HnChannelPlace *q = hn_channels_place(c, v);
    const int rank = v->weight != NULL ? v->weight->ndim : rank_of(c, v), at = rank + axis;
    const HnType *t = v->weight == NULL ? hn_channels_type(c, v) : NULL;
    if (rank < 0)
        return "an operand's shape is not known";
    int64_t size = 1;
    if (at >= 0)
        size = v->weight != NULL ? v->weight->dims[at] : t->dims[at].known ? t->dims[at].n : -1;
    if (size == 1 && p->n > 1) {
        hn_channels_lock_value(c, v, n, "it is spread over all channels");
        return NULL;
    }
    if (v->weight != NULL && size == p->n) {
        hn_channels_makes(hn_channels_member(c, n, i), at, p->n, p->at);
        return NULL;
    }
    if (q == NULL || q->at == NULL)
        return "channels of an operand stay";
    if (q->axis != at || q->n != p->n)
        return "operands have channels along different axes";
    for (int64_t k = 0; k < p->n; k++)
        hn_channels_unite(c, p->at[k], q->at[k]);
    return NULL;
}

/* The one axis, counted from the back, along which a constant operand of n has more than one element, and y, of that
 * rank, as many; 0: there is none, or several. */
static int only_axis(const HnChannels *c, const HnNode *n, int i, int rank)
{
    const HnTensor *t = hn_channels_weight(c, hn_node_in(n, i));
    int found = 0;
    for (int a = 1; t != NULL && a <= t->ndim; a++) {
        if (t->dims[t->ndim - a] == 1)
            continue;
        if (found != 0 || a > rank)
            return 0;
        found = -a;
    }
    return found;
}

/* Data of one number are spread over the elements of a constant, such as the scales of a normalization that is spelled
 * out: each of these makes a channel. Where it cannot be one, nothing is said of the result. */
static void spread(HnChannels *c, const HnNode *n)
{
    const HnValue *y = hn_node_out(n, 0);
    const int rank = hn_channels_is_data(c, y) ? rank_of(c, y) : 0;
    int axis = 0;
    for (guint i = 0; i < n->in->len && axis == 0; i++)
        axis = only_axis(c, n, (int)i, rank);
    for (guint i = 0; i < n->in->len && axis != 0; i++) {
        int at = axis;
        const HnValue *v = n->in->pdata[i];
        const int of = rank_of(c, v);
        if (hn_channels_weight(c, v) == NULL && (of < 0 || (of + axis >= 0 && hn_channels_size(c, v, &at) != 1)))
            return;
    }
    int at = axis;
    const int64_t count = axis != 0 ? hn_channels_size(c, y, &at) : 0;
    const HnChannelPlace *p = count > 1 ? hn_channels_make(c, y, axis, count) : NULL;
    for (guint i = 0; p != NULL && i < n->in->len; i++) {
        const HnTensor *t = hn_channels_weight(c, hn_node_in(n, (int)i));
        if (t != NULL && t->ndim + axis >= 0 && t->dims[t->ndim + axis] == count)
            hn_channels_makes(hn_channels_member(c, n, (int)i), t->ndim + axis, count, p->at);
    }
}

static const char *each(HnChannels *c, const HnNode *n)
{
    const HnValue *y = hn_node_out(n, 0);
    gboolean apart;
    const HnValue *x = widest(c, n, &apart);
    for (guint k = 1; k < n->out->len; k++)
        if (hn_value_is_read(n->out->pdata[k]))
            return "it has several results";
    if (apart)
        return elements(c, n);
    if (x == NULL) {
        spread(c, n);
        return NULL;
    }
    const HnChannelPlace *p = held(c, x);
    const int axis = p->axis - rank_of(c, x);
    for (guint i = 0; i < n->in->len; i++) {
        const char *reason = n->in->pdata[i] != NULL ? operand(c, n, (int)i, p, axis) : NULL;
        if (reason != NULL)
            return reason;
    }
    if (!hn_channels_is_data(c, y))
        return "its result is no number";
    return hn_channels_put(c, p, y, axis) != NULL ? NULL : "its result has other channels";
}

/* Scales belong to all, or to the channels. */
static const char *step(HnChannels *c, const HnNode *n)
{
    HnQParams q;
    const HnChannelPlace *p = held(c, hn_node_in(n, 0));
    if (p == NULL)
        return NULL;
    if (!hn_op_qparams(n, known, c, &q))
        return "its scale is not known";
    if (q.axis >= 0 && (p->at == NULL || q.axis != p->axis || q.block != 0 || q.scale->n != p->n))
        return "its scales lie along another axis";
    for (int i = 1; i < 3 && q.axis >= 0; i++)
        if (hn_node_in(n, i) != NULL)
            hn_channels_makes(hn_channels_member(c, n, i), 0, p->n, p->at);
    if (p->at == NULL)
        return elements(c, n);
    return hn_channels_pass(c, hn_node_in(n, 0), hn_node_out(n, 0)) != NULL ? NULL : "its result has other channels";
}

/* --- channel by channel, and rows --------------------------------------------------------------------------------- */

static int64_t groups_of(const HnNode *n)
{
    const HnAttr *a = hn_node_attr(n, "num_groups");
    return a != NULL && a->kind == HN_ATTR_INT ? a->i : 0;
}

static const char *planes(HnChannels *c, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0);
    const HnChannelPlace *p = held(c, x) != NULL ? hn_channels_along(c, x, 1) : NULL;
    const int64_t groups = groups_of(n);
    if (held(c, x) == NULL)
        return NULL;
    if (p == NULL || (groups > 0 && p->n % groups != 0))
        return OTHER_AXIS;
    for (guint k = 1; k < n->out->len; k++)
        if (hn_value_is_read(n->out->pdata[k]))
            return "it has several results";
    for (int i = 1; i < (int)n->in->len; i++) {
        const HnTensor *t = hn_channels_weight(c, hn_node_in(n, i));
        if (hn_node_in(n, i) != NULL && (t == NULL || t->ndim != 1 || (t->n != p->n && t->n != groups)))
            return NOT_CONSTANT;
    }
    for (int64_t g = 0; g < groups; g++)
        unite_all(c, p->at + g * (p->n / groups), p->n / groups);
    int *first = groups > 0 ? hn_channels_list(c, groups) : NULL;
    for (int64_t g = 0; first != NULL && g < groups; g++)
        first[g] = p->at[g * (p->n / groups)];
    for (int i = 1; i < (int)n->in->len; i++) {
        const HnTensor *t = hn_channels_weight(c, hn_node_in(n, i));
        if (t != NULL)
            hn_channels_makes(hn_channels_member(c, n, i), 0, t->n, t->n == p->n ? p->at : first);
    }
    return hn_channels_put(c, p, hn_node_out(n, 0), 1) != NULL ? NULL : "its result has other channels";
}

/* The first axis of a row of n, and whether it reaches to the end. */
static int row_of(const HnNode *n, int rank, gboolean *to_end)
{
    const HnAttr *a = hn_node_attr(n, "axis");
    const gboolean old = n->op->range.kind == HN_R_EXPONENTS && n->version < 13; /* a row is all from the axis on */
    const int64_t axis = a != NULL && a->kind == HN_ATTR_INT ? a->i : old ? 1 : -1;
    *to_end = old || n->op->range.row == HN_ROW_FROM_AXIS;
    return hn_axis(axis, rank);
}

/* What lies in one row goes together. */
static const char *unite_rows(HnChannels *c, const HnValue *x, const HnValue *y, int from)
{
    g_autoptr(HnTensor) ids = hn_channels_ids(c, x);
    int64_t len = 1;
    if (ids == NULL)
        return "there is too much of it";
    for (int i = from; i < ids->ndim; i++)
        len *= ids->dims[i];
    for (int64_t i = 0; i < ids->n; i++)
        unite_ids(c, ((float *)ids->data)[i / len * len], ((float *)ids->data)[i]);
    return hn_channels_set_ids(c, y, ids, 1) ? NULL : "there is too much of it";
}

static const char *rows(HnChannels *c, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    const HnChannelPlace *p = held(c, x);
    gboolean to_end;
    const int rank = rank_of(c, x), from = row_of(n, rank, &to_end);
    if (p == NULL)
        return NULL;
    for (guint k = 1; k < n->out->len; k++)
        if (hn_value_is_read(n->out->pdata[k]))
            return "it has several results";
    if (p->at == NULL)
        return to_end || from == rank - 1 ? unite_rows(c, x, y, from) : OTHER_AXIS;
    if (p->axis == from || (to_end && p->axis > from))
        return "all channels of a row decide about each";
    return hn_channels_pass(c, x, y) != NULL ? NULL : "its result has other channels";
}

static const char *reduce(HnChannels *c, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0);
    const HnChannelPlace *p = held(c, x);
    const HnReduce *r = n->params;
    const HnTensor *t = hn_node_in(n, 1) != NULL ? known(c, hn_node_in(n, 1)) : NULL;
    const int64_t n_axes = r->from_input ? (t != NULL ? t->n : 0) : r->n_axes;
    if (p == NULL)
        return NULL;
    if (p->at == NULL || (hn_node_in(n, 1) != NULL && t == NULL))
        return "what it reduces is not known";
    int gone = 0;
    gboolean mine = n_axes == 0 && !r->noop;
    for (int64_t i = 0; i < n_axes; i++) {
        const int64_t a = r->from_input ? hn_tensor_get_i64(t, i) : r->axes[i], axis = a + (a < 0 ? rank_of(c, x) : 0);
        mine = mine || axis == p->axis;
        gone += axis < p->axis;
    }
    if (mine) /* nothing is missing from a sum when a channel is 0 */
        return n->op == &hn_op_reducesum ? NULL : "it reduces all channels to one number";
    return hn_channels_put(c, p, hn_node_out(n, 0), p->axis - (r->keepdims ? 0 : gone)) != NULL
               ? NULL
               : "its result has other channels";
}

/* --- linear layers ------------------------------------------------------------------------------------------------ */

static gboolean all_stay(const HnChannels *c, const HnChannelPlace *p)
{
    int64_t n = 0;
    while (n < p->n && hn_channels_locked(c, p->at[n]) != NULL)
        n++;
    return n == p->n;
}

/* Constant weights, perhaps behind DequantizeLinear. */
typedef struct {
    const HnNode *node; /* that reads them, as input */
    int input;
    const HnTensor *t;
    HnQParams q; /* node is DequantizeLinear; axis of its scales, -1: one scale */
} Weights;

static gboolean weights_of(HnChannels *c, const HnNode *n, int input, Weights *w)
{
    const HnValue *v = hn_node_in(n, input);
    *w = (Weights){ n, input, hn_channels_weight(c, v), { .axis = -1 } };
    if (w->t != NULL || v == NULL)
        return w->t != NULL;
    if (!hn_op_qparams(v->producer, known, c, &w->q) || !w->q.back || w->q.block != 0 || v->users->len > 1)
        return FALSE;
    w->node = v->producer;
    w->input = 0;
    w->t = !w->q.q->is_input ? w->q.q->weight : NULL;
    return w->t != NULL;
}

/* Members of the scales that belong to a weight. */
static void scales_of(HnChannels *c, const Weights *w, const HnChannelMember *m)
{
    const gboolean out = w->q.axis == m->axis;
    for (int i = 1; i < 3 && w->q.axis >= 0 && (out || w->q.axis == m->in_axis); i++)
        if (hn_node_in(w->node, i) != NULL)
            hn_channels_makes(hn_channels_member(c, w->node, i), 0, out ? m->n : m->in_n, out ? m->out : m->in);
}

/* Groups of a convolution: one channel of each goes, or whole groups do, whichever takes fewer along. */
static void unite_groups(HnChannels *c, int64_t groups, const HnChannelPlace *p, const HnChannelPlace *q)
{
    const int64_t o = q->n / groups, i = p != NULL ? p->n / groups : 0;
    for (int64_t g = 1; g < groups; g++) {
        for (int64_t k = 0; k < o; k++)
            hn_channels_unite(c, q->at[k], q->at[g * o + k]);
        for (int64_t k = 0; k < i; k++)
            hn_channels_unite(c, p->at[k], p->at[g * i + k]);
    }
}

static void unite_whole_groups(HnChannels *c, int64_t groups, const HnChannelPlace *p, const HnChannelPlace *q)
{
    const int64_t o = q->n / groups, i = p->n / groups;
    for (int64_t g = 0; g < groups; g++) {
        unite_all(c, q->at + g * o, o);
        unite_all(c, p->at + g * i, i);
        hn_channels_unite(c, p->at[g * i], q->at[g * o]);
    }
}

static const char *bias(HnChannels *c, const HnNode *n, const HnLinearView *l, const HnChannelPlace *q)
{
    Weights w;
    if (l->b == NULL)
        return NULL;
    if (!weights_of(c, n, l->b_in, &w)) {
        const HnChannelPlace *p = hn_channels_along(c, l->b, -1);
        if (p == NULL || p->n != q->n)
            return "its bias is not constant";
        for (int64_t k = 0; k < q->n; k++)
            hn_channels_unite(c, p->at[k], q->at[k]);
        return NULL;
    }
    if (w.t->n == 1)
        return NULL;
    if (w.t->dims[w.t->ndim - 1] != q->n)
        return "its bias has other channels";
    HnChannelMember *m = hn_channels_member(c, w.node, w.input);
    hn_channels_makes(m, w.t->ndim - 1, q->n, q->at);
    scales_of(c, &w, m);
    return NULL;
}

/* p: what x has; NULL: nothing that may go. */
static const char *layer(HnChannels *c, const HnNode *n, const HnLinearView *l, const Weights *w,
                         const HnChannelPlace *p)
{
    const int64_t groups = l->groups, i = w->t->dims[l->in], o = w->t->dims[l->out];
    const int64_t outs = l->out == 0 ? o : o * groups, ins = l->in == 0 ? i : i * groups;
    const HnChannelPlace *q = hn_channels_make(c, hn_node_out(n, 0), l->y_axis, outs);
    if (q == NULL || outs % groups != 0 || ins % groups != 0 || (p != NULL && p->n != ins))
        return "its result has other channels than its weights";
    HnChannelMember *m = hn_channels_member(c, w->node, w->input);
    if (groups == 1 || (groups <= ins / groups && groups <= outs / groups)) {
        unite_groups(c, groups, p, q);
        hn_channels_makes(m, l->out, o, q->at);
        if (p != NULL)
            hn_channels_reads(m, l->in, 1, i, p->at);
    } else if (p != NULL) {
        unite_whole_groups(c, groups, p, q);
        hn_channels_makes(m, 0, l->out == 0 ? o : i, l->out == 0 ? q->at : p->at);
    } else {
        return "its groups read what stays";
    }
    scales_of(c, w, m);
    return bias(c, n, l, q);
}

/* Where matrix k of the batch of y lies among those of t: axes that are spread have size 1, or are absent. */
static int64_t matrix_of(const HnTensor *t, const HnTensor *y, int64_t k)
{
    int64_t at = 0, step = 1;
    for (int i = 3; i <= y->ndim; i++) {
        const int64_t dim = i <= t->ndim ? t->dims[t->ndim - i] : 1;
        at += dim > 1 ? k % y->dims[y->ndim - i] * step : 0;
        k /= y->dims[y->ndim - i];
        step *= dim;
    }
    return at;
}

/* Both matrices of a product and what comes out go together. */
static void unite_batches(HnChannels *c, const HnTensor *a, const HnTensor *b, HnTensor *y)
{
    const int64_t size = y->dims[y->ndim - 1] * y->dims[y->ndim - 2], count = size > 0 ? y->n / size : 0;
    const HnTensor *const sides[] = { a, b };
    for (int64_t k = 0; k < count; k++) {
        float class = 0;
        for (int s = 0; s < 2; s++) {
            const int64_t each = sides[s]->dims[sides[s]->ndim - 1] * sides[s]->dims[sides[s]->ndim - 2];
            const float *id = (const float *)sides[s]->data + matrix_of(sides[s], y, k) * each;
            for (int64_t i = 0; i < each; i++) {
                class = class > 0 ? class : id[i];
                unite_ids(c, class, id[i]);
            }
        }
        for (int64_t i = 0; i < size; i++)
            ((float *)y->data)[k * size + i] = class;
    }
}

/* Channels are batches of products, such as heads: each goes as a whole. */
static const char *batches(HnChannels *c, const HnNode *n)
{
    const HnValue *y = hn_node_out(n, 0);
    int64_t dims[HN_MAX_RANK];
    const HnType *t = hn_channels_type(c, y);
    if (t == NULL || !hn_type_is_fixed(t, dims) || t->rank < 3)
        return OTHER_AXIS;
    g_autoptr(HnTensor) a = hn_channels_ids(c, hn_node_in(n, 0)), b = hn_channels_ids(c, hn_node_in(n, 1));
    g_autoptr(HnTensor) ids = hn_tensor_new(HN_F32, t->rank, dims, c->budget, &c->error);
    if (a == NULL || b == NULL || ids == NULL || a->ndim < 2 || b->ndim < 2)
        return "what it multiplies is not known";
    unite_batches(c, a, b, ids);
    hn_channels_settle(c, ids);
    return hn_channels_set_ids(c, y, ids, 1) ? NULL : "there is too much of it";
}

/* MatMul of two that are data. */
static const char *product(HnChannels *c, const HnNode *n)
{
    const HnValue *a = hn_node_in(n, 0), *b = hn_node_in(n, 1), *y = hn_node_out(n, 0);
    const HnChannelPlace *p = held(c, a), *q = held(c, b);
    const int ra = rank_of(c, a), rb = rank_of(c, b), ry = rank_of(c, y);
    if (p == NULL && q == NULL)
        return NULL;
    if (q == NULL && p->at != NULL && p->axis == ra - 2)
        return hn_channels_put(c, p, y, ry - 2) != NULL ? NULL : OTHER_AXIS;
    if (p == NULL && q->at != NULL && q->axis == rb - 1)
        return hn_channels_put(c, q, y, ry - 1) != NULL ? NULL : OTHER_AXIS;
    if (p == NULL || q == NULL)
        return "it multiplies them with what stays";
    if (p->at != NULL && q->at != NULL && p->axis == ra - 1 && q->axis == rb - 2 && p->n == q->n) {
        for (int64_t k = 0; k < p->n; k++)
            hn_channels_unite(c, p->at[k], q->at[k]);
        return NULL;
    }
    return batches(c, n);
}

static const char *linear(HnChannels *c, const HnNode *n)
{
    HnLinearView l;
    Weights w;
    if (!hn_op_linear(n, &l))
        return NOT_CONSTANT;
    if (!weights_of(c, n, l.w_in, &w))
        return l.window == NULL && l.b_in < 0 && hn_channels_is_data(c, l.w) && hn_channels_is_data(c, l.x)
                   ? product(c, n)
                   : NOT_CONSTANT;
    if (l.window == NULL && w.t->ndim != 2)
        return "its weights are of several products";
    int axis = l.x_axis;
    const HnChannelPlace *p = held(c, l.x);
    if (p != NULL && hn_channels_size(c, l.x, &axis) < 1)
        return OTHER_AXIS;
    if (p != NULL && p->at != NULL && p->axis != axis && all_stay(c, p)) /* what is made of it may go all the same */
        p = NULL;
    if (p != NULL && p->at != NULL && p->axis != axis) /* rows of a product by themselves */
        return l.window == NULL && !l.x_turned && hn_channels_pass(c, l.x, hn_node_out(n, 0)) != NULL ? NULL
                                                                                                      : OTHER_AXIS;
    return layer(c, n, &l, &w, p != NULL ? hn_channels_along(c, l.x, axis) : NULL);
}

/* --- recurrent layers --------------------------------------------------------------------------------------------- */

/* As if it were absent. */
static gboolean is_zero(const HnTensor *t)
{
    gboolean zero = t != NULL && !t->misaligned;
    for (int64_t i = 0; zero && i < t->n; i++)
        zero = hn_tensor_get_f64(t, i) == 0;
    return zero;
}

/* h at first, or what the gates see of it. */
static const char *states(HnChannels *c, const HnNode *n, const HnChannelPlace *h)
{
    for (int i = 5; i < 7; i++) {
        HnValue *v = hn_node_in(n, i);
        const HnTensor *t = hn_channels_weight(c, v);
        const HnChannelPlace *p = v != NULL && t == NULL ? hn_channels_along(c, v, -1) : NULL;
        if (v == NULL || (t == NULL && is_zero(known(c, v))))
            continue;
        if (t != NULL && t->ndim == 3 && t->dims[2] == h->n)
            hn_channels_makes(hn_channels_member(c, n, i), 2, h->n, h->at);
        else if (p == NULL || p->n != h->n)
            return "it begins with states that stay";
        for (int64_t k = 0; p != NULL && k < h->n; k++)
            hn_channels_unite(c, p->at[k], h->at[k]);
    }
    return NULL;
}

/* A list of n places for a weight of gates: h's classes again and again. */
static int *repeated(HnChannels *c, const HnChannelPlace *h, int64_t n)
{
    int *at = hn_channels_list(c, n);
    for (int64_t i = 0; at != NULL && i < n; i++)
        at[i] = h->at[i % h->n];
    return at;
}

/* Both directions of a layer have one size. */
static const char *recurrent(HnChannels *c, const HnNode *n)
{
    static const struct {
        int input, axis;
    } gates[] = { { 1, 1 }, { 2, 1 }, { 3, 1 }, { 7, 1 } };
    const HnTensor *w = hn_channels_weight(c, hn_node_in(n, 1)), *r = hn_channels_weight(c, hn_node_in(n, 2));
    const HnChannelPlace *h = NULL, *x = held(c, hn_node_in(n, 0)) ? hn_channels_along(c, hn_node_in(n, 0), -1) : NULL;
    if (w == NULL || r == NULL || w->ndim != 3 || r->ndim != 3)
        return NOT_CONSTANT;
    if (held(c, hn_node_in(n, 0)) != NULL && (x == NULL || x->n != w->dims[2]))
        return OTHER_AXIS;
    for (int k = 0; k < (int)n->out->len; k++) {
        const HnValue *y = hn_node_out(n, k);
        if (y != NULL &&
            (h == NULL ? (h = hn_channels_make(c, y, -1, r->dims[2])) : hn_channels_put(c, h, y, -1)) == NULL)
            return "its result has other channels than its weights";
    }
    for (guint k = 0; h != NULL && k < G_N_ELEMENTS(gates); k++) {
        const HnValue *v = hn_node_in(n, gates[k].input);
        const HnTensor *t = hn_channels_weight(c, v);
        if (v == NULL)
            continue;
        if (t == NULL || t->ndim <= gates[k].axis || t->dims[gates[k].axis] % h->n != 0)
            return NOT_CONSTANT;
        HnChannelMember *m = hn_channels_member(c, n, gates[k].input);
        hn_channels_makes(m, gates[k].axis, t->dims[gates[k].axis], repeated(c, h, t->dims[gates[k].axis]));
        if (gates[k].input == 1 && x != NULL)
            hn_channels_reads(m, 2, 1, x->n, x->at);
        if (gates[k].input == 2)
            hn_channels_reads(m, 2, 1, h->n, h->at);
    }
    return h != NULL ? states(c, n, h) : NULL;
}

/* --- attention, as one operator ----------------------------------------------------------------------------------- */

/* Queries, keys and values of a head go with it; several heads of queries share one of keys. */
static const char *attention(HnChannels *c, const HnNode *n)
{
    const HnAttention *a = n->params;
    const HnValue *y = hn_node_out(n, 0);
    const HnChannelPlace *in[3];
    int some = 0;
    for (int i = 0; i < 3; i++)
        some += held(c, hn_node_in(n, i)) != NULL;
    if (some == 0)
        return NULL;
    const HnType *mask = hn_node_in(n, 3) != NULL ? hn_channels_type(c, hn_node_in(n, 3)) : NULL;
    if (n->in->len > 4 || n->out->len > 1 ||
        (mask != NULL && mask->rank > 3 && !hn_dim_is(mask->dims[mask->rank - 3], 1)))
        return "it has more inputs than queries, keys and values of each head";
    const int rank = rank_of(c, y), axis = rank == 3 ? 2 : 1;
    for (int i = 0; i < 3; i++)
        if ((in[i] = hn_channels_along(c, hn_node_in(n, i), axis)) == NULL)
            return "queries, keys or values stay";
    const int64_t kv = rank == 3 ? a->kv_heads : in[1]->n, q = rank == 3 ? a->q_heads : in[0]->n;
    if (kv < 1 || q % kv != 0 || in[0]->n % q != 0 || in[1]->n % kv != 0 || in[2]->n % kv != 0)
        return "its heads are not known";
    const int64_t size = in[2]->n / kv;
    int *at = hn_channels_list(c, q * size);
    for (int64_t h = 0; at != NULL && h < kv; h++) {
        for (int i = 0; i < 3; i++) {
            unite_all(c, in[i]->at + h * (in[i]->n / kv), in[i]->n / kv);
            hn_channels_unite(c, in[0]->at[h * (in[0]->n / kv)], in[i]->at[h * (in[i]->n / kv)]);
        }
        for (int64_t i = 0; i < q / kv * size; i++)
            at[h * (q / kv * size) + i] = in[0]->at[h * (in[0]->n / kv)];
    }
    return hn_channels_put(c, &(HnChannelPlace){ .n = q * size, .at = at }, y, axis) != NULL
               ? NULL
               : "its result has other channels";
}

/* --- moves -------------------------------------------------------------------------------------------------------- */

/* Rows of a table: the columns are channels. */
static const char *table(HnChannels *c, const HnNode *n)
{
    const HnTensor *t = hn_channels_weight(c, hn_node_in(n, 0));
    const HnAttr *axis = hn_node_attr(n, "axis");
    if (t == NULL || t->ndim != 2 || (axis != NULL && axis->i != 0 && axis->i != -2))
        return NULL;
    const HnChannelPlace *p = hn_channels_make(c, hn_node_out(n, 0), -1, t->dims[1]);
    if (p == NULL)
        return NULL;
    hn_channels_makes(hn_channels_member(c, n, 0), 1, p->n, p->at);
    return NULL;
}

static const char *moves(HnChannels *c, HnNode *n)
{
    const HnQuantBytes how = hn_op_bytes(n);
    const HnChannelPlace *p = held(c, hn_node_in(n, 0));
    gboolean any = FALSE;
    if (!hn_channels_is_data(c, hn_node_out(n, 0)))
        return NULL; /* sizes */
    for (guint i = 0; i < n->in->len; i++)
        any = any || (hn_op_is_moved(n, (int)i) && held(c, n->in->pdata[i]) != NULL);
    if (!any)
        return (n->op->flags & HN_OP_LOOKUP) != 0 ? table(c, n) : NULL;
    if (how == HN_QB_MOVES || how == HN_QB_FILLS)
        return hn_channels_move(c, n) ? NULL : "where it moves channels is not known";
    if (n->op->quant.bytes == HN_QB_FILLS || p == NULL || p->at == NULL || n->out->len != 1)
        return "where it moves channels is not known";
    return hn_channels_pass(c, hn_node_in(n, 0), hn_node_out(n, 0)) != NULL ? NULL : "its result has other channels";
}

/* Somebody computes with v's size along an axis of channels. */
static const char *shape(const HnChannels *c, const HnNode *n)
{
    const HnChannelPlace *p = held(c, hn_node_in(n, 0));
    const HnValue *y = hn_node_out(n, 0);
    gboolean other = p == NULL || (p->at != NULL && n->op == &hn_op_shape && !y->is_output);
    for (guint i = 0; p != NULL && other && i < y->users->len; i++) {
        const HnNode *u = y->users->pdata[i];
        const HnTensor *t = u->op == &hn_op_gather ? hn_types_value(c->types, hn_node_in(u, 1)) : NULL;
        other = t != NULL && t->n == 1 && hn_node_attr(n, "start") == NULL;
        const int64_t axis = other ? hn_tensor_get_i64(t, 0) : 0;
        other = other && axis + (axis < 0 ? rank_of(c, hn_node_in(n, 0)) : 0) != p->axis;
    }
    return other ? NULL : "its size is computed with";
}

const char *hn_channels_follow_fate(HnChannels *c, HnNode *n)
{
    switch (n->op->channels.kind) {
    case HN_CH_MOVE:
        return moves(c, n);
    case HN_CH_PLANES:
        return planes(c, n);
    case HN_CH_ROWS:
        return rows(c, n);
    case HN_CH_REDUCE:
        return reduce(c, n);
    case HN_CH_RECURRENT:
        return recurrent(c, n);
    case HN_CH_ATTENTION:
        return attention(c, n);
    case HN_CH_STEP:
        return step(c, n);
    case HN_CH_OTHER:
        break;
    }
    if ((n->op->flags & HN_OP_SHAPE_ONLY) != 0)
        return shape(c, n);
    if ((n->op->flags & HN_OP_ELEMENTWISE) != 0)
        return each(c, n);
    if (hn_op_is_linear(n->op))
        return linear(c, n);
    if ((n->op->flags & HN_OP_VIEW) != 0 || n->op->quant.bytes == HN_QB_MOVES)
        return moves(c, n);
    return "what it does to channels is not known";
}
