/*
 * The passes: a model is rewritten to a fixed point within a budget, by all passes or by about half of them. What comes
 * out is a valid graph with the inputs and outputs that were there. Errors are fine.
 *
 * A model is ONNX, or text that begins with "opset", or a file of test/pass: then it is what stands before "--" in each
 * of its cases, and changes are made to one of them.
 */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "ir/ir_text.h"
#include "pass/inline_functions.h"
#include "pass/pass.h"

#define MOST_REWRITES 400 /* a change that makes the model larger without end stops here */

/* --- models --------------------------------------------------------------------------------------------------------
 */

static HnModel *read_text(const char *text, HnBudget *budget, GError **error)
{
    g_autoptr(HnModel) m = hn_model_parse(text, budget, error);
    return m != NULL && hn_model_verify(m, error) ? g_steal_pointer(&m) : NULL;
}

static gboolean begins(const uint8_t *data, size_t size, const char *word)
{
    return size >= strlen(word) && memcmp(data, word, strlen(word)) == 0;
}

/* The models of a file of test/pass, as text. */
static GPtrArray *cases_of(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    GPtrArray *cases = g_ptr_array_new_with_free_func(g_free);
    GString *now = NULL;
    gboolean before = FALSE;
    for (char **l = lines; *l != NULL; l++) {
        if (g_str_has_prefix(*l, "==")) {
            if (now != NULL)
                g_ptr_array_add(cases, g_string_free(now, FALSE));
            now = g_string_new(l[1] != NULL && g_str_has_prefix(l[1], "opset") ? "" : "opset 17\n");
            before = TRUE;
        } else if (g_str_has_prefix(*l, "--") || g_str_has_prefix(*l, "unchanged")) {
            before = FALSE;
        } else if (before && !g_str_has_prefix(*l, "no run") && !g_str_has_prefix(*l, "rtol ") &&
                   !g_str_has_prefix(*l, "dim ")) {
            g_string_append_printf(now, "%s\n", *l);
        }
    }
    if (now != NULL)
        g_ptr_array_add(cases, g_string_free(now, FALSE));
    return cases;
}

/* --- rewriting -----------------------------------------------------------------------------------------------------
 */

/* Names of inputs that are no weights, and of outputs. */
static char *border(const HnModel *m)
{
    GString *s = g_string_new(NULL);
    for (guint i = 0; i < m->graph->inputs->len; i++) {
        const HnValue *v = m->graph->inputs->pdata[i];
        if (v->weight == NULL && v->sparse == NULL)
            g_string_append_printf(s, "%s,", v->name);
    }
    g_string_append(s, ":");
    for (guint i = 0; i < m->graph->outputs->len; i++)
        g_string_append_printf(s, "%s,", ((const HnValue *)m->graph->outputs->pdata[i])->name);
    return g_string_free(s, FALSE);
}

static void rewrite(HnModel *m, uint64_t seed, HnBudget *budget)
{
    g_autoptr(GError) error = NULL, invalid = NULL;
    g_autofree char *before = border(m);
    g_autoptr(GPtrArray) skip = g_ptr_array_new();
    HnPassLog log;
    /* all passes for half of the files; else about half of them, so that what one leaves behind is met by others */
    for (const HnPass *const *p = hn_pass_all(); *p != NULL; p++, seed = seed * 6364136223846793005u + 1)
        if ((seed >> 63) != 0 && (seed >> 60 & 1) != 0)
            g_ptr_array_add(skip, (gpointer)(*p)->name);
    g_ptr_array_add(skip, NULL);
    const HnPassOptions o = { .level = 3,
                              .skip = (const char *const *)skip->pdata,
                              .most = MOST_REWRITES,
                              .fold_bytes = (seed & 2) != 0 ? HN_FOLD_BYTES : 64,
                              .explain = (seed & 4) != 0,
                              .budget = budget };
    hn_pass_log_init(&log);
    gboolean ok = (seed & 8) == 0 || hn_inline_functions(m, &error);
    ok = ok && hn_pass_run(m, &o, &log, &error);
    fuzz_result(ok, error);
    if (g_getenv("FUZZ_VERBOSE") != NULL)
        fprintf(stderr, "# %u rewrites, %u rounds; %s\n", log.made->len, log.rounds, ok ? "all well" : error->message);
    if (ok && !hn_model_verify(m, &invalid))
        g_error("the rewritten model is invalid: %s", invalid->message);
    g_autofree char *after = border(m);
    if (ok && strcmp(before, after) != 0)
        g_error("inputs and outputs are %s instead of %s", after, before);
    hn_pass_log_clear(&log);
}

static void rewrite_and_free(HnModel *m, const GError *error, uint64_t seed, HnBudget *budget)
{
    fuzz_result(m != NULL, error);
    if (m != NULL && (seed >> 3 & 7) == 0) /* an allocation fails somewhere */
        hn_budget_fail_at(budget, 1 + (seed >> 6) % 64);
    if (m != NULL)
        rewrite(m, seed, budget);
    hn_model_free(m);
    fuzz_budget_done(budget);
}

static void one(const uint8_t *data, size_t size)
{
    const uint64_t seed = fuzz_seed(data, size);
    g_autoptr(GPtrArray) cases = begins(data, size, "==") ? cases_of(data, size) : NULL;
    for (guint i = 0; cases != NULL && i < cases->len; i++) {
        g_autoptr(GError) error = NULL;
        HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
        HnModel *m = read_text(cases->pdata[i], budget, &error);
        rewrite_and_free(m, error, seed, budget);
    }
    if (cases == NULL) {
        g_autoptr(GError) error = NULL;
        HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
        HnModel *m = fuzz_read_model(data, size, budget, &error);
        rewrite_and_free(m, error, seed, budget);
    }
}

/* Changes to the model rather than to bytes, seven times out of eight. */
static size_t mutate(uint8_t *data, size_t size, size_t max, HnRng *rng)
{
    if (hn_rng_int(rng, 0, 7) == 0)
        return 0;
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    g_autoptr(GPtrArray) cases = begins(data, size, "==") ? cases_of(data, size) : NULL;
    const guint n_cases = cases != NULL ? cases->len : 0;
    const char *text = n_cases > 0 ? cases->pdata[hn_rng_int(rng, 0, (int64_t)n_cases - 1)] : NULL;
    g_autoptr(HnModel) m = text != NULL ? read_text(text, budget, NULL) : fuzz_read_model(data, size, budget, NULL);
    hn_budget_unref(budget);
    return fuzz_mutate_to(m, data, max, rng);
}

const FuzzTarget fuzz_target = { .one = one, .mutate = mutate };
