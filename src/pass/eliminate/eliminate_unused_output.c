/*
 * Optional outputs that nobody reads: the mask of Dropout, the states of LSTM, the indices of MaxPool; and a Split of
 * which one part is used becomes a Slice.
 */
#include "op/recurrent.h"
#include "pass/shapes.h"

/* Operators whose outputs may be left out, from output `from` on. */
static const struct {
    const HnOp *op;
    int from;
} optional[] = {
    { &hn_op_dropout, 1 }, { &hn_op_maxpool, 1 }, { &hn_op_layernormalization, 1 },
    { &hn_op_unique, 1 },  { &hn_op_lstm, 0 },    { &hn_op_gru, 0 },
    { &hn_op_rnn, 0 },
};

static gboolean drop_outputs(HnRewrite *r, HnNode *n, int from)
{
    gboolean any = FALSE;
    for (int k = from; k < (int)n->out->len; k++)
        any = any || (hn_node_out(n, k) != NULL && !hn_value_is_read(hn_node_out(n, k)));
    if (!any || !hn_rw_go(r, n))
        return FALSE;
    for (int k = (int)n->out->len - 1; k >= from; k--)
        if (!hn_value_is_read(hn_node_out(n, k)))
            hn_rw_drop_out(r, n, k);
    return hn_rw_done(r, n);
}

static gboolean split_to_slice(HnRewrite *r, HnNode *n)
{
    int used = -1, axis;
    for (int k = 0; k < (int)n->out->len; k++) {
        if (!hn_value_is_read(hn_node_out(n, k)))
            continue;
        if (used >= 0)
            return FALSE;
        used = k;
    }
    if (n->out->len < 2 || used < 0)
        return FALSE;
    g_autofree int64_t *sizes = hn_shapes_parts(r, n, &axis);
    if (sizes == NULL)
        return hn_rw_miss(r, n, "the sizes of its parts are not known");
    HnBounds b = { .n = 1, .axis = { axis }, .step = { 1 } };
    for (int k = 0; k < used; k++)
        b.start[0] += sizes[k];
    b.end[0] = b.start[0] + sizes[used];
    if (!hn_rw_go(r, n))
        return FALSE;
    return hn_rw_take_value(r, hn_shapes_slice(r, n, hn_node_in(n, 0), &b), hn_node_out(n, used));
}

static gboolean eliminate_unused_output(HnRewrite *r, HnNode *n)
{
    if (n->op == NULL || !hn_node_is_read(n))
        return FALSE;
    if (n->op == &hn_op_split)
        return split_to_slice(r, n);
    for (gsize i = 0; i < G_N_ELEMENTS(optional); i++)
        if (n->op == optional[i].op)
            return drop_outputs(r, n, optional[i].from);
    return FALSE;
}

const HnPass hn_pass_eliminate_unused_output = {
    .name = "eliminate-unused-output",
    .summary = "leave out optional outputs that nobody reads; Slice instead of a Split of which one part is used",
    .level = 1,
    .node = eliminate_unused_output,
};
