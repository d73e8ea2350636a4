/* Calibration tables: read into a plan, which is as it was where that fails. */
#include <string.h>

#include "base/jsonread.h"
#include "cli/json.h"
#include "json.h"
#include "quant/plan_file.h"
#include "quant/table.h"

static gboolean apply(const char *text, size_t size, HnQuantPlan *p)
{
    g_autoptr(GError) error = NULL, why = NULL;
    g_autoptr(JsonNode) json = hn_json_read(text, size, HN_JSON_BYTES, NULL, &error);
    fuzz_result(json != NULL, error);
    if (json == NULL)
        return FALSE;
    const gboolean ok = hn_calib_table_apply(json, p, &why);
    fuzz_result(ok, why);
    return ok;
}

static char *rewritten(const uint8_t *data, size_t size)
{
    g_autoptr(JsonNode) json = hn_json_read((const char *)data, size, HN_JSON_BYTES, NULL, NULL);
    return hn_json_text(json);
}

static void one(const uint8_t *data, size_t size)
{
    const HnQuantOptions o = { .activations = HN_U8, .block = 32 };
    g_autoptr(HnQuantPlan) p = hn_quant_plan_new(&o), q = hn_quant_plan_new(&o);
    g_autofree char *before = hn_quant_plan_hash(p);
    const gboolean ok = apply((const char *)data, size, p);
    g_autofree char *after = hn_quant_plan_hash(p);
    if (!ok && strcmp(before, after) != 0)
        g_error("a table that was refused has changed the plan");
    if (!ok)
        return;
    g_autofree char *text = rewritten(data, size);
    if (!apply(text, strlen(text), q))
        g_error("a table that was written again cannot be read: %s", text);
    g_autofree char *again = hn_quant_plan_hash(q);
    if (strcmp(after, again) != 0)
        g_error("a table becomes another one when it is written again: %s", text);
}

const FuzzTarget fuzz_target = { .one = one, .mutate = fuzz_mutate_json, .times = 4 };
