/*
 * Conversion of one node: the record's function first, then what the record says as data about attributes and types.
 */
#include "op/unbind.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "ir/build.h"
#include "op/internal.h"

#define FOLD_BYTES 4096 /* shapes, axes, scalars: what can become an attribute */
#define MAX_DEPTH 8     /* of decompositions inside decompositions */

/* --- what is known ----------------------------------------------------------------------------------------------- */

static const HnType *type_of(const HnUnbind *u, const HnValue *v)
{
    const HnType *t = v != NULL ? hn_types_get(u->types, v) : NULL;
    if (t == NULL && v != NULL)
        t = v->type;
    return hn_type_is_tensor(t) && t->rank <= HN_MAX_RANK ? t : NULL;
}

HnDtype hn_unbind_dtype(const HnUnbind *u, int i)
{
    const HnType *t = type_of(u, hn_node_in(u->node, i));
    return t != NULL ? t->dtype : HN_UNDEFINED;
}

HnDtype hn_unbind_out_dtype(const HnUnbind *u, int k)
{
    const HnType *t = type_of(u, hn_node_out(u->node, k));
    return t != NULL ? t->dtype : HN_UNDEFINED;
}

int hn_unbind_rank(const HnUnbind *u, int i)
{
    const HnType *t = type_of(u, hn_node_in(u->node, i));
    return t != NULL ? t->rank : -1;
}

int64_t hn_unbind_dim(const HnUnbind *u, int i, int axis)
{
    const HnType *t = type_of(u, hn_node_in(u->node, i));
    if (t == NULL || t->rank < 0)
        return -1;
    axis += axis < 0 ? t->rank : 0;
    return axis >= 0 && axis < t->rank && t->dims[axis].known ? t->dims[axis].n : -1;
}

gboolean hn_unbind_dims(const HnUnbind *u, int i, int64_t *dims)
{
    const HnType *t = type_of(u, hn_node_in(u->node, i));
    return t != NULL && hn_type_is_fixed(t, dims);
}

HnTensor *hn_unbind_value(const HnUnbind *u, int i)
{
    HnValue *v = hn_node_in(u->node, i);
    HnTensor *t = v != NULL ? hn_types_value(u->types, v) : NULL;
    return t != NULL && !t->unloaded ? t : NULL;
}

gboolean hn_unbind_number(const HnUnbind *u, int i, double *number)
{
    const HnTensor *t = hn_unbind_value(u, i);
    if (t == NULL || t->n != 1 || t->dtype == HN_STRING)
        return FALSE;
    *number = hn_tensor_get_f64(t, 0);
    return TRUE;
}

int hn_unbind_ints(const HnUnbind *u, int i, int64_t *v)
{
    const HnTensor *t = hn_unbind_value(u, i);
    if (t == NULL || t->n > HN_MAX_RANK || !hn_dtype_in(t->dtype, HN_T_INTS))
        return -1;
    for (int64_t k = 0; k < t->n; k++)
        v[k] = hn_tensor_get_i64(t, k);
    return (int)t->n;
}

gboolean hn_unbind_wants(const HnUnbind *u, int k)
{
    return hn_value_is_read(hn_node_out(u->node, k));
}

HnTypeMask hn_op_types(const HnOp *op, char letter, int64_t version)
{
    HnTypeMask mask = hn_op_mask(op, letter);
    for (const HnLack *l = op->lacks; l != NULL && l->letter != 0; l++)
        if (l->letter == letter && (version < l->before || (l->from != 0 && version >= l->from)))
            mask &= ~l->types;
    return mask;
}

/* --- editing ----------------------------------------------------------------------------------------------------- */

void hn_unbind_refuse(HnUnbind *u, const char *format, ...)
{
    if (u->error != NULL)
        return;
    va_list args;
    va_start(args, format);
    u->error = g_error_new_valist(HN_ERROR, HN_ERROR_UNSUPPORTED, format, args);
    va_end(args);
}

/* A weight or a Constant's output that nobody names any more. */
static void remove_unused(HnValue *v)
{
    if (v == NULL || hn_value_is_read(v) || v->is_input)
        return;
    HnNode *p = v->producer;
    if (p != NULL && strcmp(p->op_type, "Constant") == 0 && hn_domain_equal(p->domain, NULL) && p->out->len == 1)
        hn_graph_bury_node(p->graph, p);
    else if (p == NULL && hn_value_is_weight(v))
        hn_graph_drop_value(v);
}

static void trim(HnPtrs *values)
{
    while (values->len > 0 && values->pdata[values->len - 1] == NULL)
        hn_ptrs_set_len(values, values->len - 1);
}

void hn_unbind_drop(HnUnbind *u, int i)
{
    HnValue *v = hn_node_in(u->node, i);
    if (v == NULL)
        return;
    hn_node_set_in(u->node, i, NULL);
    trim(u->node->in);
    remove_unused(v);
}

void hn_unbind_give_up(HnUnbind *u, int k)
{
    for (int i = k; i < (int)u->node->out->len; i++) {
        HnValue *v = hn_node_out(u->node, i);
        if (v == NULL || hn_unbind_wants(u, i))
            continue;
        hn_node_set_out(u->node, i, NULL);
        hn_graph_drop_value(v);
    }
    trim(u->node->out);
}

static int64_t from_front(HnUnbind *u, int64_t axis, int rank)
{
    if (axis >= 0)
        return axis;
    if (rank < 0)
        hn_unbind_refuse(u, "an axis counts from the back of an unknown number of dimensions");
    else if (axis < -rank)
        hn_unbind_refuse(u, "axis %" G_GINT64_FORMAT " is outside [-%d, %d)", axis, rank, rank);
    return u->error == NULL ? axis + rank : 0;
}

void hn_unbind_axis(HnUnbind *u, const char *name, int rank)
{
    const HnAttr *a = hn_node_attr(u->node, name);
    if (a != NULL && a->kind == HN_ATTR_INTS) {
        g_autofree int64_t *axes = g_new(int64_t, (gsize)a->n + 1);
        for (int64_t i = 0; i < a->n; i++)
            axes[i] = from_front(u, a->ints[i], rank);
        if (u->error == NULL)
            hn_node_set_ints(u->node, name, axes, a->n);
    } else if (a != NULL && a->kind == HN_ATTR_INT && a->i < 0) {
        hn_node_set_int(u->node, name, from_front(u, a->i, rank));
    }
}

/* --- building ---------------------------------------------------------------------------------------------------- */

static void keep_constant(const HnBuild *b, HnValue *v, HnTensor *t)
{
    hn_types_set_value(b->data, v, t);
}

/* In front of the node, or so many places behind; constants belong to the graph around all. */
static HnBuild builder(const HnUnbind *u, int offset)
{
    HnGraph *g = u->node->graph, *outermost = g;
    const guint at = offset != 0 ? hn_graph_index(g, u->node) + (guint)offset : 0;
    while (outermost->outer != NULL)
        outermost = outermost->outer;
    return (HnBuild){ .graph = g,
                      .before = offset == 0          ? u->node
                                : at < g->nodes->len ? g->nodes->pdata[at]
                                                     : NULL,
                      .weights = outermost,
                      .version = HN_OPSET_MAX,
                      .on_constant = keep_constant,
                      .data = u->types };
}

/* What was built last is one of those that are converted in turn. */
static HnValue *note(HnUnbind *u, HnValue *v)
{
    g_ptr_array_add(u->made, v->producer);
    return v;
}

HnNode *hn_unbind_node(HnUnbind *u, const char *op, int n_in, HnValue *const *in, int n_out)
{
    const HnBuild b = builder(u, 0);
    HnNode *n = hn_build_node(&b, op, NULL, n_in, in, n_out);
    g_ptr_array_add(u->made, n);
    return n;
}

HnNode *hn_unbind_again(HnUnbind *u)
{
    HnGraph *g = u->node->graph;
    const guint at = hn_graph_index(g, u->node);
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < u->node->in->len; i++)
        if (hn_node_in(u->node, (int)i) != NULL)
            g_hash_table_insert(values, hn_node_in(u->node, (int)i), hn_node_in(u->node, (int)i));
    for (guint k = 0; k < u->node->out->len; k++)
        if (hn_node_out(u->node, (int)k) != NULL)
            g_hash_table_insert(values, hn_node_out(u->node, (int)k), hn_graph_new_value(g, u->node->op_type));
    HnNode *n = hn_node_copy(g, u->node, values);
    g_clear_pointer(&n->name, g_free);
    g_ptr_array_remove_index(g->nodes, g->nodes->len - 1); /* copies are made at the end */
    g_ptr_array_insert(g->nodes, (int)at, n);
    g_ptr_array_add(u->made, n);
    return n;
}

void hn_unbind_last(HnUnbind *u, HnNode *n)
{
    GPtrArray *nodes = n->graph->nodes;
    g_ptr_array_remove(u->made, n);
    g_ptr_array_add(u->made, n);
    g_ptr_array_remove_index(nodes, hn_graph_index(n->graph, n));
    g_ptr_array_insert(nodes, (int)hn_graph_index(n->graph, u->node), n);
}

HnValue *hn_unbind_op1(HnUnbind *u, const char *op, HnValue *a)
{
    const HnBuild b = builder(u, 0);
    return note(u, hn_build_op1(&b, op, a));
}

HnValue *hn_unbind_op2(HnUnbind *u, const char *op, HnValue *x, HnValue *y)
{
    const HnBuild b = builder(u, 0);
    return note(u, hn_build_op2(&b, op, x, y));
}

HnValue *hn_unbind_op3(HnUnbind *u, const char *op, HnValue *x, HnValue *y, HnValue *z)
{
    const HnBuild b = builder(u, 0);
    return note(u, hn_build_op3(&b, op, x, y, z));
}

HnValue *hn_unbind_cast(HnUnbind *u, HnValue *v, HnDtype to)
{
    const HnType *t = type_of(u, v);
    const HnBuild b = builder(u, 0);
    return t != NULL && t->dtype == to ? v : note(u, hn_build_cast(&b, v, to));
}

HnValue *hn_unbind_shape(HnUnbind *u, HnValue *v, int64_t start, int64_t end)
{
    const HnBuild b = builder(u, 0);
    return note(u, hn_build_shape(&b, v, start, end));
}

HnValue *hn_unbind_size(HnUnbind *u, HnValue *v, int64_t axis)
{
    return hn_unbind_shape(u, v, axis, axis == -1 || axis == INT64_MAX ? INT64_MAX : axis + 1);
}

HnValue *hn_unbind_reshape(HnUnbind *u, HnValue *v, const int64_t *dims, int n)
{
    const HnBuild b = builder(u, 0);
    return note(u, hn_build_reshape(&b, v, dims, n));
}

HnValue *hn_unbind_transpose(HnUnbind *u, HnValue *v, const int64_t *perm, int n)
{
    const HnBuild b = builder(u, 0);
    return note(u, hn_build_transpose(&b, v, perm, n));
}

HnValue *hn_unbind_concat(HnUnbind *u, int n, HnValue *const *parts, int64_t axis)
{
    const HnBuild b = builder(u, 0);
    return note(u, hn_build_concat(&b, n, parts, axis));
}

HnValue *hn_unbind_slice(HnUnbind *u, HnValue *v, int64_t axis, int64_t start, int64_t end)
{
    const HnBuild b = builder(u, 0);
    return note(u, hn_build_slice(&b, v, axis, start, end));
}

HnValue *hn_unbind_reduce(HnUnbind *u, const char *op, HnValue *v, const int64_t *axes, int n, gboolean keep)
{
    const HnBuild b = builder(u, 0);
    return note(u, hn_build_reduce(&b, op, v, axes, n, keep));
}

HnValue *hn_unbind_const(HnUnbind *u, HnTensor *t)
{
    const HnBuild b = builder(u, 0);
    return hn_build_constant(&b, "const", t);
}

HnValue *hn_unbind_list(HnUnbind *u, const int64_t *v, int n)
{
    return hn_unbind_const(u, hn_tensor_ints(v, n));
}

HnValue *hn_unbind_int(HnUnbind *u, int64_t v)
{
    return hn_unbind_list(u, &v, 1);
}

HnValue *hn_unbind_fill(HnUnbind *u, HnDtype dtype, int ndim, const int64_t *dims, double v)
{
    int64_t n;
    HnTensor *t =
        hn_dims_count(ndim, dims, &n) && n <= HN_UNBIND_FILL ? hn_tensor_new(dtype, ndim, dims, NULL, NULL) : NULL;
    if (t == NULL) {
        hn_unbind_refuse(u, "it takes a constant that is too large");
        t = hn_tensor_new(dtype, 0, NULL, NULL, NULL);
    }
    for (int64_t i = 0; i < t->n && v != 0; i++)
        hn_tensor_set_f64(t, i, v);
    return hn_unbind_const(u, t);
}

HnValue *hn_unbind_scalar(HnUnbind *u, HnDtype dtype, double v)
{
    return hn_unbind_fill(u, dtype, 0, NULL, v);
}

void hn_unbind_take(HnUnbind *u, int k, HnValue *v)
{
    HnValue *out = hn_node_out(u->node, k);
    if (out == NULL)
        return;
    HnNode *p = v->producer;
    if (p == NULL && v->weight != NULL && !v->is_input && !out->is_output) {
        hn_node_set_out(u->node, k, NULL);
        hn_value_replace(out, v);
        hn_graph_drop_value(out);
        return;
    }
    if (p == NULL || !g_ptr_array_find(u->made, p, NULL)) {
        v = hn_unbind_op1(u, "Identity", v);
        p = v->producer;
    }
    int at = v->producer_out;
    if (k == 0) { /* names of nodes stay unique */
        g_free(p->name);
        p->name = g_steal_pointer(&u->node->name);
    }
    hn_node_set_out(p, at, out);
    hn_value_replace(v, out);
    hn_graph_drop_value(v);
}

gboolean hn_unbind_settle(HnUnbind *u, int k)
{
    const HnValue *v = hn_node_out(u->node, k);
    HnTensor *t = v != NULL ? hn_types_value(u->types, v) : NULL;
    if (t != NULL)
        hn_unbind_take(u, k, hn_unbind_const(u, hn_tensor_ref(t)));
    return t != NULL;
}

HnValue *hn_unbind_real(HnUnbind *u, int i, HnDtype *dtype)
{
    HnDtype d = hn_unbind_dtype(u, i);
    if (!hn_dtype_in(d, HN_T_FLOATS)) {
        hn_unbind_refuse(u, "the element type of input %d is not known to be a float", i);
        return NULL;
    }
    *dtype = hn_dtype_is_half(d) ? HN_F32 : d;
    return hn_unbind_cast(u, hn_unbind_in(u, i), *dtype);
}

void hn_unbind_take_real(HnUnbind *u, int k, HnValue *v)
{
    HnDtype out = hn_unbind_out_dtype(u, k);
    if (hn_dtype_is_half(out) || out != hn_unbind_dtype(u, 0)) {
        HnNode *n = hn_unbind_node(u, "Cast", 1, &v, 1);
        hn_node_set_int(n, "to", out);
        v = hn_node_out(n, 0);
    }
    hn_unbind_take(u, k, v);
}

/* --- attributes, as data ----------------------------------------------------------------------------------------- */

static gboolean form_has(const HnForm *f, int64_t version)
{
    return version >= f->since && (f->until == 0 || version < f->until);
}

/* The input that attribute `a` becomes; floats take the type of input 0. */
static HnValue *attr_to_input(HnUnbind *u, const HnAttr *a)
{
    if (a->kind == HN_ATTR_INTS)
        return hn_unbind_const(u, hn_tensor_ints(a->ints, a->n));
    if (a->kind == HN_ATTR_INT)
        return hn_unbind_int(u, a->i);
    if (a->kind == HN_ATTR_FLOAT) {
        HnDtype dtype = hn_unbind_dtype(u, 0);
        if (dtype != HN_UNDEFINED)
            return hn_unbind_scalar(u, dtype, (double)a->f);
        hn_unbind_refuse(u, "attribute '%s' becomes an input of a type that is not known", a->name);
        return NULL;
    }
    HnTensor *t = hn_tensor_new(HN_F32, 1, &a->n, NULL, NULL);
    if (t == NULL) {
        hn_unbind_refuse(u, "attribute '%s' is too long", a->name);
        return NULL;
    }
    memcpy(t->data, a->floats, t->bytes);
    return hn_unbind_const(u, t);
}

static void input_to_attr(HnUnbind *u, const HnForm *f)
{
    HnTensor *t = hn_unbind_value(u, f->input);
    gboolean list = f->kind == HN_ATTR_INTS || f->kind == HN_ATTR_FLOATS;
    if (hn_node_in(u->node, f->input) == NULL)
        return;
    if (t == NULL || t->dtype == HN_STRING) {
        hn_unbind_refuse(u, "'%s' is computed when it runs and was an attribute before opset %d", f->name, f->until);
        return;
    }
    if (t->ndim > 1 || (!list && t->n != 1)) {
        hn_unbind_refuse(u, "'%s' has too many elements for the attribute that it was before opset %d", f->name,
                         f->until);
        return;
    }
    HnAttr *a = hn_attr_new(f->name, f->kind);
    a->n = list ? t->n : 0;
    switch (f->kind) {
    case HN_ATTR_INT:
        a->i = hn_tensor_get_i64(t, 0);
        break;
    case HN_ATTR_FLOAT:
        a->f = (float)hn_tensor_get_f64(t, 0);
        if ((double)a->f != hn_tensor_get_f64(t, 0) && !isnan(a->f))
            hn_unbind_refuse(u, "'%s' was a 32-bit attribute before opset %d", f->name, f->until);
        break;
    case HN_ATTR_INTS:
        a->ints = g_new0(int64_t, (gsize)t->n + 1);
        for (int64_t i = 0; i < t->n; i++)
            a->ints[i] = hn_tensor_get_i64(t, i);
        break;
    default:
        a->floats = g_new0(float, (gsize)t->n + 1);
        for (int64_t i = 0; i < t->n; i++)
            a->floats[i] = (float)hn_tensor_get_f64(t, i);
        break;
    }
    hn_node_set_attr(u->node, a);
    hn_unbind_drop(u, f->input);
}

/* Does the attribute say what opsets without it do anyway? */
static gboolean says_nothing(const HnForm *f, const HnAttr *a)
{
    if (f->any)
        return TRUE;
    if (a->kind == HN_ATTR_STRING) {
        gsize n = 0;
        const char *s = g_bytes_get_data(a->s, &n);
        return f->word != NULL && strlen(f->word) == n && memcmp(f->word, s, n) == 0;
    }
    gboolean same = a->kind == HN_ATTR_INTS || a->kind == HN_ATTR_INT || a->kind == HN_ATTR_FLOAT;
    for (int64_t i = 0; a->kind == HN_ATTR_INTS && i < a->n; i++)
        same = same && (double)a->ints[i] == f->number;
    return same && (a->kind != HN_ATTR_INT || (double)a->i == f->number) &&
           (a->kind != HN_ATTR_FLOAT || (double)a->f == f->number);
}

/* Attributes that the node's own opset does not have say nothing; another one would listen to them. */
static void drop_ignored(HnUnbind *u)
{
    for (const HnForm *f = u->op->forms; f != NULL && f->name != NULL; f++)
        if (!form_has(f, u->from))
            hn_node_remove_attr(u->node, f->name);
}

static void apply_form(HnUnbind *u, const HnForm *f)
{
    gboolean had = form_has(f, u->from), has = form_has(f, u->to);
    const HnAttr *a = hn_node_attr(u->node, f->name);
    if (!had && has && f->input != 0) {
        input_to_attr(u, f);
        a = hn_node_attr(u->node, f->name);
    }
    if (has && f->back != 0 && u->to < f->back && u->from >= f->back)
        hn_unbind_axis(u, f->name, hn_unbind_rank(u, 0));
    if (a == NULL || has)
        return;
    if (f->input != 0) {
        HnValue *v = attr_to_input(u, a);
        if (v != NULL) {
            hn_node_set_in(u->node, f->input, v);
            hn_node_remove_attr(u->node, f->name);
        }
    } else if (says_nothing(f, a)) {
        hn_node_remove_attr(u->node, f->name);
    } else if (u->to < f->since) {
        hn_unbind_refuse(u, "attribute '%s' came with opset %d", f->name, f->since);
    } else {
        hn_unbind_refuse(u, "attribute '%s' ended with opset %d", f->name, f->until - 1);
    }
}

/* --- types ------------------------------------------------------------------------------------------------------- */

/* Every value of d is one of w. */
static gboolean holds(HnDtype w, HnDtype d)
{
    if (hn_dtype_is_half(d))
        return w == HN_F32 || w == HN_F64;
    if (w == HN_F64)
        return d == HN_F32 || (hn_dtype_in(d, HN_T_INTS | HN_T_BOOL) && hn_dtype_bits(d) <= 32);
    if (w == HN_F32)
        return hn_dtype_in(d, HN_T_INTS | HN_T_BOOL) && hn_dtype_bits(d) <= 16;
    if (hn_dtype_in(d, HN_T_UINTS | HN_T_BOOL | HN_BIT(HN_U4)))
        return hn_dtype_bits(d) < hn_dtype_bits(w);
    return hn_dtype_in(d, HN_T_SINTS | HN_BIT(HN_I4)) && hn_dtype_bits(d) < hn_dtype_bits(w);
}

/* The type that can stand for d without a change of the result; HN_UNDEFINED: none. */
static HnDtype wider(const HnOp *op, HnDtype d, HnTypeMask mask)
{
    static const HnDtype order[] = { HN_I32, HN_I64, HN_F32, HN_F64 };
    gboolean half = hn_dtype_is_half(d);
    for (guint i = 0; i < G_N_ELEMENTS(order); i++) {
        HnDtype w = order[i];
        if (!hn_dtype_in(w, mask) || !holds(w, d))
            continue;
        if (op->wide == HN_WIDE_PICKS || (half && w == HN_F32 && (op->flags & HN_OP_HALF_VIA_F32) != 0))
            return w;
        if (op->wide == HN_WIDE_WRAPS && !half && d != HN_BOOL && (w == HN_I32 || w == HN_I64))
            return w;
    }
    return HN_UNDEFINED;
}

static gboolean is_variable(char letter)
{
    return (letter >= 'A' && letter <= 'Z') || letter == '.';
}

typedef struct {
    HnDtype from[128], to[128]; /* by letter: elements of `from` are computed as `to` */
} Widening;

/* Which letters have to be of a wider type in the target; refuses where none will do. */
static void find_widening(HnUnbind *u, const HnOp *op, Widening *w)
{
    gboolean same;
    for (guint i = 0; i < u->node->in->len + u->node->out->len; i++) {
        gboolean is_in = i < u->node->in->len;
        int k = (int)(is_in ? i : i - u->node->in->len);
        char letter = hn_op_letter(is_in ? op->in : op->out, k, &same);
        const HnType *t = type_of(u, is_in ? hn_node_in(u->node, k) : hn_node_out(u->node, k));
        HnTypeMask mask = hn_op_types(op, letter, u->to);
        if (t == NULL || t->dtype == HN_UNDEFINED || hn_dtype_in(t->dtype, mask))
            continue;
        HnDtype wide = is_variable(letter) && same ? wider(op, t->dtype, mask) : HN_UNDEFINED;
        if (wide == HN_UNDEFINED || (w->to[(int)letter] != HN_UNDEFINED && w->from[(int)letter] != t->dtype)) {
            hn_unbind_refuse(u, "%s %d is %s, which opset %" G_GINT64_FORMAT " does not take there",
                             is_in ? "input" : "output", k, hn_dtype_name(t->dtype), u->to);
            return;
        }
        w->from[(int)letter] = t->dtype;
        w->to[(int)letter] = wide;
    }
}

static void apply_widening(HnUnbind *u, const HnOp *op, const Widening *w, GPtrArray *behind)
{
    gboolean same;
    for (guint i = 0; i < u->node->in->len; i++) {
        HnDtype to = w->to[(int)hn_op_letter(op->in, (int)i, &same)];
        HnValue *v = hn_node_in(u->node, (int)i);
        if (v != NULL && to != HN_UNDEFINED)
            hn_node_set_in(u->node, (int)i, hn_unbind_cast(u, v, to));
    }
    for (guint k = 0; k < u->node->out->len; k++) {
        char letter = hn_op_letter(op->out, (int)k, &same);
        HnDtype to = w->to[(int)letter];
        HnValue *v = hn_node_out(u->node, (int)k);
        if (v == NULL || to == HN_UNDEFINED)
            continue;
        HnValue *wide = hn_graph_new_value(u->node->graph, "wide");
        const HnType *t = type_of(u, v);
        g_autoptr(HnType) type = hn_type_tensor(to, t != NULL ? t->rank : -1, t != NULL ? t->dims : NULL);
        hn_types_set(u->types, wide, type);
        hn_node_set_out(u->node, (int)k, wide);
        const HnBuild b = builder(u, 1);
        HnNode *cast = hn_build_node(&b, "Cast", NULL, 1, &wide, 0);
        hn_node_set_int(cast, "to", w->from[(int)letter]);
        hn_node_add_out(cast, v);
        g_ptr_array_add(behind, cast);
    }
}

/* --- one node ---------------------------------------------------------------------------------------------------- */

static gboolean has_outputs(const HnNode *n)
{
    for (guint k = 0; k < n->out->len; k++)
        if (n->out->pdata[k] != NULL)
            return TRUE;
    return FALSE;
}

static void check_exists(HnUnbind *u, const HnOp *op)
{
    if (u->to < op->since[0])
        hn_unbind_refuse(u, "the operator exists since opset %d", op->since[0]);
    else if (op->until != 0 && u->to > op->until)
        hn_unbind_refuse(u, "the operator exists up to opset %d", op->until);
}

/* The node's own form at u->to, where it keeps its operator. */
static void rewrite(HnUnbind *u, const HnOp *op, GPtrArray *behind)
{
    Widening w = { { 0 }, { 0 } };
    check_exists(u, op);
    for (const HnForm *f = op->forms; f != NULL && f->name != NULL && u->error == NULL; f++)
        apply_form(u, f);
    if (u->error == NULL)
        find_widening(u, op, &w);
    if (u->error == NULL)
        apply_widening(u, op, &w, behind);
    if (u->error != NULL)
        return;
    u->node->version = u->to;
    u->node->op = NULL;
    if (!hn_op_bind(u->node, &u->error) && u->error->code != HN_ERROR_UNSUPPORTED)
        u->error->code = HN_ERROR_UNSUPPORTED;
}

/* A node of a function that imports an opset below 7: only if that has its form of 7. */
static void check_old(HnUnbind *u)
{
    for (int i = 0; u->op->since[i] != 0; i++)
        if (u->from < u->op->since[i] && u->op->since[i] <= HN_OPSET_MIN)
            hn_unbind_refuse(u, "its form of opset %" G_GINT64_FORMAT " is older than opset %d", u->from, HN_OPSET_MIN);
    u->from = MAX(u->from, HN_OPSET_MIN);
}

static gboolean convert(HnNode *n, int64_t to, HnTypes *types, int depth, GError **error)
{
    if (!hn_op_bind(n, error))
        return FALSE;
    const HnOp *op = n->op;
    if (op->domain != NULL || n->version == to)
        return TRUE;
    g_autoptr(GPtrArray) made = g_ptr_array_new(), behind = g_ptr_array_new();
    g_autofree void *params = g_steal_pointer(&n->params); /* may borrow from attributes, but outlives edits */
    HnUnbind u = { .node = n, .op = op, .params = params, .from = n->version, .to = to, .types = types, .made = made };
    drop_ignored(&u);
    check_old(&u);
    if (depth > MAX_DEPTH)
        hn_unbind_refuse(&u, "too many steps lie between opset %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT, u.from, to);
    else if (op->unbind != NULL && u.error == NULL)
        op->unbind(&u);
    if (u.error == NULL && has_outputs(n))
        rewrite(&u, op, behind);
    else if (u.error == NULL)
        hn_graph_bury_node(n->graph, n);
    for (guint i = 0; i < made->len + behind->len && u.error == NULL; i++) {
        HnNode *m = i < made->len ? made->pdata[i] : behind->pdata[i - made->len];
        g_autofree char *name = g_strdup(m->op_type);
        if (m->version != to)
            hn_types_node(types, m, FOLD_BYTES, NULL);
        if (!convert(m, to, types, depth + 1, &u.error))
            g_prefix_error(&u.error, "it takes '%s': ", name);
    }
    if (u.error != NULL) {
        g_propagate_error(error, u.error);
        return FALSE;
    }
    return TRUE;
}

gboolean hn_node_convert(HnNode *n, int64_t to, HnTypes *types, GError **error)
{
    return convert(n, to, types, 0, error);
}

gboolean hn_node_take_apart(HnNode *n, HnTypes *types, GError **error)
{
    HnGraph *g = n->graph;
    const guint from = hn_graph_index(g, n), others = g->nodes->len - 1;
    if (!hn_op_bind(n, error))
        return FALSE;
    g_autoptr(GPtrArray) made = g_ptr_array_new();
    HnUnbind u = { .node = n,
                   .op = n->op,
                   .params = n->params,
                   .from = n->version,
                   .to = n->op->since[0] - 1,
                   .types = types,
                   .made = made };
    u.op->unbind(&u);
    if (u.error == NULL && has_outputs(n))
        hn_unbind_refuse(&u, "operator '%s' is not made of others", u.op->name);
    if (u.error != NULL) {
        g_propagate_error(error, u.error);
        return FALSE;
    }
    hn_graph_remove_node(g, n);
    for (guint i = from; i < from + g->nodes->len - others; i++)
        if (!hn_types_node(types, g->nodes->pdata[i], FOLD_BYTES, error))
            return FALSE;
    return TRUE;
}

/* --- operators without a record ---------------------------------------------------------------------------------- */

/* The opsets that brought or changed them, and the one since when they take bf16, which changed nothing else. */
static const struct {
    const char *name;
    uint8_t since[3], bf16;
} strangers[] = {
    { "Bernoulli", { 15 }, 22 },
    { "BlackmanWindow", { 17 }, 0 },
    { "CausalConvWithState", { 27 }, 0 },
    { "ConcatFromSequence", { 11 }, 0 },
    { "DFT", { 17, 20 }, 0 },
    { "HammingWindow", { 17 }, 0 },
    { "HannWindow", { 17 }, 0 },
    { "ImageDecoder", { 20 }, 0 },
    { "LinearAttention", { 27 }, 0 },
    { "MelWeightMatrix", { 17 }, 0 },
    { "Multinomial", { 7 }, 22 },
    { "Optional", { 15, 28 }, 0 },
    { "OptionalGetElement", { 15, 18, 28 }, 0 },
    { "OptionalHasElement", { 15, 18, 28 }, 0 },
    { "RandomNormal", { 1 }, 22 },
    { "RandomNormalLike", { 1 }, 22 },
    { "RandomUniform", { 1 }, 22 },
    { "RandomUniformLike", { 1 }, 22 },
    { "RegexFullMatch", { 20 }, 0 },
    { "STFT", { 17 }, 0 },
    { "SequenceAt", { 11 }, 0 },
    { "SequenceConstruct", { 11 }, 0 },
    { "SequenceEmpty", { 11 }, 0 },
    { "SequenceErase", { 11 }, 0 },
    { "SequenceInsert", { 11 }, 0 },
    { "SequenceLength", { 11 }, 0 },
    { "SequenceMap", { 17 }, 0 },
    { "SplitToSequence", { 11 }, 24 },
    { "StringConcat", { 20 }, 0 },
    { "StringNormalizer", { 10 }, 0 },
    { "StringSplit", { 20 }, 0 },
    { "TfIdfVectorizer", { 9 }, 0 },
};

gboolean hn_unbind_unknown(const HnNode *n, int64_t to, const HnTypes *types)
{
    const HnUnbind u = { .node = (HnNode *)n, .types = (HnTypes *)types };
    for (guint i = 0; i < G_N_ELEMENTS(strangers); i++) {
        if (strcmp(strangers[i].name, n->op_type) != 0)
            continue;
        gboolean same = n->version >= strangers[i].since[0];
        for (guint k = 0; k < G_N_ELEMENTS(strangers[i].since); k++)
            same = same && (n->version >= strangers[i].since[k]) == (to >= strangers[i].since[k]);
        for (guint k = 0; k < n->in->len && to < strangers[i].bf16; k++)
            same = same && hn_unbind_dtype(&u, (int)k) != HN_BF16;
        for (guint k = 0; k < n->out->len && to < strangers[i].bf16; k++)
            same = same && hn_unbind_out_dtype(&u, (int)k) != HN_BF16;
        return same;
    }
    return FALSE;
}
