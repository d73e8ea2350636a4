/* Reading a tensor's file: what can be read can be written, and reading that again gives the same elements. */
#include "fuzz.h"
#include "onnx/tensor_file.h"

static void round_trip(const HnTensor *t, HnBudget *budget)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) out = hn_onnx_tensor_write_bytes(t, t->name, budget, &error);
    fuzz_result(out != NULL, error);
    g_autoptr(HnTensor) again = out != NULL ? hn_onnx_tensor_read_bytes(out, budget, &error) : NULL;
    if (again == NULL && !g_error_matches(error, HN_ERROR, HN_ERROR_BUDGET))
        g_error("what was written cannot be read: %s", error->message);
    if (again != NULL && !hn_tensor_equal(t, again))
        g_error("what was written reads as another tensor");
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = fuzz_bytes(data, size);
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    HnTensor *t = hn_onnx_tensor_read_bytes(bytes, budget, &error);
    fuzz_result(t != NULL, error);
    if (t != NULL) {
        g_free(hn_tensor_describe(t));
        round_trip(t, budget);
    }
    hn_tensor_unref(t);
    fuzz_budget_done(budget);
}

const FuzzTarget fuzz_target = { .one = one };
