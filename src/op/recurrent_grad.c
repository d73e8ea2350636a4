/*
 * RNNGrad, GRUGrad, LSTMGrad (domain "hone"): gradients of recurrent layers through time, from what the layer became
 * at each step (op/recurrent.h). All functions of gates have derivatives that follow from their values.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/gemm.h"
#include "op/recurrent.h"
#include "op/tape.h"
#include "op/types.h"

/* --- writing it down ---------------------------------------------------------------------------------------------- */

/* Why values do not tell derivatives; NULL: they do. */
static const char *unclear(const HnRecurrent *p)
{
    const int n = p->per_direction * (p->direction == HN_BIDIRECTIONAL ? 2 : 1);
    if (!isinf(p->clip))
        return "no gradient through attribute 'clip'";
    for (int i = 0; i < n; i++) {
        const HnGate *a = &p->act[i];
        const gboolean signed_alpha = a->f == HN_GATE_LEAKY_RELU || a->f == HN_GATE_ELU ||
                                      a->f == HN_GATE_THRESHOLDED_RELU || a->f == HN_GATE_SCALED_TANH;
        if (signed_alpha && !(a->alpha > 0))
            return "no gradient through a function of gates whose alpha is not positive";
    }
    return NULL;
}

static const struct {
    const char *training, *grad;
    int n_out; /* of the first */
} names[] = {
    [HN_RNN] = { NULL, "RNNGrad", 1 },
    [HN_GRU] = { "GRUTraining", "GRUGrad", 3 },
    [HN_LSTM] = { "LSTMTraining", "LSTMGrad", 5 },
};

void hn_recurrent_grad(HnTape *t)
{
    static const int inputs[] = { 0, 1, 2, 3, 5, 6, 7 };
    const HnRecurrentKind kind = ((const HnRecurrent *)t->params)->kind;
    const char *reason = unclear(t->params);
    HnNode *n = t->node;
    if (reason != NULL) {
        hn_tape_refuse(t, "%s", reason);
        return;
    }
    HnValue *const dy[] = { hn_tape_dy(t, 0), hn_tape_dy(t, 1), kind == HN_LSTM ? hn_tape_dy(t, 2) : NULL };
    if (names[kind].training != NULL)
        hn_tape_become(t, names[kind].training, names[kind].n_out);
    else if (hn_node_out(n, 0) == NULL)
        hn_node_set_out(n, 0, hn_graph_new_value(n->graph, "states"));
    const int saved = names[kind].n_out - 2;
    HnValue *in[] = { hn_node_in(n, 0),
                      hn_node_in(n, 1),
                      hn_node_in(n, 2),
                      hn_node_in(n, 4),
                      hn_node_in(n, 5),
                      hn_node_in(n, 6),
                      hn_node_in(n, 7),
                      hn_node_out(n, 0),
                      kind == HN_LSTM  ? hn_node_out(n, saved)
                      : kind == HN_GRU ? hn_node_out(n, saved + 1)
                                       : NULL,
                      kind == HN_LSTM ? hn_node_out(n, saved + 1) : NULL,
                      dy[0],
                      dy[1],
                      dy[2] };
    HnNode *back = hn_tape_backward(t, names[kind].grad, G_N_ELEMENTS(in), in, 0);
    for (guint k = 0; k < G_N_ELEMENTS(inputs); k++)
        if (hn_tape_needs(t, inputs[k])) {
            hn_node_set_out(back, (int)k, hn_graph_new_value(n->graph, names[kind].grad));
            hn_tape_give(t, inputs[k], hn_node_out(back, (int)k));
        }
}

/* --- infer -------------------------------------------------------------------------------------------------------- */

static void recurrentgrad_infer(HnInfer *x)
{
    const HnRecurrent *p = x->params;
    static const int like[] = { HN_RECURRENT_X, HN_RECURRENT_W, HN_RECURRENT_R };
    const HnDtype dtype = hn_infer_dtype(x, 0);
    const HnDim batch = hn_infer_dim(x, 0, p->batch_first ? 0 : 1), hidden = hn_infer_dim(x, HN_RECURRENT_R, 2);
    const HnDim directions = hn_dim(p->direction == HN_BIDIRECTIONAL ? 2 : 1);
    for (guint k = 0; k < G_N_ELEMENTS(like); k++)
        hn_infer_out_shape_of(x, (int)k, dtype, like[k]);
    const HnDim state[3] = { p->batch_first ? batch : directions, p->batch_first ? directions : batch, hidden };
    hn_infer_out(x, HN_RECURRENT_DB, dtype, 2, (HnDim[]){ directions, hn_dim_mul(hidden, hn_dim(2 * p->gates)) });
    hn_infer_out(x, HN_RECURRENT_DH, dtype, 3, state);
    hn_infer_out(x, HN_RECURRENT_DC, dtype, 3, state);
    hn_infer_out(x, HN_RECURRENT_DP, dtype, 2, (HnDim[]){ directions, hn_dim_mul(hidden, hn_dim(3)) });
}

static void recurrentgrad_cost(const HnInfer *x, HnCost *c)
{
    const double rows = (double)hn_infer_dim(x, 0, 0).n * (double)hn_infer_dim(x, 0, 1).n;
    c->flops = 4 * rows * (hn_type_count(x->in[1]) + hn_type_count(x->in[2]));
}

/* --- ref ---------------------------------------------------------------------------------------------------------- */

/* The derivative of a gate's function where its value is y. */
static double slope(const HnGate *a, double y)
{
    switch (a->f) {
    case HN_GATE_RELU:
    case HN_GATE_THRESHOLDED_RELU:
        return y > 0 ? 1 : 0;
    case HN_GATE_TANH:
        return 1 - y * y;
    case HN_GATE_SIGMOID:
        return y * (1 - y);
    case HN_GATE_AFFINE:
        return a->alpha;
    case HN_GATE_LEAKY_RELU:
        return y >= 0 ? 1 : a->alpha;
    case HN_GATE_SCALED_TANH:
        return a->beta * (a->alpha - y * y / a->alpha);
    case HN_GATE_HARD_SIGMOID:
        return y > 0 && y < 1 ? a->alpha : 0;
    case HN_GATE_ELU:
        return y >= 0 ? 1 : y + a->alpha;
    case HN_GATE_SOFTSIGN:
        return (1 - fabs(y)) * (1 - fabs(y));
    default:
        return -expm1(-y);
    }
}

/* Of one direction, as doubles; rows are steps of samples [T,B]. */
typedef struct {
    const HnRecurrent *p;
    const HnGate *act;
    int64_t steps, batch, directions, inputs, hidden, gates, slots; /* the last two in elements: times hidden */
    gboolean reverse;
    double *x, *w, *r, *peep, *y, *kept, *cells, *dy, *dy_h, *dy_c, *h, *c; /* h, c: [B,H], at the beginning */
    double *dg, *before, *reset, *dh, *dc, *carry, *part;                   /* [T*B,slots], [T*B,H] twice, [B,H] */
    double *dx, *db, *dp;                                                   /* dx: [T*B,I], of both directions */
    int64_t *lens;
} Back;

/* Row of step t of sample b, direction d of so many, in a tensor of that layout. */
static int64_t row_of(gboolean batch_first, const Back *s, int64_t steps, int64_t d, int64_t directions, int64_t t,
                      int64_t b)
{
    return batch_first ? (b * steps + t) * directions + d : (t * directions + d) * s->batch + b;
}

/* Input i, [steps, directions, B, width] or batch first, as [steps*B, width] of direction d; zeros where absent. */
static double *load(HnEval *e, int i, const Back *s, gboolean batch_first, int64_t steps, int64_t d, int64_t directions,
                    int64_t width)
{
    const HnTensor *t = hn_eval_in(e, i);
    double *v = hn_eval_scratch(e, MAX(1, steps * s->batch * width), sizeof *v);
    if (v == NULL)
        return NULL;
    if (t != NULL && t->n != steps * s->batch * directions * width) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input %d does not fit the others", i);
        return v;
    }
    for (int64_t k = 0; k < steps; k++)
        for (int64_t b = 0; b < s->batch; b++) {
            const int64_t from = row_of(batch_first, s, steps, d, directions, k, b) * width;
            for (int64_t j = 0; j < width; j++)
                v[(k * s->batch + b) * width + j] = t != NULL ? hn_tensor_get_f64(t, from + j) : 0;
        }
    return v;
}

/* Elements [d * n, d * n + n) of input i; zeros where absent. */
static double *load_part(HnEval *e, int i, int64_t d, int64_t n)
{
    const HnTensor *t = hn_eval_in(e, i);
    double *v = hn_eval_scratch(e, MAX(1, n), sizeof *v);
    if (v != NULL && t != NULL && t->n < (d + 1) * n)
        hn_eval_fail(e, HN_ERROR_SHAPE, "input %d does not fit the others", i);
    for (int64_t j = 0; e->error == NULL && j < n; j++)
        v[j] = t != NULL ? hn_tensor_get_f64(t, d * n + j) : 0;
    return v;
}

static void store(HnEval *e, int k, int64_t at, const double *v, int64_t n)
{
    if (!hn_eval_wants(e, k))
        return;
#define RUN(T)                      \
    for (int64_t j = 0; j < n; j++) \
        ((T *)e->out[k]->data)[at + j] = (T)v[j];
    HN_FOR_FLOAT(e->out[k]->dtype, RUN)
#undef RUN
}

static void store_rows(HnEval *e, int k, const Back *s, int64_t steps, int64_t d, int64_t directions, const double *v,
                       int64_t width)
{
    for (int64_t t = 0; t < steps; t++)
        for (int64_t b = 0; b < s->batch; b++)
            store(e, k, row_of(s->p->batch_first, s, steps, d, directions, t, b) * width,
                  v + (t * s->batch + b) * width, width);
}

/* Gradients of the sums of one sample's gates at one step. dh, dc: of its state behind the step. carry: what the state
 * before it gets besides the product with R; dc becomes the cell state's. */
typedef struct {
    const Back *s;
    const double *kept, *before, *cells, *cells_before;
    double *dg, *dh, *dc, *carry, *dp;
} Sample;

static void rnn_sample(const Sample *a, const double *y)
{
    for (int64_t i = 0; i < a->s->hidden; i++) {
        a->dg[i] = a->dh[i] * slope(&a->s->act[0], y[i]);
        a->carry[i] = 0;
    }
}

static void lstm_sample(const Sample *a)
{
    const HnGate *act = a->s->act;
    const int64_t n = a->s->hidden;
    const gboolean coupled = a->s->p->input_forget;
    for (int64_t i = 0; i < n; i++) {
        const double in = a->kept[i], out = a->kept[n + i], forget = a->kept[2 * n + i], cell = a->kept[3 * n + i];
        const double now = hn_gate_value(&act[2], a->cells[i]), old = a->cells_before[i];
        const double d_out = a->dh[i] * now * slope(&act[0], out);
        const double dc = a->dc[i] + a->dh[i] * out * slope(&act[2], now) + d_out * a->s->peep[n + i];
        const double d_in = dc * (coupled ? cell - old : cell) * slope(&act[0], in);
        const double d_forget = coupled ? 0 : dc * old * slope(&act[0], forget);
        a->dg[i] = d_in;
        a->dg[n + i] = d_out;
        a->dg[2 * n + i] = d_forget;
        a->dg[3 * n + i] = dc * in * slope(&act[1], cell);
        a->dp[i] += d_in * old;
        a->dp[n + i] += d_out * a->cells[i];
        a->dp[2 * n + i] += d_forget * old;
        a->dc[i] = dc * forget + d_in * a->s->peep[i] + d_forget * a->s->peep[2 * n + i];
        a->carry[i] = 0;
    }
}

/* With linear_before_reset all of it, else all but the reset gate. */
static void gru_sample(const Sample *a)
{
    const HnGate *act = a->s->act;
    const int64_t n = a->s->hidden;
    for (int64_t i = 0; i < n; i++) {
        const double z = a->kept[i], reset = a->kept[n + i], hidden = a->kept[2 * n + i];
        const double d_hidden = a->dh[i] * (1 - z) * slope(&act[1], hidden);
        a->dg[i] = a->dh[i] * (a->before[i] - hidden) * slope(&act[0], z);
        a->dg[2 * n + i] = d_hidden;
        a->carry[i] = a->dh[i] * z;
        if (!a->s->p->linear_before_reset)
            continue;
        a->dg[n + i] = d_hidden * a->kept[3 * n + i] * slope(&act[0], reset);
        a->dg[3 * n + i] = d_hidden * reset;
    }
}

/* c [m,n] (+)= a * b, a [m,k] or transposed. */
static void product(double *c, const double *a, int64_t a_row, int64_t a_col, const double *b, int64_t b_row, int64_t m,
                    int64_t n, int64_t k, gboolean add)
{
    const HnGemm g = { .m = m,
                       .n = n,
                       .k = k,
                       .a = a,
                       .a_row = a_row,
                       .a_col = a_col,
                       .b = b,
                       .b_row = b_row,
                       .b_col = 1,
                       .c = c,
                       .c_row = n,
                       .add = add ? c : NULL,
                       .add_row = n,
                       .add_col = 1,
                       .alpha = 1,
                       .beta = 1 };
    hn_gemm(HN_F64, &g);
}

/* The state before it is multiplied gets a gradient through the reset gate: dg's part, and what the state gets. */
static void reset_gate(Back *s, int64_t t)
{
    const int64_t n = s->hidden;
    double *dg = s->dg + t * s->batch * s->slots;
    product(s->part, dg + 2 * n, s->slots, 1, s->r + 2 * n * n, n, s->batch, n, n, FALSE);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t i = 0; i < n && t < s->lens[b]; i++) {
            const int64_t at = (t * s->batch + b) * n + i;
            const double reset = s->kept[(t * s->batch + b) * s->slots + n + i], d = s->part[b * n + i];
            dg[b * s->slots + n + i] = d * s->before[at] * slope(&s->act[0], reset);
            s->carry[b * n + i] += d * reset;
            s->reset[at] = reset * s->before[at];
        }
}

/* What the last results of a sequence say of its states. */
static void begin_sample(Back *s, int64_t b)
{
    for (int64_t i = b * s->hidden; i < (b + 1) * s->hidden; i++) {
        s->dh[i] = s->dy_h[i];
        s->dc[i] = s->dy_c[i];
    }
}

static void sample_step(Back *s, int64_t t, int64_t b)
{
    const int64_t n = s->hidden, at = t * s->batch + b, before = s->reverse ? at + s->batch : at - s->batch;
    const gboolean first = s->reverse ? t == s->lens[b] - 1 : t == 0;
    if (s->reverse ? t == 0 : t == s->lens[b] - 1)
        begin_sample(s, b);
    memcpy(s->before + at * n, first ? s->h + b * n : s->y + before * n, (size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        s->dh[b * n + i] += s->dy[at * n + i];
    const Sample a = { .s = s,
                       .kept = s->kept + at * s->slots,
                       .before = s->before + at * n,
                       .cells = s->cells + at * n,
                       .cells_before = first ? s->c + b * n : s->cells + before * n,
                       .dg = s->dg + at * s->slots,
                       .dh = s->dh + b * n,
                       .dc = s->dc + b * n,
                       .carry = s->carry + b * n,
                       .dp = s->dp };
    if (s->p->kind == HN_RNN)
        rnn_sample(&a, s->y + at * n);
    else if (s->p->kind == HN_LSTM)
        lstm_sample(&a);
    else
        gru_sample(&a);
}

static void step(Back *s, int64_t t)
{
    const int64_t n = s->hidden;
    const gboolean apart = s->p->kind == HN_GRU, linear = s->p->linear_before_reset;
    const double *dg = s->dg + t * s->batch * s->slots;
    for (int64_t b = 0; b < s->batch; b++)
        if (t < s->lens[b])
            sample_step(s, t, b);
    if (apart && !linear)
        reset_gate(s, t);
    product(s->part, dg, s->slots, 1, s->r, n, s->batch, n, apart ? 2 * n : s->gates, FALSE);
    if (apart && linear)
        product(s->part, dg + 3 * n, s->slots, 1, s->r + 2 * n * n, n, s->batch, n, n, TRUE);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t i = b * n; i < (b + 1) * n && t < s->lens[b]; i++)
            s->dh[i] = s->carry[i] + s->part[i];
}

/* Sums over rows: of gates [from, from + n) of the rows to v. */
static void add_rows(const Back *s, double *v, int64_t from, int64_t n)
{
    for (int64_t row = 0; row < s->steps * s->batch; row++)
        for (int64_t i = 0; i < n; i++)
            v[i] += s->dg[row * s->slots + from + i];
}

static void store_weights(HnEval *e, Back *s, int64_t d)
{
    const int64_t n = s->hidden, rows = s->steps * s->batch, width = s->gates;
    const gboolean apart = s->p->kind == HN_GRU, linear = s->p->linear_before_reset;
    double *to = hn_eval_scratch(e, MAX(1, width * MAX(s->inputs, n)), sizeof *to);
    if (to == NULL)
        return;
    product(to, s->dg, 1, s->slots, s->x, s->inputs, width, s->inputs, rows, FALSE);
    store(e, HN_RECURRENT_DW, d * width * s->inputs, to, width * s->inputs);
    product(to, s->dg, 1, s->slots, s->before, n, apart ? 2 * n : width, n, rows, FALSE);
    if (apart)
        product(to + 2 * n * n, s->dg + (linear ? 3 : 2) * n, 1, s->slots, linear ? s->before : s->reset, n, n, n, rows,
                FALSE);
    store(e, HN_RECURRENT_DR, d * width * n, to, width * n);
    hn_eval_scratch_free(e, to);
    add_rows(s, s->db, 0, width);
    add_rows(s, s->db + width, 0, apart && linear ? 2 * n : width);
    if (apart && linear)
        add_rows(s, s->db + width + 2 * n, 3 * n, n);
    store(e, HN_RECURRENT_DB, d * 2 * width, s->db, 2 * width);
    store(e, HN_RECURRENT_DP, d * 3 * n, s->dp, 3 * n);
    store_rows(e, HN_RECURRENT_DH, s, 1, d, s->directions, s->dh, n);
    store_rows(e, HN_RECURRENT_DC, s, 1, d, s->directions, s->dc, n);
    product(s->dx, s->dg, s->slots, 1, s->w, s->inputs, rows, s->inputs, width, TRUE);
}

static double *zeros(HnEval *e, int64_t n)
{
    double *v = hn_eval_scratch(e, MAX(1, n), sizeof *v);
    if (v != NULL)
        memset(v, 0, (size_t)n * sizeof *v);
    return v;
}

static void run_direction(HnEval *e, Back *s, int64_t d)
{
    const int64_t n = s->hidden, t = s->steps, rows = t * s->batch, all = s->directions;
    const gboolean first = s->p->batch_first;
    s->act = s->p->act + d * s->p->per_direction;
    s->reverse = s->p->direction == HN_REVERSE || d == 1;
    double **own[] = {
        &s->w, &s->r,  &s->peep,   &s->y,     &s->kept, &s->cells, &s->dy,    &s->dy_h, &s->dy_c, &s->h,
        &s->c, &s->dg, &s->before, &s->reset, &s->dh,   &s->dc,    &s->carry, &s->part, &s->db,   &s->dp
    };
    s->w = load_part(e, HN_RECURRENT_W, d, s->gates * s->inputs);
    s->r = load_part(e, HN_RECURRENT_R, d, s->gates * n);
    s->peep = load_part(e, HN_RECURRENT_P, d, 3 * n);
    s->y = load(e, HN_RECURRENT_Y, s, first, t, d, all, n);
    s->kept = load(e, HN_RECURRENT_GATES, s, FALSE, t, d, all, s->slots);
    s->cells = load(e, HN_RECURRENT_CELLS, s, FALSE, t, d, all, n);
    s->dy = load(e, HN_RECURRENT_DY, s, first, t, d, all, n);
    s->dy_h = load(e, HN_RECURRENT_DY_H, s, first, 1, d, all, n);
    s->dy_c = load(e, HN_RECURRENT_DY_C, s, first, 1, d, all, n);
    s->h = load(e, HN_RECURRENT_H, s, first, 1, d, all, n);
    s->c = load(e, HN_RECURRENT_C, s, first, 1, d, all, n);
    s->dg = zeros(e, rows * s->slots);
    s->before = zeros(e, rows * n);
    s->reset = zeros(e, rows * n);
    s->dh = zeros(e, s->batch * n);
    s->dc = zeros(e, s->batch * n);
    s->carry = zeros(e, s->batch * n);
    s->part = zeros(e, s->batch * n);
    s->db = zeros(e, 2 * s->gates);
    s->dp = zeros(e, 3 * n);
    for (int64_t k = 0; e->error == NULL && k < t; k++)
        step(s, s->reverse ? k : t - 1 - k);
    if (e->error == NULL)
        store_weights(e, s, d);
    for (guint i = 0; i < G_N_ELEMENTS(own); i++)
        hn_eval_scratch_free(e, *own[i]);
}

static gboolean measure(HnEval *e, Back *s)
{
    const HnTensor *x = hn_eval_in(e, HN_RECURRENT_X), *w = hn_eval_in(e, HN_RECURRENT_W);
    const HnTensor *r = hn_eval_in(e, HN_RECURRENT_R);
    s->p = e->params;
    const gboolean ranks = x->ndim == 3 && w->ndim == 3 && r->ndim == 3;
    const gboolean rows = ranks && r->dims[1] == s->p->gates * r->dims[2] && w->dims[1] == r->dims[1];
    const gboolean directions =
        ranks && w->dims[0] == r->dims[0] && r->dims[0] == (s->p->direction == HN_BIDIRECTIONAL ? 2 : 1);
    if (!rows || !directions || w->dims[2] != x->dims[2]) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the weights do not fit the input or the direction");
        return FALSE;
    }
    if (hn_eval_in(e, HN_RECURRENT_Y) == NULL || (s->p->kind != HN_RNN && hn_eval_in(e, HN_RECURRENT_GATES) == NULL) ||
        (s->p->kind == HN_LSTM && hn_eval_in(e, HN_RECURRENT_CELLS) == NULL)) {
        hn_eval_fail(e, HN_ERROR_GRAPH, "what the layer became at each step is missing");
        return FALSE;
    }
    s->steps = x->dims[s->p->batch_first ? 1 : 0];
    s->batch = x->dims[s->p->batch_first ? 0 : 1];
    s->directions = r->dims[0];
    s->inputs = x->dims[2];
    s->hidden = r->dims[2];
    s->gates = s->p->gates * s->hidden;
    int64_t all;
    if (!hn_mul_i64(s->hidden, 2 * hn_recurrent_slots(s->p), &s->slots) ||
        !hn_mul_i64(s->steps * s->batch, MAX(1, s->slots), &all)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the number of hidden elements overflows");
        return FALSE;
    }
    s->slots /= 2;
    return TRUE;
}

static gboolean allocate(HnEval *e, const Back *s)
{
    const HnDtype dtype = e->in[0]->dtype;
    const int64_t first = s->p->batch_first ? s->batch : s->directions;
    const int64_t state[3] = { first, s->p->batch_first ? s->directions : s->batch, s->hidden };
    for (int k = HN_RECURRENT_DX; k <= HN_RECURRENT_DP; k++) {
        if (!hn_eval_wants(e, k))
            continue;
        const void *to =
            k <= HN_RECURRENT_DR   ? hn_eval_out_like(e, k, e->in[k])
            : k == HN_RECURRENT_DB ? hn_eval_out(e, k, dtype, 2, (int64_t[]){ s->directions, 2 * s->gates })
            : k == HN_RECURRENT_DP ? hn_eval_out(e, k, dtype, 2, (int64_t[]){ s->directions, 3 * s->hidden })
                                   : hn_eval_out(e, k, dtype, 3, state);
        if (to == NULL)
            return FALSE;
    }
    return TRUE;
}

static void recurrentgrad_ref(HnEval *e)
{
    Back s = { 0 };
    if (!measure(e, &s) || !allocate(e, &s))
        return;
    s.lens = hn_recurrent_lens(e, HN_RECURRENT_LENS, s.batch, s.steps);
    s.x = e->error == NULL ? load(e, HN_RECURRENT_X, &s, s.p->batch_first, s.steps, 0, 1, s.inputs) : NULL;
    s.dx = e->error == NULL ? zeros(e, s.steps * s.batch * s.inputs) : NULL;
    for (int64_t d = 0; e->error == NULL && d < s.directions; d++)
        run_direction(e, &s, d);
    if (e->error == NULL)
        store_rows(e, HN_RECURRENT_DX, &s, s.steps, 0, 1, s.dx, s.inputs);
    hn_eval_scratch_free(e, s.x);
    hn_eval_scratch_free(e, s.dx);
    hn_eval_scratch_free(e, s.lens);
}

#define RECORD(symbol, NAME, binder)        \
    const HnOp hn_op_##symbol = {           \
        .name = NAME,                       \
        .domain = HN_DOMAIN_INTERNAL,       \
        .flags = HN_OP_HALF_VIA_F32,        \
        .since = { 1 },                     \
        .in = "TTTjTTTTTTTTT",              \
        .out = "TTTTTTT",                   \
        .T = HN_T_FLOATS,                   \
        .min_in = 3,                        \
        .params_size = sizeof(HnRecurrent), \
        .bind = binder,                     \
        .infer = recurrentgrad_infer,       \
        .cost = recurrentgrad_cost,         \
        .ref = recurrentgrad_ref,           \
    }
RECORD(rnngrad, "RNNGrad", hn_rnn_bind);
RECORD(grugrad, "GRUGrad", hn_gru_bind);
RECORD(lstmgrad, "LSTMGrad", hn_lstm_bind);
