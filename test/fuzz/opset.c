/*
 * Conversion to another opset: what comes out is a valid graph of that opset with the outputs that were there; what
 * does not says which nodes are in the way. Models are ONNX, or text that begins with "opset".
 */
#include <string.h>

#include "fuzz.h"
#include "op/unbind.h"
#include "pass/opset.h"

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

static void one(const uint8_t *data, size_t size)
{
    HnBudget *budget = hn_budget_new(FUZZ_BUDGET);
    uint64_t seed = fuzz_seed(data, size);
    for (int i = 0; i < 3; i++, seed /= HN_OPSET_MAX) {
        g_autoptr(GError) error = NULL;
        HnModel *m = fuzz_read_model(data, size, budget, &error);
        fuzz_result(m != NULL, error);
        if (m == NULL)
            break;
        convert(m, HN_OPSET_MIN + (int64_t)(seed % (HN_OPSET_MAX - HN_OPSET_MIN + 1)));
        hn_model_free(m);
    }
    fuzz_budget_done(budget);
}

const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_model };
