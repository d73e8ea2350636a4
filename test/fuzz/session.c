/*
 * A whole session: a model, as ONNX or as text that begins with "opset", is planned and run on the backends ref and cpu
 * with made-up inputs, within a budget. Errors are fine. An initializer that is also a graph input is fed with its own
 * elements by every other file, so that a file can bring along data as well.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/backend.h"
#include "fuzz.h"
#include "run/session.h"

#define MOST_ELEMENTS 1e6 /* of one input that is made up */

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
    if (v->weight != NULL)
        return v->weight->unloaded || !hn_tensor_align(v->weight, budget, NULL) ? NULL : hn_tensor_ref(v->weight);
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
    g_autoptr(GPtrArray) in = make_inputs(s, size, seed, budget);
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

/* Two runs of different sizes, and the first size again, which meets its cached plan. Gives the first one's results. */
static GPtrArray *run_session(HnModel *m, const HnBackend *backend, uint64_t seed, HnBudget *budget, GError **error)
{
    g_autoptr(GPtrArray) feeds = initializers_to_feed(m, (seed & 1) != 0);
    HnSessionOptions o = { .threads = 1,
                           .seed = seed,
                           .budget = budget,
                           .plan_cache = (int)(seed >> 1 & 1),
                           .apart = (seed >> 12 & 3) != 0,
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

static void same_shapes(GPtrArray *a, GPtrArray *b)
{
    for (guint i = 0; i < MIN(a->len, b->len); i++) {
        g_autofree char *x = hn_tensor_describe(a->pdata[i]), *y = hn_tensor_describe(b->pdata[i]);
        if (strcmp(x, y) != 0)
            g_error("output %u is %s on ref and %s on cpu", i, x, y);
    }
}

/* With FUZZ_VERBOSE: what came of it, for whoever looks for differences. */
static void tell(GPtrArray *ref, GPtrArray *cpu, const GError *ref_error, const GError *cpu_error)
{
    double worst = 0;
    for (guint i = 0; ref != NULL && cpu != NULL && i < MIN(ref->len, cpu->len); i++) {
        const HnTensor *a = ref->pdata[i], *b = cpu->pdata[i];
        for (int64_t k = 0; k < a->n && a->dtype != HN_STRING; k++) {
            double x = hn_tensor_get_f64(a, k), y = hn_tensor_get_f64(b, k);
            if (x != y && !(isnan(x) && isnan(y)))
                worst = MAX(worst, isfinite(x) && isfinite(y) ? fabs(x - y) / (fabs(x) + 1e-3) : INFINITY);
        }
    }
    fprintf(stderr, "# ref: %s; cpu: %s; differ by %g\n",
            ref_error != NULL ? ref_error->message
            : ref != NULL     ? "ran"
                              : "not tried",
            cpu_error != NULL ? cpu_error->message
            : cpu != NULL     ? "ran"
                              : "not tried",
            worst);
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
        if (ref != NULL && cpu != NULL)
            same_shapes(ref, cpu);
        if (g_getenv("FUZZ_VERBOSE") != NULL)
            tell(ref, cpu, ref_error, cpu_error);
        g_clear_pointer(&ref, g_ptr_array_unref);
        g_clear_pointer(&cpu, g_ptr_array_unref);
    }
    hn_model_free(m);
    fuzz_budget_done(budget);
}

const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_model, .init = fuzz_watch_init };
