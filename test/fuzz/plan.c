/* Plans of hone-quantize: read, written, and read again. */
#include <string.h>

#include "base/jsonread.h"
#include "cli/json.h"
#include "json.h"
#include "quant/plan_file.h"

static const char *const names[] = { "norm1.out", "conv2.out", "norm3.out", "scores", "x" };

static gboolean read_plan(const char *text, size_t size, const GPtrArray *nodes, HnPlanFile *out)
{
    const HnQuantOptions o = { .activations = HN_U8, .block = 32 };
    g_autoptr(GError) error = NULL, why = NULL;
    g_autoptr(JsonNode) json = hn_json_read(text, size, HN_JSON_BYTES, NULL, &error);
    fuzz_result(json != NULL, error);
    if (json == NULL)
        return FALSE;
    const gboolean ok = hn_quant_plan_read(json, &o, nodes, out, &why);
    fuzz_result(ok, why);
    return ok;
}

static void one(const uint8_t *data, size_t size)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    HnPlanFile file, again;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        g_ptr_array_add(nodes, (gpointer)names[i]);
    if (!read_plan((const char *)data, size, nodes, &file))
        return;
    JsonNode *json = hn_quant_plan_json(file.plan, nodes, (const char *const *)file.repairs);
    g_autofree char *written = hn_json_text(json);
    json_node_unref(json);
    if (!read_plan(written, strlen(written), nodes, &again))
        g_error("a plan that was written cannot be read: %s", written);
    g_autofree char *before = hn_quant_plan_hash(file.plan), *after = hn_quant_plan_hash(again.plan);
    if (strcmp(before, after) != 0 ||
        !g_strv_equal((const char *const *)file.repairs, (const char *const *)again.repairs))
        g_error("a plan becomes another one when it is written: %s", written);
    hn_plan_file_clear(&file);
    hn_plan_file_clear(&again);
}

const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_json, .times = 3 };
