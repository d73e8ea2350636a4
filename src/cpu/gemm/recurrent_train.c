/*
 * LSTMTraining and LSTMGrad of f32, of whole sequences without peepholes and the usual functions of the gates. Forward,
 * each step makes its products with W and R in a row: its gates stay in the caches. Backward, there is the product with
 * R from step to step; after some steps follows all that sums over them, gradients of weights, while these steps' are
 * in the caches. Threads share samples, then the rows of results: no sum depends on how many there are. Weights are
 * packed in each run: what trains has new ones each time.
 */
#include <math.h>
#include <string.h>

#include "cpu/gemm/recurrent_train.h"

#define HN_LOOPS "cpu/gemm/recurrent_train_loops.h"
#include "base/every_level.h"

typedef struct {
    void (*row)(float *g, const float *before, float *cell, float *h, int64_t n);
    void (*row_grad)(const float *g, const float *before, const float *cell, const float *dy, float *dh, float *dc,
                     float *dg, int64_t n);
    void (*add_rows)(float *to, const float *from, int64_t rows, int64_t n);
} Level;

static const Level levels[HN_LEVELS] = {
    { lstm_row_plain, lstm_row_grad_plain, lstm_add_rows_plain },
    { lstm_row_avx2, lstm_row_grad_avx2, lstm_add_rows_avx2 },
    { lstm_row_avx512, lstm_row_grad_avx512, lstm_add_rows_avx512 },
};

#define ROWS_AT_ONCE 512 /* samples of all steps of a sum: their gradients are to stay in the second cache */

/* --- both --------------------------------------------------------------------------------------------------------- */

void hn_layer_measure(const HnStep *s, HnTrainLayer *l)
{
    const HnRecurrent *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *r = hn_cpu_in(s, 2);
    *l = (HnTrainLayer){ .steps = x->dims[0],
                         .batch = x->dims[1],
                         .directions = r->dims[0],
                         .inputs = x->dims[2],
                         .hidden = r->dims[2],
                         .width = r->dims[1],
                         .only_backwards = p->direction == HN_REVERSE };
    const double flops = 2 * (double)l->width * (double)(l->inputs + l->hidden) * (double)l->steps * (double)l->batch;
    l->threads = (int)CLAMP(l->batch / HN_GEMM_KERNEL_FEW, 1, (int64_t)hn_cpu_threads_for(s, flops));
    l->at_once = CLAMP(ROWS_AT_ONCE / l->batch, 1, l->steps);
    l->room = hn_gemm_kernel_room(l->width, l->at_once * l->batch);
}

const char *hn_layer_reject(const HnStep *s, int lens, int peepholes)
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
        if (p->act[i].f != (i % p->per_direction == 0 ? HN_GATE_SIGMOID : HN_GATE_TANH))
            return "other functions than Sigmoid and Tanh";
    const HnTensor *x = hn_cpu_in(s, 0), *w = hn_cpu_in(s, 1), *r = hn_cpu_in(s, 2);
    const gboolean ranks = x->ndim == 3 && w->ndim == 3 && r->ndim == 3;
    if (!ranks || r->dims[1] != p->gates * r->dims[2] || w->dims[1] != r->dims[1] || w->dims[2] != x->dims[2])
        return "the shapes do not fit";
    return w->dims[0] != r->dims[0] || r->dims[0] != (p->direction == HN_BIDIRECTIONAL ? 2 : 1)
               ? "the shapes do not fit"
               : NULL;
}

void hn_layer_share(const HnTrainLayer *l, const HnGemmBlocked *g, float *rooms)
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
    const char *reason = hn_layer_reject(s, LENS, PEEP);
    if (reason != NULL)
        return reason;
    HnTrainLayer l;
    hn_layer_measure(s, &l);
    if (s->n_out <= CELLS || s->out[Y].slot == NULL)
        return "states are not asked for";
    if (s->out[GATES].slot == NULL || s->out[CELLS].slot == NULL)
        return "gates are not asked for";
    const int64_t state = l.directions * l.batch * l.hidden;
    return hn_layer_holds(s, BIAS, 2 * l.directions * l.width) && hn_layer_holds(s, H0, state) &&
                   hn_layer_holds(s, C0, state)
               ? NULL
               : "the shapes do not fit";
}

static gboolean train_prepare(HnStep *s, GError **error)
{
    (void)error;
    HnTrainLayer *l = g_new0(HnTrainLayer, 1);
    s->state = l;
    hn_layer_measure(s, l);
    s->scratch_bytes =
        (gsize)(hn_gemm_kernel_packed(l->inputs, l->width) + hn_gemm_kernel_packed(l->hidden, l->width) + l->width) *
        sizeof(float);
    return TRUE;
}

/* Packed weights of one direction, and the sum of its biases. */
typedef struct {
    float *w, *r, *bias;
} Packed;

/* All steps of samples [from, to) of direction d. */
static void advance(const HnStep *s, const HnTrainLayer *l, int64_t d, int64_t from, int64_t to, const Packed *p)
{
    const int64_t n = l->hidden;
    const float *h = hn_layer_input(s, H0), *c = hn_layer_input(s, C0);
    const int64_t state = (d * l->batch + from) * n;
    h = h != NULL ? h + state : NULL;
    c = c != NULL ? c + state : NULL;
    for (int64_t k = 0; k < l->steps; k++) {
        const int64_t t = hn_layer_backwards(l, d) ? l->steps - 1 - k : k, at = hn_layer_row_of(l, d, t) + from;
        float *gates = hn_layer_output(s, GATES) + at * l->width, *cells = hn_layer_output(s, CELLS) + at * n,
              *y = hn_layer_output(s, Y) + at * n;
        HnGemmBlocked in = hn_layer_product(to - from, l->width, l->inputs,
                                            hn_layer_input(s, X) + (t * l->batch + from) * l->inputs, p->w, gates),
                      own = hn_layer_product(to - from, l->width, n, h, p->r, gates);
        in.bias = p->bias;
        own.accumulate = TRUE;
        hn_gemm_blocked(&in, 0, 1);
        if (h != NULL)
            hn_gemm_blocked(&own, 0, 1);
        for (int64_t b = 0; b < to - from; b++)
            levels[hn_cpu_level()].row(gates + b * l->width, c != NULL ? c + b * n : NULL, cells + b * n, y + b * n, n);
        h = y;
        c = cells;
    }
    if (hn_layer_output(s, Y_H) != NULL)
        memcpy(hn_layer_output(s, Y_H) + state, h, (gsize)((to - from) * n) * sizeof(float));
    if (hn_layer_output(s, Y_C) != NULL)
        memcpy(hn_layer_output(s, Y_C) + state, c, (gsize)((to - from) * n) * sizeof(float));
}

static gboolean train_run(HnStep *s, GError **error)
{
    (void)error;
    const HnTrainLayer *l = s->state;
    Packed p = { .w = s->scratch };
    p.r = p.w + hn_gemm_kernel_packed(l->inputs, l->width);
    p.bias = p.r + hn_gemm_kernel_packed(l->hidden, l->width);
    for (int64_t d = 0; d < l->directions; d++) {
        const float *b = hn_layer_input(s, BIAS) != NULL ? hn_layer_input(s, BIAS) + d * 2 * l->width : NULL;
        for (int64_t i = 0; i < l->width; i++)
            p.bias[i] = b != NULL ? b[i] + b[l->width + i] : 0;
        hn_gemm_kernel_pack(p.w, hn_layer_input(s, W) + d * l->width * l->inputs, 1, l->inputs, l->inputs, l->width);
        hn_gemm_kernel_pack(p.r, hn_layer_input(s, R) + d * l->width * l->hidden, 1, l->hidden, l->hidden, l->width);
#pragma omp parallel for num_threads(l->threads) if (l->threads > 1)
        for (int t = 0; t < l->threads; t++)
            advance(s, l, d, l->batch * t / l->threads, l->batch * (t + 1) / l->threads, &p);
    }
    return TRUE;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static const char *grad_reject(const HnStep *s)
{
    const char *reason = hn_layer_reject(s, HN_RECURRENT_LENS, HN_RECURRENT_P);
    if (reason != NULL)
        return reason;
    HnTrainLayer l;
    hn_layer_measure(s, &l);
    const int64_t state = l.directions * l.batch * l.hidden, all = state * l.steps;
    if (hn_cpu_in(s, HN_RECURRENT_Y) == NULL || hn_cpu_in(s, HN_RECURRENT_GATES) == NULL ||
        hn_cpu_in(s, HN_RECURRENT_CELLS) == NULL)
        return "what the layer became is missing";
    const gboolean steps = hn_layer_holds(s, HN_RECURRENT_Y, all) && hn_layer_holds(s, HN_RECURRENT_GATES, 4 * all) &&
                           hn_layer_holds(s, HN_RECURRENT_CELLS, all) && hn_layer_holds(s, HN_RECURRENT_DY, all);
    const gboolean states = hn_layer_holds(s, HN_RECURRENT_H, state) && hn_layer_holds(s, HN_RECURRENT_C, state) &&
                            hn_layer_holds(s, HN_RECURRENT_DY_H, state) && hn_layer_holds(s, HN_RECURRENT_DY_C, state);
    return steps && states ? NULL : "the shapes do not fit";
}

/* Scratch memory. Of the steps that are summed up at a time, [steps][batch]: gradients of gates; what went into the
 * products, inputs and the states before. Of the running states, gradients. Packed: W, R and what went in. Gradients of
 * both weights, [width][inputs + hidden]. Blocks of each thread. */
typedef struct {
    float *dg, *in, *dh, *dc, *none, *w, *r, *packed, *weights, *rooms;
    int64_t floats;
} Parts;

static Parts parts_of(const HnTrainLayer *l, float *at)
{
    const int64_t rows = l->at_once * l->batch, state = l->batch * l->hidden, both = l->inputs + l->hidden;
    const int64_t sizes[] = { rows * l->width,
                              rows * both,
                              state,
                              state,
                              l->hidden,
                              hn_gemm_kernel_packed(l->width, l->inputs),
                              hn_gemm_kernel_packed(l->width, l->hidden),
                              hn_gemm_kernel_packed(rows, both),
                              l->width * both,
                              l->threads * l->room };
    Parts p = { 0 };
    float **part[] = { &p.dg, &p.in, &p.dh, &p.dc, &p.none, &p.w, &p.r, &p.packed, &p.weights, &p.rooms };
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        *part[i] = at != NULL ? at + p.floats : NULL;
        p.floats += sizes[i];
    }
    return p;
}

static gboolean grad_prepare(HnStep *s, GError **error)
{
    (void)error;
    HnTrainLayer *l = g_new0(HnTrainLayer, 1);
    s->state = l;
    hn_layer_measure(s, l);
    s->scratch_bytes = (gsize)parts_of(l, NULL).floats * sizeof(float);
    return TRUE;
}

/* Of one sample at one step, into `row` of those of the parts; `first`: of its sequence. */
static void sample_grad(const HnStep *s, const HnTrainLayer *l, const Parts *p, int64_t d, int64_t t, int64_t b,
                        int64_t row)
{
    const int64_t n = l->hidden, at = hn_layer_row_of(l, d, t) + b, state = (d * l->batch + b) * n;
    const int64_t last = hn_layer_backwards(l, d) ? t + 1 : t - 1, from = hn_layer_row_of(l, d, last) + b;
    const gboolean first = last < 0 || last == l->steps;
    const float *h0 = hn_layer_input(s, HN_RECURRENT_H), *c0 = hn_layer_input(s, HN_RECURRENT_C),
                *dy = hn_layer_input(s, HN_RECURRENT_DY);
    const float *h = first ? (h0 != NULL ? h0 + state : p->none) : hn_layer_input(s, HN_RECURRENT_Y) + from * n;
    const float *c = first ? (c0 != NULL ? c0 + state : p->none) : hn_layer_input(s, HN_RECURRENT_CELLS) + from * n;
    float *in = p->in + row * (l->inputs + n);
    memcpy(in, hn_layer_input(s, HN_RECURRENT_X) + (t * l->batch + b) * l->inputs, (gsize)l->inputs * sizeof(float));
    memcpy(in + l->inputs, h, (gsize)n * sizeof(float));
    levels[hn_cpu_level()].row_grad(hn_layer_input(s, HN_RECURRENT_GATES) + at * l->width, c,
                                    hn_layer_input(s, HN_RECURRENT_CELLS) + at * n, dy != NULL ? dy + at * n : NULL,
                                    p->dh + b * n, p->dc + b * n, p->dg + row * l->width, n);
}

void hn_layer_begin(const HnStep *s, const HnTrainLayer *l, float *to, int i, int64_t d, int64_t from, int64_t n)
{
    const float *v = hn_layer_input(s, i);
    if (v != NULL)
        memcpy(to + from * l->hidden, v + (d * l->batch + from) * l->hidden, (gsize)(n * l->hidden) * sizeof(float));
    else
        memset(to + from * l->hidden, 0, (gsize)(n * l->hidden) * sizeof(float));
}

void hn_layer_finish(const HnStep *s, const HnTrainLayer *l, const float *v, int k, int64_t d, int64_t from, int64_t n)
{
    if (hn_layer_output(s, k) != NULL)
        memcpy(hn_layer_output(s, k) + (d * l->batch + from) * l->hidden, v + from * l->hidden,
               (gsize)(n * l->hidden) * sizeof(float));
}

/* Steps [t0, t1) of samples [from, to), from the last one on. */
static void go_back(const HnStep *s, const HnTrainLayer *l, const Parts *p, int64_t d, int64_t t0, int64_t t1,
                    int64_t from, int64_t to)
{
    const gboolean up = hn_layer_backwards(l, d);
    if (up ? t0 == 0 : t1 == l->steps) {
        hn_layer_begin(s, l, p->dh, HN_RECURRENT_DY_H, d, from, to - from);
        hn_layer_begin(s, l, p->dc, HN_RECURRENT_DY_C, d, from, to - from);
    }
    for (int64_t k = 0; k < t1 - t0; k++) {
        const int64_t t = up ? t0 + k : t1 - 1 - k, row = (t - t0) * l->batch;
        for (int64_t b = from; b < to; b++)
            sample_grad(s, l, p, d, t, b, row + b);
        const HnGemmBlocked g = hn_layer_product(to - from, l->hidden, l->width, p->dg + (row + from) * l->width, p->r,
                                                 p->dh + from * l->hidden);
        hn_gemm_blocked(&g, 0, 1);
    }
    if (up ? t1 == l->steps : t0 == 0) {
        hn_layer_finish(s, l, p->dh, HN_RECURRENT_DH, d, from, to - from);
        hn_layer_finish(s, l, p->dc, HN_RECURRENT_DC, d, from, to - from);
    }
}

/* What sums over `rows` rows of the parts, and their dx; `first`: of this direction. */
static void add_steps(const HnStep *s, const HnTrainLayer *l, const Parts *p, int64_t d, int64_t t, int64_t rows,
                      gboolean first)
{
    const int64_t both = l->inputs + l->hidden;
    if (hn_layer_output(s, HN_RECURRENT_DW) != NULL || hn_layer_output(s, HN_RECURRENT_DR) != NULL) {
        hn_gemm_kernel_pack(p->packed, p->in, both, 1, rows, both);
        HnGemmBlocked g = hn_layer_product(l->width, both, rows, p->dg, p->packed, p->weights);
        g.a_pitch = 1;
        g.a_k = l->width;
        g.accumulate = !first;
        hn_layer_share(l, &g, p->rooms);
    }
    if (hn_layer_output(s, HN_RECURRENT_DB) != NULL) {
        float *db = hn_layer_output(s, HN_RECURRENT_DB) + d * 2 * l->width;
        if (first)
            memset(db, 0, (gsize)l->width * sizeof(float));
        hn_layer_add_rows(db, p->dg, rows, l->width);
    }
    if (hn_layer_output(s, HN_RECURRENT_DX) != NULL) {
        HnGemmBlocked g = hn_layer_product(rows, l->inputs, l->width, p->dg, p->w,
                                           hn_layer_output(s, HN_RECURRENT_DX) + t * l->batch * l->inputs);
        g.accumulate = d > 0;
        hn_layer_share(l, &g, NULL);
    }
}

void hn_layer_add_rows(float *to, const float *from, int64_t rows, int64_t n)
{
    levels[hn_cpu_level()].add_rows(to, from, rows, n);
}

/* n columns of the gradients of both weights, from `from` on. */
static void copy_weights(const HnTrainLayer *l, const float *weights, int64_t from, int64_t n, float *to)
{
    for (int64_t i = 0; to != NULL && i < l->width; i++)
        memcpy(to + i * n, weights + i * (l->inputs + l->hidden) + from, (gsize)n * sizeof(float));
}

static float *output_of(const HnStep *s, int k, int64_t d, int64_t n)
{
    return hn_layer_output(s, k) != NULL ? hn_layer_output(s, k) + d * n : NULL;
}

static void direction_grad(const HnStep *s, const HnTrainLayer *l, const Parts *p, int64_t d)
{
    const int64_t in = l->width * l->inputs, own = l->width * l->hidden;
    hn_gemm_kernel_pack(p->w, hn_layer_input(s, HN_RECURRENT_W) + d * in, l->inputs, 1, l->width, l->inputs);
    hn_gemm_kernel_pack(p->r, hn_layer_input(s, HN_RECURRENT_R) + d * own, l->hidden, 1, l->width, l->hidden);
    for (int64_t done = 0, n; done < l->steps; done += n) {
        n = MIN(l->at_once, l->steps - done);
        const int64_t t0 = hn_layer_backwards(l, d) ? done : l->steps - done - n;
#pragma omp parallel for num_threads(l->threads) if (l->threads > 1)
        for (int t = 0; t < l->threads; t++)
            go_back(s, l, p, d, t0, t0 + n, l->batch * t / l->threads, l->batch * (t + 1) / l->threads);
        add_steps(s, l, p, d, t0, n * l->batch, done == 0);
    }
    copy_weights(l, p->weights, 0, l->inputs, output_of(s, HN_RECURRENT_DW, d, in));
    copy_weights(l, p->weights, l->inputs, l->hidden, output_of(s, HN_RECURRENT_DR, d, own));
    float *db = output_of(s, HN_RECURRENT_DB, d, 2 * l->width);
    if (db != NULL)
        memcpy(db + l->width, db, (gsize)l->width * sizeof(float));
}

static gboolean grad_run(HnStep *s, GError **error)
{
    (void)error;
    const HnTrainLayer *l = s->state;
    const Parts p = parts_of(l, s->scratch);
    memset(p.none, 0, (gsize)l->hidden * sizeof(float));
    for (int64_t d = 0; d < l->directions; d++)
        direction_grad(s, l, &p, d);
    if (hn_layer_output(s, HN_RECURRENT_DP) != NULL)
        memset(hn_layer_output(s, HN_RECURRENT_DP), 0, s->out[HN_RECURRENT_DP].slot->tensor->bytes);
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
