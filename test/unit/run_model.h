/*
 * Models from text, run on backends, for the tests of sessions and kernels.
 */
#pragma once

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "cpu/core/cpu_backend.h"
#include "ir/ir_text.h"
#include "run/session.h"

/* HONE_MAX_ISA asks for no less than the machine has: the program says the same without it. So does "vnni" where there
 * is "bf16", which differ where bf16 is asked for alone: those are compared at avx512, too. */
static inline gboolean test_same_level(void)
{
    HnIsa cap;
    const char *name = g_getenv("HONE_MAX_ISA");
    const HnIsa machine = hn_cpu_machine_isa(), least = machine == HN_ISA_BF16 ? HN_ISA_VNNI : machine;
    if (name == NULL || !hn_cpu_isa_parse(name, &cap) || cap < least)
        return FALSE;
    g_print("1..0 # SKIP this machine has no more than %s: the same without HONE_MAX_ISA\n",
            hn_cpu_isa_name(hn_cpu_machine_isa()));
    return TRUE;
}

static inline HnModel *test_model(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnModel *m = hn_model_parse(text, NULL, &error);
    g_assert_no_error(error);
    hn_model_verify(m, &error);
    g_assert_no_error(error);
    return m;
}

static inline HnSession *test_session(HnModel *m, const HnBackend *backend, const HnSessionOptions *o)
{
    g_autoptr(GError) error = NULL;
    HnSession *s = hn_session_new(m, backend, o, &error);
    g_assert_no_error(error);
    return s;
}

static inline HnTensor *test_random(HnDtype dtype, int ndim, const int64_t *dims, uint64_t seed)
{
    g_autoptr(GError) error = NULL;
    HnTensor *t = hn_tensor_new(dtype, ndim, dims, NULL, &error);
    HnRng rng = hn_rng(seed);
    g_assert_no_error(error);
    for (int64_t i = 0; i < t->n; i++)
        hn_tensor_set_f64(t, i,
                          hn_dtype_in(dtype, HN_T_FLOATS) ? hn_rng_range(&rng, -1, 1) : (double)hn_rng_int(&rng, 0, 7));
    return t;
}

/* Elements given as text: "f32[2]={1,2}". */
static inline HnTensor *test_tensor(const char *text)
{
    g_autoptr(GError) error = NULL;
    HnTensor *t = hn_tensor_parse(&text, NULL, &error);
    g_assert_no_error(error);
    return t;
}

/* Random inputs of the declared (fixed) types. */
static inline GPtrArray *test_inputs(const HnSession *s, uint64_t seed)
{
    GPtrArray *in = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (int i = 0; i < hn_session_n_inputs(s); i++) {
        const HnType *t = hn_session_input(s, i)->type;
        int64_t dims[HN_MAX_RANK];
        g_assert_true(t != NULL && hn_type_is_fixed(t, dims));
        g_ptr_array_add(in, test_random(t->dtype, t->rank, dims, seed + (uint64_t)i));
    }
    return in;
}

static inline GPtrArray *test_run(HnSession *s, GPtrArray *in)
{
    g_autoptr(GError) error = NULL;
    GPtrArray *out = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    g_ptr_array_set_size(out, hn_session_n_outputs(s));
    gboolean ok = hn_session_run(s, (HnTensor *const *)in->pdata, (HnTensor **)out->pdata, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    return out;
}

/* The results as they are now: a session overwrites its own. */
static inline GPtrArray *test_copies(GPtrArray *tensors)
{
    GPtrArray *copies = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    for (guint i = 0; i < tensors->len; i++)
        g_ptr_array_add(copies, hn_tensor_copy(tensors->pdata[i], NULL, NULL));
    return copies;
}

static inline void test_assert_close(const HnTensor *got, const HnTensor *want, double rtol, double atol,
                                     const char *what)
{
    g_autofree char *a = hn_tensor_describe(got), *b = hn_tensor_describe(want);
    g_assert_cmpstr(a, ==, b);
    for (int64_t i = 0; i < want->n; i++) {
        double x = hn_tensor_get_f64(got, i), y = hn_tensor_get_f64(want, i);
        if (!(fabs(x - y) <= atol + rtol * fabs(y)) && !(isnan(x) && isnan(y)) && x != y) {
            g_test_message("%s: element %" G_GINT64_FORMAT " of %s is %.9g, not %.9g", what, i, a, x, y);
            g_test_fail();
            return;
        }
    }
}

typedef struct {
    const char *name;
    gboolean found;
} TestKernel;

static inline void test_find_kernel(const HnStep *s, int depth, gpointer data)
{
    TestKernel *k = data;
    (void)depth;
    k->found |= s->kernel != NULL && strcmp(s->kernel->name, k->name) == 0;
}

/* A step of the session's plans is computed by the kernel of that name. */
static inline gboolean test_has_kernel(const HnSession *s, const char *name)
{
    TestKernel k = { .name = name };
    hn_session_foreach_step(s, test_find_kernel, &k);
    return k.found;
}

typedef struct {
    int steps, reorders, ref;
} TestCount;

static inline void test_count_step(const HnStep *s, int depth, gpointer data)
{
    TestCount *c = data;
    (void)depth;
    c->steps++;
    c->reorders += s->node == NULL;
    c->ref += s->kernel == NULL;
}

static inline TestCount test_count(const HnSession *s)
{
    TestCount c = { 0 };
    hn_session_foreach_step(s, test_count_step, &c);
    return c;
}

/* Runs the model on the CPU backend twice and on ref, compares, and tells what the CPU's plan is made of. */
static inline TestCount test_preferring(const char *prefer, const char *text, int threads, double rtol, double atol)
{
    g_autoptr(HnModel) m = test_model(text);
    g_autoptr(HnSession) ref = test_session(m, &hn_backend_ref, &(HnSessionOptions){ .threads = 1 });
    g_autoptr(HnSession) cpu =
        test_session(m, &hn_backend_cpu, &(HnSessionOptions){ .threads = threads, .prefer = prefer });
    for (uint64_t run = 0; run < 2; run++) {
        g_autoptr(GPtrArray) in = test_inputs(ref, 71 + run);
        g_autoptr(GPtrArray) want = test_run(ref, in);
        g_autoptr(GPtrArray) got = test_run(cpu, in);
        for (guint i = 0; i < want->len; i++)
            test_assert_close(got->pdata[i], want->pdata[i], rtol, atol, text);
    }
    return test_count(cpu);
}

/* With the kernels as they come, and with oneDNN's wherever it can: what that plan is made of. */
static inline TestCount test_against_ref(const char *text, int threads, double rtol, double atol)
{
    (void)test_preferring(NULL, text, threads, rtol, atol);
    return test_preferring("onednn", text, threads, rtol, atol);
}
