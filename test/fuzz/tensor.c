/* Reading a file of a tensor, a sequence, an optional or a map: what can be read can be written, and reading that again
 * gives the same elements. */
#include "fuzz.h"
#include "onnx/tensor_file.h"

static void round_trip(const HnTensor *t, const HnType *type, HnBudget *budget)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) out = hn_onnx_tensor_write_bytes(t, t->name, budget, &error);
    fuzz_result(out != NULL, error);
    g_autoptr(HnTensor) again = out != NULL ? hn_onnx_value_read_bytes(out, type, budget, &error) : NULL;
    if (again == NULL && !g_error_matches(error, HN_ERROR, HN_ERROR_BUDGET))
        g_error("what was written cannot be read: %s", error->message);
    if (again != NULL && !hn_tensor_equal(t, again))
        g_error("what was written reads as another tensor");
}

static void read_as(GBytes *bytes, const HnType *type)
{
    g_autoptr(GError) error = NULL;
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    HnTensor *t = hn_onnx_value_read_bytes(bytes, type, budget, &error);
    fuzz_result(t != NULL, error);
    if (t != NULL) {
        g_free(hn_tensor_describe(t));
        round_trip(t, type, budget);
    }
    hn_tensor_unref(t);
    fuzz_budget_done(budget);
}

static void one(const uint8_t *data, size_t size)
{
    static const HnTypeKind kinds[] = { HN_TYPE_SEQUENCE, HN_TYPE_OPTIONAL, HN_TYPE_MAP };
    g_autoptr(GBytes) bytes = fuzz_bytes(data, size);
    read_as(bytes, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(HnType) type = hn_type_list(kinds[i], HN_UNDEFINED, NULL);
        read_as(bytes, type);
    }
}

const FuzzTarget fuzz_target = { .one = one };
