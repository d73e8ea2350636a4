/*
 * Conversion to another opset: what comes out is a valid graph of that opset with the outputs that were there; what
 * does not says which nodes are in the way. Models are ONNX, or text that begins with "opset".
 */
#include <string.h>

#include "fuzz.h"
#include "ir/text.h"
#include "onnx/onnx.h"
#include "op/unbind.h"
#include "pass/opset.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

static HnModel *read_model(const uint8_t *data, size_t size, HnBudget *budget, GError **error)
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

static char *outputs_of(const HnModel *m)
{
    GString *s = g_string_new(NULL);
    for (guint i = 0; i < m->graph->outputs->len; i++)
        g_string_append_printf(s, "%s,", ((const HnValue *)m->graph->outputs->pdata[i])->name);
    return g_string_free(s, FALSE);
}

static void convert(HnModel *m, int64_t target)
{
    g_autoptr(GError) error = NULL, broken = NULL;
    g_autoptr(GPtrArray) blocked = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *before = outputs_of(m);
    gboolean ok = hn_convert_opset(m, target, blocked, &error);
    fuzz_result(ok, error);
    if (ok != (blocked->len == 0) && !(blocked->len == 0 && !ok))
        g_error("converted in spite of '%s'", (const char *)blocked->pdata[0]);
    if (!ok)
        return;
    g_autofree char *after = outputs_of(m);
    if (strcmp(before, after) != 0)
        g_error("outputs '%s' became '%s'", before, after);
    if (!hn_model_verify(m, &broken))
        g_error("opset %" G_GINT64_FORMAT ": %s", target, broken->message);
    if (hn_model_opset(m, NULL) != target)
        g_error("the opset is %" G_GINT64_FORMAT, hn_model_opset(m, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    uint64_t seed = fuzz_seed(data, size);
    for (int i = 0; i < 3; i++, seed /= HN_OPSET_MAX) {
        g_autoptr(GError) error = NULL;
        HnModel *m = read_model(data, size, budget, &error);
        fuzz_result(m != NULL, error);
        if (m == NULL)
            break;
        convert(m, HN_OPSET_MIN + (int64_t)(seed % (HN_OPSET_MAX - HN_OPSET_MIN + 1)));
        hn_model_free(m);
    }
    fuzz_budget_done(budget);
    return 0;
}

/* Changes to the model rather than to bytes, three times out of four. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    HnRng rng = hn_rng(seed);
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    HnModel *m = hn_rng_int(&rng, 0, 3) != 0 ? read_model(data, size, budget, NULL) : NULL;
    gsize n = 0;
    if (m != NULL) {
        fuzz_mutate(m, &rng);
        g_autoptr(GBytes) out = hn_onnx_write_bytes(m, NULL, NULL);
        gconstpointer changed = out != NULL ? g_bytes_get_data(out, &n) : NULL;
        n = n <= max ? n : 0;
        if (n > 0)
            memcpy(data, changed, n);
    }
    hn_model_free(m);
    hn_budget_unref(budget);
    return n > 0 ? n : LLVMFuzzerMutate(data, size, max);
}
