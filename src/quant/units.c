#include "quant/units.h"

#include <math.h>
#include <string.h>

#include "op/clip.h"
#include "op/layernorm.h"
#include "op/linear.h"
#include "pass/rewrite.h"

#define COPY ((gsize)16 << 10)     /* bytes of a weight that may become one for each of its readers */
#define LARGEST ((int64_t)1 << 22) /* elements of a tensor that is followed while its elements are moved */
#define MOST_MOVED (1e9 / 2)       /* elements that are moved to follow them, in all tensors together: some 30 s */
#define MOST_HELD (1e9 / 8)        /* elements whose classes are held apart at one time, 4 bytes each */
#define MOST_CLASSES (1 << 24)
#define CLASS_BYTES (sizeof(int) + sizeof(gboolean)) /* of a class in `parent` and `fixed` */

/* Channels of a value. */
typedef struct {
    int axis;
    int64_t n;
    int *at;       /* [n]: their classes, in HnUnits.lists; NULL: not known, or elements are held apart */
    HnTensor *ids; /* f32, 1 + the class of each element; between movements only */
    gboolean locked;
} Place;

/* A weight that changes with the classes' units: element [.., i, ..] along axis is divided by the unit of out[i] and
 * multiplied by that of in[..]. */
typedef struct {
    const char *node; /* name of its first output */
    int input;
    int axis;  /* along which channels that are made lie; -1: none */
    int64_t n; /* of them */
    int *out;
    int in_axis; /* of those that are read; -1: none */
    int64_t in_n, groups;
    int *in; /* [groups * in_n] */
} Factor;

/* Classes, in memory of the budget. */
typedef struct {
    int *at;
    int64_t n;
} List;

struct HnUnits {
    HnModel *model;
    HnBudget *budget;
    GArray *parent; /* int: of each class, the one that it is part of, or itself */
    GArray *fixed;  /* gboolean, of classes that are their own parent */
    gsize counted;  /* bytes of the budget for both */
    double moved, held;
    Place *places; /* by HnValue.id */
    guint n_places;
    GArray *lists;      /* List: what places and factors look at, several at one of them */
    GPtrArray *factors; /* Factor * */
    GArray *clips;
    GError *error;
};

/* --- classes ------------------------------------------------------------------------------------------------------ */

static int root_of(const HnUnits *c, int k)
{
    int *parent = (int *)c->parent->data;
    while (parent[k] != k)
        k = parent[k] = parent[parent[k]]; /* the next one has half the way */
    return k;
}

static void unite(HnUnits *c, int a, int b)
{
    a = root_of(c, a);
    b = root_of(c, b);
    if (a == b)
        return;
    const int low = MIN(a, b), high = MAX(a, b);
    g_array_index(c->parent, int, high) = low;
    g_array_index(c->fixed, gboolean, low) |= g_array_index(c->fixed, gboolean, high);
}

static int new_class(HnUnits *c)
{
    const int k = (int)c->parent->len;
    const gboolean no = FALSE;
    g_array_append_val(c->parent, k);
    g_array_append_val(c->fixed, no);
    return k;
}

int hn_units_count(const HnUnits *c)
{
    return (int)c->parent->len;
}

gboolean hn_units_locked(const HnUnits *c, int k)
{
    return g_array_index(c->fixed, gboolean, root_of(c, k));
}

void hn_units_lock(HnUnits *c, int k)
{
    g_array_index(c->fixed, gboolean, root_of(c, k)) = TRUE;
}

/* --- places ------------------------------------------------------------------------------------------------------- */

static Place *place_of(const HnUnits *c, const HnValue *v)
{
    return v != NULL && v->graph == c->model->graph && v->weight == NULL && v->id < c->n_places ? &c->places[v->id]
                                                                                                : NULL;
}

static gboolean is_f32(const HnValue *v)
{
    return v != NULL && v->weight == NULL && v->type != NULL && v->type->kind == HN_TYPE_TENSOR &&
           v->type->dtype == HN_F32;
}

static const HnTensor *weight_of(const HnValue *v)
{
    return v != NULL && v->weight != NULL && !v->is_input && v->weight->dtype == HN_F32 && !v->weight->misaligned
               ? v->weight
               : NULL;
}

/* Size along an axis of v, counted from the back where it is negative; -1: not known. */
static int64_t size_of(const HnValue *v, int *axis)
{
    const HnType *t = v->type;
    if (!is_f32(v) || t->rank < 0)
        return -1;
    *axis += *axis < 0 ? t->rank : 0;
    return *axis >= 0 && *axis < t->rank && t->dims[*axis].known ? t->dims[*axis].n : -1;
}

static void lock(HnUnits *c, const HnValue *v)
{
    Place *p = place_of(c, v);
    if (p == NULL || p->locked)
        return;
    p->locked = p->at != NULL || p->ids != NULL;
    for (int64_t i = 0; p->at != NULL && i < p->n; i++)
        hn_units_lock(c, p->at[i]);
    for (int64_t i = 0; p->ids != NULL && i < p->ids->n; i++)
        if (((const float *)p->ids->data)[i] > 0)
            hn_units_lock(c, (int)((const float *)p->ids->data)[i] - 1);
}

/* NULL: c->error. */
static int *new_list(HnUnits *c, int64_t n)
{
    List list = { NULL, n };
    if (c->error == NULL && (list.at = hn_budget_alloc_n(c->budget, (gsize)n, sizeof *list.at, &c->error)) != NULL)
        g_array_append_val(c->lists, list);
    return list.at;
}

static void drop_last_list(HnUnits *c)
{
    hn_budget_free(c->budget, g_array_index(c->lists, List, c->lists->len - 1).at);
    g_array_set_size(c->lists, c->lists->len - 1);
}

/* Channels of its own along an axis of v: n of them. */
static Place *make(HnUnits *c, const HnValue *v, int axis, int64_t n)
{
    Place *p = place_of(c, v);
    if (p == NULL || n <= 0 || n > MOST_CLASSES - (int64_t)c->parent->len || size_of(v, &axis) != n)
        return NULL;
    int *at = new_list(c, n);
    if (at == NULL || !hn_budget_charge(c->budget, (gsize)n * CLASS_BYTES, &c->error))
        return NULL;
    c->counted += (gsize)n * CLASS_BYTES;
    *p = (Place){ .axis = axis, .n = n, .at = at };
    for (int64_t i = 0; i < n; i++)
        p->at[i] = new_class(c);
    if (v->is_output)
        lock(c, v);
    return p;
}

/* The channels of `from` are those of v, too. */
static Place *pass_on(HnUnits *c, const HnValue *from, const HnValue *v)
{
    const Place *p = place_of(c, from);
    Place *q = place_of(c, v);
    int axis = p != NULL ? p->axis : 0;
    if (p == NULL || p->at == NULL || q == NULL || size_of(v, &axis) != p->n)
        return NULL;
    *q = (Place){ .axis = axis, .n = p->n, .at = p->at };
    if (v->is_output)
        lock(c, v);
    return q;
}

/* --- what moves elements ------------------------------------------------------------------------------------------ */

static HnTensor *ids_of(HnUnits *c, const HnValue *v)
{
    const Place *p = place_of(c, v);
    int64_t dims[HN_MAX_RANK], n, inner = 1;
    if (p == NULL || (p->at == NULL && p->ids == NULL))
        return NULL;
    if (p->ids != NULL)
        return hn_tensor_ref(p->ids);
    for (int i = 0; i < v->type->rank; i++) {
        if (!v->type->dims[i].known || i >= HN_MAX_RANK)
            return NULL;
        dims[i] = v->type->dims[i].n;
        inner *= i > p->axis ? dims[i] : 1;
    }
    if (!hn_dims_count(v->type->rank, dims, &n) || n > LARGEST)
        return NULL;
    HnTensor *t = hn_tensor_new_uninit(HN_F32, v->type->rank, dims, c->budget, &c->error);
    for (int64_t i = 0; t != NULL && i < n; i++)
        ((float *)t->data)[i] = (float)(1 + p->at[i / inner % p->n]);
    return t;
}

/* Each place along an axis of t holds elements of one class alone. */
static int *classes_along(HnUnits *c, const HnTensor *t, int axis)
{
    if (axis < 0 || axis >= t->ndim || t->n == 0)
        return NULL;
    const float *x = t->data;
    const int64_t n = t->dims[axis];
    int *at = new_list(c, n);
    int64_t inner = 1;
    if (at == NULL)
        return NULL;
    memset(at, 0, (gsize)n * sizeof *at);
    for (int i = axis + 1; i < t->ndim; i++)
        inner *= t->dims[i];
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t k = i / inner % n;
        const int id = (int)x[i];
        if (id == 0 || (float)id != x[i] || (at[k] != 0 && at[k] != id)) {
            drop_last_list(c);
            return NULL;
        }
        at[k] = id;
    }
    for (int64_t k = 0; k < n; k++)
        at[k]--;
    return at;
}

/* FALSE: there are too many to be held. */
static gboolean set_ids(HnUnits *c, const HnValue *v, HnTensor *t, int like)
{
    Place *p = place_of(c, v);
    if (p == NULL || t->dtype != HN_F32)
        return TRUE;
    const int axes[] = { like, 1, t->ndim - 1 };
    for (guint i = 0; i < G_N_ELEMENTS(axes) && p->at == NULL; i++)
        if ((p->at = classes_along(c, t, axes[i])) != NULL) {
            p->axis = axes[i];
            p->n = t->dims[axes[i]];
        }
    if (p->at == NULL && c->held + (double)t->n > MOST_HELD)
        return FALSE;
    if (p->at == NULL) {
        p->ids = hn_tensor_ref(t);
        c->held += (double)t->n;
    }
    if (v->is_output)
        lock(c, v);
    return TRUE;
}

/* n moves the numbers of its f32 inputs: does it with their classes. FALSE: it cannot be followed. */
static gboolean move(HnUnits *c, const HnNode *n)
{
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autofree HnTensor **out = g_new0(HnTensor *, n->out->len + 1);
    for (guint k = 0; k < n->out->len; k++) {
        const double count = n->out->pdata[k] != NULL ? hn_type_count(hn_node_out(n, (int)k)->type) : 0;
        if (count > (double)LARGEST || c->moved + count > MOST_MOVED)
            return FALSE;
        c->moved += count;
    }
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        HnTensor *t = NULL;
        if (v != NULL && is_f32(v))
            t = ids_of(c, v);
        else if (v != NULL && v->weight != NULL && v->weight->dtype != HN_F32 && !v->weight->misaligned)
            t = hn_tensor_ref(v->weight);
        else if (v != NULL && i > 0 && v->weight != NULL && n->op == &hn_op_resize)
            t = hn_tensor_ref(v->weight);
        if (v != NULL && t == NULL)
            return FALSE;
        g_ptr_array_add(in, t);
    }
    HnEval e = { .node = n,
                 .params = n->params,
                 .n_in = (int)in->len,
                 .n_out = (int)n->out->len,
                 .in = (HnTensor *const *)in->pdata,
                 .out = out,
                 .budget = c->budget };
    GError *failure = NULL;
    gboolean ok = hn_op_eval(&e, &failure);
    g_clear_error(&failure);
    const Place *first = place_of(c, hn_node_in(n, 0));
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        if (ok && v != NULL && out[k] != NULL)
            ok = set_ids(c, v, out[k], first != NULL && first->at != NULL ? first->axis : 1);
        hn_tensor_unref(out[k]);
    }
    return ok;
}

/* --- nodes with weights ------------------------------------------------------------------------------------------- */

static Factor *add_factor(HnUnits *c, const HnNode *n, int input)
{
    Factor *f = g_new0(Factor, 1);
    *f = (Factor){ .node = hn_node_out(n, 0)->name, .input = input, .axis = -1, .in_axis = -1, .groups = 1 };
    g_ptr_array_add(c->factors, f);
    return f;
}

static void makes(Factor *f, int axis, const Place *p)
{
    f->axis = axis;
    f->n = p->n;
    f->out = p->at;
}

static void reads(Factor *f, int axis, int64_t groups, const Place *p)
{
    f->in_axis = axis;
    f->groups = groups;
    f->in_n = p->n / groups;
    f->in = p->at;
}

/* A linear layer: channels that are read are along l->in of the weight, those that are made along l->out. */
static gboolean multiply(HnUnits *c, const HnNode *n, const HnLinearView *l)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0), *b = hn_node_in(n, 2);
    const HnTensor *w = weight_of(hn_node_in(n, 1)), *bias = weight_of(b);
    const Place *p = place_of(c, x);
    if (w == NULL || (b != NULL && (bias == NULL || bias->ndim != 1)))
        return FALSE;
    int from_front = l->x_axis;
    if (p != NULL && p->at != NULL &&
        (l->groups < 1 || size_of(x, &from_front) != p->n || from_front != p->axis ||
         p->n != w->dims[l->in] * l->groups))
        return FALSE;
    const Place *q = make(c, y, l->y_axis, w->dims[l->out]);
    if (q == NULL || q->n % l->groups != 0 || (bias != NULL && bias->n != q->n))
        return FALSE;
    Factor *f = add_factor(c, n, 1);
    makes(f, l->out, q);
    if (p != NULL && p->at != NULL)
        reads(f, l->in, l->groups, p);
    else
        lock(c, x);
    if (bias != NULL)
        makes(add_factor(c, n, 2), 0, q);
    return TRUE;
}

static gboolean weighted(HnUnits *c, const HnNode *n)
{
    const HnTensor *w = weight_of(hn_node_in(n, 1));
    HnLinearView l;
    if (w == NULL)
        return FALSE;
    if (!hn_op_linear(n, &l) || l.adjoint || l.x_turned || (l.window == NULL && w->ndim != 2))
        return FALSE;
    return multiply(c, n, &l);
}

/* A constant operand of an element-wise node lies along the channels of v: its axis; -1: it does not. */
static int along(const HnTensor *t, const HnValue *v, const Place *p)
{
    const int axis = p->axis - (v->type->rank - t->ndim);
    return t->n == p->n && axis >= 0 && axis < t->ndim && t->dims[axis] == p->n ? axis : -1;
}

/* x + constant: that has x's units too. */
static gboolean add_constant(HnUnits *c, const HnNode *n, int i)
{
    const HnValue *x = hn_node_in(n, 1 - i), *y = hn_node_out(n, 0);
    const HnTensor *t = weight_of(hn_node_in(n, i));
    const Place *p = place_of(c, x);
    const int axis = t != NULL && p != NULL && p->at != NULL ? along(t, x, p) : -1;
    if (axis < 0 || pass_on(c, x, y) == NULL)
        return FALSE;
    makes(add_factor(c, n, i), axis, p);
    return TRUE;
}

/* x * constant: may take any units on. */
static gboolean multiply_constant(HnUnits *c, const HnNode *n, int i)
{
    const HnValue *x = hn_node_in(n, 1 - i), *y = hn_node_out(n, 0);
    const HnTensor *t = weight_of(hn_node_in(n, i));
    int axis = t != NULL && t->ndim > 0 ? -1 : 0;
    if (t == NULL || t->ndim == 0 || !is_f32(x) || !is_f32(y) || x->type->rank != y->type->rank)
        return FALSE;
    lock(c, x);
    for (int k = 0; k < t->ndim; k++)
        if (t->dims[k] == t->n)
            axis = k - t->ndim;
    const Place *p = t->n > 1 ? make(c, y, axis, t->n) : NULL;
    if (p == NULL)
        return FALSE;
    makes(add_factor(c, n, i), axis + t->ndim, p);
    return TRUE;
}

static gboolean normalize(HnUnits *c, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    const HnTensor *scale = weight_of(hn_node_in(n, 1)), *bias = weight_of(hn_node_in(n, 2));
    lock(c, x);
    if (scale == NULL || scale->ndim != 1 || n->out->len > 1 ||
        (hn_node_in(n, 2) != NULL && (bias == NULL || bias->n != scale->n || bias->ndim != 1)))
        return FALSE;
    const Place *p = make(c, y, -1, scale->n);
    if (p == NULL)
        return FALSE;
    makes(add_factor(c, n, 1), 0, p);
    if (bias != NULL)
        makes(add_factor(c, n, 2), 0, p);
    return TRUE;
}

/* --- other nodes -------------------------------------------------------------------------------------------------- */

/* All inputs have one unit, which the result has too. */
static gboolean sum(HnUnits *c, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    const Place *p = place_of(c, x);
    for (guint i = 0; i < n->in->len; i++) {
        const HnValue *v = n->in->pdata[i];
        const Place *q = place_of(c, v);
        if (!is_f32(v) || q == NULL || q->at == NULL || p == NULL || p->at == NULL || q->n != p->n ||
            q->axis != p->axis || v->type->rank != x->type->rank)
            return FALSE;
    }
    for (guint i = 1; i < n->in->len; i++)
        for (int64_t k = 0; k < p->n; k++)
            unite(c, p->at[k], place_of(c, n->in->pdata[i])->at[k]);
    return pass_on(c, x, y) != NULL;
}

static gboolean read_bound(gconstpointer of, int i, double *x)
{
    const HnValue *v = hn_node_in(of, i);
    const HnTensor *t = weight_of(v);
    if (t != NULL && t->n == 1)
        *x = hn_tensor_get_f64(t, 0);
    return v == NULL || (t != NULL && t->n == 1);
}

static gboolean clip(HnUnits *c, const HnNode *n)
{
    HnClipped clipped = { hn_node_in(n, 0), INFINITY };
    double lo = -INFINITY;
    if (!hn_op_bounds(n->op, n->params, read_bound, n, &lo, &clipped.most) || lo != 0 || clipped.most <= 0 ||
        pass_on(c, clipped.v, hn_node_out(n, 0)) == NULL)
        return FALSE;
    if (!isinf(clipped.most))
        g_array_append_val(c->clips, clipped);
    return TRUE;
}

static gboolean is_pool(const HnOp *op)
{
    return op == &hn_op_maxpool || op == &hn_op_averagepool || op == &hn_op_globalmaxpool ||
           op == &hn_op_globalaveragepool;
}

static gboolean is_homogeneous(const HnOp *op)
{
    return op == &hn_op_relu || op == &hn_op_leakyrelu || op == &hn_op_identity || op == &hn_op_abs || op == &hn_op_neg;
}

/* FALSE: nothing is known of the units of what n reads and makes. */
static gboolean follow(HnUnits *c, const HnNode *n)
{
    const HnValue *x = hn_node_in(n, 0), *y = hn_node_out(n, 0);
    if (n->op == NULL || y == NULL)
        return FALSE;
    if (is_homogeneous(n->op))
        return pass_on(c, x, y) != NULL;
    if (is_pool(n->op))
        return n->out->len == 1 && place_of(c, x) != NULL && place_of(c, x)->axis == 1 && pass_on(c, x, y) != NULL;
    if (n->op == &hn_op_clip)
        return clip(c, n);
    if (n->op == &hn_op_layernormalization)
        return normalize(c, n);
    if (n->op == &hn_op_add || n->op == &hn_op_mul)
        for (int i = 0; i < 2; i++)
            if (hn_node_in(n, i) != NULL && hn_node_in(n, i)->weight != NULL)
                return n->op == &hn_op_add ? add_constant(c, n, i) : multiply_constant(c, n, i);
    if (n->op == &hn_op_add || n->op == &hn_op_sum)
        return sum(c, n);
    if (n->op->quant.kind == HN_Q_WEIGHTED)
        return weighted(c, n);
    return (n->op->quant.bytes == HN_QB_MOVES || (n->op->flags & HN_OP_VIEW) != 0) && move(c, n);
}

static void follow_node(HnUnits *c, HnNode *n)
{
    if (follow(c, n))
        return;
    g_autoptr(GPtrArray) all = hn_node_reads(n);
    for (guint i = 0; i < all->len; i++)
        lock(c, all->pdata[i]);
    for (guint k = 0; k < n->out->len; k++)
        lock(c, n->out->pdata[k]);
}

/* A weight that several nodes read can have no two units; a short one, such as a bias of zeros, is copied. */
static void lock_shared(HnUnits *c)
{
    for (guint i = 0; i < c->factors->len; i++) {
        const Factor *f = c->factors->pdata[i];
        const HnValue *y = g_hash_table_lookup(c->model->graph->values, f->node);
        const HnValue *w = hn_node_in(y->producer, f->input);
        if ((w->users->len == 1 && !w->is_output) || w->weight->bytes <= COPY)
            continue;
        for (int64_t k = 0; k < f->n; k++)
            hn_units_lock(c, f->out[k]);
        for (int64_t k = 0; k < f->groups * f->in_n; k++)
            hn_units_lock(c, f->in[k]);
    }
}

HnUnits *hn_units_new(HnModel *m, HnBudget *budget, GError **error)
{
    g_autoptr(HnUnits) c = g_new0(HnUnits, 1);
    c->model = m;
    c->budget = budget;
    c->parent = g_array_new(FALSE, FALSE, sizeof(int));
    c->fixed = g_array_new(FALSE, FALSE, sizeof(gboolean));
    c->n_places = m->n_values;
    c->places = g_new0(Place, c->n_places + 1u);
    c->lists = g_array_new(FALSE, FALSE, sizeof(List));
    c->factors = g_ptr_array_new_with_free_func(g_free);
    c->clips = g_array_new(FALSE, FALSE, sizeof(HnClipped));
    for (guint i = 0; i < m->graph->weights->len && c->error == NULL; i++) {
        HnTensor *t = ((HnValue *)m->graph->weights->pdata[i])->weight;
        if (t != NULL && t->dtype == HN_F32)
            hn_tensor_align(t, budget, &c->error);
    }
    for (guint i = 0; i < m->graph->nodes->len && c->error == NULL; i++)
        follow_node(c, m->graph->nodes->pdata[i]);
    if (c->error != NULL) {
        g_propagate_error(error, g_steal_pointer(&c->error));
        return NULL;
    }
    lock_shared(c);
    for (guint i = 0; i < c->n_places; i++)
        g_clear_pointer(&c->places[i].ids, hn_tensor_unref);
    for (guint i = 0; i < c->lists->len; i++) {
        const List *l = &g_array_index(c->lists, List, i);
        for (int64_t k = 0; k < l->n; k++)
            l->at[k] = root_of(c, l->at[k]);
    }
    return g_steal_pointer(&c);
}

void hn_units_free(HnUnits *c)
{
    if (c == NULL)
        return;
    for (guint i = 0; i < c->n_places; i++)
        hn_tensor_unref(c->places[i].ids);
    while (c->lists->len > 0)
        drop_last_list(c);
    hn_budget_uncharge(c->budget, c->counted);
    g_array_unref(c->lists);
    g_free(c->places);
    g_array_unref(c->parent);
    g_array_unref(c->fixed);
    g_array_unref(c->clips);
    g_ptr_array_unref(c->factors);
    g_clear_error(&c->error);
    g_free(c);
}

const int *hn_units_of(const HnUnits *c, const HnValue *v, int *axis, int64_t *n)
{
    const Place *p = place_of(c, v);
    if (p == NULL || p->at == NULL)
        return NULL;
    *axis = p->axis;
    *n = p->n;
    return p->at;
}

const GArray *hn_units_clips(const HnUnits *c)
{
    return c->clips;
}

/* --- new weights -------------------------------------------------------------------------------------------------- */

static double unit_of(const HnUnits *c, const double *s, int k)
{
    k = root_of(c, k);
    return g_array_index(c->fixed, gboolean, k) ? 1 : s[k];
}

static int64_t step_of(const HnTensor *w, int axis)
{
    int64_t step = 1;
    for (int i = axis + 1; i < w->ndim; i++)
        step *= w->dims[i];
    return step;
}

static gboolean scale_weight(const HnUnits *c, HnModel *m, const Factor *f, const double *s, HnBudget *budget,
                             GError **error)
{
    const HnValue *y = g_hash_table_lookup(m->graph->values, f->node);
    HnValue *v = y != NULL && y->producer != NULL ? hn_node_in(y->producer, f->input) : NULL;
    if (v == NULL || v->weight == NULL)
        return TRUE;
    g_autoptr(HnTensor) t = hn_tensor_copy(v->weight, budget, error);
    if (t == NULL)
        return FALSE;
    const int64_t out_step = f->axis >= 0 ? step_of(t, f->axis) : 1;
    const int64_t in_step = f->in_axis >= 0 ? step_of(t, f->in_axis) : 1;
    float *x = t->data;
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t o = f->axis >= 0 ? i / out_step % t->dims[f->axis] : 0;
        double factor = 1;
        if (f->in_axis >= 0) { /* outputs are in the order of their groups */
            const int64_t g = f->groups > 1 ? o / (f->n / f->groups) : 0;
            factor = unit_of(c, s, f->in[g * f->in_n + i / in_step % f->in_n]);
        }
        if (f->out != NULL)
            factor /= unit_of(c, s, f->out[o]);
        x[i] = (float)((double)x[i] * factor);
    }
    if (v->users->len > 1 || v->is_output) {
        HnValue *own = hn_graph_new_value(m->graph, v->name);
        hn_value_set_type(own, v->type);
        hn_node_set_in(y->producer, f->input, own);
        v = own;
    }
    hn_graph_add_weight(m->graph, v, t);
    return hn_op_bind(y->producer, error);
}

gboolean hn_units_scale(const HnUnits *c, HnModel *m, const double *s, HnBudget *budget, GError **error)
{
    for (guint i = 0; i < c->factors->len; i++)
        if (!scale_weight(c, m, c->factors->pdata[i], s, budget, error))
            return FALSE;
    return TRUE;
}
