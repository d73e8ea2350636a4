/*
 * What follows from weights and shapes alone becomes a weight: Constant nodes, arithmetic on constants, shape
 * arithmetic of known sizes. Results that are longer than what they are made of and than fold_bytes stay computed, and
 * so do weights that are stored quantized (HN_OP_UNPACK), and with HnPassOptions.lean what would make the file longer.
 */
#include "pass/rewrite.h"

static gboolean fold_constants(HnRewrite *r, HnNode *n)
{
    gboolean any = FALSE;
    gsize bytes = 0;
    if (n->op == NULL || (n->op->flags & (HN_OP_UNPACK | HN_OP_RANDOM | HN_OP_CONTROL)) != 0)
        return FALSE;
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        if (!hn_value_is_read(v))
            continue;
        if (hn_rw_const(r, v) == NULL || (v->is_output && n->op == &hn_op_constant))
            return FALSE;
        any = TRUE;
        bytes += hn_rw_const(r, v)->bytes;
    }
    if (!any || !hn_rw_may_store(r, n, bytes) || !hn_rw_go(r, n))
        return FALSE;
    for (guint k = 0; k < n->out->len; k++) {
        const HnValue *v = n->out->pdata[k];
        if (hn_value_is_read(v))
            hn_rw_make_constant(r, n, (int)k, hn_tensor_ref(hn_rw_const(r, v)));
    }
    return TRUE;
}

const HnPass hn_pass_fold_constants = {
    .name = "fold-constants",
    .summary = "compute what depends on weights and shapes only",
    .level = 1,
    .node = fold_constants,
};
