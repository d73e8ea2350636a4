/*
 * hone.RowLookup: y[..., d] = table[x[..., 0], d], and 0 where x is no row of the table. Planning makes it of the
 * product of a one-hot matrix with constant weights; no file has it.
 */
#include <string.h>

#include "op/batch.h"

static void rowlookup_infer(HnInfer *x)
{
    const int rank = hn_infer_rank(x, 1), of = hn_infer_rank(x, 0);
    HnDim dims[HN_MAX_RANK];
    if (of >= 0 && of != 2)
        hn_infer_fail(x, HN_ERROR_SHAPE, "input 0 has %d dimensions, 2 are needed", of);
    if (rank == 0 || (rank > 0 && hn_dim_differ(hn_infer_dim(x, 1, rank - 1), hn_dim(1))))
        hn_infer_fail(x, HN_ERROR_SHAPE, "the last dimension of input 1 is not 1");
    if (rank <= 0 || x->error != NULL) {
        hn_infer_out_unknown(x, 0, hn_infer_dtype(x, 0));
        return;
    }
    for (int i = 0; i < rank - 1; i++)
        dims[i] = hn_infer_dim(x, 1, i);
    dims[rank - 1] = of == 2 ? hn_infer_dim(x, 0, 1) : hn_dim_unknown();
    hn_infer_out(x, 0, hn_infer_dtype(x, 0), rank, dims);
}

static void rowlookup_ref(HnEval *e)
{
    const HnTensor *table = hn_eval_in(e, 0), *x = hn_eval_in(e, 1);
    int64_t dims[HN_MAX_RANK];
    if (table->ndim != 2 || x->ndim == 0 || x->dims[x->ndim - 1] != 1) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "a table of 2 dimensions and rows of 1 number are needed");
        return;
    }
    memcpy(dims, x->dims, (size_t)x->ndim * sizeof *dims);
    dims[x->ndim - 1] = table->dims[1];
    void *y = hn_eval_out(e, 0, table->dtype, x->ndim, dims);
    const size_t bytes = hn_dtype_size(table->dtype) * (size_t)table->dims[1];
    for (int64_t i = 0; y != NULL && bytes > 0 && i < x->n; i++) {
        const int64_t row = hn_tensor_get_i64(x, i);
        if (row >= 0 && row < table->dims[0])
            memcpy((char *)y + (size_t)i * bytes, (const char *)table->data + (size_t)row * bytes, bytes);
        else
            memset((char *)y + (size_t)i * bytes, 0, bytes);
    }
}

static void rowlookup_batch(HnBatch *b)
{
    if (hn_batch_split(b, 0))
        hn_batch_fail(b, "its table differs from sample to sample");
    else
        b->out[0] = b->in[1].at;
}

const HnOp hn_op_rowlookup = {
    .name = "RowLookup",
    .domain = "hone",
    .since = { 1 },
    .in = "Tj",
    .out = "T",
    .T = HN_T_FLOATS,
    .infer = rowlookup_infer,
    .ref = rowlookup_ref,
    .batch = rowlookup_batch,
};
