#include "ir/build.h"

HnNode *hn_build_node(const HnBuild *b, const char *op, const char *domain, int n_in, HnValue *const *in, int n_out)
{
    HnNode *n = b->before != NULL ? hn_graph_add_node_before(b->graph, b->before, op, domain, NULL)
                                  : hn_graph_add_node(b->graph, -1, op, domain, NULL);
    if (b->version != 0)
        n->version = b->version;
    while (n_in > 0 && in[n_in - 1] == NULL)
        n_in--;
    for (int i = 0; i < n_in; i++)
        hn_node_add_in(n, in[i]);
    for (int k = 0; k < n_out; k++)
        hn_node_add_out(n, hn_graph_new_value(b->graph, op));
    if (b->on_node != NULL)
        b->on_node(b, n);
    return n;
}

HnValue *hn_build_op1(const HnBuild *b, const char *op, HnValue *a)
{
    return hn_node_out(hn_build_node(b, op, NULL, 1, &a, 1), 0);
}

HnValue *hn_build_op2(const HnBuild *b, const char *op, HnValue *x, HnValue *y)
{
    return hn_build_op3(b, op, x, y, NULL);
}

HnValue *hn_build_op3(const HnBuild *b, const char *op, HnValue *x, HnValue *y, HnValue *z)
{
    HnValue *in[] = { x, y, z };
    return hn_node_out(hn_build_node(b, op, NULL, 3, in, 1), 0);
}

HnValue *hn_build_cast(const HnBuild *b, HnValue *v, HnDtype to)
{
    HnValue *y = hn_build_op1(b, "Cast", v);
    hn_node_set_int(y->producer, "to", to);
    return y;
}

HnValue *hn_build_shape(const HnBuild *b, HnValue *v, int64_t start, int64_t end)
{
    HnValue *y = hn_build_op1(b, "Shape", v);
    if (start != 0)
        hn_node_set_int(y->producer, "start", start);
    if (end != INT64_MAX)
        hn_node_set_int(y->producer, "end", end);
    return y;
}

HnValue *hn_build_reshape(const HnBuild *b, HnValue *v, const int64_t *dims, int n)
{
    return hn_build_op2(b, "Reshape", v, hn_build_list(b, dims, n));
}

HnValue *hn_build_transpose(const HnBuild *b, HnValue *v, const int64_t *perm, int n)
{
    HnValue *y = hn_build_op1(b, "Transpose", v);
    hn_node_set_ints(y->producer, "perm", perm, n);
    return y;
}

HnValue *hn_build_concat(const HnBuild *b, int n, HnValue *const *parts, int64_t axis)
{
    HnNode *c = hn_build_node(b, "Concat", NULL, n, parts, 1);
    hn_node_set_int(c, "axis", axis);
    return hn_node_out(c, 0);
}

HnValue *hn_build_slice(const HnBuild *b, HnValue *v, int64_t axis, int64_t start, int64_t end)
{
    HnValue *from = hn_build_list(b, &start, 1), *to = hn_build_list(b, &end, 1);
    HnValue *in[] = { v, from, to, hn_build_list(b, &axis, 1) };
    return hn_node_out(hn_build_node(b, "Slice", NULL, 4, in, 1), 0);
}

HnValue *hn_build_reduce(const HnBuild *b, const char *op, HnValue *v, const int64_t *axes, int n, gboolean keep)
{
    HnValue *y = hn_build_op2(b, op, v, hn_build_list(b, axes, n));
    hn_node_set_int(y->producer, "keepdims", keep);
    return y;
}

HnValue *hn_build_constant(const HnBuild *b, const char *stem, HnTensor *t)
{
    HnGraph *g = b->weights != NULL ? b->weights : b->graph;
    HnValue *v = hn_graph_new_value(g, stem);
    hn_graph_add_weight(g, v, t);
    if (b->on_constant != NULL)
        b->on_constant(b, v, t);
    hn_tensor_unref(t);
    return v;
}

HnValue *hn_build_list(const HnBuild *b, const int64_t *v, int n)
{
    return hn_build_constant(b, "const", hn_tensor_ints(v, n));
}
