/*
 * RNN, GRU, LSTM: one layer over a sequence, forwards, backwards or both. Everything is computed in double.
 *
 * Shapes with layout 0 (T steps, B samples, D directions, I inputs, H hidden, G gates): X [T,B,I], W [D,G*H,I],
 * R [D,G*H,H], bias [D,2*G*H], sequence_lens [B], initial_h and initial_c [D,B,H], P [D,3*H]; Y [T,D,B,H], Y_h and Y_c
 * [D,B,H]. Layout 1 moves B to the front of X, the states and the outputs.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/batch.h"
#include "op/gemm.h"
#include "op/index.h"
#include "op/narrow.h"
#include "op/quantize.h"
#include "op/recurrent.h"
#include "op/types.h"
#include "op/unbind.h"

/* --- bind -------------------------------------------------------------------------------------------------------- */

/* What each function takes from the lists activation_alpha and activation_beta, and its defaults. */
static const struct {
    const char *name;
    gboolean alpha, beta;
    double a, b;
} functions[] = {
    [HN_GATE_RELU] = { "Relu", FALSE, FALSE, 0, 0 },
    [HN_GATE_TANH] = { "Tanh", FALSE, FALSE, 0, 0 },
    [HN_GATE_SIGMOID] = { "Sigmoid", FALSE, FALSE, 0, 0 },
    [HN_GATE_AFFINE] = { "Affine", TRUE, TRUE, 1, 0 },
    [HN_GATE_LEAKY_RELU] = { "LeakyRelu", TRUE, FALSE, 0.01, 0 },
    [HN_GATE_THRESHOLDED_RELU] = { "ThresholdedRelu", TRUE, FALSE, 1, 0 },
    [HN_GATE_SCALED_TANH] = { "ScaledTanh", TRUE, TRUE, 1, 1 },
    [HN_GATE_HARD_SIGMOID] = { "HardSigmoid", TRUE, TRUE, 0.2, 0.5 },
    [HN_GATE_ELU] = { "Elu", TRUE, FALSE, 1, 0 },
    [HN_GATE_SOFTSIGN] = { "Softsign", FALSE, FALSE, 0, 0 },
    [HN_GATE_SOFTPLUS] = { "Softplus", FALSE, FALSE, 0, 0 },
};

static int function_of(HnBind *b, GBytes *word)
{
    gsize n;
    const char *s = g_bytes_get_data(word, &n);
    for (guint i = 0; i < G_N_ELEMENTS(functions); i++)
        if (strlen(functions[i].name) == n && g_ascii_strncasecmp(functions[i].name, s, n) == 0)
            return (int)i;
    hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'activations' cannot hold '%.*s'", (int)MIN(n, 64),
                 s != NULL ? s : "");
    return HN_GATE_RELU;
}

static void bind_activations(HnBind *b, HnRecurrent *p)
{
    static const HnGateFunction defaults[][3] = { { HN_GATE_TANH, 0, 0 },
                                                  { HN_GATE_SIGMOID, HN_GATE_TANH, 0 },
                                                  { HN_GATE_SIGMOID, HN_GATE_TANH, HN_GATE_TANH } };
    const HnAttr *names = hn_node_attr(b->node, "activations");
    int64_t n_alpha, n_beta, ia = 0, ib = 0;
    const float *alpha = hn_bind_floats(b, "activation_alpha", &n_alpha);
    const float *beta = hn_bind_floats(b, "activation_beta", &n_beta);
    int want = p->per_direction * (p->direction == HN_BIDIRECTIONAL ? 2 : 1), have = 0;
    if (names != NULL && (names->kind != HN_ATTR_STRINGS || names->ref_attr != NULL)) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'activations' is not a list of strings");
        return;
    }
    if (names != NULL && names->n > 0)
        have = (int)MIN(names->n, G_MAXINT);
    if (have != 0 && have != p->per_direction && have < want) {
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute 'activations' has %d elements, not %d", have, want);
        return;
    }
    for (int i = 0; i < want; i++) {
        if (i >= p->per_direction && have > 0 && have < want) { /* one direction's are given: the other has the same */
            p->act[i] = p->act[i - p->per_direction];
            continue;
        }
        int f = have > 0 ? function_of(b, names->strings[i]) : (int)defaults[p->kind][i % p->per_direction];
        HnGate a = { (HnGateFunction)f, functions[f].a, functions[f].b };
        if (functions[f].alpha && ia < n_alpha)
            a.alpha = (double)alpha[ia++];
        if (functions[f].beta && ib < n_beta)
            a.beta = (double)beta[ib++];
        p->act[i] = a;
    }
}

static void bind_common(HnBind *b, HnRecurrent *p, HnRecurrentKind kind)
{
    static const char *const directions[] = { "forward", "reverse", "bidirectional", NULL };
    static const int gates[] = { 1, 3, 4 };
    p->kind = kind;
    p->gates = gates[kind];
    p->per_direction = (int)kind + 1;
    p->direction = (HnDirection)hn_bind_word(b, "direction", directions, HN_FORWARD);
    p->hidden = hn_bind_int(b, "hidden_size", 0);
    p->clip = hn_bind_has(b, "clip") ? (double)hn_bind_float(b, "clip", 0) : INFINITY;
    const gboolean internal = hn_domain_equal(b->node->domain, HN_DOMAIN_INTERNAL);
    p->batch_first = (internal || b->version >= 14) && hn_bind_bool(b, "layout", FALSE);
    p->linear_before_reset =
        kind == HN_GRU && (internal || b->version >= 3) && hn_bind_bool(b, "linear_before_reset", FALSE);
    p->input_forget = kind == HN_LSTM && hn_bind_bool(b, "input_forget", FALSE);
    if (p->hidden < 0 || !(p->clip >= 0))
        hn_bind_fail(b, HN_ERROR_ATTRIBUTE, "attribute '%s' is negative", p->hidden < 0 ? "hidden_size" : "clip");
    bind_activations(b, p);
}

void hn_rnn_bind(HnBind *b, void *params)
{
    bind_common(b, params, HN_RNN);
}

void hn_gru_bind(HnBind *b, void *params)
{
    bind_common(b, params, HN_GRU);
}

void hn_lstm_bind(HnBind *b, void *params)
{
    bind_common(b, params, HN_LSTM);
}

/* --- infer ------------------------------------------------------------------------------------------------------- */

/* Results that the operator has without those that training adds. */
static int plain_outputs(const HnRecurrent *p)
{
    return p->kind == HN_LSTM ? 3 : 2;
}

static void recurrent_infer(HnInfer *x)
{
    const HnRecurrent *p = x->params;
    static const int ranks[] = { 3, 3, 3, 2, 1, 3, 3, 2 };
    HnDtype dtype = hn_infer_dtype(x, 0);
    for (int i = 0; i < x->n_in; i++)
        if (hn_infer_rank(x, i) >= 0 && hn_infer_rank(x, i) != ranks[i]) {
            hn_infer_fail(x, HN_ERROR_SHAPE, "input %d has %d dimensions, not %d", i, hn_infer_rank(x, i), ranks[i]);
            return;
        }
    HnDim steps = hn_infer_dim(x, 0, p->batch_first ? 1 : 0), batch = hn_infer_dim(x, 0, p->batch_first ? 0 : 1);
    HnDim directions = hn_dim(p->direction == HN_BIDIRECTIONAL ? 2 : 1), hidden = hn_infer_dim(x, 2, 2);
    if (!hidden.known && p->hidden > 0)
        hidden = hn_dim(p->hidden);
    if (p->hidden > 0 && hn_dim_differ(hidden, hn_dim(p->hidden))) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "attribute 'hidden_size' differs from the shape of input 2");
        return;
    }
    if (hn_dim_differ(directions, hn_infer_dim(x, 1, 0)) || hn_dim_differ(directions, hn_infer_dim(x, 2, 0)) ||
        hn_dim_differ(hn_infer_dim(x, 0, 2), hn_infer_dim(x, 1, 2))) {
        hn_infer_fail(x, HN_ERROR_SHAPE, "the weights do not fit the input or the direction");
        return;
    }
    HnDim y[2][4] = { { steps, directions, batch, hidden }, { batch, steps, directions, hidden } };
    HnDim state[2][3] = { { directions, batch, hidden }, { batch, directions, hidden } };
    hn_infer_out(x, 0, dtype, 4, y[p->batch_first ? 1 : 0]);
    hn_infer_out(x, 1, dtype, 3, state[p->batch_first ? 1 : 0]);
    if (p->kind == HN_LSTM)
        hn_infer_out(x, 2, dtype, 3, state[p->batch_first ? 1 : 0]);
    const int saved = plain_outputs(p);
    HnDim kept[4] = { steps, directions, batch, hn_dim_mul(hidden, hn_dim(hn_recurrent_slots(p))) };
    if (x->n_out > saved)
        hn_infer_out(x, saved, dtype, 4, kept);
    kept[3] = hidden;
    if (x->n_out > saved + 1)
        hn_infer_out(x, saved + 1, dtype, 4, kept);
}

static void recurrent_cost(const HnInfer *x, HnCost *c)
{
    double rows = (double)hn_infer_dim(x, 0, 0).n * (double)hn_infer_dim(x, 0, 1).n;
    c->flops = 2 * rows * (hn_type_count(x->in[1]) + hn_type_count(x->in[2]));
}

/* --- ref --------------------------------------------------------------------------------------------------------- */

double hn_gate_value(const HnGate *a, double x)
{
    switch (a->f) {
    case HN_GATE_RELU:
        return x > 0 ? x : 0;
    case HN_GATE_TANH:
        return tanh(x);
    case HN_GATE_SIGMOID:
        return 1 / (1 + exp(-x));
    case HN_GATE_AFFINE:
        return a->alpha * x + a->beta;
    case HN_GATE_LEAKY_RELU:
        return x >= 0 ? x : a->alpha * x;
    case HN_GATE_THRESHOLDED_RELU:
        return x >= a->alpha ? x : 0;
    case HN_GATE_SCALED_TANH:
        return a->alpha * tanh(a->beta * x);
    case HN_GATE_HARD_SIGMOID:
        return fmin(fmax(a->alpha * x + a->beta, 0), 1);
    case HN_GATE_ELU:
        return x >= 0 ? x : a->alpha * expm1(x);
    case HN_GATE_SOFTSIGN:
        return x / (1 + fabs(x));
    default:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
}

/* Elements as doubles; NULL inputs are zeros. */
typedef struct {
    int64_t steps, batch, directions, inputs, hidden, width; /* width: gates * hidden */
    double *x, *w, *r, *bias, *p, *h, *c;                    /* h and c: [D,B,H] in any layout */
    double *xw, *hr, *rh, *rhr; /* [T*B,width], [B,width], GRU: r (.) h and its product [B,H] */
    int64_t *lens;              /* [B] */
    double *row;                /* [S*hidden]: gates of one sample */
    void *y, *gates, *cells;    /* NULL: not asked for */
} Run;

static double *load(HnEval *e, const HnTensor *t, int64_t n)
{
    double *v = hn_eval_scratch(e, n, sizeof *v);
    if (v == NULL)
        return NULL;
    if (t == NULL) {
        memset(v, 0, (size_t)n * sizeof *v);
        return v;
    }
#define RUN(T)                      \
    for (int64_t i = 0; i < n; i++) \
        v[i] = (double)((const T *)t->data)[i];
    HN_FOR_FLOAT(t->dtype, RUN)
#undef RUN
    return v;
}

/* The same of weights [D,k,width] in bytes, as [D,width,k], with their scales and zero points from input `scale` on. */
static double *load_bytes(HnEval *e, int i, int scale)
{
    const HnTensor *t = e->in[i], *of = e->in[scale], *zero = e->in[scale + 1];
    const int64_t k = t->dims[1], width = t->dims[2], each = t->dims[0] > 0 ? of->n / t->dims[0] : 1;
    double *v = hn_eval_scratch(e, t->n, sizeof *v);
    for (int64_t d = 0; v != NULL && d < t->dims[0]; d++)
        for (int64_t r = 0; r < k; r++)
            for (int64_t c = 0; c < width; c++) {
                const int64_t step = d * each + (each > 1 ? c : 0);
                v[(d * width + c) * k + r] =
                    hn_tensor_get_f64(of, step) *
                    (hn_tensor_get_f64(t, (d * k + r) * width + c) - hn_tensor_get_f64(zero, step));
            }
    return v;
}

/* Numbers become those that DynamicQuantizeLinear makes integers of. */
static void round_all(double *x, int64_t n)
{
    float lo = 0, hi = 0;
    int zero;
    for (int64_t i = 0; i < n; i++) {
        lo = fminf(lo, (float)x[i]);
        hi = fmaxf(hi, (float)x[i]);
    }
    const float scale = hn_dynamic_step(lo, hi, &zero);
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)scale * (double)(CLAMP(rintf((float)x[i] / scale) + (float)zero, 0, 255) - (float)zero);
}

static gboolean fits(HnEval *e, int i, int ndim, int64_t a, int64_t b, int64_t c)
{
    const HnTensor *t = hn_eval_in(e, i);
    int64_t want[3] = { a, b, c };
    if (t == NULL || hn_tensor_has_dims(t, ndim, want))
        return TRUE;
    g_autofree char *text = hn_tensor_describe(t);
    hn_eval_fail(e, HN_ERROR_SHAPE, "input %d is %s, which does not fit the others", i, text);
    return FALSE;
}

/* Weights in bytes and their steps. */
static gboolean bytes_fit(HnEval *e, const Run *s)
{
    if (!fits(e, 1, 3, s->directions, s->inputs, s->width) || !fits(e, 2, 3, s->directions, s->hidden, s->width))
        return FALSE;
    for (int i = HN_DYNAMIC_W_SCALE; i < HN_DYNAMIC_INPUTS; i++) {
        const int ndim = e->in[i]->ndim;
        if (e->in[i]->n != e->in[i & ~1]->n || !fits(e, i, ndim > 1 ? 2 : 1, s->directions, s->width, 0))
            return FALSE;
    }
    return TRUE;
}

static gboolean weights_fit(HnEval *e, const Run *s)
{
    const HnRecurrent *p = e->params;
    return p->dynamic
               ? bytes_fit(e, s)
               : fits(e, 1, 3, s->directions, s->width, s->inputs) && fits(e, 2, 3, s->directions, s->width, s->hidden);
}

static gboolean measure(HnEval *e, Run *s)
{
    const HnRecurrent *p = e->params;
    const HnTensor *x = hn_eval_in(e, 0), *r = hn_eval_in(e, 2);
    const int along = p->dynamic ? 1 : 2; /* axis of r */
    int64_t ignored;
    if (x->ndim != 3 || r->ndim != 3 || (p->hidden > 0 && r->dims[along] != p->hidden)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "input 0 or 2 does not have the right shape");
        return FALSE;
    }
    for (int i = 0; i < e->n_in && !p->dynamic; i++)
        if (e->in[i] != NULL && i != 4 && e->in[i]->dtype != x->dtype) {
            hn_eval_fail(e, HN_ERROR_TYPE, "input %d is not of the type of input 0", i);
            return FALSE;
        }
    s->steps = x->dims[p->batch_first ? 1 : 0];
    s->batch = x->dims[p->batch_first ? 0 : 1];
    s->inputs = x->dims[2];
    s->hidden = r->dims[along];
    s->directions = p->direction == HN_BIDIRECTIONAL ? 2 : 1;
    if (!hn_mul_i64(s->hidden, p->gates, &s->width) || !hn_mul_i64(s->width, 2, &ignored)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the hidden size overflows");
        return FALSE;
    }
    int64_t first = p->batch_first ? s->batch : s->directions, second = p->batch_first ? s->directions : s->batch;
    if (!weights_fit(e, s) || !fits(e, 3, 2, s->directions, 2 * s->width, 0) || !fits(e, 4, 1, s->batch, 0, 0))
        return FALSE;
    return fits(e, 5, 3, first, second, s->hidden) && fits(e, 6, 3, first, second, s->hidden) &&
           fits(e, 7, 2, s->directions, 3 * s->hidden, 0);
}

/* Place of direction d, sample b in a state tensor, in rows of H. */
static int64_t state_row(const HnRecurrent *p, const Run *s, int64_t d, int64_t b)
{
    return p->batch_first ? b * s->directions + d : d * s->batch + b;
}

/* States as [D,B,H]. */
static double *load_state(HnEval *e, const HnTensor *t, const Run *s)
{
    int64_t n = s->directions * s->batch * s->hidden;
    double *v = load(e, t, n);
    double *moved = v != NULL && t != NULL ? hn_eval_scratch(e, n, sizeof *moved) : NULL;
    if (moved == NULL)
        return v;
    for (int64_t d = 0; d < s->directions; d++)
        for (int64_t b = 0; b < s->batch; b++)
            memcpy(moved + (d * s->batch + b) * s->hidden, v + state_row(e->params, s, d, b) * s->hidden,
                   (size_t)s->hidden * sizeof *v);
    hn_eval_scratch_free(e, v);
    return moved;
}

int64_t *hn_recurrent_lens(HnEval *e, int input, int64_t batch, int64_t steps)
{
    const HnTensor *t = hn_eval_in(e, input);
    int64_t *lens = hn_eval_scratch(e, MAX(1, batch), sizeof *lens);
    if (t != NULL && t->n != batch)
        hn_eval_fail(e, HN_ERROR_SHAPE, "input %d does not fit the others", input);
    for (int64_t b = 0; e->error == NULL && b < batch; b++) {
        lens[b] = t != NULL ? hn_tensor_get_i64(t, b) : steps;
        if (lens[b] < 0 || lens[b] > steps)
            hn_eval_fail(e, HN_ERROR_VALUE, "sequence length %" PRId64 " is outside [0, %" PRId64 "]", lens[b], steps);
    }
    return lens;
}

static gboolean prepare(HnEval *e, Run *s)
{
    const HnRecurrent *p = e->params;
    const HnTensor *x = e->in[0];
    int64_t rows, all, state, d = s->directions;
    if (!hn_mul_i64(s->steps, s->batch, &rows) || !hn_mul_i64(rows, MAX(1, s->width), &all) ||
        !hn_mul_i64(d * s->batch, MAX(1, s->width), &state)) {
        hn_eval_fail(e, HN_ERROR_SHAPE, "the number of hidden elements overflows");
        return FALSE;
    }
    s->x = load(e, x, x->n);
    s->w = p->dynamic ? load_bytes(e, 1, HN_DYNAMIC_W_SCALE) : load(e, e->in[1], e->in[1]->n);
    s->r = p->dynamic ? load_bytes(e, 2, HN_DYNAMIC_R_SCALE) : load(e, e->in[2], e->in[2]->n);
    if (p->dynamic && s->x != NULL)
        round_all(s->x, x->n);
    s->bias = load(e, hn_eval_in(e, 3), d * 2 * s->width);
    s->p = load(e, hn_eval_in(e, 7), d * 3 * s->hidden);
    s->h = load_state(e, hn_eval_in(e, 5), s);
    s->c = load_state(e, hn_eval_in(e, 6), s);
    s->xw = hn_eval_scratch(e, all, sizeof(double));
    s->hr = hn_eval_scratch(e, s->batch * s->width, sizeof(double));
    s->rh = hn_eval_scratch(e, s->batch * s->hidden, sizeof(double));
    s->rhr = hn_eval_scratch(e, s->batch * s->hidden, sizeof(double));
    s->row = hn_eval_scratch(e, MAX(1, s->hidden * hn_recurrent_slots(p)), sizeof(double));
    s->lens = hn_recurrent_lens(e, 4, s->batch, s->steps);
    return e->error == NULL;
}

static void release(HnEval *e, Run *s)
{
    void *all[] = { s->x, s->w, s->r, s->bias, s->p, s->h, s->c, s->xw, s->hr, s->rh, s->rhr, s->row, s->lens };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        hn_eval_scratch_free(e, all[i]);
}

/* c [m,n] = a [m,k] times b [n,k] transposed */
static void product(double *c, const double *a, const double *b, int64_t m, int64_t n, int64_t k)
{
    HnGemm g = { .m = m,
                 .n = n,
                 .k = k,
                 .a = a,
                 .a_row = k,
                 .a_col = 1,
                 .b = b,
                 .b_row = 1,
                 .b_col = k,
                 .c = c,
                 .c_row = n,
                 .alpha = 1 };
    hn_gemm(HN_F64, &g);
}

/* Gate pre-activations of one sample at one step: g [width] = x W' + h R' + both biases. */
typedef struct {
    const HnRecurrent *p;
    const HnGate *act;
    const double *xw, *hr, *wb, *rb, *peep;
    int64_t hidden;
    double *row; /* [slots][hidden]: what the gates became */
} Cell;

static double clipped(const Cell *c, double v)
{
    return CLAMP(v, -c->p->clip, c->p->clip);
}

static double gate(const Cell *c, int64_t at, double more)
{
    return clipped(c, c->xw[at] + c->hr[at] + c->wb[at] + c->rb[at] + more);
}

static void rnn_cell(const Cell *c, double *h)
{
    for (int64_t i = 0; i < c->hidden; i++)
        h[i] = c->row[i] = hn_gate_value(&c->act[0], gate(c, i, 0));
}

/* gates i, o, f, c; peepholes i, o, f */
static void lstm_cell(const Cell *s, double *h, double *c)
{
    int64_t n = s->hidden;
    for (int64_t i = 0; i < n; i++) {
        double in = hn_gate_value(&s->act[0], gate(s, i, s->peep[i] * c[i]));
        double forget =
            s->p->input_forget ? 1 - in : hn_gate_value(&s->act[0], gate(s, 2 * n + i, s->peep[2 * n + i] * c[i]));
        double cell = hn_gate_value(&s->act[1], gate(s, 3 * n + i, 0)), now = forget * c[i] + in * cell;
        double out = hn_gate_value(&s->act[0], gate(s, n + i, s->peep[n + i] * now));
        s->row[i] = in;
        s->row[n + i] = out;
        s->row[2 * n + i] = forget;
        s->row[3 * n + i] = cell;
        c[i] = now;
        h[i] = out * hn_gate_value(&s->act[2], now);
    }
}

/* gates z, r, h; rhr [hidden]: (r (.) h) R' of the hidden gate, not used with linear_before_reset */
static void gru_cell(const Cell *c, double *h, const double *rhr)
{
    int64_t n = c->hidden;
    for (int64_t i = 0; i < n; i++) {
        double z = hn_gate_value(&c->act[0], gate(c, i, 0)), in = c->xw[2 * n + i] + c->wb[2 * n + i];
        double reset = hn_gate_value(&c->act[0], gate(c, n + i, 0)), plain = c->hr[2 * n + i] + c->rb[2 * n + i];
        in += c->p->linear_before_reset ? reset * plain : rhr[i] + c->rb[2 * n + i];
        c->row[i] = z;
        c->row[n + i] = reset;
        c->row[2 * n + i] = hn_gate_value(&c->act[1], clipped(c, in));
        if (c->p->linear_before_reset)
            c->row[3 * n + i] = plain;
        h[i] = (1 - z) * c->row[2 * n + i] + z * h[i];
    }
}

static void store_row(HnDtype dtype, void *to, int64_t row, const double *v, int64_t n)
{
#define RUN(T)                      \
    for (int64_t i = 0; i < n; i++) \
        ((T *)to)[row * n + i] = (T)v[i];
    HN_FOR_FLOAT(dtype, RUN)
#undef RUN
}

static void step(const HnRecurrent *p, Run *s, HnDtype dtype, int64_t d, int64_t k)
{
    int64_t n = s->hidden;
    double *h = s->h + d * s->batch * n, *c = s->c + d * s->batch * n;
    gboolean reverse = p->direction == HN_REVERSE || d == 1;
    const double *bias = s->bias + d * 2 * s->width;
    Cell cell = { .p = p,
                  .act = p->act + d * p->per_direction,
                  .wb = bias,
                  .rb = bias + s->width,
                  .peep = s->p + d * 3 * n,
                  .hidden = n,
                  .row = s->row };
    if (p->dynamic) {
        memcpy(s->rh, h, (size_t)(s->batch * n) * sizeof *h);
        round_all(s->rh, s->batch * n);
    }
    product(s->hr, p->dynamic ? s->rh : h, s->r + d * s->width * n, s->batch, s->width, n);
    for (int pass = p->kind == HN_GRU && !p->linear_before_reset ? 0 : 1; pass < 2; pass++) {
        for (int64_t b = 0; b < s->batch; b++) {
            int64_t t = reverse ? s->lens[b] - 1 - k : k;
            if (k >= s->lens[b])
                continue;
            cell.xw = s->xw + (p->batch_first ? b * s->steps + t : t * s->batch + b) * s->width;
            cell.hr = s->hr + b * s->width;
            if (pass == 0) { /* GRU resets the state before it is multiplied */
                for (int64_t i = 0; i < n; i++)
                    s->rh[b * n + i] = hn_gate_value(&cell.act[0], gate(&cell, n + i, 0)) * h[b * n + i];
                continue;
            }
            if (p->kind == HN_RNN)
                rnn_cell(&cell, h + b * n);
            else if (p->kind == HN_GRU)
                gru_cell(&cell, h + b * n, s->rhr + b * n);
            else
                lstm_cell(&cell, h + b * n, c + b * n);
            int64_t row =
                p->batch_first ? (b * s->steps + t) * s->directions + d : (t * s->directions + d) * s->batch + b;
            const int64_t kept = (t * s->directions + d) * s->batch + b;
            if (s->y != NULL)
                store_row(dtype, s->y, row, h + b * n, n);
            if (s->gates != NULL)
                store_row(dtype, s->gates, kept, s->row, n * hn_recurrent_slots(p));
            if (s->cells != NULL)
                store_row(dtype, s->cells, kept, c + b * n, n);
        }
        if (pass == 0)
            product(s->rhr, s->rh, s->r + (d * s->width + 2 * n) * n, s->batch, n, n);
    }
}

/* Last states; those of empty sequences are zero. */
static void store_state(HnEval *e, const Run *s, int k, const double *v)
{
    const HnRecurrent *p = e->params;
    int64_t dims[2][3] = { { s->directions, s->batch, s->hidden }, { s->batch, s->directions, s->hidden } };
    HnTensor *t;
    if (!hn_eval_wants(e, k) || hn_eval_out(e, k, e->in[0]->dtype, 3, dims[p->batch_first ? 1 : 0]) == NULL)
        return;
    t = e->out[k];
    memset(t->data, 0, t->bytes);
    for (int64_t d = 0; d < s->directions; d++)
        for (int64_t b = 0; b < s->batch; b++)
            if (s->lens[b] > 0)
                store_row(t->dtype, t->data, state_row(p, s, d, b), v + (d * s->batch + b) * s->hidden, s->hidden);
}

/* Zeros for what only training asks for; NULL: it does not, or failed. */
static void *kept_output(HnEval *e, int k, const Run *s, int64_t width)
{
    const int64_t dims[4] = { s->steps, s->directions, s->batch, width };
    void *to = hn_eval_wants(e, k) ? hn_eval_out(e, k, e->in[0]->dtype, 4, dims) : NULL;
    if (to != NULL)
        memset(to, 0, e->out[k]->bytes);
    return to;
}

void hn_recurrent_ref(HnEval *e)
{
    const HnRecurrent *p = e->params;
    HnDtype dtype = e->in[0]->dtype;
    Run s = { 0 };
    if (!measure(e, &s))
        return;
    int64_t dims[2][4] = { { s.steps, s.directions, s.batch, s.hidden }, { s.batch, s.steps, s.directions, s.hidden } };
    if (hn_eval_wants(e, 0)) {
        s.y = hn_eval_out(e, 0, dtype, 4, dims[p->batch_first ? 1 : 0]);
        if (s.y == NULL)
            return;
        memset(s.y, 0, e->out[0]->bytes);
    }
    s.gates = kept_output(e, plain_outputs(p), &s, s.hidden * hn_recurrent_slots(p));
    s.cells = kept_output(e, plain_outputs(p) + 1, &s, s.hidden);
    gboolean ready = prepare(e, &s);
    for (int64_t d = 0; ready && d < s.directions && s.batch > 0 && s.hidden > 0; d++) {
        product(s.xw, s.x, s.w + d * s.width * s.inputs, s.steps * s.batch, s.width, s.inputs);
        for (int64_t k = 0; k < s.steps; k++)
            step(p, &s, dtype, d, k);
    }
    if (ready) {
        store_state(e, &s, 1, s.h);
        if (p->kind == HN_LSTM)
            store_state(e, &s, 2, s.c);
    }
    release(e, &s);
}

/* A first state that is computed and keeps its size is 0, or the channels would have stayed: it may be absent. */
static gboolean recurrent_narrow(const HnNarrow *x)
{
    const HnRecurrent *p = x->params;
    const HnKept *k = NULL;
    for (int i = 0; i < (int)x->node->out->len && k == NULL; i++)
        k = hn_narrow_out(x, i);
    if (k == NULL)
        return TRUE;
    for (int i = 5; i < 7; i++) {
        const HnValue *v = hn_node_in(x->node, i);
        if (v != NULL && v->weight == NULL && hn_narrow_in(x, i) == NULL)
            hn_node_set_in(x->node, i, NULL);
    }
    if (p->hidden != 0)
        hn_node_set_int(x->node, "hidden_size", k->left);
    return TRUE;
}

#define RECURRENT_RECORD                                                                            \
    .flags = HN_OP_HALF_VIA_F32, .T = HN_T_FLOATS, .min_in = 3, .params_size = sizeof(HnRecurrent), \
    .infer = recurrent_infer, .cost = recurrent_cost, .ref = hn_recurrent_ref
#define ONNX_RECORD \
    .unbind = recurrent_unbind, .channels = { HN_CH_RECURRENT }, .narrow = recurrent_narrow, .grad = hn_recurrent_grad

/* Before opset 14 the batch is the second axis: X [B,T,I] becomes [T,B,I], the states [B,D,H] become [D,B,H]. */
static void recurrent_unbind(HnUnbind *u)
{
    const HnRecurrent *p = u->params;
    static const int64_t swap[] = { 1, 0, 2 }, back[] = { 2, 0, 1, 3 };
    static const int states[] = { 0, 5, 6 };
    if (!hn_unbind_below(u, 14) || !p->batch_first)
        return;
    HnNode *n = hn_unbind_again(u);
    hn_node_remove_attr(n, "layout");
    for (guint i = 0; i < G_N_ELEMENTS(states); i++)
        if (hn_unbind_in(u, states[i]) != NULL)
            hn_node_set_in(n, states[i], hn_unbind_transpose(u, hn_unbind_in(u, states[i]), swap, 3));
    hn_unbind_last(u, n);
    for (int k = 0; k < (int)u->node->out->len; k++)
        if (hn_node_out(n, k) != NULL)
            hn_unbind_take(u, k, hn_unbind_transpose(u, hn_node_out(n, k), k == 0 ? back : swap, k == 0 ? 4 : 3));
}

void hn_recurrent_batch(HnBatch *b)
{
    const HnRecurrent *p = b->params;
    hn_batch_recurrent(b, p->batch_first);
}

const HnOp hn_op_rnn = {
    .name = "RNN",
    ONNX_RECORD,
    RECURRENT_RECORD,
    .since = { 1, 7, 14, 22 },
    .forms = HN_FORMS({ "layout", HN_ATTR_INT, .since = 14 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "TTTTjT",
    .out = "TT",
    .bind = hn_rnn_bind,
    .trained = 1 << 1 | 1 << 2 | 1 << 3,
    .batch = hn_recurrent_batch,
};

const HnOp hn_op_gru = {
    .name = "GRU",
    ONNX_RECORD,
    RECURRENT_RECORD,
    .since = { 1, 3, 7, 14, 22 },
    .forms = HN_FORMS({ "layout", HN_ATTR_INT, .since = 14 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "TTTTjT",
    .out = "TT",
    .bind = hn_gru_bind,
    .trained = 1 << 1 | 1 << 2 | 1 << 3,
    .batch = hn_recurrent_batch,
};

const HnOp hn_op_lstm = {
    .name = "LSTM",
    ONNX_RECORD,
    RECURRENT_RECORD,
    .since = { 1, 7, 14, 22 },
    .forms = HN_FORMS({ "layout", HN_ATTR_INT, .since = 14 }),
    .lacks = HN_LACKS(HN_BF16_SINCE(22)),
    .in = "TTTTjTTT",
    .out = "TTT",
    .bind = hn_lstm_bind,
    .trained = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 7,
    .batch = hn_recurrent_batch,
};

const HnOp hn_op_grutraining = {
    .name = "GRUTraining",
    .domain = HN_DOMAIN_INTERNAL,
    RECURRENT_RECORD,
    .since = { 1 },
    .in = "TTTTjT",
    .out = "TTT",
    .bind = hn_gru_bind,
};

const HnOp hn_op_lstmtraining = {
    .name = "LSTMTraining",
    .domain = HN_DOMAIN_INTERNAL,
    RECURRENT_RECORD,
    .since = { 1 },
    .in = "TTTTjTTT",
    .out = "TTTTT",
    .bind = hn_lstm_bind,
};
