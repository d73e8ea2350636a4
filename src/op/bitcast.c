/*
 * BitCast: the same bits as another type of the same width.
 */
#include <inttypes.h>
#include <string.h>

#include "op/move.h"

typedef struct {
    HnDtype to;
} HnBitCast;

static void bitcast_bind(HnBind *b, void *params)
{
    hn_bind_require(b, "to");
    int64_t to = hn_bind_int(b, "to", HN_F32);
    if (to <= 0 || to >= HN_DTYPE_COUNT || hn_dtype_bits((HnDtype)to) == 0)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'to' cannot be %" PRId64, to);
    else
        ((HnBitCast *)params)->to = (HnDtype)to;
}

static void bitcast_infer(HnInfer *x)
{
    HnDtype from = hn_infer_dtype(x, 0), to = ((const HnBitCast *)x->params)->to;
    if (from != HN_UNDEFINED && hn_dtype_bits(from) != hn_dtype_bits(to))
        hn_infer_fail(x, HN_ERROR_TYPE, "the bits of %s do not make %s", hn_dtype_name(from), hn_dtype_name(to));
    hn_infer_out_shape_of(x, 0, to, 0);
}

static void bitcast_ref(HnEval *e)
{
    const HnTensor *x = hn_eval_in(e, 0);
    HnDtype to = ((const HnBitCast *)e->params)->to;
    if (hn_dtype_bits(x->dtype) != hn_dtype_bits(to)) {
        hn_eval_fail(e, HN_ERROR_TYPE, "the bits of %s do not make %s", hn_dtype_name(x->dtype), hn_dtype_name(to));
        return;
    }
    uint8_t *y = hn_eval_out(e, 0, to, x->ndim, x->dims);
    if (y == NULL)
        return;
    memcpy(y, x->data, x->bytes);
    for (int64_t i = 0; to == HN_BOOL && i < x->n; i++) /* a bool is 0 or 1 in memory */
        y[i] = y[i] != 0;
}

const HnOp hn_op_bitcast = {
    .name = "BitCast",
    .since = { 26 },
    .in = "T",
    .out = ".",
    .T = HN_T_ALL & ~HN_BIT(HN_STRING),
    .params_size = sizeof(HnBitCast),
    .bind = bitcast_bind,
    .infer = bitcast_infer,
    .ref = bitcast_ref,
};
