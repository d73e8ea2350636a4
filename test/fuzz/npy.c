/* NumPy's .npy. */
#include "data/npy.h"
#include "fuzz.h"

/* Elements of a copy, so that every byte is looked at. */
static void look(HnTensor *t, GError *error)
{
    fuzz_result(t != NULL, error);
    if (t == NULL)
        return;
    g_autofree char *text = hn_tensor_describe(t);
    double sum = 0;
    for (int64_t i = 0; i < MIN(t->n, 4096); i++)
        sum += t->dtype != HN_STRING ? hn_tensor_get_f64(t, t->n - 1 - i) : 0;
    if (!hn_tensor_equal(t, t) && sum == sum)
        g_error("%s does not equal itself", text);
    hn_tensor_unref(t);
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    GBytes *bytes = fuzz_bytes(data, size);
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    HnTensor *t = hn_npy_read_bytes(bytes, "f.npy", budget, &error);
    look(t, error);
    g_bytes_unref(bytes);
    fuzz_budget_done(budget);
}

const FuzzTarget fuzz_target = { .one = one };
