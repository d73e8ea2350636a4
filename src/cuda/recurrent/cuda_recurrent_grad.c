/*
 * RNNGrad, GRUGrad and LSTMGrad. A walk through time finds the gradients of all gates' sums; products over all steps
 * follow.
 */
#include "cuda/recurrent/cuda_recurrent.h"

#define MODULE "cuda_recurrent_grad"
#define SUMS "cuda_recurrent"
#define THREADS 256
#define COLUMNS 32 /* of a state, of a block ... */
#define SAMPLES 8  /* ... for so many samples */

enum { DG, BEFORE, RESET, DH, DC, CARRY, LENS_AT, PARTS };

typedef struct {
    HnCuFunction step, bias, peep, lens, inputs, states;
    HnCudaRecurrentGradArgs args;
    gsize at[PARTS]; /* offsets in scratch memory */
    gboolean resets; /* a GRU, before R */
    int64_t blocks;
} Grad;

static gboolean holds(const HnStep *s, int i, int64_t n)
{
    return hn_cuda_in(s, i) == NULL || hn_cuda_in(s, i)->n == n;
}

static const char *grad_reject(const HnStep *s)
{
    const HnRecurrent *p = s->params;
    HnCudaLayer l;
    const char *reason = hn_cuda_layer_reject_types(s, HN_RECURRENT_LENS);
    if (reason != NULL)
        return reason;
    if (!hn_cuda_layer_measure(s, &l))
        return "the shapes do not fit";
    if (hn_cuda_in(s, HN_RECURRENT_Y) == NULL || (p->kind != HN_RNN && hn_cuda_in(s, HN_RECURRENT_GATES) == NULL) ||
        (p->kind == HN_LSTM && hn_cuda_in(s, HN_RECURRENT_CELLS) == NULL))
        return "what the layer became is missing";
    const int64_t state = l.directions * l.batch * l.hidden, all = state * l.steps;
    const struct {
        int i;
        int64_t n;
    } sizes[] = { { HN_RECURRENT_LENS, l.batch }, { HN_RECURRENT_H, state },
                  { HN_RECURRENT_C, state },      { HN_RECURRENT_P, l.directions * 3 * l.hidden },
                  { HN_RECURRENT_Y, all },        { HN_RECURRENT_GATES, l.steps * l.directions * l.batch * l.slots },
                  { HN_RECURRENT_CELLS, all },    { HN_RECURRENT_DY, all },
                  { HN_RECURRENT_DY_H, state },   { HN_RECURRENT_DY_C, state } };
    for (guint k = 0; k < G_N_ELEMENTS(sizes); k++)
        if (!holds(s, sizes[k].i, sizes[k].n))
            return "the shapes do not fit";
    return NULL;
}

static void place(HnStep *s, Grad *g)
{
    const HnCudaLayer *l = &g->args.layer;
    const int64_t rows = l->steps * l->batch * l->directions, state = l->directions * l->batch * l->hidden;
    const int64_t floats[PARTS] = { [DG] = rows * l->slots,
                                    [BEFORE] = rows * l->hidden,
                                    [RESET] = g->resets ? rows * l->hidden : 0,
                                    [DH] = state,
                                    [DC] = state,
                                    [CARRY] = state,
                                    [LENS_AT] = l->batch };
    for (int i = 0; i < PARTS; i++) {
        g->at[i] = s->scratch_bytes;
        s->scratch_bytes += ((gsize)floats[i] * sizeof(float) + 63) / 64 * 64;
    }
}

static gboolean grad_prepare(HnStep *s, GError **error)
{
    const HnRecurrent *p = s->params;
    const HnDtype dtype = hn_cuda_in(s, 0)->dtype;
    Grad *g = g_new0(Grad, 1);
    HnCudaLayer *l = &g->args.layer;
    s->state = g;
    hn_cuda_layer_measure(s, l);
    g->args.kind = (int32_t)p->kind;
    g->resets = p->kind == HN_GRU && !p->linear_before_reset;
    g->blocks = l->directions * ((l->batch + SAMPLES - 1) / SAMPLES) * ((l->hidden + COLUMNS - 1) / COLUMNS);
    place(s, g);
    g->step = hn_cuda_typed(s, MODULE, "recurrent_grad_step", dtype, error);
    g->bias = g->step != NULL ? hn_cuda_typed(s, MODULE, "recurrent_grad_bias", dtype, error) : NULL;
    g->peep = g->bias != NULL ? hn_cuda_typed(s, MODULE, "recurrent_grad_peep", dtype, error) : NULL;
    g->lens = g->peep != NULL ? hn_cuda_named(s, SUMS, "recurrent_lens", error) : NULL;
    g->inputs = g->lens != NULL ? hn_cuda_typed(s, SUMS, "recurrent_grad_inputs", dtype, error) : NULL;
    g->states = g->inputs != NULL ? hn_cuda_typed(s, SUMS, "recurrent_grad_states", dtype, error) : NULL;
    return g->states != NULL;
}

static void set_addresses(const HnStep *s, const Grad *g, HnCudaRecurrentGradArgs *a)
{
    const uint64_t scratch = hn_cuda_scratch(s);
    a->r = hn_cuda_in_address(s, HN_RECURRENT_R);
    a->peep = hn_cuda_in_address(s, HN_RECURRENT_P);
    a->y = hn_cuda_in_address(s, HN_RECURRENT_Y);
    a->gates = hn_cuda_in_address(s, HN_RECURRENT_GATES);
    a->cells = hn_cuda_in_address(s, HN_RECURRENT_CELLS);
    a->dy = hn_cuda_in_address(s, HN_RECURRENT_DY);
    a->dy_h = hn_cuda_in_address(s, HN_RECURRENT_DY_H);
    a->dy_c = hn_cuda_in_address(s, HN_RECURRENT_DY_C);
    a->h0 = hn_cuda_in_address(s, HN_RECURRENT_H);
    a->c0 = hn_cuda_in_address(s, HN_RECURRENT_C);
    a->out_h = hn_cuda_out_address(s, HN_RECURRENT_DH);
    a->out_c = hn_cuda_out_address(s, HN_RECURRENT_DC);
    a->dg = scratch + g->at[DG];
    a->before = scratch + g->at[BEFORE];
    a->reset = g->resets ? scratch + g->at[RESET] : 0;
    a->dh = scratch + g->at[DH];
    a->dc = scratch + g->at[DC];
    a->carry = scratch + g->at[CARRY];
    a->lens = hn_cuda_in(s, HN_RECURRENT_LENS) != NULL ? scratch + g->at[LENS_AT] : 0;
}

static gboolean walk(const HnStep *s, const Grad *g, HnCudaRecurrentGradArgs *a, GError **error)
{
    const HnCudaGrid grid = hn_cuda_row(g->blocks, THREADS);
    for (a->step = 0; a->step <= a->layer.steps; a->step++) {
        a->resets = FALSE;
        if (!hn_cuda_launch(s, g->step, grid, a, error))
            return FALSE;
        a->resets = g->resets;
        if (g->resets && a->step < a->layer.steps && !hn_cuda_launch(s, g->step, grid, a, error))
            return FALSE;
    }
    return TRUE;
}

/* Gradients of X: of all directions at once. */
static gboolean data_grad(const HnStep *s, const Grad *g, const HnCudaRecurrentGradArgs *a, GError **error)
{
    const HnCudaLayer *l = &a->layer;
    const HnCudaSumsArgs sums = {
        .a = a->dg,
        .b = hn_cuda_in_address(s, HN_RECURRENT_W),
        .c = hn_cuda_out_address(s, HN_RECURRENT_DX),
        .m = l->steps * l->batch,
        .n = l->inputs,
        .k = l->directions * l->width,
        .a_m = l->directions * l->slots,
        .a_k = 1,
        .a_block = l->slots,
        .each = l->width,
        .b_k = l->inputs,
        .b_n = 1,
        .c_m = l->inputs,
    };
    return sums.c == 0 || hn_cuda_layer_sums(s, g->inputs, &sums, error);
}

/* Gradients of weights: sums over all rows of gradients of gates [gate, gate + n) and of what they multiplied, of
 * `width` elements, `pitch` apart. */
static HnCudaSumsArgs weights_sums(const HnCudaRecurrentGradArgs *a, int64_t d, int64_t gate, int64_t n, uint64_t in,
                                   int64_t width, int64_t pitch, uint64_t to)
{
    const HnCudaLayer *l = &a->layer;
    return (HnCudaSumsArgs){
        .a = a->dg + (uint64_t)(d * l->slots + gate) * sizeof(float),
        .b = in,
        .c = to,
        .m = n,
        .n = width,
        .k = l->steps * l->batch,
        .a_m = 1,
        .a_k = l->directions * l->slots,
        .each = l->steps * l->batch,
        .b_k = pitch,
        .b_n = 1,
        .c_m = width,
    };
}

static gboolean weights_grad(const HnStep *s, const Grad *g, const HnCudaRecurrentGradArgs *a, int64_t d,
                             GError **error)
{
    const HnCudaLayer *l = &a->layer;
    const int64_t n = l->hidden, pitch = l->directions * n, size = (int64_t)hn_dtype_size(hn_cuda_in(s, 0)->dtype);
    const uint64_t dw = hn_cuda_out_address(s, HN_RECURRENT_DW), dr = hn_cuda_out_address(s, HN_RECURRENT_DR);
    const uint64_t state = (uint64_t)(d * n) * sizeof(float), to = dr + (uint64_t)(d * l->width * n * size);
    const gboolean apart = a->kind == HN_GRU;
    const HnCudaSumsArgs w = weights_sums(a, d, 0, l->width, hn_cuda_in_address(s, HN_RECURRENT_X), l->inputs,
                                          l->inputs, dw + (uint64_t)(d * l->width * l->inputs * size));
    const HnCudaSumsArgs r = weights_sums(a, d, 0, apart ? 2 * n : l->width, a->before + state, n, pitch, to);
    const HnCudaSumsArgs hidden =
        weights_sums(a, d, (g->resets ? 2 : 3) * n, n, (g->resets ? a->reset : a->before) + state, n, pitch,
                     to + (uint64_t)(2 * n * n * size));
    if (dw != 0 && !hn_cuda_layer_sums(s, g->inputs, &w, error))
        return FALSE;
    return dr == 0 || (hn_cuda_layer_sums(s, g->states, &r, error) &&
                       (!apart || hn_cuda_layer_sums(s, g->states, &hidden, error)));
}

static gboolean rows_grad(const HnStep *s, const Grad *g, const HnCudaRecurrentGradArgs *a, GError **error)
{
    const HnCudaLayer *l = &a->layer;
    const HnCudaRecurrentRowsArgs rows = {
        .layer = *l,
        .dg = a->dg,
        .cells = a->kind == HN_LSTM ? a->cells : 0,
        .c0 = a->c0,
        .lens = a->lens,
        .db = hn_cuda_out_address(s, HN_RECURRENT_DB),
        .dp = hn_cuda_out_address(s, HN_RECURRENT_DP),
    };
    const int64_t slots = (l->slots + HN_CUDA_WARP - 1) / HN_CUDA_WARP,
                  units = (l->hidden + HN_CUDA_WARP - 1) / HN_CUDA_WARP;
    return (rows.db == 0 || hn_cuda_launch(s, g->bias, hn_cuda_row(l->directions * slots, THREADS), &rows, error)) &&
           (rows.dp == 0 || hn_cuda_launch(s, g->peep, hn_cuda_row(l->directions * units, THREADS), &rows, error));
}

static gboolean grad_run(HnStep *s, GError **error)
{
    const Grad *g = s->state;
    HnCudaRecurrentGradArgs a = g->args;
    set_addresses(s, g, &a);
    if (!hn_cuda_layer_set_lens(s, &a.layer, HN_RECURRENT_LENS, a.lens, g->lens, error) || !walk(s, g, &a, error) ||
        !data_grad(s, g, &a, error))
        return FALSE;
    for (int64_t d = 0; d < a.layer.directions; d++)
        if (!weights_grad(s, g, &a, d, error))
            return FALSE;
    return rows_grad(s, g, &a, error);
}

static const HnKernel grad = {
    .name = "cuda.recurrent_grad",
    .reject = grad_reject,
    .prepare = grad_prepare,
    .run = grad_run,
    .release = hn_cuda_release,
    .host_in = 1 << HN_RECURRENT_LENS,
};

const HnKernel *const hn_cuda_rnngrad[] = { &grad, NULL };
const HnKernel *const hn_cuda_grugrad[] = { &grad, NULL };
const HnKernel *const hn_cuda_lstmgrad[] = { &grad, NULL };
