/*
 * Sequences whose elements are known one by one are not needed: SequenceAt is the element, ConcatFromSequence a Concat,
 * SequenceLength a number, SplitToSequence a Split. What other runtimes do not have, or copy each time, goes.
 */
#include "op/ops.h"
#include "pass/rewrite.h"
#include "pass/shapes.h"

#define MOST 1024 /* elements, and nodes that are looked back */

/* An integer that is known ahead, `absent` where there is no such input. */
static gboolean number(const HnRewrite *r, const HnNode *n, int i, int64_t absent, int64_t *x)
{
    int count;
    const HnValue *v = hn_node_in(n, i);
    *x = absent;
    return v == NULL || (hn_rw_ints(r, v, x, 1, &count) && count == 1);
}

static gboolean look(const HnRewrite *r, const HnValue *v, int depth, GPtrArray *items);

/* Behind the sequence that n changes. */
static gboolean look_behind_edit(const HnRewrite *r, const HnNode *n, int depth, GPtrArray *items)
{
    const gboolean insert = n->op == &hn_op_sequenceinsert;
    int64_t at;
    if (!look(r, hn_node_in(n, 0), depth - 1, items))
        return FALSE;
    const int64_t len = items->len, most = insert ? len : len - 1;
    if (!number(r, n, insert ? 2 : 1, most, &at) || at < -len || at > most || len >= MOST)
        return FALSE;
    at += at < 0 ? len : 0;
    if (insert)
        g_ptr_array_insert(items, (gint)at, hn_node_in(n, 1));
    else
        g_ptr_array_remove_index(items, (guint)at);
    return TRUE;
}

/* The elements of the sequence v, HnValue * that are read where v is. FALSE: not known one by one. */
static gboolean look(const HnRewrite *r, const HnValue *v, int depth, GPtrArray *items)
{
    const HnNode *n = v != NULL ? v->producer : NULL;
    if (n == NULL || n->op == NULL || n->graph != v->graph || depth == 0)
        return FALSE;
    if (n->op == &hn_op_sequenceinsert || n->op == &hn_op_sequenceerase)
        return look_behind_edit(r, n, depth, items);
    if (n->op == &hn_op_identity)
        return look(r, hn_node_in(n, 0), depth - 1, items);
    if (n->op != &hn_op_sequenceconstruct && n->op != &hn_op_sequenceempty)
        return FALSE;
    for (guint i = 0; i < n->in->len; i++)
        g_ptr_array_add(items, n->in->pdata[i]);
    return n->in->len <= MOST;
}

/* Those of n's input 0, which is of the same graph. */
static GPtrArray *items_of(const HnRewrite *r, const HnNode *n)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    const HnValue *v = hn_node_in(n, 0);
    return v != NULL && v->graph == n->graph && look(r, v, MOST, items) ? g_steal_pointer(&items) : NULL;
}

/* --- what reads a sequence ---------------------------------------------------------------------------------------- */

static gboolean at_to_element(HnRewrite *r, HnNode *n)
{
    int64_t at;
    g_autoptr(GPtrArray) items = items_of(r, n);
    if (items == NULL)
        return FALSE;
    const int64_t len = items->len;
    if (!number(r, n, 1, 0, &at) || at < -len || at >= len)
        return hn_rw_miss(r, n, "the position in a sequence of %" PRId64 " is not known, or outside", len);
    return hn_rw_bypass(r, n, hn_node_out(n, 0), items->pdata[at < 0 ? at + len : at]);
}

static gboolean length_to_constant(HnRewrite *r, HnNode *n)
{
    g_autoptr(GPtrArray) items = items_of(r, n);
    if (items == NULL || !hn_rw_go(r, n))
        return FALSE;
    hn_rw_make_constant(r, n, 0, hn_tensor_scalar_i64(items->len));
    return TRUE;
}

static gboolean join_to_concat(HnRewrite *r, HnNode *n)
{
    const HnAttr *a = hn_node_attr(n, "axis"), *stack = hn_node_attr(n, "new_axis");
    const gboolean fresh = stack != NULL && stack->i != 0;
    g_autoptr(GPtrArray) items = items_of(r, n);
    if (items == NULL || items->len == 0 || a == NULL)
        return FALSE;
    const int rank = hn_rw_rank(r, items->pdata[0]) + (fresh ? 1 : 0);
    if (fresh && a->i < 0 && rank < 1)
        return hn_rw_miss(r, n, "the rank of '%s' is not known", ((HnValue *)items->pdata[0])->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    const int64_t at = a->i;
    const int axis = (int)(fresh && at < 0 ? at + rank : at);
    for (guint i = 0; i < items->len && fresh; i++)
        items->pdata[i] = hn_rw_out(r, hn_shapes_squeeze(r, n, "Unsqueeze", items->pdata[i], &axis, 1), "row");
    HnNode *concat = hn_rw_add(r, n, "Concat", (HnValue **)items->pdata, (int)items->len);
    hn_node_set_int(concat, "axis", axis);
    return hn_rw_take(r, concat, n);
}

/* --- SplitToSequence ---------------------------------------------------------------------------------------------- */

/* All that read the sequence are nodes above: nothing of it will be left. */
static gboolean only_taken_apart(const HnRewrite *r, const HnValue *v)
{
    int64_t at;
    for (guint i = 0; i < v->users->len; i++) {
        const HnNode *u = v->users->pdata[i];
        const gboolean known = u->op == &hn_op_concatfromsequence || u->op == &hn_op_sequencelength ||
                               (u->op == &hn_op_sequenceat && number(r, u, 1, 0, &at));
        if (u->graph != v->graph || !known)
            return FALSE;
    }
    return !v->is_output && v->users->len > 0;
}

/* Lengths of the parts of an axis of `whole`, up to MOST: how many, 0 where they are not known. */
static int parts_of(const HnRewrite *r, const HnNode *n, int64_t whole, int64_t *sizes)
{
    const HnValue *split = hn_node_in(n, 1);
    int64_t each = 1, sum = 0;
    int count = 0;
    if (split != NULL && hn_rw_rank(r, split) == 1) {
        if (!hn_rw_ints(r, split, sizes, MOST, &count))
            return 0;
        for (int i = 0; i < count; i++)
            if (sizes[i] < 0 || sizes[i] > whole - sum)
                return 0;
            else
                sum += sizes[i];
        return sum == whole ? count : 0;
    }
    if ((split != NULL && hn_rw_rank(r, split) != 0) || !number(r, n, 1, 1, &each) || each < 1 ||
        whole > MOST * MIN(each, G_MAXINT64 / MOST))
        return 0;
    for (; sum < whole; sum += sizes[count++])
        sizes[count] = MIN(each, whole - sum);
    return count;
}

static gboolean split_to_parts(HnRewrite *r, HnNode *n)
{
    HnValue *x = hn_node_in(n, 0), *v = hn_node_out(n, 0);
    HnGraph *g = n->graph;
    const HnAttr *a = hn_node_attr(n, "axis"), *keep = hn_node_attr(n, "keepdims");
    const gboolean drop = keep != NULL && keep->i == 0 && hn_node_in(n, 1) == NULL, input = hn_rw_opset(g) >= 13;
    const int rank = hn_rw_rank(r, x);
    int axis = (int)(a == NULL ? 0 : a->i < 0 ? a->i + rank : a->i);
    g_autofree int64_t *sizes = g_new(int64_t, MOST);
    if (v == NULL || rank < 1 || axis < 0 || axis >= rank || !only_taken_apart(r, v))
        return FALSE;
    const HnDim whole = hn_rw_dim(r, x, axis);
    const int count = whole.known ? parts_of(r, n, whole.n, sizes) : 0;
    if (count == 0)
        return hn_rw_miss(r, n, "the parts of '%s' are not known", x->name);
    if (!hn_rw_go(r, n))
        return FALSE;
    HnNode *s = hn_rw_add(r, n, "Split", HN_INS(x, input ? hn_rw_weight_ints(r, g, "sizes", sizes, count) : NULL));
    hn_node_set_int(s, "axis", axis);
    if (!input)
        hn_node_set_ints(s, "split", sizes, (gsize)count);
    for (int i = 0; i < count; i++)
        hn_node_add_out(s, hn_graph_new_value(g, x->name));
    hn_rw_done(r, s);
    g_autoptr(GPtrArray) parts = g_ptr_array_new();
    for (int i = 0; i < count; i++) {
        HnValue *part = hn_node_out(s, i);
        g_ptr_array_add(parts, drop ? hn_rw_out(r, hn_shapes_squeeze(r, n, "Squeeze", part, &axis, 1), x->name) : part);
    }
    return hn_rw_take(r, hn_rw_add(r, n, "SequenceConstruct", (HnValue **)parts->pdata, count), n);
}

static gboolean eliminate_sequence(HnRewrite *r, HnNode *n)
{
    if (n->op == NULL || hn_node_out(n, 0) == NULL)
        return FALSE;
    if (n->op == &hn_op_sequenceat)
        return at_to_element(r, n);
    if (n->op == &hn_op_sequencelength)
        return length_to_constant(r, n);
    if (n->op == &hn_op_concatfromsequence)
        return join_to_concat(r, n);
    return n->op == &hn_op_splittosequence && split_to_parts(r, n);
}

const HnPass hn_pass_eliminate_sequence = {
    .name = "eliminate-sequence",
    .summary = "elements of a sequence instead of the sequence",
    .level = 1,
    .node = eliminate_sequence,
};
