/*
 * Scan: runs its body once for each element of M inputs along an axis, with N states carried from run to run; K results
 * of the body are stacked. Version 8 has a batch axis in front of everything, and lengths per sample.
 */
#include <math.h>

#include "op/batch.h"
#include "op/control.h"
#include "op/unbind.h"

typedef struct {
    HnGraph *body;
    gboolean batched; /* version 8 */
    int first;        /* input that the states begin with */
    int states, scans, stacked;
    const int64_t *in_axes, *out_axes, *in_back, *out_back; /* NULL: all 0 */
} HnScan;

static const int64_t *bind_list(HnBind *b, const char *name, int want)
{
    int64_t n;
    const int64_t *v = hn_bind_ints(b, name, &n);
    if (n != 0 && n != want)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' has %" PRId64 " elements, not %d", name, n, want);
    return n != 0 ? v : NULL;
}

static void scan_bind(HnBind *b, void *params)
{
    HnScan *p = params;
    p->batched = b->version < 9;
    p->first = p->batched ? 1 : 0;
    p->body = hn_bind_graph(b, "body");
    hn_bind_require(b, "num_scan_inputs");
    int64_t scans = hn_bind_int(b, "num_scan_inputs", 1);
    int inputs = (int)b->node->in->len - p->first;
    if (scans < 1 || scans > inputs)
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'num_scan_inputs' cannot be %" PRId64, scans);
    if (b->error != NULL)
        return;
    p->scans = (int)scans;
    p->states = inputs - p->scans;
    p->stacked = (int)p->body->outputs->len - p->states;
    if (p->body->inputs->len != (guint)inputs || p->stacked < 0 || b->node->out->len > p->body->outputs->len)
        hn_bind_fail(b, HN_ERROR_GRAPH,
                     "the body has %u inputs and %u outputs, which do not fit %u inputs and %u outputs",
                     p->body->inputs->len, p->body->outputs->len, b->node->in->len, b->node->out->len);
    for (int i = 0; i < inputs; i++)
        if (hn_node_in(b->node, p->first + i) == NULL)
            hn_bind_fail(b, HN_ERROR_GRAPH, "input %d is missing", p->first + i);
    if (p->batched) {
        p->in_back = bind_list(b, "directions", p->scans);
        return;
    }
    p->in_axes = bind_list(b, "scan_input_axes", p->scans);
    p->in_back = bind_list(b, "scan_input_directions", p->scans);
    p->out_axes = bind_list(b, "scan_output_axes", p->stacked);
    p->out_back = bind_list(b, "scan_output_directions", p->stacked);
}

static int64_t item(const int64_t *list, int i)
{
    return list != NULL ? list[i] : 0;
}

/* --- infer ------------------------------------------------------------------------------------------------------- */

/* t without `axis`; NULL: unknown. Its size goes to *size where that is not known better. */
static HnType *without(HnInfer *x, const HnType *t, int64_t axis, HnDim *size)
{
    HnDim dims[HN_MAX_RANK];
    if (!hn_type_is_tensor(t))
        return NULL;
    if (t->rank < 0 || t->rank > HN_MAX_RANK)
        return hn_type_tensor(t->dtype, -1, NULL);
    int at = hn_infer_axis(x, axis, t->rank);
    if (x->error != NULL)
        return NULL;
    if (hn_dim_differ(*size, t->dims[at])) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the inputs differ in the size of the axis that is scanned");
        return NULL;
    }
    if (!size->known)
        *size = t->dims[at];
    for (int i = 0; i < t->rank - 1; i++)
        dims[i] = t->dims[i < at ? i : i + 1];
    return hn_type_tensor(t->dtype, t->rank - 1, dims);
}

/* t with an axis of that size. */
static HnType *with(HnInfer *x, HnType *t, int64_t axis, HnDim size)
{
    HnDim dims[HN_MAX_RANK];
    if (!hn_type_is_tensor(t))
        return NULL;
    if (t->rank < 0 || t->rank >= HN_MAX_RANK)
        return hn_type_tensor(t->dtype, -1, NULL);
    int at = hn_infer_axis(x, axis, t->rank + 1);
    for (int i = 0; i <= t->rank; i++)
        dims[i] = i == at ? size : t->dims[i < at ? i : i - 1];
    return hn_type_tensor(t->dtype, t->rank + 1, dims);
}

static void set_outputs(HnInfer *x, HnType **states, HnType **out, HnDim steps, HnDim batch)
{
    const HnScan *p = x->params;
    for (int i = 0; i < p->states; i++)
        hn_control_out(x, i, p->batched ? with(x, states[i], 0, batch) : g_steal_pointer(&states[i]));
    for (int k = 0; k < p->stacked; k++) {
        HnType *t = out[p->states + k];
        if (hn_dim_is(steps, 0) ||
            (p->batched && hn_dim_is(batch, 0))) { /* shape is what the body declares, at run time */
            if (hn_type_is_tensor(t))
                hn_infer_out_unknown(x, p->states + k, t->dtype);
            continue;
        }
        HnType *all = with(x, t, item(p->out_axes, k), steps);
        HnType *more = p->batched && all != NULL ? with(x, all, 0, batch) : NULL;
        hn_control_out(x, p->states + k, more != NULL ? more : all != NULL ? hn_type_ref(all) : NULL);
        hn_type_unref(all);
    }
}

static void scan_infer(HnInfer *x)
{
    const HnScan *p = x->params;
    int n_in = p->states + p->scans, n_out = p->states + p->stacked;
    HnDim steps = hn_dim_unknown(), batch = hn_dim_unknown();
    g_autofree HnType **in = g_new0(HnType *, (gsize)n_in + 1), **out = g_new0(HnType *, (gsize)n_out + 1);
    for (int i = 0; i < n_in; i++) {
        HnType *t = x->in[p->first + i];
        in[i] = p->batched ? without(x, t, 0, &batch) : t != NULL ? hn_type_ref(t) : NULL;
        if (i < p->states || in[i] == NULL)
            continue;
        HnType *element = without(x, in[i], item(p->in_axes, i - p->states), &steps);
        hn_type_unref(in[i]);
        in[i] = element;
    }
    if (x->error == NULL && hn_control_carry(x, p->body, n_in, in, 0, n_out, out, 0, p->states))
        set_outputs(x, in, out, steps, batch);
    hn_control_unref_types(in, n_in);
    hn_control_unref_types(out, n_out);
}

/* As long as what is scanned is, for each sample. */
double hn_scan_runs(const HnTypes *types, const HnNode *n)
{
    const HnScan *p = n->params;
    const HnType *t = p->scans > 0 ? hn_types_get(types, hn_node_in(n, p->first + p->states)) : NULL;
    const int rank = hn_type_is_tensor(t) ? t->rank : -1;
    const int64_t axis = item(p->in_axes, 0) + (item(p->in_axes, 0) < 0 ? rank : p->batched);
    if (axis < 0 || axis >= rank || !t->dims[axis].known || (p->batched && !t->dims[0].known))
        return NAN;
    return (double)t->dims[axis].n * (p->batched ? (double)t->dims[0].n : 1);
}

/* --- ref --------------------------------------------------------------------------------------------------------- */

/* Sizes of the scanned axes: all the same. */
static gboolean steps_of(HnEval *e, HnTensor *const *scans, int *axis, int64_t *steps)
{
    const HnScan *p = e->params;
    for (int i = 0; i < p->scans; i++) {
        axis[i] = hn_eval_axis(e, item(p->in_axes, i), scans[i]->ndim);
        if (axis[i] < 0)
            return FALSE;
        if (i > 0 && scans[i]->dims[axis[i]] != *steps) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "the inputs differ in the size of the axis that is scanned");
            return FALSE;
        }
        *steps = scans[i]->dims[axis[i]];
    }
    return TRUE;
}

/* Runs the body `length` times (negative: as often as there are elements). in: states, then scanned inputs, borrowed.
 * out: last states, then stacks, new references. */
static gboolean run(HnEval *e, HnTensor *const *in, int64_t length, HnTensor **out)
{
    const HnScan *p = e->params;
    int n_in = p->states + p->scans, n_out = p->states + p->stacked;
    int64_t steps = 0;
    g_autofree int *axis = g_new0(int, (gsize)p->scans);
    g_autofree HnTensor **now = g_new0(HnTensor *, (gsize)n_in), **got = g_new0(HnTensor *, (gsize)n_out + 1);
    g_autofree GPtrArray **stacks = g_new0(GPtrArray *, (gsize)p->stacked + 1);
    if (!steps_of(e, in + p->states, axis, &steps))
        return FALSE;
    int64_t runs = length >= 0 ? length : steps;
    for (int k = 0; k < p->stacked; k++)
        stacks[k] = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (int i = 0; i < p->states; i++)
        now[i] = hn_tensor_ref(in[i]);
    for (int64_t t = 0; t < runs && e->error == NULL; t++) {
        for (int i = 0; i < p->scans && e->error == NULL; i++) {
            hn_tensor_unref(now[p->states + i]);
            now[p->states + i] =
                hn_control_slice(e, in[p->states + i], axis[i], item(p->in_back, i) ? runs - 1 - t : t);
        }
        if (e->error != NULL || !hn_budget_ask(e->budget, &e->error) || !e->graph(e, p->body, n_in, now, n_out, got))
            break;
        for (int i = 0; i < p->states; i++) {
            hn_tensor_unref(now[i]);
            now[i] = g_steal_pointer(&got[i]);
        }
        for (int k = 0; k < p->stacked; k++)
            g_ptr_array_add(stacks[k], g_steal_pointer(&got[p->states + k]));
    }
    for (int i = 0; i < p->states && e->error == NULL; i++)
        out[i] = g_steal_pointer(&now[i]);
    for (int k = 0; k < p->stacked && e->error == NULL; k++)
        out[p->states + k] = hn_control_stack(e, stacks[k], steps, item(p->out_axes, k), item(p->out_back, k) != 0,
                                              p->body->outputs->pdata[p->states + k]);
    hn_control_unref(now, n_in);
    for (int k = 0; k < p->stacked; k++)
        g_ptr_array_unref(stacks[k]);
    return e->error == NULL;
}

static void give(HnEval *e, int k, const HnTensor *t)
{
    if (t != NULL && e->error == NULL && hn_eval_wants(e, k))
        hn_eval_view(e, k, t, t->ndim, t->dims);
}

/* Samples [0, batch) one after the other, results stacked along a new first axis. */
static void run_samples(HnEval *e, int64_t batch, HnTensor **in, GPtrArray **results)
{
    const HnScan *p = e->params;
    const HnTensor *lens = e->in[0];
    int n_in = p->states + p->scans, n_out = p->states + p->stacked;
    int64_t steps = e->in[p->first + p->states]->dims[1];
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n_out + 1);
    for (int64_t b = 0; b < batch && e->error == NULL; b++) {
        int64_t length = lens != NULL ? hn_tensor_get_i64(lens, b) : steps;
        if (length < 0 || length > steps)
            hn_eval_fail(e, HN_ERROR_VALUE, "sequence length %" PRId64 " is outside [0, %" PRId64 "]", length, steps);
        for (int i = 0; i < n_in && e->error == NULL; i++)
            in[i] = hn_control_slice(e, e->in[p->first + i], 0, b);
        if (e->error == NULL && run(e, in, length, out))
            for (int k = 0; k < n_out; k++)
                g_ptr_array_add(results[k], g_steal_pointer(&out[k]));
        hn_control_unref(in, n_in);
        hn_control_unref(out, n_out);
    }
}

static gboolean check_batch(HnEval *e, int64_t *batch)
{
    const HnScan *p = e->params;
    const HnTensor *lens = e->in[0];
    for (int i = p->first; i < e->n_in; i++) {
        const HnTensor *t = e->in[i];
        if (t->ndim < (i < p->first + p->states ? 1 : 2) || (i > p->first && t->dims[0] != *batch)) {
            hn_eval_fail(e, HN_ERROR_SHAPE, "input %d has no batch axis like the others", i);
            return FALSE;
        }
        *batch = t->dims[0];
    }
    if (lens != NULL && lens->n != *batch) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "%" PRId64 " sequence lengths are given for %" PRId64 " samples", lens->n,
                     *batch);
        return FALSE;
    }
    return TRUE;
}

static void scan_ref(HnEval *e)
{
    const HnScan *p = e->params;
    int n_in = p->states + p->scans, n_out = p->states + p->stacked;
    if (!p->batched) {
        g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n_out + 1);
        if (run(e, e->in, -1, out))
            for (int k = 0; k < n_out; k++)
                give(e, k, out[k]);
        hn_control_unref(out, n_out);
        return;
    }
    int64_t batch = 0;
    if (!check_batch(e, &batch))
        return;
    if (batch == 0) {
        hn_eval_fail(e, HN_ERROR_UNSUPPORTED, "a batch of no samples cannot be scanned");
        return;
    }
    g_autofree HnTensor **in = g_new0(HnTensor *, (gsize)n_in);
    g_autofree GPtrArray **results = g_new0(GPtrArray *, (gsize)n_out + 1);
    for (int k = 0; k < n_out; k++)
        results[k] = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    run_samples(e, batch, in, results);
    for (int k = 0; k < n_out; k++) {
        HnTensor *t = e->error == NULL ? hn_control_stack(e, results[k], batch, 0, FALSE, NULL) : NULL;
        give(e, k, t);
        hn_tensor_unref(t);
        g_ptr_array_unref(results[k]);
    }
}

static void scan_unbind(HnUnbind *u)
{
    if ((u->from < 9) != (u->to < 9))
        hn_unbind_refuse(u, "opset 8 scans with a batch as the first axis, 9 and later without");
}

/* Version 8 runs one sample after the other, each by itself. */
static void batch_of_8(HnBatch *b)
{
    g_autoptr(GPtrArray) captured = hn_node_captures(b->node);
    for (guint i = 0; i < captured->len; i++)
        if (b->holds(b, captured->pdata[i])) {
            hn_batch_fail(b, "its body reads '%s', which differs from sample to sample",
                          ((const HnValue *)captured->pdata[i])->name);
            return;
        }
    for (int i = 0; i < b->n_in; i++)
        if (hn_batch_has(b, i) && !hn_batch_put(b, i, 0))
            return;
    for (int k = 0; k < b->n_out; k++)
        b->out[k] = hn_batch_place(0);
}

/* Elements of input i, which is scanned along `axis`: where their samples are. */
static gboolean batch_element(HnBatch *b, int i, int64_t *axis, HnBatchFormal *element)
{
    const int a = hn_batch_axis(*axis, hn_batch_rank_was(b, i));
    element->at = hn_batch_none();
    if (a < 0)
        return hn_batch_fail(b, "the rank of input %d is not known", i);
    *axis = a;
    if (!hn_batch_split(b, i))
        return TRUE;
    if ((hn_batch_in_front(b, i) || b->in[i].at.axis == a) && !hn_batch_lift(b, i, 0))
        return FALSE;
    element->front = hn_batch_in_front(b, i);
    element->at = b->in[i].at;
    if (element->front)
        *axis = a + 1;
    else if (element->at.axis > a)
        element->at.axis--;
    return TRUE;
}

/* Output k, stacked along `axis` of what it was. */
static gboolean batch_stacked(HnBatch *b, int k, int64_t *axis, const HnBatchFormal *y)
{
    const int a = hn_batch_axis(*axis, hn_type_rank(b->was_out[k]));
    b->out[k] = y->at;
    if (a < 0)
        return y->at.axis < 0 || hn_batch_fail(b, "the rank of its output %d is not known", k);
    *axis = a + (y->at.axis >= 0 && y->front);
    if (y->at.axis >= a && !y->front)
        b->out[k].axis++;
    return TRUE;
}

/* All samples at once, or one after the other. */
void hn_scan_batch(HnBatch *b)
{
    const HnScan *p = b->params;
    if (p->batched) {
        batch_of_8(b);
        return;
    }
    b->choices = 2;
    if (b->wish == 1) {
        b->apart(b);
        return;
    }
    const gsize n_in = (gsize)(p->states + p->scans), n_out = (gsize)(p->states + p->stacked);
    g_autofree HnBatchFormal *in = g_new0(HnBatchFormal, n_in), *out = g_new0(HnBatchFormal, n_out + 1);
    g_autofree int64_t *in_axes = g_new0(int64_t, n_in), *out_axes = g_new0(int64_t, n_out + 1);
    for (int i = 0; i < p->scans; i++) {
        in_axes[i] = item(p->in_axes, i);
        if (!batch_element(b, p->states + i, &in_axes[i], &in[p->states + i]))
            return;
    }
    const HnBatchCarry c = { p->body, 0, 0, 0, p->states, in, out };
    if (!hn_batch_carry(b, &c))
        return;
    for (int k = 0; k < p->states && k < b->n_out; k++)
        b->out[k] = out[k].at;
    for (int k = 0; k < p->stacked; k++) {
        out_axes[k] = item(p->out_axes, k);
        if (p->states + k < b->n_out && !batch_stacked(b, p->states + k, &out_axes[k], &out[p->states + k]))
            return;
    }
    hn_node_set_ints(b->node, "scan_input_axes", in_axes, p->scans);
    if (p->stacked > 0)
        hn_node_set_ints(b->node, "scan_output_axes", out_axes, p->stacked);
}

const HnOp hn_op_scan = {
    .name = "Scan",
    .flags = HN_OP_CONTROL | HN_OP_DYNAMIC,
    .since = { 8, 9, 11, 16, 19, 21, 23, 24, 25 },
    .lacks =
        HN_LACKS({ '.', 9, 0,
                   HN_T_UINTS | HN_BIT(HN_F32) | HN_BIT(HN_I8) | HN_BIT(HN_I16) | HN_BIT(HN_I32) | HN_BIT(HN_STRING) |
                       HN_BIT(HN_BOOL) | HN_BIT(HN_F16) | HN_BIT(HN_F64) | HN_BIT(HN_C64) | HN_BIT(HN_C128) },
                 { '.', 16, 0, HN_BIT(HN_BF16) }, HN_SMALL_TYPES('.', 19)),
    .in = ".~",
    .out = ".~",
    .min_in = HN_MIN_IN_NONE,
    .unbind = scan_unbind,
    .params_size = sizeof(HnScan),
    .bind = scan_bind,
    .infer = scan_infer,
    .ref = scan_ref,
    .batch = hn_scan_batch,
};
