/*
 * Classes of channels through operators that move elements: told by moving the numbers of classes.
 */
#include <string.h>

#include "op/gather.h"
#include "pass/lib/channel_place.h"

#define LARGEST ((int64_t)1 << 22) /* elements of a tensor that is followed while its elements are moved */
#define MOST_MOVED (1e9 / 2)       /* elements that are moved to follow them, in all tensors together: some 30 s */
#define MOST_HELD (1e9 / 8)        /* elements whose classes are held apart at one time, 4 bytes each */
#define ANY (-1.0f)                /* what fills: it is of no class, and does not keep one from going */

/* The class of elements that nobody could remove. */
static float stays(HnChannels *c)
{
    if (c->stays < 0) {
        const char *reason = "it does not come from weights that could be smaller";
        c->stays = (int)c->parent->len;
        g_array_append_val(c->parent, c->stays);
        reason = g_string_chunk_insert_const(c->texts, reason);
        g_array_append_val(c->reasons, reason);
    }
    return (float)(1 + c->stays);
}

static HnTensor *filled(HnChannels *c, int rank, const int64_t *dims, float x)
{
    int64_t n;
    if (!hn_dims_count(rank, dims, &n) || n > LARGEST)
        return NULL;
    HnTensor *t = hn_tensor_new_uninit(HN_F32, rank, dims, c->budget, &c->error);
    for (int64_t i = 0; t != NULL && i < n; i++)
        ((float *)t->data)[i] = x;
    return t;
}

HnTensor *hn_channels_ids(HnChannels *c, const HnValue *v)
{
    const HnChannelPlace *p = hn_channels_place(c, v);
    const HnType *type = hn_channels_type(c, v);
    int64_t dims[HN_MAX_RANK], inner = 1;
    if (p != NULL && p->ids != NULL)
        return hn_tensor_ref(p->ids);
    if (p == NULL || type == NULL || !hn_type_is_fixed(type, dims) || (p->at == NULL && c->bond == HN_BOND_UNIT))
        return NULL;
    HnTensor *t = filled(c, type->rank, dims, p->at == NULL ? stays(c) : 0);
    for (int i = p->axis + 1; i < type->rank; i++)
        inner *= dims[i];
    for (int64_t i = 0; t != NULL && p->at != NULL && i < t->n; i++)
        ((float *)t->data)[i] = (float)(1 + p->at[i / inner % p->n]);
    return t;
}

/* Each place along an axis of t holds elements of one class alone. */
static int *classes_along(HnChannels *c, const HnTensor *t, int axis)
{
    if (axis < 0 || axis >= t->ndim || t->n == 0)
        return NULL;
    const float *x = t->data;
    const int64_t n = t->dims[axis];
    int *at = hn_channels_list(c, n);
    int64_t inner = 1, found = 0;
    if (at == NULL)
        return NULL;
    memset(at, 0, (gsize)n * sizeof *at);
    for (int i = axis + 1; i < t->ndim; i++)
        inner *= t->dims[i];
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t k = i / inner % n;
        const int id = (int)x[i];
        if (x[i] == ANY)
            continue;
        if (id == 0 || (float)id != x[i] || (at[k] != 0 && at[k] != id)) {
            hn_channels_drop_list(c);
            return NULL;
        }
        found += at[k] == 0;
        at[k] = id;
    }
    if (found < n) { /* only what fills */
        hn_channels_drop_list(c);
        return NULL;
    }
    for (int64_t k = 0; k < n; k++)
        at[k]--;
    return at;
}

void hn_channels_settle(const HnChannels *c, HnTensor *t)
{
    float *x = t->data;
    for (int64_t i = 0; i < t->n; i++)
        if (x[i] > 0 && x[i] == (float)(int)x[i])
            x[i] = (float)(1 + hn_channels_class(c, (int)x[i] - 1));
}

gboolean hn_channels_set_ids(HnChannels *c, const HnValue *v, HnTensor *ids, int like)
{
    HnChannelPlace *p = hn_channels_place(c, v);
    if (p == NULL || ids->dtype != HN_F32)
        return TRUE;
    if (ids->n == 0)
        return FALSE;
    const int axes[] = { like, 1, ids->ndim - 1 }, first = G_N_ELEMENTS(axes);
    const int tries = first + (c->bond == HN_BOND_FATE ? ids->ndim : 0);
    for (int i = 0; i < tries && p->at == NULL; i++) {
        p->axis = i < first ? axes[i] : i - first;
        p->at = classes_along(c, ids, p->axis);
        p->n = p->at != NULL ? ids->dims[p->axis] : 0;
    }
    if (p->at == NULL && c->held + (double)ids->n > MOST_HELD)
        return FALSE;
    if (p->at == NULL) {
        p->ids = hn_tensor_ref(ids);
        c->held += (double)ids->n;
    }
    hn_channels_lock_output(c, v);
    return TRUE;
}

HnChannelPlace *hn_channels_along(HnChannels *c, const HnValue *v, int axis)
{
    HnChannelPlace *p = hn_channels_place(c, v);
    if (p == NULL || hn_channels_size(c, v, &axis) <= 0)
        return NULL;
    if (p->at != NULL)
        return p->axis == axis ? p : NULL;
    if (p->ids == NULL)
        return NULL;
    const int64_t n = p->ids->dims[axis];
    int64_t inner = 1;
    g_autofree int *first = g_new0(int, (gsize)n);
    for (int i = axis + 1; i < p->ids->ndim; i++)
        inner *= p->ids->dims[i];
    for (int64_t i = 0; i < p->ids->n; i++) {
        const float id = ((const float *)p->ids->data)[i];
        int *k = &first[i / inner % n];
        if (id == ANY)
            continue;
        *k = *k == 0 ? (int)id : *k; /* never 0: hn_channels_ids() knows all elements */
        hn_channels_unite(c, *k - 1, (int)id - 1);
    }
    int *at = hn_channels_list(c, n);
    for (int64_t k = 0; at != NULL && k < n; k++)
        at[k] = first[k] > 0 ? first[k] - 1 : (int)stays(c) - 1;
    if (at == NULL)
        return NULL;
    c->held -= (double)p->ids->n;
    g_clear_pointer(&p->ids, hn_tensor_unref);
    *p = (HnChannelPlace){ .axis = axis, .n = n, .at = at, .locked = p->locked };
    return p;
}

/* --- evaluation --------------------------------------------------------------------------------------------------- */

/* Positions that are not known: any will do where they are along another axis than channels. */
static HnTensor *any_position(HnChannels *c, const HnNode *n, int i)
{
    const HnChannelPlace *p = hn_channels_place(c, hn_node_in(n, 0));
    const HnType *t = hn_channels_type(c, hn_node_in(n, i));
    int64_t dims[HN_MAX_RANK];
    if (c->bond == HN_BOND_UNIT || i != 1 || !hn_op_is_lookup(n->op))
        return NULL;
    if (p == NULL || p->at == NULL || !hn_type_is_fixed(t, dims))
        return NULL;
    int axis = (int)((const HnGather *)n->params)->axis;
    if (hn_channels_size(c, hn_node_in(n, 0), &axis) < 1 || axis == p->axis)
        return NULL;
    return hn_tensor_new(HN_I64, t->rank, dims, c->budget, &c->error);
}

/* What n, run on numbers of classes, gets as input i. NULL: not known. */
static HnTensor *input_of(HnChannels *c, const HnNode *n, int i)
{
    HnValue *v = hn_node_in(n, i);
    const gboolean moved = hn_op_is_moved(n, i);
    if (c->bond == HN_BOND_FATE && i == 2 && n->op->quant.bytes == HN_QB_FILLS)
        return hn_tensor_scalar_f32(ANY);
    if (hn_channels_is_data(c, v) && (moved || c->bond == HN_BOND_UNIT))
        return hn_channels_ids(c, v);
    HnTensor *t = c->types != NULL ? hn_types_value(c->types, v) : v->weight;
    if (t == NULL)
        return any_position(c, n, i);
    if (moved && t->dtype != HN_F32 && c->bond == HN_BOND_UNIT)
        return t->misaligned ? NULL : hn_tensor_ref(t);
    if (moved)
        return c->bond == HN_BOND_FATE ? filled(c, t->ndim, t->dims, stays(c)) : NULL;
    return t->misaligned ? NULL : hn_tensor_ref(t);
}

/* The inputs. FALSE: not all are known. */
static gboolean inputs_of(HnChannels *c, const HnNode *n, GPtrArray *in)
{
    for (guint i = 0; i < n->in->len; i++) {
        HnTensor *t = n->in->pdata[i] != NULL ? input_of(c, n, (int)i) : NULL;
        if (n->in->pdata[i] != NULL && t == NULL)
            return FALSE;
        g_ptr_array_add(in, t);
    }
    if (c->bond == HN_BOND_FATE && n->op->quant.bytes == HN_QB_FILLS && in->len == 2)
        g_ptr_array_add(in, hn_tensor_scalar_f32(ANY));
    return TRUE;
}

/* n's results are not too large to be looked at. */
static gboolean may_move(HnChannels *c, const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++) {
        const double count = n->out->pdata[k] != NULL ? hn_type_count(hn_channels_type(c, n->out->pdata[k])) : 0;
        if (count > (double)LARGEST || c->moved + count > MOST_MOVED)
            return FALSE;
        c->moved += count;
    }
    return TRUE;
}

gboolean hn_channels_move(HnChannels *c, HnNode *n)
{
    g_autoptr(GPtrArray) in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_autofree HnTensor **out = g_new0(HnTensor *, n->out->len + 1);
    if (!may_move(c, n) || !inputs_of(c, n, in))
        return FALSE;
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
    const HnChannelPlace *first = hn_channels_place(c, hn_node_in(n, 0));
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        if (ok && v != NULL && out[k] != NULL) {
            if (c->bond == HN_BOND_FATE && out[k]->dtype == HN_F32)
                hn_channels_settle(c, out[k]);
            ok = hn_channels_set_ids(c, v, out[k], first != NULL && first->at != NULL ? first->axis : 1);
        }
        hn_tensor_unref(out[k]);
    }
    return ok;
}
