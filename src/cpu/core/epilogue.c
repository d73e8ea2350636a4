#include "cpu/core/epilogue.h"

#include <math.h>

#include "cpu/gemm/gemm_kernel.h"
#include "op/activation.h"
#include "op/batchnorm.h"

/* --- reading the fused nodes */

/* Input i of fused node k; NULL: absent, or the result so far. */
static const HnSlot *operand(const HnStep *s, int k, int i, int *port)
{
    if (i >= (int)s->fused[k]->in->len || i == s->fused_at[k])
        return NULL;
    *port = s->fused_port[k] + (i < s->fused_at[k] ? i : i - 1);
    return s->in[*port].slot;
}

/* Every dimension is 1 but that of the channels: constants that broadcast along `axis` of a result. */
static gboolean per_channel(const HnTensor *t, const HnTensor *y, int axis)
{
    for (int i = 0; i < t->ndim; i++) {
        int of = i + y->ndim - t->ndim;
        if (of < 0 || (t->dims[i] != 1 && (of != axis || t->dims[i] != y->dims[axis])))
            return FALSE;
    }
    return t->dtype == HN_F32;
}

/* How fused nodes of an operator are read. */
typedef struct Reader Reader;
struct Reader {
    const HnOp *op;
    /* Fills in op, whose kind is set; FALSE: does not fit. */
    gboolean (*read)(const Reader *r, const HnStep *s, int k, int axis, HnEpilogueOp *op);
    HnEpilogueKind kind;
    gboolean scales;  /* constants are factors, else they are added */
    gboolean lower;   /* the number is a lower bound, else an upper one */
    gboolean inverse; /* by what undoes a constant, which is input 1: Sub, Div */
};

static gboolean read_clip(const Reader *r, const HnStep *s, int k, int axis, HnEpilogueOp *op)
{
    (void)axis;
    HnOperand in[3] = { { 0 } };
    HnUnary u;
    for (int i = 1; i < 3; i++) {
        int port;
        const HnSlot *c = operand(s, k, i, &port);
        in[i] = (HnOperand){ .known = c != NULL && c->constant ? c->tensor : NULL, .present = c != NULL };
    }
    if (s->fused_at[k] != 0 || hn_unary_of(r->op, s->fused[k]->params, in, 3, &u) != NULL)
        return FALSE;
    op->a = u.a;
    op->b = u.b;
    return TRUE;
}

/* Max or Min of the result and one number for all elements. */
static gboolean read_bound(const Reader *r, const HnStep *s, int k, int axis, HnEpilogueOp *op)
{
    (void)axis;
    if (s->fused[k]->in->len != 2)
        return FALSE;
    const HnSlot *c = operand(s, k, 1 - s->fused_at[k], &op->port);
    if (c == NULL || !c->constant || c->tensor->n != 1 || c->tensor->dtype != HN_F32)
        return FALSE;
    const float bound = (float)hn_tensor_get_f64(c->tensor, 0);
    op->a = r->lower ? bound : HN_GEMM_KERNEL_LOW;
    op->b = r->lower ? HN_GEMM_KERNEL_HIGH : bound;
    return !isnan(bound);
}

static gboolean read_activation(const Reader *r, const HnStep *s, int k, int axis, HnEpilogueOp *op)
{
    (void)axis;
    const HnActivation *p = s->fused[k]->params;
    if (hn_unary_of(r->op, p, NULL, 0, &op->unary) != NULL)
        return FALSE;
    if (op->kind == HN_EPILOGUE_LEAKY || op->kind == HN_EPILOGUE_HARDSIGMOID || op->kind == HN_EPILOGUE_SWISH) {
        op->a = (float)p->a;
        op->b = (float)p->b;
    }
    if (op->kind == HN_EPILOGUE_GELU && p->tanh)
        op->kind = HN_EPILOGUE_GELU_TANH;
    return TRUE;
}

/* Add, Sub, Mul and Div with a constant, or the sum with another value of the same shape. */
static gboolean read_binary(const Reader *r, const HnStep *s, int k, int axis, HnEpilogueOp *op)
{
    if (s->fused[k]->in->len != 2)
        return FALSE;
    const HnSlot *c = operand(s, k, 1 - s->fused_at[k], &op->port);
    if (c == NULL || (r->inverse && s->fused_at[k] != 0))
        return FALSE;
    if (c->constant)
        return per_channel(c->tensor, s->out[0].slot->tensor, axis);
    op->kind = HN_EPILOGUE_ADD;
    return !r->scales && !r->inverse;
}

static gboolean read_batchnorm(const Reader *r, const HnStep *s, int k, int axis, HnEpilogueOp *op)
{
    (void)r;
    (void)op;
    const HnBatchNorm *p = s->fused[k]->params;
    int port;
    if (s->fused_at[k] != 0 || axis != 1 || p->training || p->per_element)
        return FALSE;
    for (int i = 1; i < 5; i++) {
        const HnSlot *c = operand(s, k, i, &port);
        if (c == NULL || !c->constant || c->tensor->dtype != HN_F32 || c->tensor->n != s->out[0].slot->tensor->dims[1])
            return FALSE;
    }
    return TRUE;
}

static const Reader readers[] = {
    { &hn_op_relu, read_activation, .kind = HN_EPILOGUE_RELU },
    { &hn_op_clip, read_clip, .kind = HN_EPILOGUE_CLIP },
    { &hn_op_max, read_bound, .kind = HN_EPILOGUE_CLIP, .lower = TRUE },
    { &hn_op_min, read_bound, .kind = HN_EPILOGUE_CLIP },
    { &hn_op_leakyrelu, read_activation, .kind = HN_EPILOGUE_LEAKY },
    { &hn_op_sigmoid, read_activation, .kind = HN_EPILOGUE_SIGMOID },
    { &hn_op_hardsigmoid, read_activation, .kind = HN_EPILOGUE_HARDSIGMOID },
    { &hn_op_swish, read_activation, .kind = HN_EPILOGUE_SWISH },
    { &hn_op_gelu, read_activation, .kind = HN_EPILOGUE_GELU },
    { &hn_op_hardswish, read_activation, .kind = HN_EPILOGUE_HARDSWISH },
    { &hn_op_add, read_binary, .kind = HN_EPILOGUE_AFFINE },
    { &hn_op_sub, read_binary, .kind = HN_EPILOGUE_AFFINE, .inverse = TRUE },
    { &hn_op_mul, read_binary, .kind = HN_EPILOGUE_AFFINE, .scales = TRUE },
    { &hn_op_div, read_binary, .kind = HN_EPILOGUE_AFFINE, .scales = TRUE, .inverse = TRUE },
    { &hn_op_batchnormalization, read_batchnorm, .kind = HN_EPILOGUE_AFFINE },
};

/* The reader of fused node k, which fits; NULL: none. */
static const Reader *read_node(const HnStep *s, int k, int axis, HnEpilogueOp *op)
{
    const Reader *r = readers, *end = readers + G_N_ELEMENTS(readers);
    while (r < end && r->op != s->fused[k]->op)
        r++;
    if (r == end)
        return NULL;
    *op = (HnEpilogueOp){ .kind = r->kind };
    return r->read(r, s, k, axis, op) ? r : NULL;
}

gboolean hn_epilogue_fits(const HnStep *s, int axis)
{
    HnEpilogueOp op;
    for (int k = 0; k < s->n_fused; k++)
        if (read_node(s, k, axis, &op) == NULL)
            return FALSE;
    return TRUE;
}

/* --- constants per channel */

static float element(const HnTensor *t, int64_t c)
{
    return (float)hn_tensor_get_f64(t, t->n == 1 ? 0 : c);
}

static void scale_of_batchnorm(const HnStep *s, int k, HnEpilogueOp *op, int64_t channels)
{
    const HnBatchNorm *p = s->fused[k]->params;
    const HnTensor *t[5];
    int port;
    for (int i = 1; i < 5; i++)
        t[i] = operand(s, k, i, &port)->tensor;
    op->scale = g_new(float, (gsize)channels);
    for (int64_t c = 0; c < channels; c++) { /* in double: the two roundings are those of the file's numbers */
        double scale = hn_tensor_get_f64(t[1], c) / sqrt(hn_tensor_get_f64(t[4], c) + (double)p->epsilon);
        op->scale[c] = (float)scale;
        op->shift[c] = (float)(hn_tensor_get_f64(t[2], c) - hn_tensor_get_f64(t[3], c) * scale);
    }
}

static void read_constants(const Reader *r, HnEpilogueOp *op, const HnStep *s, int k, int64_t channels)
{
    op->shift = g_new0(float, (gsize)channels);
    if (r->read == read_batchnorm) {
        scale_of_batchnorm(s, k, op, channels);
        return;
    }
    const HnTensor *t = s->in[op->port].slot->tensor;
    if (r->scales)
        op->scale = g_new(float, (gsize)channels);
    for (int64_t c = 0; c < channels; c++) {
        float v = element(t, c);
        if (r->scales)
            op->scale[c] = r->inverse ? 1 / v : v;
        else
            op->shift[c] = r->inverse ? -v : v;
    }
}

gboolean hn_epilogue_conv_fuses(const HnStep *s)
{
    return hn_cpu_reject_f32(s) == NULL && hn_epilogue_fits(s, 1);
}

void hn_epilogue_init(HnEpilogue *a, HnStep *s, int axis)
{
    const HnTensor *y = s->out[0].slot->tensor;
    *a = (HnEpilogue){ .channels = axis < y->ndim ? y->dims[axis] : 1, .op = g_new0(HnEpilogueOp, (gsize)s->n_fused) };
    for (int k = 0; k < s->n_fused; k++) {
        HnEpilogueOp *op = &a->op[a->n++];
        const Reader *r = read_node(s, k, axis, op);
        if (op->kind == HN_EPILOGUE_AFFINE)
            read_constants(r, op, s, k, a->channels);
        for (int i = 0, port; i < (int)s->fused[k]->in->len; i++)
            if (operand(s, k, i, &port) != NULL && op->kind != HN_EPILOGUE_ADD)
                s->in[port].unread = TRUE;
    }
}

void hn_epilogue_clear(HnEpilogue *a)
{
    for (int k = 0; k < a->n; k++) {
        g_free(a->op[k].scale);
        g_free(a->op[k].shift);
    }
    g_free(a->op);
    *a = (HnEpilogue){ 0 };
}

void hn_epilogue_constants(const HnEpilogue *a, int n, int64_t channel, double *scale, double *shift)
{
    *scale = 1;
    for (int k = 0; k < n; k++) {
        const HnEpilogueOp *op = &a->op[k];
        const double by = op->scale != NULL ? (double)op->scale[channel] : 1;
        *scale *= by;
        *shift = *shift * by + (double)op->shift[channel];
    }
}

/* --- own loops */

static void affine_row(const HnEpilogueOp *op, float *restrict y, int64_t n, int64_t channel)
{
    const float *restrict shift = op->shift, *restrict scale = op->scale;
    if (channel >= 0) {
        const float a = scale != NULL ? scale[channel] : 1, b = shift[channel];
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] * a + b;
    } else if (scale != NULL) {
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] * scale[i] + shift[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            y[i] += shift[i];
    }
}

void hn_epilogue_row(const HnEpilogue *a, const HnStep *s, float *restrict y, int64_t at, int64_t n, int64_t channel)
{
    for (int k = 0; k < a->n; k++) {
        const HnEpilogueOp *op = &a->op[k];
        switch (op->kind) {
        case HN_EPILOGUE_CLIP:
            for (int64_t i = 0; i < n; i++)
                y[i] = y[i] < op->a ? op->a : y[i] > op->b ? op->b : y[i];
            break;
        case HN_EPILOGUE_RELU:
        case HN_EPILOGUE_LEAKY:
        case HN_EPILOGUE_SIGMOID:
        case HN_EPILOGUE_HARDSIGMOID:
        case HN_EPILOGUE_SWISH:
        case HN_EPILOGUE_GELU:
        case HN_EPILOGUE_GELU_TANH:
        case HN_EPILOGUE_HARDSWISH:
            op->unary.fn(y, y, n, op->unary.a, op->unary.b);
            break;
        case HN_EPILOGUE_ADD: {
            const float *restrict x = (const float *)hn_cpu_data(&s->in[op->port]) + at;
            for (int64_t i = 0; i < n; i++)
                y[i] += x[i];
            break;
        }
        case HN_EPILOGUE_AFFINE:
            affine_row(op, y, n, channel);
            break;
        }
    }
}

/* --- tiles */

HnEpilogueEnd hn_epilogue_end(const HnEpilogue *a, int first)
{
    HnEpilogueEnd e = { .rest = first, .add_port = -1, .lo = HN_GEMM_KERNEL_LOW, .hi = HN_GEMM_KERNEL_HIGH };
    if (e.rest < a->n && a->op[e.rest].kind == HN_EPILOGUE_ADD)
        e.add_port = a->op[e.rest++].port;
    if (e.rest < a->n && a->op[e.rest].kind == HN_EPILOGUE_RELU) {
        e.lo = 0;
        e.rest++;
    } else if (e.rest < a->n && a->op[e.rest].kind == HN_EPILOGUE_CLIP) {
        e.lo = a->op[e.rest].a;
        e.hi = a->op[e.rest++].b;
    }
    return e;
}

/* Epilogue operations as post operations; FALSE: none does the same. */
static gboolean post_of(const HnEpilogueOp *op, HnPost *post)
{
    *post = (HnPost){ .a = op->a, .b = op->b };
    switch (op->kind) {
    case HN_EPILOGUE_RELU:
        *post = (HnPost){ .kind = HN_POST_CLIP, .a = 0, .b = HN_GEMM_KERNEL_HIGH };
        return TRUE;
    case HN_EPILOGUE_CLIP:
        post->kind = HN_POST_CLIP;
        return TRUE;
    case HN_EPILOGUE_LEAKY:
        post->kind = HN_POST_LEAKY;
        return isfinite(op->a);
    case HN_EPILOGUE_HARDSIGMOID:
        post->kind = HN_POST_RAMP;
        return TRUE;
    case HN_EPILOGUE_HARDSWISH:
        *post = (HnPost){ .kind = HN_POST_GATE, .a = 1.0f / 6, .b = 0.5f };
        return TRUE;
    case HN_EPILOGUE_AFFINE:
        *post = (HnPost){ .kind = op->scale != NULL ? HN_POST_SCALE : HN_POST_SHIFT,
                          .scale = op->scale,
                          .shift = op->shift };
        return TRUE;
    case HN_EPILOGUE_SIGMOID:
        post->kind = HN_POST_SIGMOID;
        return TRUE;
    case HN_EPILOGUE_SWISH:
        post->kind = HN_POST_SWISH;
        return TRUE;
    case HN_EPILOGUE_GELU:
        post->kind = HN_POST_GELU;
        return TRUE;
    case HN_EPILOGUE_GELU_TANH:
        post->kind = HN_POST_GELU_TANH;
        return TRUE;
    default:
        return FALSE;
    }
}

int hn_epilogue_posts(const HnEpilogue *a, HnEpilogueEnd *e, HnPost *post)
{
    int n = 0;
    if (e->lo > HN_GEMM_KERNEL_LOW || e->hi < HN_GEMM_KERNEL_HIGH) /* these bounds are not the last ones */
        post[n++] = (HnPost){ .kind = HN_POST_CLIP, .a = e->lo, .b = e->hi };
    while (e->rest < a->n && post_of(&a->op[e->rest], &post[n]) && hn_post_in_registers(post[n].kind)) {
        n++;
        e->rest++;
    }
    e->lo = HN_GEMM_KERNEL_LOW;
    e->hi = HN_GEMM_KERNEL_HIGH;
    if (n > 0 && post[n - 1].kind == HN_POST_CLIP) {
        e->lo = post[--n].a;
        e->hi = post[n].b;
    }
    return n;
}

int hn_epilogue_late(const HnEpilogue *a, HnEpilogueEnd *e, HnPost *late)
{
    int n = 0;
    for (; e->rest < a->n && post_of(&a->op[e->rest], &late[n]); n++)
        e->rest++;
    return n;
}

gboolean hn_epilogue_is_end(const HnStep *s, int axis)
{
    HnEpilogueOp op;
    int k = 0;
    if (k < s->n_fused && read_node(s, k, axis, &op) != NULL && op.kind == HN_EPILOGUE_ADD)
        k++;
    if (k < s->n_fused && read_node(s, k, axis, &op) != NULL &&
        (op.kind == HN_EPILOGUE_RELU || op.kind == HN_EPILOGUE_CLIP))
        k++;
    return k == s->n_fused;
}

void hn_epilogue_rest(const HnEpilogue *a, int first, const HnStep *s, float *y, int64_t pitch, int64_t row,
                      int64_t rows, int64_t col, int64_t cols)
{
    HnPost post[HN_FUSED_MAX];
    for (int k = first, n; k < a->n; k += MAX(n, 1)) {
        for (n = 0; k + n < a->n && post_of(&a->op[k + n], &post[n]); n++)
            continue;
        if (n > 0) {
            hn_post_rows(post, n, y + row * pitch + col, pitch, rows, col, cols);
            continue;
        }
        const HnEpilogue one = { .n = 1, .channels = cols, .op = &a->op[k] };
        int64_t other = cols;
        if (one.op->kind == HN_EPILOGUE_ADD)
            other = s->in[one.op->port].slot->pitch > 0 ? s->in[one.op->port].slot->pitch : a->channels;
        if (pitch == cols && other == cols) { /* rows are adjacent */
            hn_epilogue_row(&one, s, y + row * cols, row * cols, rows * cols, -1);
            continue;
        }
        for (int64_t i = row; i < row + rows; i++)
            hn_epilogue_row(&one, s, y + i * pitch + col, i * other + col, cols, -1);
    }
}

/* --- through oneDNN */

static dnnl_memory_desc_t channel_md(const HnEpilogue *a, int ndim, int axis)
{
    int64_t dims[HN_MAX_RANK];
    for (int i = 0; i < ndim; i++)
        dims[i] = i == axis ? a->channels : 1;
    return hn_md_plain(ndim, dims);
}

static dnnl_status_t append(dnnl_post_ops_t ops, const HnEpilogue *a, const HnEpilogueOp *op, int ndim,
                            const int64_t *dims, int axis)
{
    switch (op->kind) {
    case HN_EPILOGUE_RELU:
        return hn_dnnl(post_ops_append_eltwise)(ops, dnnl_eltwise_relu, 0, 0);
    case HN_EPILOGUE_LEAKY:
        return hn_dnnl(post_ops_append_eltwise)(ops, dnnl_eltwise_relu, op->a, 0);
    case HN_EPILOGUE_CLIP:
        return hn_dnnl(post_ops_append_eltwise)(ops, dnnl_eltwise_clip, op->a, op->b);
    case HN_EPILOGUE_SIGMOID:
        return hn_dnnl(post_ops_append_eltwise)(ops, dnnl_eltwise_logistic, 0, 0);
    case HN_EPILOGUE_HARDSIGMOID:
        return hn_dnnl(post_ops_append_eltwise)(ops, dnnl_eltwise_hardsigmoid, op->a, op->b);
    case HN_EPILOGUE_SWISH:
        return hn_dnnl(post_ops_append_eltwise)(ops, dnnl_eltwise_swish, op->a, 0);
    case HN_EPILOGUE_GELU:
        return hn_dnnl(post_ops_append_eltwise)(ops, dnnl_eltwise_gelu_erf, 0, 0);
    case HN_EPILOGUE_GELU_TANH:
        return hn_dnnl(post_ops_append_eltwise)(ops, dnnl_eltwise_gelu_tanh, 0, 0);
    case HN_EPILOGUE_HARDSWISH:
        return hn_dnnl(post_ops_append_eltwise)(ops, dnnl_eltwise_hardswish, 1.0f / 6, 0.5f);
    case HN_EPILOGUE_ADD: {
        g_auto(dnnl_memory_desc_t) md = hn_md_any(ndim, dims);
        return hn_dnnl(post_ops_append_binary)(ops, dnnl_binary_add, md);
    }
    case HN_EPILOGUE_AFFINE: {
        g_auto(dnnl_memory_desc_t) md = channel_md(a, ndim, axis);
        dnnl_status_t status =
            op->scale != NULL ? hn_dnnl(post_ops_append_binary)(ops, dnnl_binary_mul, md) : dnnl_success;
        return status == dnnl_success ? hn_dnnl(post_ops_append_binary)(ops, dnnl_binary_add, md) : status;
    }
    }
    return dnnl_invalid_arguments;
}

dnnl_primitive_attr_t hn_epilogue_attr(const HnEpilogue *a, int ndim, const int64_t *dims, int axis, gboolean bf16)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    if (hn_dnnl(primitive_attr_create)(&attr) != dnnl_success)
        return NULL;
    dnnl_status_t status = hn_dnnl(primitive_attr_set_scratchpad_mode)(attr, dnnl_scratchpad_mode_user);
    if (bf16 && status == dnnl_success)
        status = hn_dnnl(primitive_attr_set_fpmath_mode)(attr, dnnl_fpmath_mode_bf16);
    if (a->n > 0 && status == dnnl_success && (status = hn_dnnl(post_ops_create)(&ops)) == dnnl_success) {
        for (int k = 0; k < a->n && status == dnnl_success; k++)
            status = append(ops, a, &a->op[k], ndim, dims, axis);
        if (status == dnnl_success)
            status = hn_dnnl(primitive_attr_set_post_ops)(attr, ops);
        hn_dnnl(post_ops_destroy)(ops);
    }
    if (status == dnnl_success)
        return attr;
    hn_dnnl(primitive_attr_destroy)(attr);
    return NULL;
}

int hn_epilogue_args(const HnEpilogue *a, HnStep *s, const_dnnl_primitive_desc_t pd, int *args, int n)
{
    for (int k = 0, post = 0; k < a->n; k++, post++) {
        const HnEpilogueOp *op = &a->op[k];
        if (op->kind == HN_EPILOGUE_AFFINE && op->scale != NULL)
            args[n++] = DNNL_ARG_ATTR_MULTIPLE_POST_OP(post++) | DNNL_ARG_SRC_1;
        if (op->kind != HN_EPILOGUE_AFFINE && op->kind != HN_EPILOGUE_ADD)
            continue;
        args[n++] = DNNL_ARG_ATTR_MULTIPLE_POST_OP(post) | DNNL_ARG_SRC_1;
        if (op->kind == HN_EPILOGUE_ADD)
            s->in[op->port].want =
                hn_layout_new(hn_dnnl(primitive_desc_query_md)(pd, dnnl_query_exec_arg_md, args[n - 1]));
    }
    return n;
}

int hn_epilogue_data(const HnEpilogue *a, const HnStep *s, void **data, int n)
{
    for (int k = 0; k < a->n; k++) {
        const HnEpilogueOp *op = &a->op[k];
        if (op->kind == HN_EPILOGUE_AFFINE && op->scale != NULL)
            data[n++] = op->scale;
        if (op->kind == HN_EPILOGUE_AFFINE)
            data[n++] = op->shift;
        else if (op->kind == HN_EPILOGUE_ADD)
            data[n++] = hn_cpu_data(&s->in[op->port]);
    }
    return n;
}
