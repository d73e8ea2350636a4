/*
 * RNN, GRU and LSTM of f32, and LSTM of integers: an own kernel for constant weights and the usual functions of the
 * gates.
 *
 * Up to BATCH samples of one direction are a task; tasks are independent and shared by the threads. A task multiplies
 * the inputs of a stretch of steps with W at once, then goes from step to step: per panel of 16 units the product with
 * R is added to that and the cell follows. The state is held twice, because all panels of a step need the last one.
 * Where there are fewer tasks than threads and a step is long, the threads share the panels of one task after the
 * other. Products of integers are with all of R at once, after the state of all samples, which are one task, was
 * rounded.
 */
#include "op/recurrent.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "cpu/gemm/recurrent_int8.h"
#include "cpu/gemm/rnn_cell.h"
#include "cpu/sparse/sparse_cell.h"
#include "cpu/sparse/sparse_cost.h"
#include "op/quantize.h"

#define BATCH 32 /* samples of a task */
#define ROWS 64  /* rows of inputs that are multiplied at once, where a step has fewer */

/* Of a step by one thread, per us, and what it costs threads to meet. */
#define STEP_FLOPS 3e4
#define REGION_US 1.2

typedef struct {
    const HnRecurrent *p;
    const HnRnnCellOps *ops;
    int64_t steps, batch, directions, inputs, hidden, panels, units; /* units: panels of 16 */
    int slots, w_slot[4], r_slot[4]; /* of a panel; of the gates' products with W and R */
    int64_t width, rows;             /* floats of all slots; rows of gates in scratch */
    int64_t task_floats;             /* scratch of one thread */
    int64_t blocks, tasks;           /* blocks of a direction */
    int threads, each;               /* that share tasks; that share the panels of a task */
    HnPack *w, *r;                   /* [D][panels][K][gates][16], or as the lists below have them */
    HnSparseCell *few_w, *few_r;     /* of weights that are mostly 0; NULL: they are not */
    int64_t block;                   /* samples of a task */
    HnRnnInt8 *by_w, *by_r;          /* of DynamicQuantizeLSTM, instead of packs */
    int64_t bytes;                   /* of its rounded rows, in a thread's scratch behind the floats */
    float x_scale;                   /* in this run */
    int x_zero;
} Recurrent;

/* --- prepare ------------------------------------------------------------------------------------------------------ */

static void measure(const HnStep *s, Recurrent *c)
{
    static const int gru_w[4] = { 0, 1, 3, 0 };
    const HnTensor *x = hn_cpu_in(s, 0), *r = hn_cpu_in(s, 2);
    c->p = s->params;
    c->steps = x->dims[c->p->batch_first ? 1 : 0];
    c->batch = x->dims[c->p->batch_first ? 0 : 1];
    c->inputs = x->dims[2];
    c->hidden = r->dims[c->p->dynamic ? 1 : 2];
    c->block = c->p->dynamic ? MAX(1, c->batch) : BATCH;
    c->directions = c->p->direction == HN_BIDIRECTIONAL ? 2 : 1;
    c->panels = (c->hidden + HN_RNN_CELL - 1) / HN_RNN_CELL;
    c->units = c->panels * HN_RNN_CELL;
    gboolean apart = c->p->kind == HN_GRU && c->p->linear_before_reset; /* the hidden gate's sums stay apart */
    c->slots = apart ? 4 : c->p->gates;
    for (int g = 0; g < 4; g++) {
        c->r_slot[g] = g;
        c->w_slot[g] = apart ? gru_w[g] : g;
    }
    c->width = c->units * c->slots;
    int64_t samples = MIN(c->batch, c->block), stretch = MIN(c->steps, MAX(1, ROWS / samples));
    c->rows = samples * stretch;
    c->blocks = (c->batch + c->block - 1) / c->block;
    c->tasks = c->directions * c->blocks;
    /* gates, bias, two states and the reset or cell state, peepholes */
    c->task_floats = (c->rows + 1) * c->width + (3 * samples + 3) * c->units;
}

static gboolean has_shape(const HnStep *s, int i, int ndim, int64_t a, int64_t b, int64_t c)
{
    const HnTensor *t = hn_cpu_in(s, i);
    const int64_t want[3] = { a, b, c };
    return t == NULL || hn_tensor_has_dims(t, ndim, want);
}

static const char *reject_shapes(const HnStep *s)
{
    const HnRecurrent *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *r = hn_cpu_in(s, 2);
    const int along = p->dynamic ? 1 : 2;
    int64_t width;
    if (x->ndim != 3 || r->ndim != 3 || (p->hidden > 0 && r->dims[along] != p->hidden) ||
        !hn_mul_i64(r->dims[along], 2 * p->gates, &width))
        return "the shapes do not fit";
    Recurrent c;
    measure(s, &c);
    int64_t first = p->batch_first ? c.batch : c.directions, second = p->batch_first ? c.directions : c.batch;
    gboolean fit = p->dynamic ? has_shape(s, 1, 3, c.directions, c.inputs, width / 2) &&
                                    has_shape(s, 2, 3, c.directions, c.hidden, width / 2)
                              : has_shape(s, 1, 3, c.directions, width / 2, c.inputs) &&
                                    has_shape(s, 2, 3, c.directions, width / 2, c.hidden);
    fit = fit && has_shape(s, 3, 2, c.directions, width, 0) && has_shape(s, 4, 1, c.batch, 0, 0) &&
          has_shape(s, 5, 3, first, second, c.hidden) && has_shape(s, 6, 3, first, second, c.hidden) &&
          has_shape(s, 7, 2, c.directions, 3 * c.hidden, 0);
    return fit ? NULL : "the shapes do not fit";
}

static const char *reject_functions(const HnRecurrent *p)
{
    static const HnGateFunction usual[][3] = {
        [HN_RNN] = { HN_GATE_TANH },
        [HN_GRU] = { HN_GATE_SIGMOID, HN_GATE_TANH },
        [HN_LSTM] = { HN_GATE_SIGMOID, HN_GATE_TANH, HN_GATE_TANH },
    };
    if (p->input_forget)
        return "input_forget";
    for (int i = 0; i < p->per_direction * (p->direction == HN_BIDIRECTIONAL ? 2 : 1); i++)
        if (p->act[i].f != usual[p->kind][i % p->per_direction])
            return "other functions than Sigmoid and Tanh";
    return NULL;
}

/* Weights of DynamicQuantizeLSTM. */
static const char *reject_bytes(const HnStep *s)
{
    for (int i = 0; i < HN_DYNAMIC_INPUTS; i++)
        if (s->in[i].slot != NULL && s->in[i].slot->tensor->n == 0)
            return "nothing to compute";
    if (hn_cpu_in(s, 0)->ndim == 3 && hn_cpu_in(s, 0)->dims[1] > ROWS)
        return "many samples, whose states are rounded together";
    const char *reason = reject_functions(s->params);
    reason = reason != NULL ? reason : reject_shapes(s);
    reason = reason != NULL ? reason : hn_rnn_int8_reject(s, 1, HN_DYNAMIC_W_SCALE);
    return reason != NULL ? reason : hn_rnn_int8_reject(s, 2, HN_DYNAMIC_R_SCALE);
}

static const char *recurrent_reject(const HnStep *s)
{
    const HnRecurrent *p = s->params;
    if (p->dynamic)
        return reject_bytes(s);
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const HnSlot *slot = i < s->n_in ? s->in[i].slot : s->out[i - s->n_in].slot;
        if (slot == NULL || i == 4)
            continue;
        if (slot->tensor->dtype != HN_F32)
            return "only f32";
        if (slot->tensor->n == 0)
            return "nothing to compute";
    }
    if (!hn_slot_is_weight(s->in[1].slot) || !hn_slot_is_weight(s->in[2].slot))
        return "weights that are computed";
    const char *reason = reject_functions(s->params);
    return reason != NULL ? reason : reject_shapes(s);
}

static HnSparseCell *lists_of(const HnStep *s, int i)
{
    const HnRecurrent *p = s->params;
    return hn_sparse_weights_stay(s, i) ? hn_sparse_cell_new(hn_cpu_in(s, i), p->gates) : NULL;
}

static const char *sparse_reject(const HnStep *s)
{
    const HnRecurrent *p = s->params;
    const char *reason = p->dynamic ? "only f32" : recurrent_reject(s);
    if (reason != NULL)
        return reason;
    for (int i = 1; i <= 2; i++) {
        HnSparseCell *lists = lists_of(s, i);
        hn_sparse_cell_free(lists);
        if (lists != NULL)
            return NULL;
    }
    return "too few weights are 0 to gain by it";
}

static void pack_lists(void *to, const HnTensor *t, gconstpointer data)
{
    hn_sparse_cell_pack(data, to, t);
}

/* [D][gates][H][K] to [D][panels][K][gates][16] */
static void pack_weights(void *to, const HnTensor *t, gconstpointer data)
{
    const Recurrent *c = data;
    const int64_t gates = c->p->gates, hidden = t->dims[1] / gates, k = t->dims[2];
    const int64_t panels = (hidden + HN_RNN_CELL - 1) / HN_RNN_CELL;
    const char *from = t->data;
    memset(to, 0, (gsize)(t->dims[0] * panels * k * gates * HN_RNN_CELL) * sizeof(float));
    for (int64_t d = 0; d < t->dims[0]; d++)
        for (int64_t g = 0; g < gates; g++)
            for (int64_t u = 0; u < hidden; u++) {
                float *panel =
                    (float *)to + ((d * panels + u / HN_RNN_CELL) * k * gates + g) * HN_RNN_CELL + u % HN_RNN_CELL;
                for (int64_t i = 0; i < k; i++, from += sizeof(float))
                    memcpy(panel + i * gates * HN_RNN_CELL, from, sizeof(float));
            }
}

static void recurrent_release(HnStep *s)
{
    Recurrent *c = s->state;
    if (c == NULL)
        return;
    hn_pack_unref(c->w);
    hn_pack_unref(c->r);
    hn_rnn_int8_free(c->by_w);
    hn_rnn_int8_free(c->by_r);
    hn_sparse_cell_free(c->few_w);
    hn_sparse_cell_free(c->few_r);
    g_free(c);
    s->state = NULL;
}

static gboolean prepare_bytes(HnStep *s, Recurrent *c, GError **error)
{
    GError *failure = NULL;
    c->by_w = hn_rnn_int8_new(s, 1, HN_DYNAMIC_W_SCALE, &failure);
    if (failure == NULL)
        c->by_r = hn_rnn_int8_new(s, 2, HN_DYNAMIC_R_SCALE, &failure);
    if (failure != NULL) {
        g_propagate_error(error, failure);
        return FALSE;
    }
    c->bytes = c->rows * hn_rnn_int8_row(c->by_w) + c->batch * hn_rnn_int8_row(c->by_r);
    c->task_floats += (c->bytes + 3) / 4;
    s->scratch_bytes = (gsize)(c->threads * c->task_floats) * sizeof(float);
    return TRUE;
}

/* k: inputs; lists: of input i; NULL: there are none. */
static gboolean pack(HnStep *s, const Recurrent *c, int i, int64_t k, const HnSparseCell *lists, HnPack **to,
                     GError **error)
{
    const gsize unit = (gsize)(c->directions * c->units * c->p->gates) * sizeof(float);
    if (lists != NULL)
        return hn_pack_own(s, i, pack_lists, c->p->gates, hn_sparse_cell_bytes(lists), lists, to, error);
    return hn_pack_own(s, i, pack_weights, c->p->gates, unit * (gsize)k, c, to, error);
}

/* A GRU whose state is reset before it is multiplied: two products of a step, one after the other. */
static gboolean resets_first(const Recurrent *c)
{
    return c->p->kind == HN_GRU && !c->p->linear_before_reset;
}

/* Threads that share each task instead: where that takes less time than a task for a thread. Sparse steps are shorter
 * than this takes them for, and integers round whole states. */
static int threads_of_task(const Recurrent *c, int threads, gboolean sparse)
{
    if (sparse || c->p->dynamic || c->tasks >= threads)
        return 1;
    const int meet = resets_first(c) ? 2 : 1; /* regions of a step */
    const double samples = (double)MIN(c->batch, c->block);
    const double step = 2 * (double)c->hidden * (double)c->hidden * c->p->gates * samples / STEP_FLOPS; /* us */
    const double shared = step / (double)MIN(threads, c->panels) + meet * REGION_US;
    return (double)c->tasks * shared < step ? (int)MIN(threads, c->panels) : 1;
}

static gboolean prepare(HnStep *s, gboolean sparse, GError **error)
{
    Recurrent *c = g_new0(Recurrent, 1);
    s->state = c;
    measure(s, c);
    c->ops = hn_rnn_cell_ops();
    const int gates = c->p->gates;
    const double row = 2 * (double)c->hidden * (double)gates * (double)(c->inputs + c->hidden);
    const double flops = row * (double)c->steps * (double)c->batch * (double)c->directions;
    const int threads = hn_cpu_threads_for(s, flops);
    c->each = threads_of_task(c, threads, sparse);
    c->threads = c->each > 1 ? 1 : (int)MIN(c->tasks, (int64_t)threads);
    s->scratch_bytes = (gsize)(c->threads * c->task_floats) * sizeof(float);
    if (c->p->dynamic)
        return prepare_bytes(s, c, error);
    if (sparse) {
        c->few_w = lists_of(s, 1);
        c->few_r = lists_of(s, 2);
    }
    return pack(s, c, 1, c->inputs, c->few_w, &c->w, error) && pack(s, c, 2, c->hidden, c->few_r, &c->r, error);
}

static gboolean recurrent_prepare(HnStep *s, GError **error)
{
    return prepare(s, FALSE, error);
}

static gboolean sparse_prepare(HnStep *s, GError **error)
{
    return prepare(s, TRUE, error);
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnStep *s;
    const Recurrent *c;
    int64_t d, first, n; /* direction, samples */
    gboolean reverse;
    const float *w, *r;
    HnRnnCellGates with;                          /* without peepholes */
    char *x_bytes, *h_bytes;                      /* rounded rows of integers */
    float *gates, *bias, *h, *next, *more, *peep; /* more: LSTM's cell state, GRU's reset state */
} Task;

static int64_t length_of(const Task *t, int64_t b)
{
    const HnTensor *lens = hn_cpu_in(t->s, 4);
    return lens != NULL ? hn_tensor_get_i64(lens, t->first + b) : t->c->steps;
}

/* Row of sample b in a state tensor. */
static int64_t state_row(const Task *t, int64_t b)
{
    const Recurrent *c = t->c;
    return c->p->batch_first ? (t->first + b) * c->directions + t->d : t->d * c->batch + t->first + b;
}

static void load_bias(Task *t)
{
    const Recurrent *c = t->c;
    const float *from = hn_cpu_in(t->s, 3) != NULL ? hn_cpu_data(&t->s->in[3]) : NULL;
    memset(t->bias, 0, (gsize)c->width * sizeof(float));
    if (from == NULL)
        return;
    const int gates = c->p->gates;
    const float *wb = from + t->d * 2 * gates * c->hidden, *rb = wb + gates * c->hidden;
    for (int g = 0; g < gates; g++)
        for (int64_t u = 0; u < c->hidden; u++) {
            float *to = t->bias + u / HN_RNN_CELL * c->slots * HN_RNN_CELL + u % HN_RNN_CELL;
            to[c->w_slot[g] * HN_RNN_CELL] += wb[g * c->hidden + u];
            to[c->r_slot[g] * HN_RNN_CELL] += rb[g * c->hidden + u];
        }
}

static void load_state(const Task *t, int input, float *to)
{
    const Recurrent *c = t->c;
    memset(to, 0, (gsize)(t->n * c->units) * sizeof(float));
    for (int64_t b = 0; hn_cpu_in(t->s, input) != NULL && b < t->n; b++)
        memcpy(to + b * c->units, (const float *)hn_cpu_data(&t->s->in[input]) + state_row(t, b) * c->hidden,
               (gsize)c->hidden * sizeof(float));
}

static void store_state(const Task *t, int k, const float *from)
{
    const Recurrent *c = t->c;
    for (int64_t b = 0; k < t->s->n_out && t->s->out[k].slot != NULL && b < t->n; b++) {
        float *to = (float *)hn_cpu_data(&t->s->out[k]) + state_row(t, b) * c->hidden;
        if (length_of(t, b) > 0)
            memcpy(to, from + b * c->units, (gsize)c->hidden * sizeof(float));
        else
            memset(to, 0, (gsize)c->hidden * sizeof(float));
    }
}

/* Adds the products of n rows x with gates lo .. hi - 1 of panel p, by lists, to `gates` of the first row. */
static void add_lists(const Task *t, const HnSparseCell *lists, const float *w, float *gates, const int *slot,
                      const float *const *x, int n, int64_t p, int lo, int hi)
{
    const Recurrent *c = t->c;
    for (int g = lo; g < hi; g++) {
        float *sums[HN_RNN_CELL_ROWS];
        for (int j = 0; j < n; j++)
            sums[j] = gates + j * c->width + (p * c->slots + slot[g]) * HN_RNN_CELL;
        hn_sparse_cell_add(lists, w, (t->d * c->panels + p) * c->p->gates + g, sums, x, n);
    }
}

/* Products of W's panels from .. to - 1 with so many rows. */
static inline void multiply_range(const Task *t, const float *const *row, int64_t rows, int64_t from, int64_t to)
{
    const Recurrent *c = t->c;
    const int gates = c->p->gates;
    for (int64_t p = from; p < to; p++) {
        const float *w = t->w + p * c->inputs * gates * HN_RNN_CELL;
        float *panel = t->gates + p * c->slots * HN_RNN_CELL;
        if (rows == 1) {
            c->ops->one(panel, c->w_slot, row[0], w, c->inputs, gates, gates);
            continue;
        }
        for (int g = 0; g < gates; g++)
            for (int64_t i = 0; i < rows; i += HN_RNN_CELL_ROWS) {
                const int some = (int)MIN(rows - i, HN_RNN_CELL_ROWS);
                float *sums[HN_RNN_CELL_ROWS];
                for (int j = 0; j < some; j++)
                    sums[j] = panel + (i + j) * c->width + c->w_slot[g] * HN_RNN_CELL;
                c->ops->rows(sums, row + i, some, w + g * HN_RNN_CELL, gates * HN_RNN_CELL, c->inputs);
            }
    }
}

typedef struct {
    const Task *t;
    const float *const *row;
    int64_t rows;
} Inputs;

static void input_panels(gpointer inputs, int thread, int64_t from, int64_t to)
{
    (void)thread;
    const Inputs *in = inputs;
    multiply_range(in->t, in->row, in->rows, from, to);
}

/* Gates of the steps first .. first + n - 1 for all samples: bias and product with W. Rows beyond a sequence's end are
 * computed from some other row and never used. */
static void multiply_inputs(const Task *t, int64_t first, int64_t n)
{
    const Recurrent *c = t->c;
    const float *x = hn_cpu_data(&t->s->in[0]), *row[ROWS];
    const int64_t rows = n * t->n;
    for (int64_t i = 0; i < rows; i++) {
        int64_t b = i % t->n, k = first + i / t->n, len = length_of(t, b), at = 0;
        if (k < len)
            at = t->reverse ? len - 1 - k : k;
        row[i] = x + (c->p->batch_first ? (t->first + b) * c->steps + at : at * c->batch + t->first + b) * c->inputs;
        memcpy(t->gates + i * c->width, t->bias, (gsize)c->width * sizeof(float));
        if (c->by_w != NULL)
            hn_rnn_int8_round(c->by_w, t->x_bytes + i * hn_rnn_int8_row(c->by_w), row[i], c->x_scale, c->x_zero);
    }
    if (c->by_w != NULL) {
        const HnRnnInt8Product m = { c->by_w, t->s, 1, t->d, rows, t->x_bytes, c->x_scale, c->x_zero, FALSE, t->gates };
        hn_rnn_int8_multiply(&m);
    } else if (c->few_w != NULL) {
        for (int64_t p = 0; p < c->panels; p++)
            for (int64_t i = 0; i < rows; i += HN_RNN_CELL_ROWS)
                add_lists(t, c->few_w, t->w, t->gates + i * c->width, c->w_slot, row + i,
                          (int)MIN(rows - i, HN_RNN_CELL_ROWS), p, 0, c->p->gates);
    } else if (c->each == 1) {
        multiply_range(t, row, rows, 0, c->panels);
    } else {
        Inputs in = { t, row, rows };
        hn_parallel_for(c->panels, c->each, input_panels, &in);
    }
}

/* Adds the product of `state` with R to gates lo .. hi - 1 of panel p, for all samples. */
static void multiply_state(const Task *t, float *gates, const float *state, int64_t p, int lo, int hi)
{
    const Recurrent *c = t->c;
    const int all = c->p->gates;
    if (c->few_r != NULL) {
        for (int64_t b = 0; b < t->n; b += HN_RNN_CELL_ROWS) {
            const int some = (int)MIN(t->n - b, HN_RNN_CELL_ROWS);
            const float *rows[HN_RNN_CELL_ROWS];
            for (int j = 0; j < some; j++)
                rows[j] = state + (b + j) * c->units;
            add_lists(t, c->few_r, t->r, gates + b * c->width, c->r_slot, rows, some, p, lo, hi);
        }
        return;
    }
    const float *w = t->r + (p * c->hidden * all + lo) * HN_RNN_CELL;
    float *to = gates + p * c->slots * HN_RNN_CELL;
    if (t->n == 1) {
        c->ops->one(to, c->r_slot + lo, state, w, c->hidden, hi - lo, all);
        return;
    }
    for (int g = lo; g < hi; g++, w += HN_RNN_CELL)
        for (int64_t b = 0; b < t->n; b += HN_RNN_CELL_ROWS) {
            const int some = (int)MIN(t->n - b, HN_RNN_CELL_ROWS);
            const float *rows[HN_RNN_CELL_ROWS];
            float *sums[HN_RNN_CELL_ROWS];
            for (int j = 0; j < some; j++) {
                sums[j] = to + (b + j) * c->width + c->r_slot[g] * HN_RNN_CELL;
                rows[j] = state + (b + j) * c->units;
            }
            c->ops->rows(sums, rows, some, w, all * HN_RNN_CELL, c->hidden);
        }
}

/* The same of all panels in step k, by integers. */
static void multiply_bytes(const Task *t, float *gates, int64_t k)
{
    const HnRnnInt8 *p = t->c->by_r;
    float range[2] = { 0, 0 };
    int zero;
    for (int64_t b = 0; b < t->n; b++)
        hn_rnn_int8_range(t->h + b * t->c->units, p->inputs, range);
    const float scale = hn_dynamic_step(range[0], range[1], &zero);
    for (int64_t b = 0; b < t->n; b++)
        hn_rnn_int8_round(p, t->h_bytes + b * hn_rnn_int8_row(p), t->h + b * t->c->units, scale, zero);
    const HnRnnInt8Product m = { p, t->s, 2, t->d, t->n, t->h_bytes, scale, zero, k % 2 != 0, gates };
    hn_rnn_int8_multiply(&m);
}

/* Of panel p in step k, for all samples that have not ended; ends: some may have. */
static void cells(const Task *t, float *gates, int64_t k, int64_t p, gboolean ends, const HnRnnCellGates *with)
{
    const Recurrent *c = t->c;
    const HnRnnCellOps *ops = c->ops;
    const int kind = c->p->kind;
    for (int64_t b = 0; b < t->n; b++) {
        if (ends && k >= length_of(t, b))
            continue;
        const float *g = gates + b * c->width + p * c->slots * HN_RNN_CELL;
        const int64_t at = b * c->units + p * HN_RNN_CELL;
        if (kind == HN_LSTM)
            ops->lstm(with, g, t->more + at, t->next + at);
        else if (kind == HN_GRU)
            ops->gru(with, g, c->p->linear_before_reset, t->h + at, t->next + at);
        else
            ops->rnn(with, g, t->next + at);
    }
}

/* Gates lo .. hi - 1 of the panels, forwards and backwards in turn: what of R was read last in a step is in the first
 * cache when the next one begins. */
static inline void multiply_states(const Task *t, float *gates, const float *state, int64_t k, int64_t from, int64_t to,
                                   int lo, int hi)
{
    for (int64_t p = from; p < to; p++)
        multiply_state(t, gates, state, k % 2 == 0 ? p : from + to - 1 - p, lo, hi);
}

/* Of a GRU: the two gates that do not need the reset state, and that state. */
static inline void reset_range(const Task *t, float *gates, int64_t k, int64_t from, int64_t to)
{
    const Recurrent *c = t->c;
    multiply_states(t, gates, t->h, k, from, to, 0, 2);
    for (int64_t p = from; p < to; p++)
        for (int64_t b = 0; b < t->n; b++) {
            const int64_t at = b * c->units + p * HN_RNN_CELL;
            c->ops->reset(&t->with, gates + b * c->width + p * c->slots * HN_RNN_CELL, t->h + at, t->more + at);
        }
}

/* All products come before the cells, whose long chains of instructions are then computed beside each other. */
static inline void cell_range(const Task *t, float *gates, int64_t k, int64_t from, int64_t to)
{
    const Recurrent *c = t->c;
    const gboolean reset = resets_first(c);
    HnRnnCellGates peeping = t->with;
    if (c->by_r == NULL)
        multiply_states(t, gates, reset ? t->more : t->h, k, from, to, reset ? 2 : 0, c->p->gates);
    const gboolean ends = hn_cpu_in(t->s, 4) != NULL;
    const int peepholes = hn_cpu_in(t->s, 7) != NULL ? 3 : 0;
    for (int64_t p = from; p < to; p++) {
        for (int i = 0; i < peepholes; i++)
            peeping.peep[i] = t->peep + i * c->units + p * HN_RNN_CELL;
        cells(t, gates, k, p, ends, peepholes > 0 ? &peeping : &t->with);
    }
}

typedef struct {
    const Task *t;
    float *gates;
    int64_t k;
} Advance;

static void reset_panels(gpointer advance, int thread, int64_t from, int64_t to)
{
    (void)thread;
    const Advance *a = advance;
    reset_range(a->t, a->gates, a->k, from, to);
}

static void cell_panels(gpointer advance, int thread, int64_t from, int64_t to)
{
    (void)thread;
    const Advance *a = advance;
    cell_range(a->t, a->gates, a->k, from, to);
}

/* Step k of all samples: from state h to state next. */
static void advance(const Task *t, float *gates, int64_t k)
{
    const Recurrent *c = t->c;
    if (c->each == 1) { /* steps of less than a microsecond feel calls */
        if (resets_first(c))
            reset_range(t, gates, k, 0, c->panels);
        if (c->by_r != NULL)
            multiply_bytes(t, gates, k);
        cell_range(t, gates, k, 0, c->panels);
        return;
    }
    Advance a = { t, gates, k };
    if (resets_first(c))
        hn_parallel_for(c->panels, c->each, reset_panels, &a);
    hn_parallel_for(c->panels, c->each, cell_panels, &a);
}

/* Stores the output; the state of a sequence that has ended stays. */
static void finish_step(const Task *t, int64_t k)
{
    const Recurrent *c = t->c;
    float *y = t->s->out[0].slot != NULL ? hn_cpu_data(&t->s->out[0]) : NULL;
    for (int64_t b = 0; b < t->n; b++) {
        const int64_t len = length_of(t, b), sample = t->first + b;
        float *h = t->next + b * c->units;
        if (k >= len)
            memcpy(h, t->h + b * c->units, (gsize)c->units * sizeof(float));
        const int64_t at = t->reverse && k < len ? len - 1 - k : k;
        if (y == NULL)
            continue;
        float *to = y + (c->p->batch_first ? (sample * c->steps + at) * c->directions + t->d
                                           : (at * c->directions + t->d) * c->batch + sample) *
                            c->hidden;
        if (k < len)
            memcpy(to, h, (gsize)c->hidden * sizeof(float));
        else
            memset(to, 0, (gsize)c->hidden * sizeof(float));
    }
}

static void run_task(const HnStep *s, const Recurrent *c, int64_t task, float *scratch)
{
    const int64_t panel = c->panels * c->p->gates * HN_RNN_CELL;
    Task t = { .s = s, .c = c, .d = task / c->blocks, .first = task % c->blocks * c->block };
    t.n = MIN(c->batch - t.first, c->block);
    t.reverse = c->p->direction == HN_REVERSE || t.d == 1;
    if (!c->p->dynamic) {
        t.w = (const float *)hn_pack_data(c->w, s, 1) + (c->few_w == NULL ? t.d * panel * c->inputs : 0);
        t.r = (const float *)hn_pack_data(c->r, s, 2) + (c->few_r == NULL ? t.d * panel * c->hidden : 0);
    }
    t.with.clip = (float)c->p->clip;
    const int64_t state = MIN(c->batch, c->block) * c->units;
    t.gates = scratch;
    t.bias = t.gates + c->rows * c->width;
    t.h = t.bias + c->width;
    t.next = t.h + state;
    t.more = t.next + state;
    t.peep = t.more + state;
    t.x_bytes = (char *)(t.peep + 3 * c->units);
    t.h_bytes = c->by_w != NULL ? t.x_bytes + c->rows * hn_rnn_int8_row(c->by_w) : NULL;
    load_bias(&t);
    load_state(&t, 5, t.h);
    load_state(&t, 6, t.more);
    for (int i = 0; hn_cpu_in(s, 7) != NULL && i < 3; i++) {
        memset(t.peep + i * c->units, 0, (gsize)c->units * sizeof(float));
        memcpy(t.peep + i * c->units, (const float *)hn_cpu_data(&s->in[7]) + (t.d * 3 + i) * c->hidden,
               (gsize)c->hidden * sizeof(float));
    }
    const int64_t stretch = MAX(1, c->rows / MIN(c->batch, c->block));
    for (int64_t k = 0; k < c->steps; k += stretch) {
        const int64_t n = MIN(c->steps - k, stretch);
        multiply_inputs(&t, k, n);
        for (int64_t i = 0; i < n; i++) {
            advance(&t, t.gates + i * t.n * c->width, k + i);
            finish_step(&t, k + i);
            float *last = t.h;
            t.h = t.next;
            t.next = last;
        }
    }
    store_state(&t, 1, t.h);
    if (c->p->kind == HN_LSTM)
        store_state(&t, 2, t.more);
}

static void run_tasks(gpointer step, int thread, int64_t from, int64_t to)
{
    const HnStep *s = step;
    const Recurrent *c = s->state;
    for (int64_t task = from; task < to; task++)
        run_task(s, c, task, (float *)s->scratch + thread * c->task_floats);
}

static gboolean recurrent_run(HnStep *s, GError **error)
{
    Recurrent *c = s->state;
    const HnTensor *lens = hn_cpu_in(s, 4);
    for (int64_t b = 0; lens != NULL && b < c->batch; b++) {
        const int64_t len = hn_tensor_get_i64(lens, b);
        if (len < 0 || len > c->steps) {
            g_set_error(error, HN_ERROR, HN_ERROR_VALUE,
                        "node '%s': sequence length %" PRId64 " is outside [0, %" PRId64 "]", hn_node_label(s->node),
                        len, c->steps);
            return FALSE;
        }
    }
    if (c->p->dynamic) {
        float range[2] = { 0, 0 };
        hn_rnn_int8_range(hn_cpu_data(&s->in[0]), hn_cpu_in(s, 0)->n, range);
        c->x_scale = hn_dynamic_step(range[0], range[1], &c->x_zero);
    }
    if (c->each > 1)
        run_tasks(s, 0, 0, c->tasks);
    else
        hn_parallel_for(c->tasks, c->threads, run_tasks, s);
    return TRUE;
}

#define KERNEL(symbol, label, how)                             \
    static const HnKernel symbol = { .name = label,            \
                                     .reject = how##_reject,   \
                                     .prepare = how##_prepare, \
                                     .run = recurrent_run,     \
                                     .release = recurrent_release };
#define KERNELS(op)                                \
    KERNEL(op##_sparse, "cpu.sparse_" #op, sparse) \
    KERNEL(op##_kernel, "cpu." #op, recurrent)     \
    const HnKernel *const hn_cpu_##op[] = { &op##_sparse, &op##_kernel, NULL };
KERNELS(rnn)
KERNELS(gru)
KERNELS(lstm)
KERNEL(dynamic_kernel, "cpu.dynamicquantizelstm", recurrent)
const HnKernel *const hn_cpu_dynamicquantizelstm[] = { &dynamic_kernel, NULL };
