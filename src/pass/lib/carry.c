#include "pass/lib/carry.h"

#include "op/argmax.h"
#include "op/layernorm.h"
#include "op/move.h"
#include "op/pad.h"
#include "op/reduce.h"
#include "op/softmax.h"
#include "op/transpose.h"
#include "pass/shapes.h"
#include "pass/lib/weights.h"

#define MOST_INPUTS 512 /* of a node that is carried: all of them are looked at for each one, several times */

/* --- orders ------------------------------------------------------------------------------------------------------- */

gboolean hn_order_of(const HnRewrite *r, const HnNode *transpose, HnOrder *o)
{
    const HnTranspose *p = transpose->params;
    int rank = hn_rw_rank(r, hn_node_in(transpose, 0));
    if (rank < 1 || rank > HN_MAX_RANK || (p->perm != NULL && p->n != rank))
        return FALSE;
    o->rank = rank;
    for (int a = 0; a < rank; a++)
        o->to[a] = p->perm != NULL ? (int)p->perm[a] : rank - 1 - a;
    return TRUE;
}

HnOrder hn_order_inverse(const HnOrder *o)
{
    HnOrder inverse = { .rank = o->rank };
    for (int a = 0; a < o->rank; a++)
        inverse.to[o->to[a]] = a;
    return inverse;
}

gboolean hn_order_equal(const HnOrder *a, const HnOrder *b)
{
    gboolean same = a->rank == b->rank;
    for (int i = 0; i < a->rank && same; i++)
        same = a->to[i] == b->to[i];
    return same;
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

typedef enum {
    NONE,
    PLAIN,   /* element by element, broadcast */
    AXIS,    /* attribute `axis` */
    JOIN,    /* the same, of all inputs */
    SOFTMAX, /* the same, where it is one axis */
    REDUCE,
    ARG,
    PAD,
    SLICE,
    PRODUCT, /* of matrices: the last two axes stay where they are */
    LAST,    /* works along the last axis */
    CHANNEL, /* axis 1 stays where it is */
    SAMPLE,  /* axes 0 and 1 stay where they are */
} Kind;

typedef struct {
    const HnOp *op;
    Kind kind;
    int axis; /* where the attribute is not given */
} Rule;

static const Rule rules[] = {
    { &hn_op_argmax, ARG, 0 },
    { &hn_op_argmin, ARG, 0 },
    { &hn_op_batchnormalization, CHANNEL, 0 },
    { &hn_op_concat, JOIN, 0 },
    { &hn_op_gather, AXIS, 0 },
    { &hn_op_hardmax, SOFTMAX, -1 },
    { &hn_op_instancenormalization, SAMPLE, 0 },
    { &hn_op_layernormalization, LAST, -1 },
    { &hn_op_logsoftmax, SOFTMAX, -1 },
    { &hn_op_lpnormalization, AXIS, -1 },
    { &hn_op_matmul, PRODUCT, 0 },
    { &hn_op_pad, PAD, 0 },
    { &hn_op_reducel1, REDUCE, 0 },
    { &hn_op_reducel2, REDUCE, 0 },
    { &hn_op_reducelogsum, REDUCE, 0 },
    { &hn_op_reducelogsumexp, REDUCE, 0 },
    { &hn_op_reducemax, REDUCE, 0 },
    { &hn_op_reducemean, REDUCE, 0 },
    { &hn_op_reducemin, REDUCE, 0 },
    { &hn_op_reduceprod, REDUCE, 0 },
    { &hn_op_reducesum, REDUCE, 0 },
    { &hn_op_reducesumsquare, REDUCE, 0 },
    { &hn_op_rmsnormalization, LAST, -1 },
    { &hn_op_slice, SLICE, 0 },
    { &hn_op_softmax, SOFTMAX, -1 },
    { &hn_op_split, AXIS, 0 },
    { &hn_op_topk, AXIS, -1 },
};

static const Rule plain = { NULL, PLAIN, 0 };

static const Rule *rule_of(const HnNode *n)
{
    if (n->op == NULL)
        return NULL;
    for (guint i = 0; i < G_N_ELEMENTS(rules); i++)
        if (rules[i].op == n->op)
            return &rules[i];
    const uint32_t flags = n->op->flags;
    return (flags & HN_OP_ELEMENTWISE) != 0 && (flags & (HN_OP_RANDOM | HN_OP_CONTROL)) == 0 && n->version >= 7 ? &plain
                                                                                                                : NULL;
}

static gboolean axis_of(const HnNode *n, const Rule *rule, int rank, int *axis)
{
    const HnAttr *a = hn_node_attr(n, "axis");
    int64_t x = a != NULL ? a->i : rule->axis;
    if (a != NULL && (a->kind != HN_ATTR_INT || a->ref_attr != NULL))
        return FALSE;
    x += x < 0 ? rank : 0;
    *axis = (int)x;
    return x >= 0 && x < rank;
}

/* Amounts for all axes, those behind in the second half. */
static gboolean pads_of(const HnRewrite *r, const HnNode *n, int rank, int64_t *pads)
{
    const HnPad *p = n->params;
    int64_t list[2 * HN_MAX_RANK], axes[HN_MAX_RANK];
    int count = (int)p->n, n_axes = rank;
    for (int i = 0; i < 2 * rank; i++)
        pads[i] = 0;
    for (int a = 0; a < rank; a++)
        axes[a] = a;
    for (int i = 0; i < count && !p->inputs; i++)
        list[i] = p->pads[i];
    if (p->inputs && (!hn_rw_ints(r, hn_node_in(n, 1), list, 2 * HN_MAX_RANK, &count) ||
                      (hn_node_in(n, 3) != NULL && !hn_rw_ints(r, hn_node_in(n, 3), axes, HN_MAX_RANK, &n_axes))))
        return FALSE;
    for (int i = 0; i < n_axes && count == 2 * n_axes; i++) {
        int64_t a = axes[i] + (axes[i] < 0 ? rank : 0);
        if (a < 0 || a >= rank)
            return FALSE;
        pads[a] = list[i];
        pads[rank + a] = list[n_axes + i];
    }
    return count == 2 * n_axes;
}

static gboolean stays(const HnOrder *o, int axis)
{
    return axis >= 0 && o->to[axis] == axis;
}

static gboolean product_can(const HnRewrite *r, const HnNode *n, const HnOrder *o)
{
    int a = hn_rw_rank(r, hn_node_in(n, 0)), b = hn_rw_rank(r, hn_node_in(n, 1));
    if (o->rank <= 2 || !stays(o, o->rank - 1))
        return FALSE;
    if (a == o->rank && b == 2)
        return TRUE;
    return (a == o->rank || a == 2) && (b == o->rank || b == 2) && stays(o, o->rank - 2);
}

static gboolean attributes_can(const HnRewrite *r, const HnNode *n, const Rule *rule, const HnOrder *o)
{
    int64_t pads[2 * HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK];
    HnBounds bounds;
    int axis;
    switch (rule->kind) {
    case AXIS:
    case JOIN:
        return axis_of(n, rule, o->rank, &axis);
    case SOFTMAX:
        return !((const HnSoftmax *)n->params)->flatten && axis_of(n, rule, o->rank, &axis);
    case REDUCE:
        return ((const HnReduce *)n->params)->keepdims && hn_shapes_reduced(r, n, mark);
    case ARG:
        return ((const HnArg *)n->params)->keepdims && axis_of(n, rule, o->rank, &axis);
    case PAD:
        return pads_of(r, n, o->rank, pads);
    case SLICE:
        return hn_shapes_bounds(r, n, &bounds);
    case PRODUCT:
        return product_can(r, n, o);
    case LAST:
        return axis_of(n, rule, o->rank, &axis) && axis == o->rank - 1 && stays(o, axis) && n->out->len == 1;
    case CHANNEL:
        return o->rank > 1 && stays(o, 1) && n->out->len == 1;
    case SAMPLE:
        return o->rank > 1 && stays(o, 0) && stays(o, 1);
    default:
        return TRUE;
    }
}

gboolean hn_carry_is_data(const HnRewrite *r, const HnNode *n, int i, int rank)
{
    const HnValue *v = hn_node_in(n, i);
    const Rule *rule = rule_of(n);
    if (v == NULL || rule == NULL)
        return FALSE;
    if (rule->kind == PRODUCT)
        return hn_rw_rank(r, v) == rank;
    if (rule->kind != PLAIN)
        return i == 0 || rule->kind == JOIN;
    const HnTensor *t = hn_rw_known(r, v);
    return t != NULL ? t->n != 1 || t->ndim > rank : hn_rw_rank(r, v) != 0;
}

static gboolean input_can(const HnRewrite *r, const HnValue *v, int rank)
{
    const HnTensor *t = hn_rw_known(r, v);
    if (t == NULL)
        return hn_rw_rank(r, v) == rank;
    return t->ndim <= rank && hn_dtype_in(t->dtype, HN_T_COMPUTE) && hn_weights_own(r, v);
}

gboolean hn_carry_can(const HnRewrite *r, const HnNode *n, const HnOrder *o)
{
    const Rule *rule = rule_of(n);
    if (rule == NULL || n->in->len == 0 || n->in->len > MOST_INPUTS)
        return FALSE;
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL && hn_rw_rank(r, n->out->pdata[k]) != o->rank)
            return FALSE;
    for (guint i = 0; i < n->in->len; i++)
        if (hn_carry_is_data(r, n, (int)i, o->rank) && !input_can(r, n->in->pdata[i], o->rank))
            return FALSE;
    return (rule->kind == PLAIN || rule->kind == PRODUCT || hn_rw_rank(r, hn_node_in(n, 0)) == o->rank) &&
           attributes_can(r, n, rule, o);
}

gboolean hn_carry_ends(const HnRewrite *r, const HnNode *n, const HnOrder *o)
{
    const Rule *rule = rule_of(n);
    gboolean mark[HN_MAX_RANK] = { FALSE };
    int axis, last = -1;
    if (rule == NULL || (rule->kind != REDUCE && rule->kind != ARG) || hn_rw_rank(r, hn_node_in(n, 0)) != o->rank)
        return FALSE;
    if (rule->kind == REDUCE) {
        if (((const HnReduce *)n->params)->keepdims || !hn_shapes_reduced(r, n, mark))
            return FALSE;
    } else {
        if (((const HnArg *)n->params)->keepdims || !axis_of(n, rule, o->rank, &axis))
            return FALSE;
        mark[axis] = TRUE;
    }
    for (int a = 0; a < o->rank; a++) {
        if (mark[a])
            continue;
        if (o->to[a] < last)
            return FALSE;
        last = o->to[a];
    }
    return TRUE;
}

/* --- edits -------------------------------------------------------------------------------------------------------- */

static void set_ints(HnRewrite *r, HnNode *n, int input, const char *name, const int64_t *x, int len)
{
    if (input > 0)
        hn_rw_set_in(r, n, input, hn_rw_weight_ints(r, n->graph, name, x, len));
    else
        hn_node_set_ints(n, name, x, len);
}

static void carry_reduce(HnRewrite *r, HnNode *n, const HnOrder *o, const gboolean *mark)
{
    const gboolean from_input = ((const HnReduce *)n->params)->from_input;
    int64_t axes[HN_MAX_RANK];
    gboolean moved[HN_MAX_RANK];
    int count = 0;
    for (int a = 0; a < o->rank; a++)
        moved[o->to[a]] = mark[a];
    for (int a = 0; a < o->rank; a++)
        if (moved[a])
            axes[count++] = a;
    if (count > 0 && count < o->rank) /* none and all are the same in any order */
        set_ints(r, n, from_input ? 1 : 0, "axes", axes, count);
}

static void carry_pad(HnRewrite *r, HnNode *n, const HnOrder *o, const int64_t *pads)
{
    const gboolean inputs = ((const HnPad *)n->params)->inputs;
    int64_t to[2 * HN_MAX_RANK];
    for (int a = 0; a < o->rank; a++) {
        to[o->to[a]] = pads[a];
        to[o->rank + o->to[a]] = pads[o->rank + a];
    }
    set_ints(r, n, inputs ? 1 : 0, "pads", to, 2 * o->rank);
    if (hn_node_in(n, 3) != NULL)
        hn_rw_set_in(r, n, 3, NULL);
}

static void carry_slice(HnRewrite *r, HnNode *n, const HnOrder *o, const HnBounds *b)
{
    const gboolean inputs = n->version >= 10;
    int64_t axes[HN_MAX_RANK];
    for (int i = 0; i < b->n; i++)
        axes[i] = o->to[b->axis[i]];
    set_ints(r, n, inputs ? 1 : 0, "starts", b->start, b->n);
    set_ints(r, n, inputs ? 2 : 0, "ends", b->end, b->n);
    set_ints(r, n, inputs ? 3 : 0, "axes", axes, b->n);
    if (inputs && hn_node_in(n, 4) != NULL)
        set_ints(r, n, 4, "steps", b->step, b->n);
}

void hn_carry(HnRewrite *r, HnNode *n, const HnOrder *o)
{
    const Rule *rule = rule_of(n);
    int64_t pads[2 * HN_MAX_RANK];
    gboolean mark[HN_MAX_RANK];
    HnBounds bounds;
    int axis;
    if (rule->kind == REDUCE && hn_shapes_reduced(r, n, mark))
        carry_reduce(r, n, o, mark);
    else if (rule->kind == PAD && pads_of(r, n, o->rank, pads))
        carry_pad(r, n, o, pads);
    else if (rule->kind == SLICE && hn_shapes_bounds(r, n, &bounds))
        carry_slice(r, n, o, &bounds);
    else if ((rule->kind == AXIS || rule->kind == JOIN || rule->kind == SOFTMAX || rule->kind == ARG) &&
             axis_of(n, rule, o->rank, &axis))
        hn_node_set_int(n, "axis", o->to[axis]);
}

HnTensor *hn_carry_constant(const HnRewrite *r, const HnTensor *t, const HnOrder *o)
{
    int64_t from[HN_MAX_RANK], dims[HN_MAX_RANK], strides[HN_MAX_RANK];
    if (t == NULL)
        return NULL;
    const int missing = o->rank - t->ndim;
    hn_strides(t->ndim, t->dims, from);
    for (int a = 0; a < o->rank; a++) {
        dims[o->to[a]] = a < missing ? 1 : t->dims[a - missing];
        strides[o->to[a]] = a < missing ? 0 : from[a - missing];
    }
    HnTensor *to = hn_tensor_new_uninit(t->dtype, o->rank, dims, hn_rw_budget(r), NULL);
    if (to != NULL && to->n > 0)
        hn_move_strided(to->data, t->data, hn_dtype_size(t->dtype), o->rank, dims, strides);
    return to;
}
