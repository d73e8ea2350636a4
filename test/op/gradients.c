#include "gradients.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "backends.h"
#include "op/internal.h"
#include "op/tape.h"
#include "pass/opset.h"
#include "spec.h"
#include "subject.h"
#include "train/reverse.h"

#define DIRECTIONS 8
#define FEW_ELEMENTS 48 /* whose derivatives are all looked at */
#define STEP 1e-6
#define CLOSE 1e-5     /* of the magnitudes that add up to a derivative */
#define BENT 1e-4      /* of them: what the slopes on both sides differ by at a kink; smooth ones by about STEP */
#define ROUNDING 4e-15 /* of the magnitudes that add up to the sum */
#define COARSER 1000   /* f32 */
#define APART 0.03     /* how far points are moved when a case lies on kinks only */

/* A case as two models: the operator alone, and with the gradients of its float inputs behind it. */
typedef struct {
    HnSubject plain, full;
    HnSession *run_plain, *run_full;
    GArray *in; /* HnSpec */
    int n_x, n_y;
    GPtrArray *x, *r, *dx; /* HnTensor *: inputs that are fed, those of what is summed, and gradients */
    GArray *moves;         /* gboolean: x[i] has a gradient */
    double single;         /* how much coarser f32 is; 1: all is f64 */
} Pair;

static void pair_clear(Pair *p)
{
    hn_session_free(p->run_plain);
    hn_session_free(p->run_full);
    hn_subject_clear(&p->plain);
    hn_subject_clear(&p->full);
    hn_subject_inputs_free(p->in);
    g_clear_pointer(&p->x, g_ptr_array_unref);
    g_clear_pointer(&p->r, g_ptr_array_unref);
    g_clear_pointer(&p->dx, g_ptr_array_unref);
    g_clear_pointer(&p->moves, g_array_unref);
}

static gboolean has_f64(const HnOp *op, int i)
{
    gboolean same;
    return (hn_op_mask(op, hn_op_letter(op->in, i, &same)) & HN_BIT(HN_F64)) != 0;
}

/* Floats as f64 where the operator takes them; integers are known ahead, as they are in models. */
static GArray *inputs_of(const HnOp *op, const HnCase *c, uint64_t seed, double apart)
{
    GArray *in = hn_subject_inputs(c, seed, HN_F32);
    HnRng rng = hn_rng(seed + 1);
    for (guint i = 0; i < in->len; i++) {
        HnSpec *s = &g_array_index(in, HnSpec, i);
        if (s->tensor == NULL)
            continue;
        if (!hn_dtype_in(s->tensor->dtype, HN_T_FLOATS)) {
            s->weight = TRUE;
            continue;
        }
        HnTensor *t = hn_subject_as(s->tensor, has_f64(op, (int)i) ? HN_F64 : HN_F32);
        for (int64_t e = 0; apart > 0 && !s->weight && t->dtype != HN_F32 && e < t->n; e++)
            hn_tensor_set_f64(t, e, hn_tensor_get_f64(t, e) + hn_rng_range(&rng, -apart, apart));
        hn_tensor_unref(s->tensor);
        s->tensor = t;
    }
    return in;
}

/* The types that infer begins with. */
static gboolean infer(HnTypes *t, const HnModel *m, const Pair *p, gboolean symbolic, GError **error)
{
    guint at = 0;
    for (guint i = 0; i < p->in->len; i++) {
        const HnSpec *s = &g_array_index(p->in, HnSpec, i);
        if (s->tensor == NULL || s->weight)
            continue;
        const HnValue *v = m->graph->inputs->pdata[at++];
        HnDim dims[HN_MAX_RANK];
        for (int a = 0; a < s->tensor->ndim; a++) {
            g_autofree char *name = g_strdup_printf("d%u_%d", i, a);
            dims[a] = symbolic ? hn_dim_symbol(name) : hn_dim(s->tensor->dims[a]);
        }
        g_autoptr(HnType) type = hn_type_tensor(s->tensor->dtype, s->tensor->ndim, dims);
        hn_types_set(t, v, type);
    }
    if (!hn_types_enter(t, m->graph, FALSE, error))
        return FALSE;
    for (guint i = 0; i < m->graph->nodes->len; i++)
        if (!hn_types_node(t, m->graph->nodes->pdata[i], 4096, error))
            return FALSE;
    return TRUE;
}

static HnTensor *random_like(HnRng *rng, HnDtype dtype, const HnTensor *like)
{
    HnTensor *t = hn_tensor_new(dtype, like->ndim, like->dims, NULL, NULL);
    for (int64_t i = 0; i < t->n; i++)
        hn_tensor_set_f64(t, i, hn_rng_normal(rng));
    return t;
}

/* Puts inputs r_k behind the others, gradients in the place of the results, and makes a session of it. */
static gboolean add_gradients(Pair *p, HnTensor *const *y, gboolean symbolic, HnRng *rng, GError **error)
{
    HnGraph *g = p->full.model->graph;
    g_autoptr(HnTypes) types = hn_types_new(p->full.model);
    g_autoptr(GPtrArray) of = g_ptr_array_new(), dy = g_ptr_array_new(), wanted = g_ptr_array_new();
    if (!infer(types, p->full.model, p, symbolic, error))
        return FALSE;
    const guint n_fed = g->inputs->len;
    for (guint i = 0; i < n_fed; i++)
        if (hn_dtype_in(((HnTensor *)p->x->pdata[i])->dtype, HN_T_FLOATS))
            g_ptr_array_add(wanted, g->inputs->pdata[i]);
    for (int k = 0; k < p->n_y; k++) {
        if (y[k] == NULL || (y[k]->dtype != HN_F32 && y[k]->dtype != HN_F64)) { /* halves are too coarse */
            g_ptr_array_add(p->r, NULL);
            continue;
        }
        HnTensor *t = random_like(rng, y[k]->dtype, y[k]);
        if (t->dtype != HN_F64)
            p->single = COARSER;
        HnValue *r = hn_graph_new_value(g, "r");
        g_autoptr(HnType) type = hn_type_fixed(t->dtype, t->ndim, t->dims);
        hn_value_set_type(r, type);
        hn_graph_add_input(g, r);
        g_ptr_array_add(of, g->outputs->pdata[k]);
        g_ptr_array_add(dy, r);
        g_ptr_array_add(p->r, t);
    }
    g_autofree HnValue **gradients = g_new0(HnValue *, wanted->len + 1);
    const HnReverse reverse = { .graph = g,
                                .types = types,
                                .n = (int)of->len,
                                .of = (HnValue *const *)of->pdata,
                                .dy = (HnValue *const *)dy->pdata,
                                .n_wanted = (int)wanted->len,
                                .wanted = (HnValue *const *)wanted->pdata };
    if (!hn_reverse(&reverse, gradients, error))
        return FALSE;
    while (g->outputs->len > 0)
        hn_graph_remove_output(g, (int)g->outputs->len - 1);
    guint at = 0;
    for (guint i = 0; i < n_fed; i++) {
        const gboolean is_float = hn_dtype_in(((HnTensor *)p->x->pdata[i])->dtype, HN_T_FLOATS);
        const gboolean moves = is_float && gradients[at] != NULL;
        g_array_append_val(p->moves, moves);
        if (moves)
            hn_graph_add_output(g, gradients[at]);
        at += is_float;
    }
    return TRUE;
}

static HnSession *session(HnModel *m, GError **error)
{
    return hn_session_new(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1, .seed = 1 }, error);
}

/* The sum of r * y, the magnitudes that add up to it, at the inputs as they are; NAN: not finite. */
static double sum_of(Pair *p, double *magnitudes, GError **error)
{
    g_autofree HnTensor **y = g_new0(HnTensor *, (gsize)p->n_y + 1);
    double sum = 0;
    *magnitudes = 0;
    if (!hn_session_run(p->run_plain, (HnTensor *const *)p->x->pdata, y, error))
        return NAN;
    for (int k = 0; k < p->n_y; k++) {
        const HnTensor *r = p->r->pdata[k];
        for (int64_t i = 0; r != NULL && y[k] != NULL && i < r->n; i++) {
            const double part = hn_tensor_get_f64(r, i) * hn_tensor_get_f64(y[k], i);
            sum += part;
            *magnitudes += fabs(part);
        }
        hn_tensor_unref(y[k]);
    }
    return isfinite(sum) ? sum : NAN;
}

typedef enum { AGREES, DIFFERS, AT_A_KINK, FAILED } Verdict;

/* The sum where all inputs are h further along direction d. */
static double sum_at(Pair *p, HnTensor *const *d, double h, GError **error)
{
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    double magnitudes;
    for (guint i = 0; i < p->x->len; i++) {
        HnTensor *x = p->x->pdata[i];
        g_ptr_array_add(kept, x);
        if (d[i] == NULL)
            continue;
        p->x->pdata[i] = hn_tensor_new(x->dtype, x->ndim, x->dims, NULL, NULL);
        for (int64_t e = 0; e < x->n; e++)
            hn_tensor_set_f64(p->x->pdata[i], e, hn_tensor_get_f64(x, e) + h * hn_tensor_get_f64(d[i], e));
    }
    const double sum = sum_of(p, &magnitudes, error);
    for (guint i = 0; i < p->x->len; i++)
        if (d[i] != NULL) {
            hn_tensor_unref(p->x->pdata[i]);
            p->x->pdata[i] = kept->pdata[i];
        }
    return sum;
}

/* The derivative along d (one tensor for each x that moves; NULL: not) as the gradients say it. */
static double slope_along(const Pair *p, HnTensor *const *d, double *parts, double *largest)
{
    double slope = 0;
    *parts = 0;
    *largest = 1;
    for (guint i = 0, k = 0; i < p->x->len; i++) {
        if (!g_array_index(p->moves, gboolean, i))
            continue;
        const HnTensor *dx = p->dx->pdata[k++], *x = p->x->pdata[i];
        for (int64_t e = 0; e < x->n; e++) {
            if (isfinite(hn_tensor_get_f64(x, e)))
                *largest = fmax(*largest, fabs(hn_tensor_get_f64(x, e)));
            if (d[i] == NULL || !(hn_tensor_get_f64(d[i], e) != 0))
                continue;
            const double part = hn_tensor_get_f64(dx, e) * hn_tensor_get_f64(d[i], e);
            slope += part;
            *parts += fabs(part);
        }
    }
    return slope;
}

static Verdict along(Pair *p, HnTensor *const *d, char **wrong, GError **error)
{
    double parts, largest, magnitudes;
    const double slope = slope_along(p, d, &parts, &largest), h = STEP * (p->single > 1 ? 3000 : 1);
    const double middle = sum_of(p, &magnitudes, error), up = sum_at(p, d, h, error), down = sum_at(p, d, -h, error);
    if (*error != NULL)
        return FAILED;
    if (isnan(middle) || isnan(up) || isnan(down))
        return AT_A_KINK;
    const double found = (up - down) / (2 * h), bend = fabs(up - 2 * middle + down) / h,
                 size = fmax(parts, fabs(found));
    const double rounding = ROUNDING * (magnitudes + largest * size) / h * (p->single > 1 ? 2e8 : 1);
    if (bend > BENT * p->single * size + 4 * rounding)
        return AT_A_KINK;
    if (fabs(found - slope) <= CLOSE * p->single * size + rounding + bend)
        return AGREES;
    const double half = (sum_at(p, d, h / 2, error) - sum_at(p, d, -h / 2, error)) / h;
    if (fabs(half - found) > 0.1 * fabs(found) + rounding) /* a jump */
        return AT_A_KINK;
    *wrong = g_strdup_printf("the derivative is %.9g, not %.9g", slope, found);
    return DIFFERS;
}

static void clear_direction(HnTensor **d, guint n)
{
    for (guint i = 0; i < n; i++)
        g_clear_pointer(&d[i], hn_tensor_unref);
}

/* What is not finite stays where it is. */
static HnTensor *random_move(HnRng *rng, const HnTensor *x)
{
    HnTensor *d = random_like(rng, x->dtype, x);
    for (int64_t e = 0; e < x->n; e++)
        if (!isfinite(hn_tensor_get_f64(x, e)))
            hn_tensor_set_f64(d, e, 0);
    return d;
}

static HnTensor *zeros_like(const HnTensor *t)
{
    HnTensor *z = hn_tensor_new(t->dtype, t->ndim, t->dims, NULL, NULL);
    for (int64_t i = 0; i < z->n; i++)
        hn_tensor_set_f64(z, i, 0);
    return z;
}

/* Random directions, then single elements where they are few. Returns what is wrong; *held counts what agrees. */
static char *compare(Pair *p, HnRng *rng, guint *held, GError **error)
{
    const guint n = p->x->len;
    g_autofree HnTensor **d = g_new0(HnTensor *, n + 1);
    char *wrong = NULL;
    int64_t elements = 0;
    for (guint i = 0; i < n; i++)
        elements += g_array_index(p->moves, gboolean, i) ? ((HnTensor *)p->x->pdata[i])->n : 0;
    for (int k = 0; k < DIRECTIONS && elements > 0 && wrong == NULL && *error == NULL; k++) {
        for (guint i = 0; i < n; i++)
            if (g_array_index(p->moves, gboolean, i))
                d[i] = random_move(rng, p->x->pdata[i]);
        *held += along(p, d, &wrong, error) == AGREES;
        clear_direction(d, n);
    }
    for (guint i = 0; i < n && elements <= FEW_ELEMENTS && wrong == NULL && *error == NULL; i++) {
        const HnTensor *x = p->x->pdata[i];
        for (int64_t e = 0; g_array_index(p->moves, gboolean, i) && e < x->n && wrong == NULL; e++) {
            if (!isfinite(hn_tensor_get_f64(x, e)))
                continue;
            d[i] = zeros_like(x);
            hn_tensor_set_f64(d[i], e, 1);
            *held += along(p, d, &wrong, error) == AGREES;
            clear_direction(d, n);
            if (wrong != NULL) {
                char *at = g_strdup_printf("input %u, element %" PRId64 ": %s", i, e, wrong);
                g_free(wrong);
                wrong = at;
            }
        }
    }
    return wrong;
}

static gboolean all_finite(const HnTensor *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if (!isfinite(hn_tensor_get_f64(t, i)))
            return FALSE;
    return TRUE;
}

/* Runs the gradients; FALSE: error, or they are not finite though the results are. */
static gboolean run_gradients(Pair *p, char **wrong, GError **error)
{
    g_autoptr(GPtrArray) in = g_ptr_array_new();
    const guint n = p->full.model->graph->outputs->len;
    g_autofree HnTensor **out = g_new0(HnTensor *, n + 1);
    for (guint i = 0; i < p->x->len; i++)
        g_ptr_array_add(in, p->x->pdata[i]);
    for (guint k = 0; k < p->r->len; k++)
        if (p->r->pdata[k] != NULL)
            g_ptr_array_add(in, p->r->pdata[k]);
    if (!hn_session_run(p->run_full, (HnTensor *const *)in->pdata, out, error))
        return FALSE;
    for (guint k = 0, i = 0; k < n; k++, i++) {
        g_ptr_array_add(p->dx, out[k]);
        while (!g_array_index(p->moves, gboolean, i))
            i++;
        const HnTensor *x = p->x->pdata[i];
        g_autofree char *is = hn_tensor_describe(out[k]), *want = hn_tensor_describe(x);
        if (strcmp(is, want) != 0 && *wrong == NULL)
            *wrong = g_strdup_printf("the gradient of input %u is %s, not %s", i, is, want);
    }
    return TRUE;
}

/* NULL: agrees, or there is nothing to look at (*held is 0 then). */
static char *check_case(const HnOp *op, const HnCase *c, uint64_t seed, gboolean symbolic, double apart, guint *held,
                        guint *refused)
{
    g_autoptr(GError) error = NULL;
    HnRng rng = hn_rng(seed + 2);
    Pair p = { .in = inputs_of(op, c, seed, apart),
               .n_y = hn_subject_outputs(c),
               .x = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref),
               .r = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref),
               .dx = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref),
               .moves = g_array_new(FALSE, FALSE, sizeof(gboolean)),
               .single = 1 };
    char *wrong = NULL;
    g_autofree HnTensor **y = g_new0(HnTensor *, (gsize)p.n_y + 1);
    hn_subject_init(&p.plain, op, c, p.in, p.n_y);
    hn_subject_init(&p.full, op, c, p.in, p.n_y);
    for (guint i = 0; i < p.in->len; i++) {
        const HnSpec *s = &g_array_index(p.in, HnSpec, i);
        if (s->tensor == NULL || s->weight)
            continue;
        g_ptr_array_add(p.x, hn_tensor_ref(s->tensor));
        if (s->tensor->dtype == HN_F32)
            p.single = COARSER;
    }
    if ((op->flags & HN_OP_STRAIGHT) != 0) { /* what the gradient is the derivative of */
        hn_node_set_int(p.plain.model->graph->nodes->pdata[0], "smooth", 1);
        hn_node_set_int(p.full.model->graph->nodes->pdata[0], "smooth", 1);
    }
    if (op->domain != NULL)
        hn_model_set_opset(p.full.model, NULL, HN_OPSET_MAX);
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    const gboolean there = hn_convert_opset(p.full.model, HN_OPSET_MAX, blocked, NULL) &&
                           (p.run_plain = session(p.plain.model, NULL)) != NULL &&
                           hn_session_run(p.run_plain, (HnTensor *const *)p.x->pdata, y, NULL);
    gboolean is_finite = there;
    for (int k = 0; k < p.n_y && is_finite; k++)
        is_finite = y[k] == NULL || !hn_dtype_in(y[k]->dtype, HN_T_FLOATS) || all_finite(y[k]);
    if (is_finite && add_gradients(&p, y, symbolic, &rng, &error) && p.full.model->graph->outputs->len > 0) {
        p.run_full = session(p.full.model, &error);
        if (p.run_full != NULL && run_gradients(&p, &wrong, &error) && wrong == NULL)
            wrong = compare(&p, &rng, held, &error);
    }
    for (int k = 0; k < p.n_y; k++)
        hn_tensor_unref(y[k]);
    if (error != NULL && wrong == NULL &&
        error->code == HN_ERROR_UNSUPPORTED) /* by the record, or by names for sizes */
        *refused += !symbolic;
    else if (error != NULL && wrong == NULL)
        wrong = g_strdup(error->message);
    pair_clear(&p);
    return wrong;
}

int hn_check_gradients(const HnCaseList *const *lists, guint n, const char *only, uint64_t seed)
{
    int failed = 0, k = 0, all = 0;
    for (guint i = 0; i < n; i++) {
        const HnOp *op = hn_op_find(NULL, lists[i]->op);
        op = op != NULL ? op : hn_op_find(HN_DOMAIN_INTERNAL, lists[i]->op);
        if (op == NULL) /* of a domain without gradients */
            continue;
        /* cases have no sub-graphs, and integers no differences: test/unit/train_reverse.c */
        if (op->grad == NULL || (op->flags & (HN_OP_CONTROL | HN_OP_STEPS)) != 0 ||
            (only != NULL && strcmp(only, op->name) != 0))
            continue;
        guint held = 0, cases = 0, refused = 0;
        gboolean bad = FALSE;
        for (guint j = 0; j < lists[i]->n; j++)
            for (int way = 0; way < 2; way++) {
                const HnCase *c = &lists[i]->cases[j];
                guint here = 0;
                if (c->refused)
                    continue;
                g_autofree char *wrong = check_case(op, c, seed + j, way == 1, 0, &here, &refused);
                g_autofree char *moved =
                    wrong == NULL && here == 0 ? check_case(op, c, seed + j, way == 1, APART, &here, &refused) : NULL;
                if (wrong != NULL || moved != NULL) {
                    printf("# %s case %u%s: %s\n", op->name, j, way == 1 ? ", symbolic" : "",
                           wrong != NULL ? wrong : moved);
                    bad = TRUE;
                }
                held += here;
                cases += here > 0;
            }
        bad = bad || (held == 0 && (op->flags & HN_OP_RANDOM) == 0); /* numbers by chance have none */
        printf("%sok %d %s (%u derivatives in %u cases, %u refused)\n", bad ? "not " : "", ++k, op->name, held, cases,
               refused);
        fflush(stdout);
        failed += bad;
        all++;
    }
    printf("1..%d\n", all);
    return failed > 0 || all == 0 ? 1 : 0;
}
