#include "quant/correct.h"

#include <math.h>
#include <string.h>

#include "op/linear.h"
#include "pass/rewrite.h"

#define ROUNDS 48                    /* at most: deeper models correct several layers at a time */
#define SAMPLES 16                   /* whose means are held against each other, at most */
#define KEPT_BYTES ((gsize)64 << 20) /* of integers that later rounds start from */

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

static void add_means(Target *t, const HnTensor *x, gboolean f32)
{
    const int axis = t->axis < 0 ? x->ndim + t->axis : t->axis;
    if (x->dtype != HN_F32 || axis < 0 || axis >= x->ndim || x->dims[axis] != t->channels ||
        t->samples[!f32] == SAMPLES)
        return;
    int64_t inner = 1;
    for (int k = axis + 1; k < x->ndim; k++)
        inner *= x->dims[k];
    const int64_t outer = x->n / inner / t->channels;
    float *means = (f32 ? t->want : t->got) + t->samples[!f32]++ * t->channels;
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
        t->power += f32 ? squares / (double)x->n : 0;
    }
}

/* Integers between nodes of the quantized model that no later round changes. */
typedef struct {
    char *name;
    HnTensor *sample[SAMPLES];
} Border;

static void border_free(gpointer data)
{
    Border *b = data;
    for (int k = 0; k < SAMPLES; k++)
        hn_tensor_unref(b->sample[k]);
    g_free(b->name);
    g_free(b);
}

/* A run of samples through a model: the f32 one, or what rounds have made of the quantized one. */
typedef struct {
    const HnCorrectOptions *o;
    HnModel *model;
    gboolean f32;
    GPtrArray *now;   /* Target *, looked at */
    GPtrArray *known; /* Border *, inputs of the model */
    GPtrArray *found; /* Border *, looked at, too */
    gsize bytes;      /* of all borders */
} Run;

static gboolean run_sample(Run *r, HnCapture *capture, int64_t sample, HnTensor **values, GError **error)
{
    g_autoptr(HnSample) s = hn_data_load(r->o->capture.data, r->o->capture.first + sample, error);
    if (s == NULL)
        return FALSE;
    g_autofree HnTensor **in = g_new(HnTensor *, (gsize)s->n + r->known->len + 1);
    HnSample with = *s;
    with.in = in;
    memcpy(in, s->in, (gsize)s->n * sizeof *in);
    for (guint i = 0; i < r->known->len; i++)
        in[with.n++] = ((const Border *)r->known->pdata[i])->sample[sample];
    if (!hn_capture_run(capture, &with, values, error))
        return FALSE;
    for (guint i = 0; i < r->now->len; i++)
        if (values[i] != NULL && values[i]->n > 0)
            add_means(r->now->pdata[i], values[i], r->f32);
    for (guint i = 0; i < r->found->len; i++) {
        const HnTensor *x = values[r->now->len + i];
        if (x == NULL || r->bytes + x->bytes > KEPT_BYTES)
            continue;
        r->bytes += x->bytes;
        if ((((Border *)r->found->pdata[i])->sample[sample] = hn_tensor_copy(x, r->o->capture.budget, error)) == NULL)
            return FALSE;
    }
    return TRUE;
}

static gboolean run_means(Run *r, GError **error)
{
    const int64_t n = MIN(r->o->capture.n, SAMPLES);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < r->now->len; i++)
        g_ptr_array_add(names, ((const Target *)r->now->pdata[i])->name);
    for (guint i = 0; i < r->found->len; i++)
        g_ptr_array_add(names, ((const Border *)r->found->pdata[i])->name);
    g_autofree HnTensor **values = g_new0(HnTensor *, names->len + 1);
    g_autoptr(HnCapture) capture = hn_capture_new(r->model, names, &r->o->capture, error);
    gboolean ok = capture != NULL;
    for (int64_t k = 0; k < n && ok; k++)
        ok = run_sample(r, capture, k, values, error);
    return ok;
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

/* Targets of all rounds, and what rounds leave to those behind them. */
typedef struct {
    const HnCorrectOptions *o;
    GPtrArray *targets; /* Target * */
    GHashTable *levels; /* their names -> 1 + level */
    GHashTable *kept;   /* name -> Border * */
    gsize bytes;
} Rounds;

static gboolean is_whole(const Border *b, int64_t n)
{
    for (int64_t k = 0; b != NULL && k < n; k++)
        if (b->sample[k] == NULL)
            return FALSE;
    return b != NULL;
}

/* What is known of earlier rounds is not computed again: integers become inputs. Those that are known behind this round
 * are looked at in it, for as long as there is room. */
static void find_borders(const Rounds *all, Run *r, int from)
{
    const int64_t n = MIN(all->o->capture.n, SAMPLES);
    HnGraph *g = r->model->graph;
    g_autofree int *level = g_new0(int, (gsize)r->model->n_values + 1); /* 1 + the highest of targets before a value */
    g_autoptr(GPtrArray) cut = g_ptr_array_new();
    for (guint i = 0; i < g->nodes->len; i++) {
        HnNode *node = g->nodes->pdata[i];
        HnValue *y = hn_node_out(node, 0);
        g_autoptr(GPtrArray) reads = hn_node_reads(node);
        int most = y != NULL ? GPOINTER_TO_INT(g_hash_table_lookup(all->levels, y->name)) : 0;
        for (guint k = 0; k < reads->len; k++)
            most = MAX(most, level[((const HnValue *)reads->pdata[k])->id]);
        for (guint k = 0; k < node->out->len; k++)
            if (node->out->pdata[k] != NULL)
                level[((const HnValue *)node->out->pdata[k])->id] = most;
        if (hn_op_find(node->domain, node->op_type) != &hn_op_quantizelinear || most > from ||
            hn_value_is_weight(hn_node_in(node, 0)))
            continue;
        Border *b = g_hash_table_lookup(all->kept, y->name);
        if (is_whole(b, n)) {
            g_ptr_array_add(r->known, b);
            g_ptr_array_add(cut, node);
        } else if (b == NULL && r->bytes < KEPT_BYTES) {
            b = g_new0(Border, 1);
            b->name = g_strdup(y->name);
            g_hash_table_insert(all->kept, b->name, b);
            g_ptr_array_add(r->found, b);
        }
    }
    for (guint i = 0; i < cut->len; i++) {
        HnValue *y = hn_node_out(cut->pdata[i], 0);
        hn_node_set_out(cut->pdata[i], 0, NULL);
        hn_graph_remove_node(g, cut->pdata[i]);
        hn_graph_add_input(g, y);
    }
}

/* Targets of levels [from, to) behind all before them. */
static gboolean correct_levels(HnQuantPlan *p, Rounds *all, int from, int to, HnCorrectLog *log, GError **error)
{
    g_autoptr(GPtrArray) now = g_ptr_array_new(), known = g_ptr_array_new(), found = g_ptr_array_new();
    for (guint i = 0; i < all->targets->len; i++) {
        Target *t = all->targets->pdata[i];
        if (t->level >= from && t->level < to)
            g_ptr_array_add(now, t);
    }
    if (now->len == 0)
        return TRUE;
    Run r = { .o = all->o, .now = now, .known = known, .found = found, .bytes = all->bytes };
    r.model = all->o->build(all->o->data, p, error);
    if (r.model != NULL && hn_budget_limit(all->o->capture.budget) == 0)
        find_borders(all, &r, from);
    gboolean ok = r.model != NULL && run_means(&r, error);
    all->bytes = r.bytes;
    log->known += known->len;
    hn_model_free(r.model);
    log->rounds++;
    for (guint i = 0; i < now->len && ok; i++)
        ok = set_shift(p, now->pdata[i], log, all->o->capture.budget, error);
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
    g_autoptr(GPtrArray) none = g_ptr_array_new();
    Run r = { .o = o, .model = f32, .f32 = TRUE, .now = targets, .known = none, .found = none };
    if (!run_means(&r, error))
        return FALSE;
    g_autoptr(GHashTable) of = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) kept = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, border_free);
    for (guint i = 0; i < targets->len; i++)
        g_hash_table_insert(of, ((Target *)targets->pdata[i])->name,
                            GINT_TO_POINTER(1 + ((Target *)targets->pdata[i])->level));
    Rounds all = { o, targets, of, kept, 0 };
    const int levels = f.deepest + 1, rounds = MIN(levels, ROUNDS);
    for (int i = 0; i < rounds; i++) {
        hn_progress_tell(o->capture.progress, "correcting biases", (guint64)i, (guint64)rounds);
        if (!correct_levels(p, &all, levels * i / rounds, levels * (i + 1) / rounds, log, error))
            return FALSE;
    }
    log->before /= MAX(log->nodes, 1);
    return TRUE;
}
