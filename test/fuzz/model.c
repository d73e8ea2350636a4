/* Reading a model: what can be read can be written, and reading that again gives the same model. */
#include "fuzz.h"
#include "onnx/onnx.h"

static void round_trip(const HnModel *m, HnBudget *budget)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) out = hn_onnx_write_bytes(m, budget, &error);
    fuzz_result(out != NULL, error);
    if (out == NULL)
        return;
    HnOnnxOptions o = { .budget = budget };
    g_autoptr(HnModel) again = hn_onnx_read_bytes(out, NULL, &o, &error);
    if (again == NULL && !g_error_matches(error, HN_ERROR, HN_ERROR_BUDGET))
        g_error("what was written cannot be read: %s", error->message);
    g_autofree char *why = NULL;
    if (again != NULL && !hn_model_equal(m, again, &why))
        g_error("what was written reads as another model: %s", why);
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = fuzz_bytes(data, size);
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    HnOnnxOptions o = { .budget = budget };
    HnModel *m = hn_onnx_read_bytes(bytes, "/nonexistent", &o, &error);
    fuzz_result(m != NULL, error);
    if (m != NULL)
        round_trip(m, budget);
    hn_model_free(m);
    fuzz_budget_done(budget);
}

const FuzzTarget fuzz_target = { .one = one };
