/* hone-quantize: what went into a result, as hashes and options; the same run, the same text. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "check/recipe.h"
#include "quant/plan_file.h"
#include "hone_quantize.h"

/* --- hashes ------------------------------------------------------------------------------------------------------- */

static char *data_hash(const Quantize *q, GError **error)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    const int64_t all = q->held_first + q->held;
    for (int64_t i = 0; i < all; i++) {
        g_autoptr(HnSample) s = hn_data_load(q->data, i, error);
        if (s == NULL)
            return NULL;
        for (int k = 0; k < s->n; k++)
            if (s->in[k] != NULL)
                hn_recipe_hash_tensor(sum, s->in[k]);
        if (s->label != NULL)
            hn_recipe_hash_tensor(sum, s->label);
    }
    return g_strdup(g_checksum_get_string(sum));
}

gboolean quantize_take_hashes(Quantize *q, GError **error)
{
    return (q->model_hash = hn_recipe_hash_model(q->path, q->file, q->ctx->budget, error)) != NULL &&
           (q->data_hash = data_hash(q, error)) != NULL;
}

/* --- the recipe --------------------------------------------------------------------------------------------------- */

JsonObject *quantize_options_json(const Quantize *q)
{
    return hn_recorded_json(&quantize_recorded, q->p, q->ctx->common.seed);
}

/* Forms that differ from what the options say: what measuring chose. NULL: none. */
static JsonObject *chosen_forms(const Quantize *q)
{
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(q->f32);
    JsonObject *forms = json_object_new();
    for (guint i = 0; i < nodes->len; i++) {
        const HnQuantForm form = hn_quant_plan_form(q->search.plan, nodes->pdata[i]);
        if (form != hn_quant_plan_form(q->base, nodes->pdata[i]))
            json_object_set_string_member(forms, hn_quant_name(nodes->pdata[i]), hn_quant_form_name(form));
    }
    if (json_object_get_size(forms) == 0)
        g_clear_pointer(&forms, json_object_unref);
    return forms;
}

static void set_number(JsonObject *o, const char *name, double x)
{
    if (isfinite(x))
        json_object_set_double_member(o, name, x);
    else
        json_object_set_null_member(o, name);
}

/* What the program said, and not which one it was. Of an older recipe, which did, the words are kept: that the same
 * bytes come of it. */
static void add_program(const Quantize *q, JsonObject *recipe, JsonObject *options)
{
    const char *older = hn_json_string_at(hn_json_object_at(q->recipe, "options"), "metric");
    JsonObject *numbers = json_object_new();
    HnScore original;
    hn_scorer_original(q->scorer, &original);
    set_number(numbers, "original", original.command);
    set_number(numbers, "made", q->made_number);
    if (older == NULL || strcmp(older, "cmd") == 0) {
        json_object_set_object_member(recipe, "cmd", numbers);
        return;
    }
    json_object_set_string_member(options, "metric", older);
    json_object_unref(numbers);
}

void quantize_write_recipe(const Quantize *q)
{
    JsonObject *o = json_object_new(), *options = quantize_options_json(q);
    g_autofree char *plan = hn_quant_plan_hash(q->search.plan);
    json_object_set_string_member(o, "target", q->p->target != NULL ? q->p->target : "any");
    json_object_set_string_member(o, "input", q->model_hash);
    json_object_set_string_member(o, "calibration", q->p->calib != NULL ? q->data_hash : NULL);
    json_object_set_string_member(o, "plan", plan);
    if (q->command != NULL)
        add_program(q, o, options);
    JsonObject *forms = chosen_forms(q);
    if (forms != NULL)
        json_object_set_object_member(o, "forms", forms);
    if (q->search.refined || (q->fixed != NULL && json_object_has_member(q->recipe, "refined")))
        json_object_set_boolean_member(o, "refined", TRUE);
    hn_recipe_write(q->result, QUANTIZE_TOOL, options, o);
    hn_model_set_metadata(q->result, HN_SPEED_ONLY, q->p->speed_only ? "true" : NULL);
}
