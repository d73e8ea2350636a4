/*
 * Loop: runs its body again and again with (iteration number, condition, N carried values), which gives back
 * (condition, N carried values, K elements); the elements of all runs are stacked along a new first axis. It ends after
 * M runs or when the condition is false. Without a condition input the body's condition is not looked at, unless M is
 * absent too.
 */
#include <math.h>
#include <string.h>

#include "op/batch.h"
#include "op/control.h"

#define NO_LIMIT ((int64_t)1 << 24) /* a number of runs from here on is one */

typedef struct {
    HnGraph *body;
    int carried, stacked; /* N and K */
} HnLoop;

static void loop_bind(HnBind *b, void *params)
{
    HnLoop *p = params;
    const HnNode *n = b->node;
    p->body = hn_bind_graph(b, "body");
    if (b->error != NULL)
        return;
    p->carried = (int)MAX(n->in->len, 2) - 2;
    p->stacked = (int)p->body->outputs->len - 1 - p->carried;
    if (p->body->inputs->len != (guint)p->carried + 2 || p->stacked < 0 ||
        n->out->len > (guint)(p->carried + p->stacked))
        hn_bind_fail(b, HN_ERROR_GRAPH,
                     "the body has %u inputs and %u outputs, which do not fit %u inputs and %u outputs",
                     p->body->inputs->len, p->body->outputs->len, n->in->len, n->out->len);
    for (int i = 0; i < p->carried; i++)
        if (hn_node_in(n, 2 + i) == NULL)
            hn_bind_fail(b, HN_ERROR_GRAPH, "input %d is missing", 2 + i);
}

/* Is formal input i of the body declared as [1]? It is a scalar otherwise. */
static gboolean as_list(const HnGraph *body, guint i)
{
    const HnValue *v = body->inputs->pdata[i];
    return hn_type_rank(v->type) == 1;
}

/* Runs, where they are known ahead: there is no condition to end them earlier. */
static HnDim runs_of(const HnInfer *x)
{
    int64_t m;
    int n;
    if (hn_infer_has(x, 1) || !hn_infer_ints(x, 0, &m, 1, &n) || n != 1)
        return hn_dim_unknown();
    return hn_dim(MAX(0, m));
}

/* As often as it may run, whatever its condition says; a huge number stands for no limit. */
double hn_loop_runs(const HnTypes *t, const HnNode *n)
{
    const HnTensor *known = hn_node_in(n, 0) != NULL ? hn_types_value(t, hn_node_in(n, 0)) : NULL;
    const int64_t runs = known != NULL && known->n == 1 ? hn_tensor_get_i64(known, 0) : NO_LIMIT;
    return runs < NO_LIMIT ? (double)MAX(0, runs) : NAN;
}

static void loop_infer(HnInfer *x)
{
    const HnLoop *p = x->params;
    int n_in = 2 + p->carried, n_out = 1 + p->carried + p->stacked;
    g_autofree HnType **in = g_new0(HnType *, (gsize)n_in), **out = g_new0(HnType *, (gsize)n_out);
    const int64_t one[] = { 1 };
    in[0] = hn_type_fixed(HN_I64, as_list(p->body, 0) ? 1 : 0, one);
    in[1] = hn_type_fixed(HN_BOOL, as_list(p->body, 1) ? 1 : 0, one);
    for (int i = 0; i < p->carried; i++)
        in[2 + i] = x->in[2 + i] != NULL ? hn_type_ref(x->in[2 + i]) : NULL;
    gboolean ok = hn_control_carry(x, p->body, n_in, in, 2, n_out, out, 1, p->carried);
    HnDim runs = runs_of(x), dims[HN_MAX_RANK];
    for (int i = 0; ok && i < p->carried; i++)
        hn_control_out(x, i, g_steal_pointer(&in[2 + i]));
    for (int k = 0; ok && k < p->stacked; k++) {
        const HnType *t = out[1 + p->carried + k];
        if (!hn_type_is_tensor(t))
            continue;
        int rank = t->rank >= 0 && t->rank < HN_MAX_RANK && !hn_dim_is(runs, 0) ? t->rank + 1 : -1;
        dims[0] = runs;
        for (int i = 1; i < rank; i++)
            dims[i] = t->dims[i - 1];
        hn_infer_out(x, p->carried + k, t->dtype, rank, dims);
    }
    hn_control_unref_types(in, n_in);
    hn_control_unref_types(out, n_out);
}

static HnTensor *truth(HnEval *e, gboolean v, gboolean list)
{
    const int64_t one[] = { 1 };
    HnTensor *t = hn_tensor_new(HN_BOOL, list ? 1 : 0, one, e->budget, &e->error);
    if (t != NULL)
        *(uint8_t *)t->data = v ? 1 : 0;
    return t;
}

static gboolean is_true(HnEval *e, const HnTensor *t)
{
    if (t->dtype != HN_BOOL || t->n != 1) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the condition is not one bool");
        return FALSE;
    }
    return *(const uint8_t *)t->data != 0;
}

/* One run: in holds references of the carried values and gets those of the next run. FALSE: the last one, or an error.
 */
static gboolean run_body(HnEval *e, int64_t number, HnTensor **in, HnTensor **out, GPtrArray **stacks)
{
    const HnLoop *p = e->params;
    int n_in = 2 + p->carried, n_out = 1 + p->carried + p->stacked;
    hn_tensor_unref(in[0]);
    in[0] = as_list(p->body, 0) ? hn_tensor_ints(&number, 1) : hn_tensor_scalar_i64(number);
    if (!hn_budget_ask(e->budget, &e->error) || !e->graph(e, p->body, n_in, in, n_out, out))
        return FALSE;
    gboolean more = is_true(e, out[0]);
    hn_control_unref(in + 1, n_in - 1);
    memcpy(in + 1, out, (size_t)(n_in - 1) * sizeof *in);
    memset(out, 0, (size_t)(n_in - 1) * sizeof *out);
    for (int k = 0; k < p->stacked; k++)
        g_ptr_array_add(stacks[k], g_steal_pointer(&out[1 + p->carried + k]));
    return more && e->error == NULL;
}

static void finish(HnEval *e, HnTensor **in, GPtrArray **stacks)
{
    const HnLoop *p = e->params;
    for (int i = 0; i < p->carried && e->error == NULL; i++)
        if (hn_eval_wants(e, i))
            hn_eval_view(e, i, in[2 + i], in[2 + i]->ndim, in[2 + i]->dims);
    for (int k = 0; k < p->stacked && e->error == NULL; k++) {
        if (!hn_eval_wants(e, p->carried + k))
            continue;
        HnTensor *t =
            hn_control_stack(e, stacks[k], stacks[k]->len, 0, FALSE, p->body->outputs->pdata[1 + p->carried + k]);
        if (t != NULL)
            hn_eval_view(e, p->carried + k, t, t->ndim, t->dims);
        hn_tensor_unref(t);
    }
}

static void loop_ref(HnEval *e)
{
    const HnLoop *p = e->params;
    const HnTensor *m = hn_eval_in(e, 0), *cond = hn_eval_in(e, 1);
    int n_in = 2 + p->carried, n_out = 1 + p->carried + p->stacked;
    if (m != NULL && m->n != 1) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the trip count is not one number");
        return;
    }
    int64_t most = m != NULL ? hn_tensor_get_i64(m, 0) : G_MAXINT64;
    gboolean heed = cond != NULL || m == NULL, go = cond == NULL || is_true(e, cond);
    if (e->error != NULL)
        return;
    g_autofree HnTensor **in = g_new0(HnTensor *, (gsize)n_in), **out = g_new0(HnTensor *, (gsize)n_out);
    g_autofree GPtrArray **stacks = g_new0(GPtrArray *, (gsize)p->stacked + 1);
    for (int k = 0; k < p->stacked; k++)
        stacks[k] = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    in[1] = truth(e, go, as_list(p->body, 1));
    for (int i = 0; i < p->carried; i++)
        in[2 + i] = hn_tensor_ref(e->in[2 + i]);
    for (int64_t i = 0; i < most && go && e->error == NULL; i++)
        go = run_body(e, i, in, out, stacks) || (!heed && e->error == NULL);
    finish(e, in, stacks);
    hn_control_unref(in, n_in);
    hn_control_unref(out, n_out);
    for (int k = 0; k < p->stacked; k++)
        g_ptr_array_unref(stacks[k]);
}

/* Results stacked along axis 0, with samples in front of what is stacked: they go in front of all. */
static void stack_front(HnBatch *b, int k)
{
    int64_t perm[HN_MAX_RANK] = { 1, 0 };
    const int rank = hn_type_rank(b->was_out[k]) + 1;
    for (int a = 2; a < rank && a < HN_MAX_RANK; a++)
        perm[a] = a;
    if (rank < 2 || rank > HN_MAX_RANK)
        hn_batch_fail(b, "the rank of its output %d is not known", k);
    else
        hn_batch_turn_out(b, k, perm, rank);
    b->out[k] = hn_batch_place(0);
}

/* All samples at once, where they run equally often; or else one after the other. */
void hn_loop_batch(HnBatch *b)
{
    const HnLoop *p = b->params;
    const int n_in = 2 + p->carried, n_out = 1 + p->carried + p->stacked;
    b->choices = 2;
    if (b->wish == 1 || hn_batch_split(b, 0) || hn_batch_split(b, 1)) {
        b->apart(b);
        return;
    }
    g_autofree HnBatchFormal *in = g_new0(HnBatchFormal, (gsize)n_in), *out = g_new0(HnBatchFormal, (gsize)n_out);
    in[0].at = in[1].at = hn_batch_none();
    const HnBatchCarry c = { p->body, 2, 2, 1, p->carried, in, out };
    if (!hn_batch_carry(b, &c))
        return;
    if (out[0].at.axis >= 0) {
        hn_batch_fail(b, "how often it runs differs from sample to sample");
        return;
    }
    for (int k = 0; k < b->n_out; k++) {
        const HnBatchFormal *y = &out[1 + k];
        b->out[k] = y->at;
        if (k < p->carried || y->at.axis < 0 || hn_node_out(b->node, k) == NULL)
            continue;
        if (y->front)
            stack_front(b, k);
        else
            b->out[k].axis++;
    }
}

const HnOp hn_op_loop = {
    .name = "Loop",
    .flags = HN_OP_CONTROL | HN_OP_DYNAMIC,
    .since = { 1, 11, 13, 16, 19, 21, 23, 24, 25 },
    .lacks = HN_LACKS({ '.', 16, 0, HN_BIT(HN_BF16) }, HN_SMALL_TYPES('.', 19)),
    .in = "ib.~",
    .out = ".~",
    .min_in = HN_MIN_IN_NONE,
    .params_size = sizeof(HnLoop),
    .bind = loop_bind,
    .infer = loop_infer,
    .ref = loop_ref,
    .batch = hn_loop_batch,
};
