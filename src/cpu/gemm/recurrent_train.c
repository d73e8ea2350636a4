/*
 * LSTMTraining and LSTMGrad of f32, of whole sequences without peepholes and the usual functions of the gates. The
 * products with W, and all that gives gradients of weights, are made for all steps at once; from step to step there is
 * the product with R alone. Threads share samples, then the rows of results: no sum depends on how many there are.
 * Weights are packed in each run: what trains has new ones each time.
 */
#include <math.h>
#include <string.h>

#include "cpu/core/cpu_kernel.h"
#include "cpu/gemm/gemm_kernel.h"
#include "op/recurrent.h"

#define HN_LEVEL plain
#include "cpu/gemm/recurrent_train_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx2
#include "cpu/gemm/recurrent_train_loops.h"
#undef HN_LEVEL
#define HN_LEVEL avx512
#include "cpu/gemm/recurrent_train_loops.h"

typedef struct {
    void (*row)(float *g, const float *before, float *cell, float *h, int64_t n);
    void (*row_grad)(const float *g, const float *before, const float *cell, const float *dh, float *dc, float *dg,
                     int64_t n);
} Level;

static const Level levels[HN_LEVELS] = {
    { lstm_row_plain, lstm_row_grad_plain },
    { lstm_row_avx2, lstm_row_grad_avx2 },
    { lstm_row_avx512, lstm_row_grad_avx512 },
};

typedef struct {
    int64_t steps, batch, directions, inputs, hidden, width; /* width: of all gates */
    int threads;
    gboolean only_backwards; /* the one direction */
    int64_t room;            /* floats of a thread for blocks of transposed gates */
} Layer;

/* --- both --------------------------------------------------------------------------------------------------------- */

static void measure(const HnStep *s, Layer *l)
{
    const HnRecurrent *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *r = hn_cpu_in(s, 2);
    *l = (Layer){ .steps = x->dims[0],
                  .batch = x->dims[1],
                  .directions = r->dims[0],
                  .inputs = x->dims[2],
                  .hidden = r->dims[2],
                  .width = r->dims[1],
                  .only_backwards = p->direction == HN_REVERSE };
    const double flops = 2 * (double)l->width * (double)(l->inputs + l->hidden) * (double)l->steps * (double)l->batch;
    l->threads = (int)MIN(l->batch, (int64_t)hn_cpu_threads_for(s, flops));
    l->room = hn_gemm_kernel_room(l->width, l->steps * l->batch);
}

static const char *reject(const HnStep *s, int lens, int peepholes)
{
    const HnRecurrent *p = s->params;
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const HnSlot *slot = i < s->n_in ? s->in[i].slot : s->out[i - s->n_in].slot;
        if (slot != NULL && i != lens && slot->tensor->dtype != HN_F32)
            return "only f32";
        if (slot != NULL && slot->tensor->n == 0)
            return "nothing to compute";
    }
    if (hn_cpu_in(s, lens) != NULL || hn_cpu_in(s, peepholes) != NULL)
        return "lengths of sequences, or peepholes";
    if (p->batch_first || p->input_forget || !isinf(p->clip))
        return "layout 1, input_forget or clip";
    for (int i = 0; i < p->per_direction * (p->direction == HN_BIDIRECTIONAL ? 2 : 1); i++)
        if (p->act[i].f != (i % 3 == 0 ? HN_GATE_SIGMOID : HN_GATE_TANH))
            return "other functions than Sigmoid and Tanh";
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *r = hn_cpu_in(s, 2);
    const gboolean ranks = x->ndim == 3 && w->ndim == 3 && r->ndim == 3;
    if (!ranks || r->dims[1] != 4 * r->dims[2] || w->dims[1] != r->dims[1] || w->dims[2] != x->dims[2])
        return "the shapes do not fit";
    return w->dims[0] != r->dims[0] || r->dims[0] != (p->direction == HN_BIDIRECTIONAL ? 2 : 1)
               ? "the shapes do not fit"
               : NULL;
}

static gboolean holds(const HnStep *s, int i, int64_t n)
{
    return hn_cpu_in(s, i) == NULL || hn_cpu_in(s, i)->n == n;
}

static const float *input(const HnStep *s, int i)
{
    return hn_cpu_in(s, i) != NULL ? hn_cpu_data(&s->in[i]) : NULL;
}

static float *output(const HnStep *s, int k)
{
    return k < s->n_out && s->out[k].slot != NULL ? hn_cpu_data(&s->out[k]) : NULL;
}

static gboolean backwards(const Layer *l, int64_t d)
{
    return l->only_backwards || d == 1;
}

/* First of direction d's rows of step t, in values [T,D,B,...]. */
static int64_t row_of(const Layer *l, int64_t d, int64_t t)
{
    return (t * l->directions + d) * l->batch;
}

static HnGemmBlocked product(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    return (HnGemmBlocked){ .m = m,
                            .n = n,
                            .k = k,
                            .a = a,
                            .b = b,
                            .c = c,
                            .a_pitch = k,
                            .a_k = 1,
                            .c_pitch = n,
                            .lo = HN_GEMM_KERNEL_LOW,
                            .hi = HN_GEMM_KERNEL_HIGH };
}

static void share(const Layer *l, const HnGemmBlocked *g, float *rooms)
{
#pragma omp parallel for num_threads(l->threads) if (l->threads > 1)
    for (int t = 0; t < l->threads; t++) {
        HnGemmBlocked own = *g;
        own.room = rooms != NULL ? rooms + t * l->room : NULL;
        hn_gemm_blocked(&own, t, l->threads);
    }
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

enum { X, W, R, BIAS, LENS, H0, C0, PEEP };
enum { Y, Y_H, Y_C, GATES, CELLS };

static const char *train_reject(const HnStep *s)
{
    const char *reason = reject(s, LENS, PEEP);
    if (reason != NULL)
        return reason;
    Layer l;
    measure(s, &l);
    if (s->n_out <= CELLS || s->out[Y].slot == NULL)
        return "states are not asked for";
    if (s->out[GATES].slot == NULL || s->out[CELLS].slot == NULL)
        return "gates are not asked for";
    const int64_t state = l.directions * l.batch * l.hidden;
    return holds(s, BIAS, 2 * l.directions * l.width) && holds(s, H0, state) && holds(s, C0, state)
               ? NULL
               : "the shapes do not fit";
}

static gboolean train_prepare(HnStep *s, GError **error)
{
    (void)error;
    Layer *l = g_new0(Layer, 1);
    s->state = l;
    measure(s, l);
    s->scratch_bytes =
        (gsize)(hn_gemm_kernel_packed(l->inputs, l->width) + hn_gemm_kernel_packed(l->hidden, l->width) + l->width) *
        sizeof(float);
    return TRUE;
}

/* All steps of samples [from, to) of direction d, behind the products with W. */
static void advance(const HnStep *s, const Layer *l, int64_t d, int64_t from, int64_t to, const float *r)
{
    const int64_t n = l->hidden;
    const float *h = input(s, H0), *c = input(s, C0);
    const int64_t state = (d * l->batch + from) * n;
    h = h != NULL ? h + state : NULL;
    c = c != NULL ? c + state : NULL;
    for (int64_t k = 0; k < l->steps; k++) {
        const int64_t at = row_of(l, d, backwards(l, d) ? l->steps - 1 - k : k) + from;
        float *gates = output(s, GATES) + at * l->width, *cells = output(s, CELLS) + at * n, *y = output(s, Y) + at * n;
        HnGemmBlocked g = product(to - from, l->width, n, h, r, gates);
        g.accumulate = TRUE;
        if (h != NULL)
            hn_gemm_blocked(&g, 0, 1);
        for (int64_t b = 0; b < to - from; b++)
            levels[hn_cpu_level()].row(gates + b * l->width, c != NULL ? c + b * n : NULL, cells + b * n, y + b * n, n);
        h = y;
        c = cells;
    }
    if (output(s, Y_H) != NULL)
        memcpy(output(s, Y_H) + state, h, (gsize)((to - from) * n) * sizeof(float));
    if (output(s, Y_C) != NULL)
        memcpy(output(s, Y_C) + state, c, (gsize)((to - from) * n) * sizeof(float));
}

static gboolean train_run(HnStep *s, GError **error)
{
    (void)error;
    const Layer *l = s->state;
    float *w = s->scratch, *r = w + hn_gemm_kernel_packed(l->inputs, l->width);
    float *bias = r + hn_gemm_kernel_packed(l->hidden, l->width);
    for (int64_t d = 0; d < l->directions; d++) {
        const float *b = input(s, BIAS) != NULL ? input(s, BIAS) + d * 2 * l->width : NULL;
        for (int64_t i = 0; i < l->width; i++)
            bias[i] = b != NULL ? b[i] + b[l->width + i] : 0;
        hn_gemm_kernel_pack(w, input(s, W) + d * l->width * l->inputs, 1, l->inputs, l->inputs, l->width);
        hn_gemm_kernel_pack(r, input(s, R) + d * l->width * l->hidden, 1, l->hidden, l->hidden, l->width);
        const int64_t at_once = l->directions == 1 ? l->steps : 1;
        for (int64_t t = 0; t < l->steps; t += at_once) {
            HnGemmBlocked g = product(at_once * l->batch, l->width, l->inputs, input(s, X) + t * l->batch * l->inputs,
                                      w, output(s, GATES) + row_of(l, d, t) * l->width);
            g.bias = bias;
            share(l, &g, NULL);
        }
#pragma omp parallel for num_threads(l->threads) if (l->threads > 1)
        for (int t = 0; t < l->threads; t++)
            advance(s, l, d, l->batch * t / l->threads, l->batch * (t + 1) / l->threads, r);
    }
    return TRUE;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static const char *grad_reject(const HnStep *s)
{
    const char *reason = reject(s, HN_RECURRENT_LENS, HN_RECURRENT_P);
    if (reason != NULL)
        return reason;
    Layer l;
    measure(s, &l);
    const int64_t state = l.directions * l.batch * l.hidden, all = state * l.steps;
    if (hn_cpu_in(s, HN_RECURRENT_Y) == NULL || hn_cpu_in(s, HN_RECURRENT_GATES) == NULL ||
        hn_cpu_in(s, HN_RECURRENT_CELLS) == NULL)
        return "what the layer became is missing";
    const gboolean steps = holds(s, HN_RECURRENT_Y, all) && holds(s, HN_RECURRENT_GATES, 4 * all) &&
                           holds(s, HN_RECURRENT_CELLS, all) && holds(s, HN_RECURRENT_DY, all);
    const gboolean states = holds(s, HN_RECURRENT_H, state) && holds(s, HN_RECURRENT_C, state) &&
                            holds(s, HN_RECURRENT_DY_H, state) && holds(s, HN_RECURRENT_DY_C, state);
    return steps && states ? NULL : "the shapes do not fit";
}

/* Scratch memory: gradients of gates and the states before each step, of all rows; of the running states; packed right
 * operands; blocks of each thread. */
typedef struct {
    float *dg, *before, *dh, *dc, *none, *packed, *rooms;
    int64_t floats;
} Parts;

static Parts parts_of(const Layer *l, float *at)
{
    const int64_t rows = l->steps * l->batch, state = l->batch * l->hidden, most = MAX(rows, l->width);
    const int64_t sizes[] = { rows * l->width,
                              rows * l->hidden,
                              state,
                              state,
                              l->hidden,
                              hn_gemm_kernel_packed(most, MAX(l->inputs, l->hidden)),
                              l->threads * l->room };
    Parts p = { 0 };
    float **part[] = { &p.dg, &p.before, &p.dh, &p.dc, &p.none, &p.packed, &p.rooms };
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        *part[i] = at != NULL ? at + p.floats : NULL;
        p.floats += sizes[i];
    }
    return p;
}

static gboolean grad_prepare(HnStep *s, GError **error)
{
    (void)error;
    Layer *l = g_new0(Layer, 1);
    s->state = l;
    measure(s, l);
    s->scratch_bytes = (gsize)parts_of(l, NULL).floats * sizeof(float);
    return TRUE;
}

/* Of one sample at one step; `first`: of its sequence. */
static void sample_grad(const HnStep *s, const Layer *l, const Parts *p, int64_t d, int64_t t, int64_t b)
{
    const int64_t n = l->hidden, at = row_of(l, d, t) + b, state = (d * l->batch + b) * n;
    const int64_t last = backwards(l, d) ? t + 1 : t - 1, from = row_of(l, d, last) + b;
    const gboolean first = last < 0 || last == l->steps;
    const float *h0 = input(s, HN_RECURRENT_H), *c0 = input(s, HN_RECURRENT_C), *dy = input(s, HN_RECURRENT_DY);
    const float *h = first ? (h0 != NULL ? h0 + state : p->none) : input(s, HN_RECURRENT_Y) + from * n;
    const float *c = first ? (c0 != NULL ? c0 + state : p->none) : input(s, HN_RECURRENT_CELLS) + from * n;
    float *dh = p->dh + b * n;
    memcpy(p->before + (t * l->batch + b) * n, h, (gsize)n * sizeof(float));
    for (int64_t i = 0; dy != NULL && i < n; i++)
        dh[i] += dy[at * n + i];
    levels[hn_cpu_level()].row_grad(input(s, HN_RECURRENT_GATES) + at * l->width, c,
                                    input(s, HN_RECURRENT_CELLS) + at * n, dh, p->dc + b * n,
                                    p->dg + (t * l->batch + b) * l->width, n);
}

static void begin(const HnStep *s, const Layer *l, float *to, int i, int64_t d, int64_t from, int64_t n)
{
    const float *v = input(s, i);
    if (v != NULL)
        memcpy(to + from * l->hidden, v + (d * l->batch + from) * l->hidden, (gsize)(n * l->hidden) * sizeof(float));
    else
        memset(to + from * l->hidden, 0, (gsize)(n * l->hidden) * sizeof(float));
}

static void finish(const HnStep *s, const Layer *l, const float *v, int k, int64_t d, int64_t from, int64_t n)
{
    if (output(s, k) != NULL)
        memcpy(output(s, k) + (d * l->batch + from) * l->hidden, v + from * l->hidden,
               (gsize)(n * l->hidden) * sizeof(float));
}

/* All steps of samples [from, to), from the last one on; p->packed holds R. */
static void go_back(const HnStep *s, const Layer *l, const Parts *p, int64_t d, int64_t from, int64_t to)
{
    begin(s, l, p->dh, HN_RECURRENT_DY_H, d, from, to - from);
    begin(s, l, p->dc, HN_RECURRENT_DY_C, d, from, to - from);
    for (int64_t k = 0; k < l->steps; k++) {
        const int64_t t = backwards(l, d) ? k : l->steps - 1 - k;
        for (int64_t b = from; b < to; b++)
            sample_grad(s, l, p, d, t, b);
        const HnGemmBlocked g = product(to - from, l->hidden, l->width, p->dg + (t * l->batch + from) * l->width,
                                        p->packed, p->dh + from * l->hidden);
        hn_gemm_blocked(&g, 0, 1);
    }
    finish(s, l, p->dh, HN_RECURRENT_DH, d, from, to - from);
    finish(s, l, p->dc, HN_RECURRENT_DC, d, from, to - from);
}

/* dg' times a right operand of so many columns. */
static void weight_grad(const Layer *l, const Parts *p, const float *right, int64_t n, float *to)
{
    const int64_t rows = l->steps * l->batch;
    hn_gemm_kernel_pack(p->packed, right, n, 1, rows, n);
    HnGemmBlocked g = product(l->width, n, rows, p->dg, p->packed, to);
    g.a_pitch = 1;
    g.a_k = l->width;
    share(l, &g, p->rooms);
}

static void bias_grad(const Layer *l, const Parts *p, float *restrict to)
{
    memset(to, 0, (gsize)l->width * sizeof(float));
    for (int64_t i = 0; i < l->steps * l->batch; i++)
        for (int64_t j = 0; j < l->width; j++)
            to[j] += p->dg[i * l->width + j];
    memcpy(to + l->width, to, (gsize)l->width * sizeof(float));
}

static gboolean grad_run(HnStep *s, GError **error)
{
    (void)error;
    const Layer *l = s->state;
    const Parts p = parts_of(l, s->scratch);
    const int64_t in = l->width * l->inputs, own = l->width * l->hidden;
    memset(p.none, 0, (gsize)l->hidden * sizeof(float));
    for (int64_t d = 0; d < l->directions; d++) {
        hn_gemm_kernel_pack(p.packed, input(s, HN_RECURRENT_R) + d * own, l->hidden, 1, l->width, l->hidden);
#pragma omp parallel for num_threads(l->threads) if (l->threads > 1)
        for (int t = 0; t < l->threads; t++)
            go_back(s, l, &p, d, l->batch * t / l->threads, l->batch * (t + 1) / l->threads);
        if (output(s, HN_RECURRENT_DW) != NULL)
            weight_grad(l, &p, input(s, HN_RECURRENT_X), l->inputs, output(s, HN_RECURRENT_DW) + d * in);
        if (output(s, HN_RECURRENT_DR) != NULL)
            weight_grad(l, &p, p.before, l->hidden, output(s, HN_RECURRENT_DR) + d * own);
        if (output(s, HN_RECURRENT_DB) != NULL)
            bias_grad(l, &p, output(s, HN_RECURRENT_DB) + d * 2 * l->width);
        if (output(s, HN_RECURRENT_DX) == NULL)
            continue;
        hn_gemm_kernel_pack(p.packed, input(s, HN_RECURRENT_W) + d * in, l->inputs, 1, l->width, l->inputs);
        HnGemmBlocked g = product(l->steps * l->batch, l->inputs, l->width, p.dg, p.packed, output(s, HN_RECURRENT_DX));
        g.accumulate = d > 0;
        share(l, &g, NULL);
    }
    if (output(s, HN_RECURRENT_DP) != NULL)
        memset(output(s, HN_RECURRENT_DP), 0, s->out[HN_RECURRENT_DP].slot->tensor->bytes);
    return TRUE;
}

static const HnKernel train_kernel = {
    .name = "cpu.lstm_training",
    .reject = train_reject,
    .prepare = train_prepare,
    .run = train_run,
    .release = hn_cpu_release,
};
const HnKernel *const hn_cpu_lstmtraining[] = { &train_kernel, NULL };

static const HnKernel grad_kernel = {
    .name = "cpu.lstm_grad",
    .reject = grad_reject,
    .prepare = grad_prepare,
    .run = grad_run,
    .release = hn_cpu_release,
};
const HnKernel *const hn_cpu_lstmgrad[] = { &grad_kernel, NULL };
