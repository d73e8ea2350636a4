/* Models of the targets that take any: read from an input, and written back when they have been changed. */
#include <string.h>

#include "fuzz.h"
#include "ir/ir_text.h"
#include "onnx/onnx.h"

HnModel *fuzz_read_model(const uint8_t *data, size_t size, HnBudget *budget, GError **error)
{
    static const char text[] = "opset";
    if (size >= strlen(text) && memcmp(data, text, strlen(text)) == 0) {
        g_autofree char *copy = g_strndup((const char *)data, size);
        g_autoptr(HnModel) m = hn_model_parse(copy, budget, error);
        return m != NULL && hn_model_verify(m, error) ? g_steal_pointer(&m) : NULL;
    }
    g_autoptr(GBytes) bytes = fuzz_bytes(data, size);
    return hn_onnx_read_bytes(bytes, "/nonexistent", &(HnOnnxOptions){ .budget = budget }, error);
}

size_t fuzz_mutate_to(HnModel *m, uint8_t *data, size_t max, HnRng *rng)
{
    if (m == NULL)
        return 0;
    fuzz_mutate(m, rng);
    g_autoptr(GBytes) out = hn_onnx_write_bytes(m, NULL, NULL);
    gsize n = 0;
    gconstpointer changed = out != NULL ? g_bytes_get_data(out, &n) : NULL;
    if (n > max)
        return 0;
    if (n > 0)
        memcpy(data, changed, n);
    return n;
}

size_t fuzz_mutate_model(uint8_t *data, size_t size, size_t max, HnRng *rng)
{
    if (hn_rng_int(rng, 0, 3) == 0)
        return 0;
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    g_autoptr(HnModel) m = fuzz_read_model(data, size, budget, NULL);
    hn_budget_unref(budget);
    return fuzz_mutate_to(m, data, max, rng);
}
