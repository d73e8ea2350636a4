/*
 * GRUTraining and GRUGrad of f32, as recurrent_train.c does it for LSTM: products of W and R in a row at each step;
 * backward, after some steps follows all that sums over them. The hidden gate's part of R stands apart: it multiplies
 * the state that was reset, or, with linear_before_reset, what is reset then and kept as a fourth gate.
 */
#include <string.h>

#include "cpu/gemm/recurrent_train.h"

#define HN_LOOPS "cpu/gemm/gru_train_loops.h"
#include "base/every_level.h"

typedef struct {
    void (*gates)(float *g, int64_t n);
    void (*times)(float *y, const float *a, const float *b, int64_t n);
    void (*row)(float *g, const float *own, const float *before, float *h, int64_t n);
    void (*row_grad)(const float *g, const float *before, const float *dy, float *dh, float *dg, int64_t n,
                     gboolean own);
    void (*reset_grad)(const float *r, const float *before, const float *part, float *dh, float *dg, float *state,
                       int64_t n);
} Level;

static const Level *level(void)
{
    static const Level levels[HN_LEVELS] = {
        { gru_gates_plain, gru_times_plain, gru_row_plain, gru_row_grad_plain, gru_reset_grad_plain },
        { gru_gates_avx2, gru_times_avx2, gru_row_avx2, gru_row_grad_avx2, gru_reset_grad_avx2 },
        { gru_gates_avx512, gru_times_avx512, gru_row_avx512, gru_row_grad_avx512, gru_reset_grad_avx512 },
    };
    return &levels[hn_cpu_level()];
}

typedef struct {
    HnTrainLayer l;
    gboolean own;  /* linear_before_reset */
    int64_t slots; /* floats that are kept of a sample at a step */
} Gru;

static void measure(const HnStep *s, Gru *g)
{
    hn_layer_measure(s, &g->l);
    g->own = ((const HnRecurrent *)s->params)->linear_before_reset;
    g->slots = g->l.width + (g->own ? g->l.hidden : 0);
}

/* A product with a part of R or W: rows of the gates are `slots` apart. */
static HnGemmBlocked gates_product(const Gru *g, int64_t rows, int64_t n, int64_t k, const float *a, const float *b,
                                   float *c)
{
    HnGemmBlocked p = hn_layer_product(rows, n, k, a, b, c);
    p.c_pitch = g->slots;
    return p;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

enum { X, W, R, BIAS, LENS, H0 };
enum { Y, Y_H, GATES };

static const char *train_reject(const HnStep *s)
{
    const char *reason = hn_layer_reject(s, LENS, s->n_in);
    if (reason != NULL)
        return reason;
    Gru g;
    measure(s, &g);
    if (s->n_out <= GATES || s->out[Y].slot == NULL || s->out[GATES].slot == NULL)
        return "states and gates are not asked for";
    return hn_layer_holds(s, BIAS, 2 * g.l.directions * g.l.width) &&
                   hn_layer_holds(s, H0, g.l.directions * g.l.batch * g.l.hidden)
               ? NULL
               : "the shapes do not fit";
}

/* Packed weights of one direction: W, R of z and r, R of the hidden gate; what the products with W and with the last
 * one begin with; r * h of each sample. */
typedef struct {
    float *w, *zr, *h, *bias, *own, *reset;
    int64_t floats;
} Packed;

static Packed packed_of(const Gru *g, float *at)
{
    const HnTrainLayer *l = &g->l;
    const int64_t n = l->hidden;
    const int64_t sizes[] = { hn_gemm_kernel_packed(l->inputs, l->width),
                              hn_gemm_kernel_packed(n, 2 * n),
                              hn_gemm_kernel_packed(n, n),
                              l->width,
                              n,
                              l->batch * n };
    Packed p = { 0 };
    float **part[] = { &p.w, &p.zr, &p.h, &p.bias, &p.own, &p.reset };
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        *part[i] = at != NULL ? at + p.floats : NULL;
        p.floats += sizes[i];
    }
    return p;
}

static gboolean train_prepare(HnStep *s, GError **error)
{
    (void)error;
    Gru *g = g_new0(Gru, 1);
    s->state = g;
    measure(s, g);
    s->scratch_bytes = (gsize)packed_of(g, NULL).floats * sizeof(float);
    return TRUE;
}

/* Bias: of W and R together, but for what is reset with its bias. */
static void pack(const HnStep *s, const Gru *g, int64_t d, const Packed *p)
{
    const HnTrainLayer *l = &g->l;
    const int64_t n = l->hidden, in = l->inputs;
    const float *b = hn_layer_input(s, BIAS), *r = hn_layer_input(s, R) + d * l->width * n;
    const float *w = b != NULL ? b + d * 2 * l->width : NULL, *own = b != NULL ? w + l->width : NULL;
    for (int64_t i = 0; i < l->width; i++)
        p->bias[i] = b != NULL ? w[i] + (g->own && i >= 2 * n ? 0 : own[i]) : 0;
    for (int64_t i = 0; i < n; i++)
        p->own[i] = b != NULL && g->own ? own[2 * n + i] : 0;
    hn_gemm_kernel_pack(p->w, hn_layer_input(s, W) + d * l->width * in, 1, in, in, l->width);
    hn_gemm_kernel_pack(p->zr, r, 1, n, n, 2 * n);
    hn_gemm_kernel_pack(p->h, r + 2 * n * n, 1, n, n, n);
}

/* What the hidden gate's part of R adds to `rows` rows of gates, whose z and r are ready; h: of the step before, NULL:
 * zeros. */
static void multiply_hidden(const Gru *g, int64_t rows, float *gates, const float *h, const Packed *p, float *reset)
{
    const int64_t n = g->l.hidden, at = (g->own ? 3 : 2) * n;
    if (h == NULL) {
        for (int64_t b = 0; g->own && b < rows; b++)
            memcpy(gates + b * g->slots + at, p->own, (gsize)n * sizeof(float));
        return;
    }
    for (int64_t b = 0; !g->own && b < rows; b++)
        level()->times(reset + b * n, gates + b * g->slots + n, h + b * n, n);
    HnGemmBlocked hidden = gates_product(g, rows, n, n, g->own ? h : reset, p->h, gates + at);
    hidden.bias = g->own ? p->own : NULL;
    hidden.accumulate = !g->own;
    hn_gemm_blocked(&hidden, 0, 1);
}

/* All steps of samples [from, to) of direction d. */
static void advance(const HnStep *s, const Gru *g, int64_t d, int64_t from, int64_t to, const Packed *p)
{
    const HnTrainLayer *l = &g->l;
    const int64_t n = l->hidden, rows = to - from, state = (d * l->batch + from) * n;
    const float *h = hn_layer_input(s, H0) != NULL ? hn_layer_input(s, H0) + state : NULL;
    for (int64_t k = 0; k < l->steps; k++) {
        const int64_t t = hn_layer_backwards(l, d) ? l->steps - 1 - k : k, at = hn_layer_row_of(l, d, t) + from;
        const float *x = hn_layer_input(s, X) + (t * l->batch + from) * l->inputs;
        float *gates = hn_layer_output(s, GATES) + at * g->slots, *y = hn_layer_output(s, Y) + at * n;
        HnGemmBlocked in = gates_product(g, rows, l->width, l->inputs, x, p->w, gates),
                      zr = gates_product(g, rows, 2 * n, n, h, p->zr, gates);
        in.bias = p->bias;
        zr.accumulate = TRUE;
        hn_gemm_blocked(&in, 0, 1);
        if (h != NULL)
            hn_gemm_blocked(&zr, 0, 1);
        for (int64_t b = 0; b < rows; b++)
            level()->gates(gates + b * g->slots, 2 * n);
        multiply_hidden(g, rows, gates, h, p, p->reset + from * n);
        for (int64_t b = 0; b < rows; b++) {
            float *row = gates + b * g->slots;
            level()->row(row, g->own ? row + 3 * n : NULL, h != NULL ? h + b * n : NULL, y + b * n, n);
        }
        h = y;
    }
    if (hn_layer_output(s, Y_H) != NULL)
        memcpy(hn_layer_output(s, Y_H) + state, h, (gsize)(rows * n) * sizeof(float));
}

static gboolean train_run(HnStep *s, GError **error)
{
    (void)error;
    const Gru *g = s->state;
    const HnTrainLayer *l = &g->l;
    const Packed p = packed_of(g, s->scratch);
    for (int64_t d = 0; d < l->directions; d++) {
        pack(s, g, d, &p);
#pragma omp parallel for num_threads(l->threads) if (l->threads > 1)
        for (int t = 0; t < l->threads; t++)
            advance(s, g, d, l->batch * t / l->threads, l->batch * (t + 1) / l->threads, &p);
    }
    return TRUE;
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static const char *grad_reject(const HnStep *s)
{
    const char *reason = hn_layer_reject(s, HN_RECURRENT_LENS, HN_RECURRENT_P);
    if (reason != NULL)
        return reason;
    Gru g;
    measure(s, &g);
    const int64_t state = g.l.directions * g.l.batch * g.l.hidden, all = state * g.l.steps;
    if (hn_cpu_in(s, HN_RECURRENT_Y) == NULL || hn_cpu_in(s, HN_RECURRENT_GATES) == NULL)
        return "what the layer became is missing";
    return hn_layer_holds(s, HN_RECURRENT_Y, all) &&
                   hn_layer_holds(s, HN_RECURRENT_GATES, all / g.l.hidden * g.slots) &&
                   hn_layer_holds(s, HN_RECURRENT_DY, all) && hn_layer_holds(s, HN_RECURRENT_H, state) &&
                   hn_layer_holds(s, HN_RECURRENT_DY_H, state)
               ? NULL
               : "the shapes do not fit";
}

/* Scratch memory. Of the steps that are summed up at a time, [steps][batch]: gradients of gates; the states before, and
 * these reset. Of the running state: its gradient, and a part of it. Packed: W, R in two parts. Sums of the rows of
 * gates' gradients. Blocks and panels of each thread. */
typedef struct {
    float *dg, *before, *reset, *dh, *part, *w, *zr, *h, *sums, *rooms, *panels;
    int64_t floats, panel;
} Parts;

static Parts parts_of(const Gru *g, float *at)
{
    const HnTrainLayer *l = &g->l;
    const int64_t n = l->hidden, rows = l->at_once * l->batch;
    Parts p = { .panel = hn_gemm_kernel_panels(rows, MAX(l->inputs, n)) };
    const int64_t sizes[] = { rows * g->slots,
                              rows * n,
                              g->own ? 0 : rows * n,
                              l->batch * n,
                              g->own ? 0 : l->batch * n,
                              hn_gemm_kernel_packed(l->width, l->inputs),
                              hn_gemm_kernel_packed(2 * n, n),
                              hn_gemm_kernel_packed(n, n),
                              g->slots,
                              l->threads * l->room,
                              l->threads * p.panel };
    float **part[] = { &p.dg, &p.before, &p.reset, &p.dh, &p.part, &p.w, &p.zr, &p.h, &p.sums, &p.rooms, &p.panels };
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        *part[i] = at != NULL ? at + p.floats : NULL;
        p.floats += sizes[i];
    }
    return p;
}

static gboolean grad_prepare(HnStep *s, GError **error)
{
    (void)error;
    Gru *g = g_new0(Gru, 1);
    s->state = g;
    measure(s, g);
    s->scratch_bytes = (gsize)parts_of(g, NULL).floats * sizeof(float);
    return TRUE;
}

/* Of one sample at one step, into `row` of those of the parts. */
static void sample_grad(const HnStep *s, const Gru *g, const Parts *p, int64_t d, int64_t t, int64_t b, int64_t row)
{
    const HnTrainLayer *l = &g->l;
    const int64_t n = l->hidden, at = hn_layer_row_of(l, d, t) + b, last = hn_layer_backwards(l, d) ? t + 1 : t - 1;
    const float *h = hn_layer_input(s, HN_RECURRENT_H), *dy = hn_layer_input(s, HN_RECURRENT_DY);
    float *before = p->before + row * n;
    if (last >= 0 && last < l->steps)
        memcpy(before, hn_layer_input(s, HN_RECURRENT_Y) + (hn_layer_row_of(l, d, last) + b) * n,
               (gsize)n * sizeof *before);
    else if (h != NULL)
        memcpy(before, h + (d * l->batch + b) * n, (gsize)n * sizeof *before);
    else
        memset(before, 0, (gsize)n * sizeof *before);
    level()->row_grad(hn_layer_input(s, HN_RECURRENT_GATES) + at * g->slots, before, dy != NULL ? dy + at * n : NULL,
                      p->dh + b * n, p->dg + row * g->slots, n, g->own);
}

/* dh += the gradients of some gates times their part of R */
static void through(const Gru *g, int64_t rows, int64_t gates, const float *dg, const float *r, float *dh, gboolean add)
{
    HnGemmBlocked p = hn_layer_product(rows, g->l.hidden, gates, dg, r, dh);
    p.a_pitch = g->slots;
    p.accumulate = add;
    hn_gemm_blocked(&p, 0, 1);
}

/* Samples [from, to) at step t of direction d, whose row of the parts is `row`: of what was reset before R. */
static void reset_grad(const HnStep *s, const Gru *g, const Parts *p, int64_t d, int64_t t, int64_t row, int64_t from,
                       int64_t to)
{
    const int64_t n = g->l.hidden;
    through(g, to - from, n, p->dg + (row + from) * g->slots + 2 * n, p->h, p->part + from * n, FALSE);
    for (int64_t b = from; b < to; b++) {
        const float *gates = hn_layer_input(s, HN_RECURRENT_GATES) + (hn_layer_row_of(&g->l, d, t) + b) * g->slots;
        level()->reset_grad(gates + n, p->before + (row + b) * n, p->part + b * n, p->dh + b * n,
                            p->dg + (row + b) * g->slots + n, p->reset + (row + b) * n, n);
    }
}

/* Steps [t0, t1) of samples [from, to), from the last one on. */
static void go_back(const HnStep *s, const Gru *g, const Parts *p, int64_t d, int64_t t0, int64_t t1, int64_t from,
                    int64_t to)
{
    const HnTrainLayer *l = &g->l;
    const int64_t n = l->hidden;
    const gboolean up = hn_layer_backwards(l, d);
    if (up ? t0 == 0 : t1 == l->steps)
        hn_layer_begin(s, l, p->dh, HN_RECURRENT_DY_H, d, from, to - from);
    for (int64_t k = 0; k < t1 - t0; k++) {
        const int64_t t = up ? t0 + k : t1 - 1 - k, row = (t - t0) * l->batch;
        const float *dg = p->dg + (row + from) * g->slots;
        for (int64_t b = from; b < to; b++)
            sample_grad(s, g, p, d, t, b, row + b);
        if (g->own)
            through(g, to - from, n, dg + 3 * n, p->h, p->dh + from * n, TRUE);
        else
            reset_grad(s, g, p, d, t, row, from, to);
        through(g, to - from, 2 * n, dg, p->zr, p->dh + from * n, TRUE);
    }
    if (up ? t1 == l->steps : t0 == 0)
        hn_layer_finish(s, l, p->dh, HN_RECURRENT_DH, d, from, to - from);
}

/* Gradients of weights of gates [first, first + gates), of what went in, [rows][n]; add: to those of later steps. */
static void add_weights(const Gru *g, const Parts *p, int64_t rows, int64_t first, int64_t gates, const float *in,
                        int64_t n, float *to, gboolean add)
{
    const HnTrainLayer *l = &g->l;
#pragma omp parallel for num_threads(l->threads) if (l->threads > 1)
    for (int t = 0; t < l->threads; t++) {
        HnGemmBlocked w = hn_layer_product(gates, n, rows, p->dg + first, in, to);
        w.a_pitch = 1;
        w.a_k = g->slots;
        w.accumulate = add;
        w.room = p->rooms + t * l->room;
        w.panels = p->panels + t * p->panel;
        w.b_row = n;
        w.b_col = 1;
        hn_gemm_blocked(&w, t, l->threads);
    }
}

/* What sums over `rows` rows of the parts, and their dx; `first`: of this direction. */
static void add_steps(const HnStep *s, const Gru *g, const Parts *p, int64_t d, int64_t t, int64_t rows, gboolean first)
{
    const HnTrainLayer *l = &g->l;
    const int64_t n = l->hidden, hidden = (g->own ? 3 : 2) * n, at = t * l->batch * l->inputs;
    float *dw = hn_layer_output(s, HN_RECURRENT_DW), *dr = hn_layer_output(s, HN_RECURRENT_DR);
    float *dx = hn_layer_output(s, HN_RECURRENT_DX);
    if (dw != NULL)
        add_weights(g, p, rows, 0, l->width, hn_layer_input(s, HN_RECURRENT_X) + at, l->inputs,
                    dw + d * l->width * l->inputs, !first);
    if (dr != NULL) {
        dr += d * l->width * n;
        add_weights(g, p, rows, 0, 2 * n, p->before, n, dr, !first);
        add_weights(g, p, rows, hidden, n, g->own ? p->before : p->reset, n, dr + 2 * n * n, !first);
    }
    hn_layer_add_rows(p->sums, p->dg, rows, g->slots);
    if (dx != NULL) {
        HnGemmBlocked back = hn_layer_product(rows, l->inputs, l->width, p->dg, p->w, dx + at);
        back.a_pitch = g->slots;
        back.accumulate = d > 0;
        hn_layer_share(l, &back, NULL);
    }
}

static void direction_grad(const HnStep *s, const Gru *g, const Parts *p, int64_t d)
{
    const HnTrainLayer *l = &g->l;
    const int64_t n = l->hidden, in = l->inputs;
    const float *r = hn_layer_input(s, HN_RECURRENT_R) + d * l->width * n;
    hn_gemm_kernel_pack(p->w, hn_layer_input(s, HN_RECURRENT_W) + d * l->width * in, in, 1, l->width, in);
    hn_gemm_kernel_pack(p->zr, r, n, 1, 2 * n, n);
    hn_gemm_kernel_pack(p->h, r + 2 * n * n, n, 1, n, n);
    memset(p->sums, 0, (gsize)g->slots * sizeof(float));
    for (int64_t done = 0, steps; done < l->steps; done += steps) {
        steps = MIN(l->at_once, l->steps - done);
        const int64_t t0 = hn_layer_backwards(l, d) ? done : l->steps - done - steps;
#pragma omp parallel for num_threads(l->threads) if (l->threads > 1)
        for (int t = 0; t < l->threads; t++)
            go_back(s, g, p, d, t0, t0 + steps, l->batch * t / l->threads, l->batch * (t + 1) / l->threads);
        add_steps(s, g, p, d, t0, steps * l->batch, done == 0);
    }
    float *db = hn_layer_output(s, HN_RECURRENT_DB);
    if (db == NULL)
        return;
    db += d * 2 * l->width;
    memcpy(db, p->sums, (gsize)l->width * sizeof(float));
    memcpy(db + l->width, p->sums, (gsize)(2 * n) * sizeof(float));
    memcpy(db + l->width + 2 * n, p->sums + (g->own ? 3 : 2) * n, (gsize)n * sizeof(float));
}

static gboolean grad_run(HnStep *s, GError **error)
{
    (void)error;
    const Gru *g = s->state;
    const Parts p = parts_of(g, s->scratch);
    for (int64_t d = 0; d < g->l.directions; d++)
        direction_grad(s, g, &p, d);
    for (int k = HN_RECURRENT_DC; k <= HN_RECURRENT_DP; k++)
        if (hn_layer_output(s, k) != NULL)
            memset(hn_layer_output(s, k), 0, s->out[k].slot->tensor->bytes);
    return TRUE;
}

static const HnKernel train_kernel = {
    .name = "cpu.gru_training",
    .reject = train_reject,
    .prepare = train_prepare,
    .run = train_run,
    .release = hn_cpu_release,
};
const HnKernel *const hn_cpu_grutraining[] = { &train_kernel, NULL };

static const HnKernel grad_kernel = {
    .name = "cpu.gru_grad",
    .reject = grad_reject,
    .prepare = grad_prepare,
    .run = grad_run,
    .release = hn_cpu_release,
};
const HnKernel *const hn_cpu_grugrad[] = { &grad_kernel, NULL };
