/*
 * A whole session: a model, as ONNX or as text that begins with "opset", is planned and run on the backends ref and cpu
 * with made-up inputs, within a budget. Errors are fine. An initializer that is also a graph input is fed with its own
 * elements by every other file, so that a file can bring along data as well. Both backends have to give the same
 * values.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/core/cpu_backend.h"
#include "fuzz.h"
#include "run/session.h"

#define MOST_ELEMENTS 1e6 /* of one input that is made up */

/* --- noise ---------------------------------------------------------------------------------------------------------
 *
 * How far a kernel's result may be from ref's depends on everything behind it: a rounding before Floor is a whole
 * number after it, one before ArgMax another index. It is therefore measured. Where the two differ, ref runs again some
 * times with roundings made up in each value: floats are off by a few of their last digits, and bytes by one now and
 * then where an operator rounds to them. What such runs differ by, values may differ by.
 *
 * Numbers whose square is no float, infinities and NaN among the elements are left out: whether a padded border times
 * infinity is NaN, or a mean of squares overflows, is each kernel's own. Cases of operators say what holds of them.
 */

#define NOISY_RUNS 12
#define NOISE_FACTOR 8 /* times what the noisy runs differ by */
#define MOST_COMPARED 1e15

typedef struct {
    HnRng rng;
    gboolean wild; /* elements were met that are not compared */
} Noise;

static gboolean is_wild(double x)
{
    return !(fabs(x) < MOST_COMPARED);
}

static gboolean any_wild(const HnTensor *t)
{
    for (int64_t i = 0; t != NULL && hn_dtype_in(t->dtype, HN_T_FLOATS) && t->data != NULL && i < t->n; i++)
        if (is_wild(hn_tensor_get_f64(t, i)))
            return TRUE;
    return FALSE;
}

static gboolean noise_wants(const HnValue *v, gpointer data)
{
    (void)v;
    (void)data;
    return TRUE;
}

static gboolean rounds_to_bytes(const HnValue *v)
{
    const char *op = v->producer != NULL ? v->producer->op_type : "";
    return strstr(op, "Quantize") != NULL || g_str_has_prefix(op, "QLinear");
}

/* What kernels differ by in one operation, relative. Halves are rounded by some and kept wider by others. */
static double unit_of(HnDtype d)
{
    return d == HN_BF16 ? 0x1p-8 : d == HN_F16 ? 0x1p-11 : d == HN_F32 || d == HN_F64 ? 0x1p-20 : 0;
}

static double disturbed(double x, HnDtype d, double unit, HnRng *rng)
{
    if (unit > 0)
        return x * (1 + unit * hn_rng_range(rng, -1, 1));
    const double least = d == HN_I8 ? -128 : 0, most = d == HN_I8 ? 127 : 255;
    const double moved = x + (double)hn_rng_int(rng, -1, 1);
    return CLAMP(moved, least, most);
}

static void noise_saw(const HnValue *v, const HnSeen *seen, gpointer data)
{
    Noise *noise = data;
    /* the declared type: halves may be held wider, and are rounded to what they are later */
    const HnDtype d = v->type != NULL && v->type->kind == HN_TYPE_TENSOR ? v->type->dtype : seen->dtype;
    const double unit = unit_of(d);
    const gboolean bytes = (seen->dtype == HN_U8 || seen->dtype == HN_I8) && rounds_to_bytes(v);
    if ((unit == 0 && !bytes) || seen->rows <= 0)
        return;
    const int64_t n = (seen->rows - 1) * seen->pitch + seen->width;
    g_autoptr(HnTensor) t = hn_tensor_new_borrowed(seen->dtype, 1, &n, (void *)seen->data); /* the plan's own memory */
    for (int64_t r = 0; r < seen->rows; r++)
        for (int64_t i = r * seen->pitch; i < r * seen->pitch + seen->width; i++) {
            const double x = hn_tensor_get_f64(t, i);
            noise->wild |= !bytes && is_wild(x);
            hn_tensor_set_f64(t, i, disturbed(x, seen->dtype, unit, &noise->rng));
        }
}

/* --- inputs --------------------------------------------------------------------------------------------------------
 */

static void fill(HnTensor *t, HnRng *rng)
{
    static const char *const words[] = { "", "a", "tree", "\xc3\xa4", "Tree", "\xff", "12" };
    gboolean floats = hn_dtype_in(t->dtype, HN_T_FLOATS), wild = hn_rng_int(rng, 0, 15) == 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (t->dtype == HN_STRING) {
            const char *w = words[hn_rng_int(rng, 0, G_N_ELEMENTS(words) - 1)];
            g_autoptr(GBytes) s = g_bytes_new(w, strlen(w));
            hn_tensor_set_string(t, i, s);
        } else if (t->dtype == HN_BOOL) {
            hn_tensor_set_i64(t, i, hn_rng_int(rng, 0, 1));
        } else if (wild) {
            static const double odd[] = { NAN, INFINITY, -INFINITY, -1, 1e30, -1e30, 9.3e18, -9.3e18, 0 };
            hn_tensor_set_f64(t, i, odd[hn_rng_int(rng, 0, G_N_ELEMENTS(odd) - (floats ? 1 : 4))]);
        } else {
            hn_tensor_set_f64(t, i, floats ? hn_rng_normal(rng) : (double)hn_rng_int(rng, -2, 5));
        }
    }
}

/* The input's declared type with `size` for what is left open. NULL: none that can be made up. */
static HnTensor *make_input(const HnValue *v, int64_t size, HnRng *rng, HnBudget *budget)
{
    const HnType *t = v->type;
    int64_t dims[HN_MAX_RANK] = { 0 };
    double n = 1;
    if (v->weight != NULL) /* a copy: noise is added to it */
        return v->weight->unloaded || !hn_tensor_align(v->weight, budget, NULL)
                   ? NULL
                   : hn_tensor_copy(v->weight, budget, NULL);
    if (t == NULL || t->kind != HN_TYPE_TENSOR || t->rank > HN_MAX_RANK)
        return NULL;
    int rank = t->rank >= 0 ? t->rank : (int)hn_rng_int(rng, 0, 3);
    for (int i = 0; i < rank; i++) {
        dims[i] = t->rank >= 0 && t->dims[i].known ? t->dims[i].n : size;
        n *= (double)MAX(dims[i], 1);
    }
    if (n > MOST_ELEMENTS || (hn_dtype_bits(t->dtype) == 0 && t->dtype != HN_STRING))
        return NULL;
    HnTensor *x = hn_tensor_new(t->dtype, rank, dims, budget, NULL);
    if (x != NULL)
        fill(x, rng);
    return x;
}

static GPtrArray *make_inputs(const HnSession *s, int64_t size, uint64_t seed, HnBudget *budget)
{
    GPtrArray *in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    HnRng rng = hn_rng(seed);
    for (int i = 0; i < hn_session_n_inputs(s); i++) {
        HnTensor *t = make_input(hn_session_input(s, i), size, &rng, budget);
        if (t == NULL) {
            g_ptr_array_unref(in);
            return NULL;
        }
        g_ptr_array_add(in, t);
    }
    return in;
}

/* --- running -------------------------------------------------------------------------------------------------------
 */

/* Copies of the outputs; NULL with or without an error. */
static GPtrArray *run_once(HnSession *s, int64_t size, uint64_t seed, HnBudget *budget, GError **error)
{
    fuzz_untimed_begin(); /* what the target makes up, MOST_ELEMENTS at most */
    g_autoptr(GPtrArray) in = make_inputs(s, size, seed, budget);
    fuzz_untimed_end();
    if (in == NULL || !fuzz_affordable(s, (HnTensor *const *)in->pdata, error))
        return NULL;
    int n = hn_session_n_outputs(s);
    g_autofree HnTensor **out = g_new0(HnTensor *, (gsize)n + 1);
    fuzz_untimed_begin(); /* fuzz_watch() and fuzz_affordable() bound it */
    gboolean ok = hn_session_run(s, (HnTensor *const *)in->pdata, out, error);
    fuzz_untimed_end();
    fuzz_result(ok, *error);
    GPtrArray *results = ok ? g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref) : NULL;
    for (int k = 0; k < n; k++) {
        if ((out[k] != NULL) != ok)
            g_error("output %d is %s", k, ok ? "missing" : "set by a run that failed");
        HnTensor *copy = ok ? hn_tensor_copy(out[k], NULL, NULL) : NULL;
        if (copy != NULL)
            g_ptr_array_add(results, copy);
        hn_tensor_unref(out[k]);
    }
    return results;
}

static GPtrArray *initializers_to_feed(const HnModel *m, gboolean feed)
{
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; feed && i < m->graph->inputs->len; i++) {
        const HnValue *v = m->graph->inputs->pdata[i];
        if (v->weight != NULL)
            g_ptr_array_add(names, v->name);
    }
    g_ptr_array_add(names, NULL);
    return names;
}

/* Algorithms that round otherwise than operators say (Winograd, weights of few bits with rounded rows) are run, too,
 * but not held against ref. */
static gboolean is_strict(uint64_t seed)
{
    return (seed >> 14 & 3) != 0;
}

/* Two runs of different sizes, and the first size again, which meets its cached plan. Gives the first one's results. */
static GPtrArray *run_session(HnModel *m, const HnBackend *backend, uint64_t seed, HnBudget *budget, GError **error)
{
    g_autoptr(GPtrArray) feeds = initializers_to_feed(m, (seed & 1) != 0);
    HnSessionOptions o = { .threads = 1,
                           .seed = seed,
                           .budget = budget,
                           .plan_cache = (int)(seed >> 1 & 1),
                           .apart = (seed >> 12 & 3) != 0,
                           .strict_math = is_strict(seed),
                           .feeds = (const char *const *)feeds->pdata };
    fuzz_watch(budget);
    HnSession *s = hn_session_new(m, backend, &o, error);
    fuzz_result(s != NULL, *error);
    GPtrArray *first = NULL;
    for (int run = 0; run < 3 && s != NULL; run++) {
        g_autoptr(GError) failure = NULL;
        GPtrArray *results = run_once(s, run == 1 ? 3 : 2, seed, budget, run == 0 ? error : &failure);
        if (run == 0)
            first = results;
        else if (results != NULL)
            g_ptr_array_unref(results);
    }
    hn_session_free(s);
    fuzz_watch(NULL);
    return first;
}

/* The first run's results on ref with other noise in its values; NULL: it failed, or met what is not compared. */
static GPtrArray *run_noisy(HnModel *m, uint64_t seed, uint64_t other, HnBudget *budget)
{
    g_autoptr(GPtrArray) feeds = initializers_to_feed(m, (seed & 1) != 0);
    g_autoptr(GError) error = NULL;
    Noise noise = { .rng = hn_rng(other) };
    const HnWatch watch = { .wants = noise_wants, .saw = noise_saw, .data = &noise };
    const HnSessionOptions o = {
        .threads = 1, .seed = seed, .budget = budget, .feeds = (const char *const *)feeds->pdata, .watch = &watch
    };
    fuzz_watch(budget);
    HnSession *s = hn_session_new(m, &hn_backend_ref, &o, &error);
    g_autoptr(GPtrArray) results = s != NULL ? run_once(s, 2, seed, budget, &error) : NULL;
    g_autoptr(GPtrArray) in = s != NULL ? make_inputs(s, 2, seed, budget) : NULL;
    for (guint i = 0; in != NULL && i < in->len; i++)
        noise.wild |= any_wild(in->pdata[i]);
    hn_session_free(s);
    fuzz_watch(NULL);
    return noise.wild ? NULL : g_steal_pointer(&results);
}

static void same_shapes(GPtrArray *a, GPtrArray *b)
{
    for (guint i = 0; i < MIN(a->len, b->len); i++) {
        g_autofree char *x = hn_tensor_describe(a->pdata[i]), *y = hn_tensor_describe(b->pdata[i]);
        if (strcmp(x, y) != 0)
            g_error("output %u is %s on ref and %s on cpu", i, x, y);
    }
}

/* --- values --------------------------------------------------------------------------------------------------------
 */

/* Largest finite magnitude. */
static double scale_of(const HnTensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const double x = fabs(hn_tensor_get_f64(t, i));
        most = isfinite(x) ? MAX(most, x) : most;
    }
    return most;
}

static double distance(double x, double y)
{
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    return isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
}

static gboolean numbers(const HnTensor *t)
{
    return t->dtype != HN_STRING && t->dtype != HN_C64 && t->dtype != HN_C128;
}

/* What any kernel may be off by, whatever stands behind it, in an element that is `want` of a tensor of this scale; as
 * much as the least normal number is, which leaves out what has lost its digits. */
static double allowance(HnDtype d, double want, double scale)
{
    const double unit = unit_of(d) * 64;
    return unit * (fabs(want) + scale / 16) + (unit > 0 ? (double)FLT_MIN : 0);
}

/* The first element that is off by more than that; -1: none. */
static int64_t find_off(const HnTensor *want, const HnTensor *got)
{
    const double scale = numbers(want) ? scale_of(want) : 0;
    for (int64_t i = 0; i < want->n && numbers(want); i++) {
        const double x = hn_tensor_get_f64(want, i);
        if (distance(x, hn_tensor_get_f64(got, i)) > allowance(want->dtype, x, scale))
            return i;
    }
    return -1;
}

/* The noisy runs differ by that much, too. */
static gboolean explained(const HnTensor *want, const HnTensor *got, const GPtrArray *noisy, guint k, int64_t *at)
{
    const double scale = scale_of(want);
    for (int64_t i = 0; i < want->n; i++) {
        const double x = hn_tensor_get_f64(want, i);
        double spread = 0;
        for (guint r = 0; r < noisy->len; r++) {
            const GPtrArray *run = noisy->pdata[r];
            const HnTensor *t = k < run->len ? run->pdata[k] : NULL;
            const gboolean same = t != NULL && t->ndim == want->ndim &&
                                  memcmp(t->dims, want->dims, (gsize)want->ndim * sizeof want->dims[0]) == 0;
            const double d = same ? distance(x, hn_tensor_get_f64(t, i)) : INFINITY;
            spread = MAX(spread, d);
        }
        *at = i;
        if (distance(x, hn_tensor_get_f64(got, i)) > NOISE_FACTOR * spread + allowance(want->dtype, x, scale))
            return FALSE;
    }
    return TRUE;
}

static gboolean wild_weights(const HnGraph *g)
{
    for (guint i = 0; i < g->weights->len; i++)
        if (any_wild(((const HnValue *)g->weights->pdata[i])->weight))
            return TRUE;
    for (guint i = 0; i < g->inner->len; i++)
        if (wild_weights(g->inner->pdata[i]))
            return TRUE;
    return FALSE;
}

/* Both backends compute the same, as far as roundings let them. */
static void same_values(HnModel *m, uint64_t seed, const GPtrArray *ref, const GPtrArray *cpu, HnBudget *budget)
{
    g_autoptr(GPtrArray) noisy = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    for (guint k = 0; k < MIN(ref->len, cpu->len); k++) {
        const HnTensor *want = ref->pdata[k], *got = cpu->pdata[k];
        int64_t at = find_off(want, got);
        if (at < 0)
            continue;
        if (wild_weights(m->graph))
            return;
        for (guint r = noisy->len; r < NOISY_RUNS; r++) {
            GPtrArray *run = run_noisy(m, seed, seed + 1 + r, budget);
            if (run == NULL) /* what some runs refuse, any may */
                return;
            g_ptr_array_add(noisy, run);
        }
        if (!explained(want, got, noisy, k, &at)) {
            g_autofree char *type = hn_tensor_describe(want);
            g_error("output %u, %s: element %" G_GINT64_FORMAT
                    " is %.9g on ref and %.9g on cpu, and roundings do not explain that",
                    k, type, at, hn_tensor_get_f64(want, at), hn_tensor_get_f64(got, at));
        }
    }
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL, ref_error = NULL, cpu_error = NULL;
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    uint64_t seed = fuzz_seed(data, size);
    HnModel *m = fuzz_read_model(data, size, budget, &error);
    fuzz_result(m != NULL, error);
    if (error != NULL && g_getenv("FUZZ_VERBOSE") != NULL)
        fprintf(stderr, "# %s\n", error->message);
    if (m != NULL) {
        GPtrArray *ref = run_session(m, &hn_backend_ref, seed, budget, &ref_error);
        if ((seed >> 2 & 7) == 0) /* an allocation fails somewhere */
            hn_budget_fail_at(budget, 1 + (seed >> 5) % 64);
        GPtrArray *cpu = run_session(m, &hn_backend_cpu, seed, budget, &cpu_error);
        if (ref != NULL && cpu != NULL) {
            hn_budget_fail_at(budget, 0);
            same_shapes(ref, cpu);
            fuzz_untimed_begin(); /* as often as it ran before, at most NOISY_RUNS times */
            if (is_strict(seed))
                same_values(m, seed, ref, cpu, budget);
            fuzz_untimed_end();
        }
        g_clear_pointer(&ref, g_ptr_array_unref);
        g_clear_pointer(&cpu, g_ptr_array_unref);
    }
    hn_model_free(m);
    fuzz_budget_done(budget);
}

const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_model, .init = fuzz_watch_init };
