/*
 * RNN, GRU and LSTM, GRUTraining and LSTMTraining, and DynamicQuantizeLSTM: all directions, functions of gates,
 * peepholes and lengths of sequences.
 *
 * The inputs of all steps are multiplied at once, or, where they are few, by the steps themselves. Each step is a
 * launch, or all of them are one where a block has room for all units.
 */
#include "cuda/recurrent/cuda_recurrent.h"

#include "base/checked.h"

#define MODULE "cuda_recurrent"
#define THREADS 256
#define WARPS (THREADS / HN_CUDA_WARP)
#define TOGETHER 8         /* samples of a tile */
#define FEW_UNITS 64       /* for which a block goes through all steps ... */
#define THREADS_OF_FEW 512 /* ... of so many threads */
#define FEW_INPUTS 64      /* that are multiplied in each step rather than before */
#define THREADS_OF_ROUND 1024

enum { X, W, R, BIAS, LENS, H0, C0, PEEP };

/* --- both directions ---------------------------------------------------------------------------------------------- */

gboolean hn_cuda_layer_measure(const HnStep *s, HnCudaLayer *l)
{
    const HnRecurrent *p = s->params;
    const HnTensor *x = hn_cuda_in(s, X), *r = hn_cuda_in(s, R);
    const int along = p->dynamic ? 1 : 2;
    int64_t ignored;
    if (x->ndim != 3 || r->ndim != 3 || (p->hidden > 0 && r->dims[along] != p->hidden) ||
        !hn_mul_i64(r->dims[along], 2 * (p->gates + 1), &ignored))
        return FALSE;
    *l = (HnCudaLayer){
        .steps = x->dims[p->batch_first ? 1 : 0],
        .batch = x->dims[p->batch_first ? 0 : 1],
        .directions = p->direction == HN_BIDIRECTIONAL ? 2 : 1,
        .inputs = x->dims[2],
        .hidden = r->dims[along],
        .width = r->dims[along] * p->gates,
        .slots = r->dims[along] * hn_recurrent_slots(p),
        .batch_first = p->batch_first,
        .backwards = p->direction == HN_REVERSE,
        .linear_before_reset = p->linear_before_reset,
        .input_forget = p->input_forget,
        .clip = (float)p->clip,
        .functions = p->per_direction,
    };
    for (guint i = 0; i < G_N_ELEMENTS(l->act); i++)
        l->act[i] = (HnCudaGate){ (int32_t)p->act[i].f, (float)p->act[i].alpha, (float)p->act[i].beta };
    return p->dynamic ? hn_cuda_layer_has(s, W, 3, l->directions, l->inputs, l->width) &&
                            hn_cuda_layer_has(s, R, 3, l->directions, l->hidden, l->width)
                      : hn_cuda_layer_has(s, W, 3, l->directions, l->width, l->inputs) &&
                            hn_cuda_layer_has(s, R, 3, l->directions, l->width, l->hidden);
}

gboolean hn_cuda_layer_has(const HnStep *s, int i, int ndim, int64_t a, int64_t b, int64_t c)
{
    const HnTensor *t = hn_cuda_in(s, i);
    const int64_t want[3] = { a, b, c };
    return t == NULL || hn_tensor_has_dims(t, ndim, want);
}

const char *hn_cuda_layer_reject_types(const HnStep *s, int lens)
{
    const HnDtype dtype = hn_cuda_in(s, X)->dtype;
    if (!hn_cuda_is_float(dtype))
        return "only f32, f16, bf16";
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const HnTensor *t = i < s->n_in ? hn_cuda_in(s, i) : hn_cuda_out(s, i - s->n_in);
        if (t != NULL && t->n == 0)
            return "nothing to compute";
        if (t != NULL && i != lens && t->dtype != dtype)
            return "inputs of several types";
    }
    return NULL;
}

gboolean hn_cuda_layer_set_lens(const HnStep *s, const HnCudaLayer *l, int lens, uint64_t to, HnCuFunction f,
                                GError **error)
{
    const HnTensor *t = hn_cuda_in(s, lens);
    for (int64_t from = 0; t != NULL && from < l->batch; from += HN_CUDA_LENS) {
        HnCudaLensArgs a = { .to = to + (uint64_t)from * sizeof(int32_t),
                             .n = (int)MIN(l->batch - from, HN_CUDA_LENS) };
        for (int i = 0; i < a.n; i++) {
            const int64_t len = hn_tensor_get_i64(t, from + i);
            if (len < 0 || len > l->steps) {
                g_set_error(error, HN_ERROR, HN_ERROR_VALUE,
                            "node '%s': sequence length %" PRId64 " is outside [0, %" PRId64 "]",
                            hn_node_label(s->node), len, l->steps);
                return FALSE;
            }
            a.lens[i] = (int32_t)len;
        }
        if (!hn_cuda_launch(s, f, hn_cuda_row(1, HN_CUDA_LENS), &a, error))
            return FALSE;
    }
    return TRUE;
}

#define TILE 64

gboolean hn_cuda_layer_sums(const HnStep *s, HnCuFunction f, const HnCudaSumsArgs *a, GError **error)
{
    return hn_cuda_launch(s, f, hn_cuda_row((a->m + TILE - 1) / TILE * ((a->n + TILE - 1) / TILE), THREADS), a, error);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

typedef struct {
    HnCuFunction begin, lens, inputs, steps, round;
    HnCudaRecurrentArgs args; /* addresses of scratch memory as offsets */
    gsize rounded_x;          /* offset of X as bytes stand for it */
    int64_t tiles;            /* of samples, in all directions */
    gboolean few;             /* units */
    HnPack *w, *r;            /* of DynamicQuantizeLSTM: f32 [D][width][inputs or hidden] */
} Recurrent;

static const char *reject_bytes(const HnStep *s, const HnCudaLayer *l)
{
    for (int i = 1; i < HN_DYNAMIC_INPUTS; i++) {
        const gboolean weight = i < BIAS || i >= HN_DYNAMIC_W_SCALE;
        if (weight && !s->in[i].slot->constant)
            return "weights that are computed";
    }
    for (int i = HN_DYNAMIC_W_SCALE; i < HN_DYNAMIC_INPUTS; i++) {
        const HnTensor *t = hn_cuda_in(s, i);
        if (t->n != l->directions && t->n != l->directions * l->width)
            return "the shapes do not fit";
        if (t->n != hn_cuda_in(s, i & ~1)->n)
            return "scales and zero points that differ in number";
    }
    return hn_cuda_in(s, X)->dtype == HN_F32 ? NULL : "only f32";
}

static const char *recurrent_reject(const HnStep *s)
{
    const HnRecurrent *p = s->params;
    HnCudaLayer l;
    const char *reason = p->dynamic ? NULL : hn_cuda_layer_reject_types(s, LENS);
    if (reason != NULL)
        return reason;
    for (int i = 0; i < s->n_in; i++)
        if (hn_cuda_in(s, i) != NULL && hn_cuda_in(s, i)->n == 0)
            return "nothing to compute";
    if (!hn_cuda_layer_measure(s, &l))
        return "the shapes do not fit";
    const int64_t first = p->batch_first ? l.batch : l.directions, second = p->batch_first ? l.directions : l.batch;
    if (!hn_cuda_layer_has(s, BIAS, 2, l.directions, 2 * l.width, 0) || !hn_cuda_layer_has(s, LENS, 1, l.batch, 0, 0) ||
        !hn_cuda_layer_has(s, H0, 3, first, second, l.hidden) ||
        !hn_cuda_layer_has(s, C0, 3, first, second, l.hidden) ||
        !hn_cuda_layer_has(s, PEEP, 2, l.directions, 3 * l.hidden, 0))
        return "the shapes do not fit";
    return p->dynamic ? reject_bytes(s, &l) : NULL;
}

/* Offsets in scratch memory. */
static void place(HnStep *s, Recurrent *c)
{
    const HnRecurrent *p = s->params;
    HnCudaRecurrentArgs *a = &c->args;
    const HnCudaLayer *l = &a->layer;
    const gsize rows = (gsize)(l->steps * l->batch), state = (gsize)(l->directions * l->batch * l->hidden);
    const gsize f = sizeof(float);
    const struct {
        uint64_t *at;
        gsize bytes;
    } parts[] = {
        { &a->xw, rows * (gsize)(l->directions * l->width) * f },
        { &a->h[0], state * f },
        { &a->h[1], state * f },
        { &a->c, state * f },
        { &a->z, state * f },
        { &a->rh, state * f },
        { &a->lens, (gsize)l->batch * sizeof(int32_t) },
        { &a->rounded, p->dynamic ? state * f : 0 },
    };
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        *parts[i].at = s->scratch_bytes;
        s->scratch_bytes += (parts[i].bytes + 63) / 64 * 64;
    }
    c->rounded_x = s->scratch_bytes;
    if (p->dynamic)
        s->scratch_bytes += rows * (gsize)l->inputs * f;
}

/* Bytes [D][k][width] as the numbers that they stand for, [D][width][k]. */
static gboolean fill_numbers(const HnStep *s, void *to, const HnTensor *t, gconstpointer data, GError **error)
{
    (void)error;
    const int scale = *(const int *)data;
    const HnTensor *of = hn_cuda_in(s, scale), *zero = hn_cuda_in(s, scale + 1);
    const int64_t k = t->dims[1], width = t->dims[2], each = of->n / t->dims[0];
    for (int64_t d = 0; d < t->dims[0]; d++)
        for (int64_t c = 0; c < width; c++) {
            const int64_t step = d * each + (each > 1 ? c : 0);
            const float by = (float)hn_tensor_get_f64(of, step);
            const int64_t less = hn_tensor_get_i64(zero, step);
            for (int64_t i = 0; i < k; i++)
                ((float *)to)[(d * width + c) * k + i] =
                    by * (float)(hn_tensor_get_i64(t, (d * k + i) * width + c) - less);
        }
    return TRUE;
}

/* Packs of one weight are told apart by its steps. */
static int64_t hash_of(const HnTensor *scale, const HnTensor *zero)
{
    guint64 h = 14695981039346656037u;
    const HnTensor *const all[] = { scale, zero };
    for (guint k = 0; k < G_N_ELEMENTS(all); k++)
        for (gsize i = 0; i < all[k]->bytes; i++)
            h = (h ^ ((const uint8_t *)all[k]->data)[i]) * 1099511628211u;
    return (int64_t)h;
}

static HnPack *numbers_of(HnStep *s, int i, int scale, GError **error)
{
    const HnPackForm form = { .variant = hash_of(hn_cuda_in(s, scale), hn_cuda_in(s, scale + 1)) };
    return hn_packs_get(s, s->in[i].slot, &form, (gsize)hn_cuda_in(s, i)->n * sizeof(float), fill_numbers, &scale,
                        error);
}

static gboolean find_functions(const HnStep *s, Recurrent *c, GError **error)
{
    static const char *const names[] = { "recurrent_rnn", "recurrent_gru", "recurrent_lstm" };
    const HnRecurrent *p = s->params;
    const HnDtype dtype = hn_cuda_in(s, X)->dtype;
    g_autofree char *name = g_strconcat(names[p->kind], c->args.layer.batch == 1 ? "_one" : "", NULL);
    c->begin = hn_cuda_typed(s, MODULE, "recurrent_begin", dtype, error);
    c->lens = c->begin != NULL ? hn_cuda_named(s, MODULE, "recurrent_lens", error) : NULL;
    c->round = c->lens != NULL ? hn_cuda_named(s, MODULE, "recurrent_round", error) : NULL;
    c->inputs = c->round != NULL ? hn_cuda_typed(s, MODULE, "recurrent_inputs", dtype, error) : NULL;
    c->steps = c->inputs != NULL ? hn_cuda_typed(s, MODULE, name, dtype, error) : NULL;
    return c->steps != NULL;
}

static gboolean recurrent_prepare(HnStep *s, GError **error)
{
    const HnRecurrent *p = s->params;
    Recurrent *c = g_new0(Recurrent, 1);
    HnCudaLayer *l = &c->args.layer;
    s->state = c;
    hn_cuda_layer_measure(s, l);
    place(s, c);
    c->tiles = l->directions * (l->batch == 1 ? 1 : (l->batch + TOGETHER - 1) / TOGETHER);
    c->few = l->hidden <= FEW_UNITS && !p->dynamic;
    c->args.direct = !p->dynamic && ((c->few && l->inputs <= FEW_INPUTS) || (l->steps == 1 && l->batch <= TOGETHER));
    c->args.groups = c->few ? 1 : (l->hidden + WARPS - 1) / WARPS;
    for (int i = HN_DYNAMIC_W_SCALE; p->dynamic && i < HN_DYNAMIC_INPUTS; i++)
        s->in[i].unread = TRUE;
    if (p->dynamic) {
        s->in[W].unread = s->in[R].unread = TRUE;
        if ((c->w = numbers_of(s, W, HN_DYNAMIC_W_SCALE, error)) == NULL ||
            (c->r = numbers_of(s, R, HN_DYNAMIC_R_SCALE, error)) == NULL)
            return FALSE;
    }
    return find_functions(s, c, error);
}

static void recurrent_release(HnStep *s)
{
    Recurrent *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->w);
    hn_pack_unref(c->r);
    g_clear_pointer(&s->state, g_free);
}

static void set_addresses(const HnStep *s, const Recurrent *c, HnCudaRecurrentArgs *a)
{
    const HnRecurrent *p = s->params;
    const uint64_t scratch = hn_cuda_scratch(s);
    uint64_t *parts[] = { &a->xw, &a->h[0], &a->h[1], &a->c, &a->z, &a->rh, &a->lens, &a->rounded };
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        *parts[i] += scratch;
    if (hn_cuda_in(s, LENS) == NULL)
        a->lens = 0;
    if (!p->dynamic)
        a->rounded = 0;
    a->r = c->r != NULL ? (uint64_t)(uintptr_t)c->r->data : hn_cuda_in_address(s, R);
    a->x = hn_cuda_in_address(s, X);
    a->w = hn_cuda_in_address(s, W);
    a->bias = hn_cuda_in_address(s, BIAS);
    a->peep = hn_cuda_in_address(s, PEEP);
    a->h0 = hn_cuda_in_address(s, H0);
    a->c0 = hn_cuda_in_address(s, C0);
    a->y = hn_cuda_out_address(s, 0);
    a->y_h = hn_cuda_out_address(s, 1);
    a->y_c = p->kind == HN_LSTM ? hn_cuda_out_address(s, 2) : 0;
    const int saved = p->kind == HN_LSTM ? 3 : 2;
    a->gates = hn_cuda_out_address(s, saved);
    a->cells = hn_cuda_out_address(s, saved + 1);
}

static gboolean multiply_inputs(const HnStep *s, const Recurrent *c, const HnCudaRecurrentArgs *a, GError **error)
{
    const HnCudaLayer *l = &a->layer;
    uint64_t x = hn_cuda_in_address(s, X);
    if (c->w != NULL) {
        const HnCudaRoundArgs r = { x, hn_cuda_scratch(s) + c->rounded_x, l->steps * l->batch * l->inputs };
        x = r.y;
        if (!hn_cuda_launch(s, c->round, hn_cuda_row(1, THREADS_OF_ROUND), &r, error))
            return FALSE;
    }
    const HnCudaSumsArgs sums = {
        .a = x,
        .b = c->w != NULL ? (uint64_t)(uintptr_t)c->w->data : hn_cuda_in_address(s, W),
        .c = a->xw,
        .m = l->steps * l->batch,
        .n = l->directions * l->width,
        .k = l->inputs,
        .a_m = l->inputs,
        .a_k = 1,
        .each = l->inputs,
        .b_k = 1,
        .b_n = l->inputs,
        .c_m = l->directions * l->width,
    };
    return hn_cuda_layer_sums(s, c->inputs, &sums, error);
}

static gboolean run_step(const HnStep *s, const Recurrent *c, HnCudaRecurrentArgs *a, int passes, GError **error)
{
    const HnCudaLayer *l = &a->layer;
    const HnCudaRoundArgs r = { a->h[a->first % 2], a->rounded, l->batch * l->hidden };
    if (a->rounded != 0 && !hn_cuda_launch(s, c->round, hn_cuda_row(l->directions, THREADS_OF_ROUND), &r, error))
        return FALSE;
    for (int pass = 0; pass < passes; pass++) {
        a->first_pass = pass;
        a->passes = pass + 1;
        if (!hn_cuda_launch(s, c->steps, hn_cuda_row(c->tiles * a->groups, THREADS), a, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean recurrent_run(HnStep *s, GError **error)
{
    const HnRecurrent *p = s->params;
    const Recurrent *c = s->state;
    HnCudaRecurrentArgs a = c->args;
    const HnCudaLayer *l = &a.layer;
    const int passes = p->kind == HN_GRU && !p->linear_before_reset ? 2 : 1;
    set_addresses(s, c, &a);
    if (!hn_cuda_layer_set_lens(s, l, LENS, a.lens, c->lens, error))
        return FALSE;
    if (!a.direct &&
        (!multiply_inputs(s, c, &a, error) ||
         !hn_cuda_launch(s, c->begin, hn_cuda_loop(s, l->directions * l->batch * l->hidden, THREADS), &a, error)))
        return FALSE;
    if (c->few) {
        a.end = l->steps;
        a.passes = passes;
        return hn_cuda_launch(s, c->steps, hn_cuda_row(c->tiles, THREADS_OF_FEW), &a, error);
    }
    for (int64_t k = 0; k < l->steps; k++) {
        a.first = k;
        a.end = k + 1;
        if (!run_step(s, c, &a, passes, error))
            return FALSE;
    }
    return TRUE;
}

static const HnKernel recurrent = {
    .name = "cuda.recurrent",
    .reject = recurrent_reject,
    .prepare = recurrent_prepare,
    .run = recurrent_run,
    .release = recurrent_release,
    .host_in = 1 << LENS,
};

const HnKernel *const hn_cuda_rnn[] = { &recurrent, NULL };
const HnKernel *const hn_cuda_gru[] = { &recurrent, NULL };
const HnKernel *const hn_cuda_lstm[] = { &recurrent, NULL };
const HnKernel *const hn_cuda_dynamicquantizelstm[] = { &recurrent, NULL };
const HnKernel *const hn_cuda_grutraining[] = { &recurrent, NULL };
const HnKernel *const hn_cuda_lstmtraining[] = { &recurrent, NULL };
