#include "quant/correct.h"

#include <math.h>
#include <string.h>

#include "op/linear.h"
#include "pass/rewrite.h"

#define ROUNDS 48  /* at most: deeper models correct several layers at a time */
#define SAMPLES 16 /* whose means are held against each other, at most */

/* --- biases ------------------------------------------------------------------------------------------------------- */

static gboolean is_vector(const HnValue *v, int64_t n)
{
    const HnTensor *t = v != NULL && !v->is_input ? v->weight : NULL;
    return t != NULL && t->dtype == HN_F32 && t->ndim == 1 && t->n == n;
}

/* The only reader of a product without a bias, where that adds a constant to its channels. */
static HnNode *adder_of(const HnNode *n, int64_t channels, int *input)
{
    const HnValue *y = hn_node_out(n, 0);
    HnNode *add = hn_rw_reader(y, &hn_op_add);
    if (add == NULL)
        return NULL;
    *input = hn_node_in(add, 0) == y;
    return is_vector(hn_node_in(add, *input), channels) ? add : NULL;
}

/* Where n's bias is: a node and its input; the input is absent or one number for each channel. NULL: there is no place
 * for one. */
static HnNode *bias_of(HnNode *n, int64_t channels, int *input)
{
    HnLinearView l;
    if (!hn_op_linear(n, &l) || l.adjoint)
        return NULL;
    *input = l.b_in;
    if (l.b_in < 0)
        return adder_of(n, channels, input);
    return l.beta == 1 && (l.b == NULL || is_vector(l.b, channels)) ? n : NULL;
}

typedef struct {
    const HnQuantPlan *p;
    HnBudget *budget;
    GError *error;
} Shift;

static void shift_node(HnNode *n, gpointer data)
{
    Shift *s = data;
    const HnValue *y = hn_node_out(n, 0);
    const HnTensor *shift = y != NULL ? g_hash_table_lookup(s->p->shifts, y->name) : NULL;
    int input;
    HnNode *holder = shift != NULL && hn_quant_plan_form(s->p, n) == HN_FORM_INT8 ? bias_of(n, shift->n, &input) : NULL;
    if (holder == NULL || s->error != NULL)
        return;
    const HnValue *b = hn_node_in(holder, input);
    g_autoptr(HnTensor) sum = hn_tensor_copy(shift, s->budget, &s->error);
    if (sum == NULL)
        return;
    for (int64_t i = 0; b != NULL && i < sum->n; i++)
        ((float *)sum->data)[i] += (float)hn_tensor_get_f64(b->weight, i);
    HnValue *v = hn_graph_new_value(holder->graph, b != NULL ? b->name : y->name);
    hn_graph_add_weight(holder->graph, v, sum);
    hn_node_set_in(holder, input, v);
    hn_op_bind(holder, &s->error);
}

gboolean hn_quant_shift(const HnQuantPlan *p, HnModel *m, HnBudget *budget, GError **error)
{
    Shift s = { p, budget, NULL };
    if (g_hash_table_size(p->shifts) > 0)
        hn_graph_foreach_node(m->graph, shift_node, &s);
    if (s.error == NULL)
        return TRUE;
    g_propagate_error(error, s.error);
    return FALSE;
}

/* --- means -------------------------------------------------------------------------------------------------------- */

/* A node whose bias is to be corrected. */
typedef struct {
    char *name; /* of its output */
    int axis;   /* of channels, from the front where positive, else from the back */
    int64_t channels;
    int level;   /* nodes with weights before it, in a row */
    float *want; /* [samples, channels], of the budget: means in f32 */
    float *got;  /* the same of the quantized model */
    HnBudget *budget;
    guint samples[2]; /* seen of both */
    double power;     /* mean square of f32 elements, summed over samples */
} Target;

static void target_free(gpointer data)
{
    Target *t = data;
    g_free(t->name);
    hn_budget_free(t->budget, t->want);
    hn_budget_free(t->budget, t->got);
    g_free(t);
}

typedef struct {
    const GPtrArray *targets;
    gboolean f32;
} Means;

static gboolean add_means(gpointer data, G_GNUC_UNUSED int64_t sample, guint i, const HnTensor *x, GError **error)
{
    const Means *s = data;
    Target *t = s->targets->pdata[i];
    const int axis = t->axis < 0 ? x->ndim + t->axis : t->axis;
    (void)error;
    if (x->dtype != HN_F32 || axis < 0 || axis >= x->ndim || x->dims[axis] != t->channels ||
        t->samples[!s->f32] == SAMPLES)
        return TRUE;
    int64_t inner = 1;
    for (int k = axis + 1; k < x->ndim; k++)
        inner *= x->dims[k];
    const int64_t outer = x->n / inner / t->channels;
    float *means = (s->f32 ? t->want : t->got) + t->samples[!s->f32]++ * t->channels;
    for (int64_t c = 0; c < t->channels; c++) {
        double sum = 0, squares = 0;
        for (int64_t o = 0; o < outer; o++) {
            const float *e = (const float *)x->data + (o * t->channels + c) * inner;
            for (int64_t k = 0; k < inner; k++) {
                sum += (double)e[k];
                squares += (double)e[k] * (double)e[k];
            }
        }
        means[c] = (float)(sum / (double)(outer * inner));
        t->power += s->f32 ? squares / (double)x->n : 0;
    }
    return TRUE;
}

static gboolean run_means(HnModel *m, GPtrArray *targets, gboolean f32, const HnCorrectOptions *o, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    Means s = { targets, f32 };
    for (guint i = 0; i < targets->len; i++)
        g_ptr_array_add(names, ((const Target *)targets->pdata[i])->name);
    HnCaptureOptions some = o->capture;
    some.n = MIN(some.n, SAMPLES);
    g_autoptr(HnCapture) capture = hn_capture_new(m, names, &some, error);
    return capture != NULL && hn_capture_all(capture, add_means, &s, error);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const HnQuantPlan *p;
    const HnGraph *graph;
    GPtrArray *targets;
    int *level; /* by HnValue.id: nodes with weights on the longest way to it */
    int deepest;
    HnBudget *budget;
    GError *error;
} Find;

static void find_target(HnNode *n, gpointer data)
{
    Find *f = data;
    int level = 0;
    g_autoptr(GPtrArray) reads = hn_node_reads(n);
    for (guint i = 0; i < reads->len; i++)
        level = MAX(level, f->level[((const HnValue *)reads->pdata[i])->id]);
    const HnValue *y = hn_node_out(n, 0), *w = hn_node_in(n, 1);
    const gboolean counts = n->op != NULL && n->op->quant.kind == HN_Q_WEIGHTED && n->graph == f->graph &&
                            hn_quant_plan_form(f->p, n) == HN_FORM_INT8 && w->weight != NULL;
    for (guint i = 0; i < n->out->len; i++)
        if (n->out->pdata[i] != NULL)
            f->level[((const HnValue *)n->out->pdata[i])->id] = level + counts;
    if (!counts || f->error != NULL)
        return;
    HnLinearView l;
    int input;
    if (!hn_op_linear(n, &l))
        return;
    const int64_t channels = w->weight->dims[l.out];
    if (bias_of(n, channels, &input) == NULL)
        return;
    Target *t = g_new0(Target, 1);
    *t = (Target){
        .name = g_strdup(y->name), .axis = l.y_axis, .channels = channels, .level = level, .budget = f->budget
    };
    g_ptr_array_add(f->targets, t);
    t->want = hn_budget_alloc_n(f->budget, (gsize)channels, SAMPLES * sizeof *t->want, &f->error);
    if (t->want != NULL)
        t->got = hn_budget_alloc_n(f->budget, (gsize)channels, SAMPLES * sizeof *t->got, &f->error);
    f->deepest = MAX(f->deepest, level);
}

/* By how much channel c has to go up: as far as samples agree on it. */
static double shift_of(const Target *t, int64_t c)
{
    const guint n = MIN(t->samples[0], t->samples[1]);
    double sum = 0, squares = 0;
    for (guint i = 0; i < n; i++) {
        const double d = (double)t->want[i * t->channels + c] - (double)t->got[i * t->channels + c];
        sum += d;
        squares += d * d;
    }
    if (n < 2 || !(squares > 0) || !isfinite(squares))
        return 0;
    const double mean = sum / n, error = fmax(squares / n - mean * mean, 0) / (n - 1);
    return mean * (mean * mean / (mean * mean + error));
}

static gboolean set_shift(HnQuantPlan *p, const Target *t, HnCorrectLog *log, HnBudget *budget, GError **error)
{
    HnTensor *shift = hn_tensor_new(HN_F32, 1, &t->channels, budget, error);
    double squares = 0;
    if (shift == NULL)
        return FALSE;
    for (int64_t c = 0; c < t->channels; c++) {
        const double d = shift_of(t, c);
        ((float *)shift->data)[c] = (float)d;
        squares += d * d / (double)t->channels;
    }
    log->before += t->power > 0 ? squares * t->samples[0] / t->power : 0;
    log->nodes++;
    g_hash_table_insert(p->shifts, g_strdup(t->name), shift);
    return TRUE;
}

/* Targets of levels [from, to) behind all before them. */
static gboolean correct_levels(HnQuantPlan *p, const GPtrArray *all, int from, int to, const HnCorrectOptions *o,
                               HnCorrectLog *log, GError **error)
{
    g_autoptr(GPtrArray) now = g_ptr_array_new();
    for (guint i = 0; i < all->len; i++) {
        Target *t = all->pdata[i];
        if (t->level >= from && t->level < to)
            g_ptr_array_add(now, t);
    }
    if (now->len == 0)
        return TRUE;
    HnModel *m = o->build(o->data, p, error);
    gboolean ok = m != NULL && run_means(m, now, FALSE, o, error);
    hn_model_free(m);
    log->rounds++;
    for (guint i = 0; i < now->len && ok; i++)
        ok = set_shift(p, now->pdata[i], log, o->capture.budget, error);
    return ok;
}

gboolean hn_quant_correct(HnQuantPlan *p, const HnCorrectOptions *o, HnCorrectLog *log, GError **error)
{
    *log = (HnCorrectLog){ 0 };
    g_hash_table_remove_all(p->shifts);
    g_autoptr(HnModel) f32 = o->open(o->data, error);
    if (f32 == NULL)
        return FALSE;
    g_autoptr(GPtrArray) targets = g_ptr_array_new_with_free_func(target_free);
    g_autofree int *level = g_new0(int, (gsize)f32->n_values + 1);
    Find f = { p, f32->graph, targets, level, 0, o->capture.budget, NULL };
    hn_graph_foreach_node(f32->graph, find_target, &f);
    if (f.error != NULL) {
        g_propagate_error(error, f.error);
        return FALSE;
    }
    if (targets->len == 0)
        return TRUE;
    if (!run_means(f32, targets, TRUE, o, error))
        return FALSE;
    const int levels = f.deepest + 1, rounds = MIN(levels, ROUNDS);
    for (int i = 0; i < rounds; i++) {
        hn_progress_tell(o->capture.progress, "correcting biases", (guint64)i, (guint64)rounds);
        if (!correct_levels(p, targets, levels * i / rounds, levels * (i + 1) / rounds, o, log, error))
            return FALSE;
    }
    log->before /= MAX(log->nodes, 1);
    return TRUE;
}
