/* hone-quantize: the model, the nodes of it that may be quantized, and samples for it. */
#include <string.h>

#include "base/file.h"
#include "base/nearest.h"
#include "base/regex.h"
#include "data/distinct.h"
#include "ir/copy.h"
#include "ir/sparse.h"
#include "op/infer.h"
#include "onnx/onnx.h"
#include "quant/prepare.h"
#include "hone_quantize.h"

#define KEPT_BYTES ((gsize)32 << 20) /* of samples, which each trial looks at */

HnModel *quantize_open_prepared(gpointer data, GError **error)
{
    const Quantize *q = data;
    g_autoptr(HnModel) m = hn_model_copy(q->prepared);
    return hn_graph_infer(m->graph, FALSE, error) ? g_steal_pointer(&m) : NULL;
}

/* The model as it was given. */
HnModel *quantize_open_given(const Quantize *q, GError **error)
{
    /* the first time, files of weights are compared with their checksums */
    const HnOnnxOptions o = { .budget = q->ctx->budget, .verify_data = q->prepared == NULL };
    return q->file != NULL ? hn_onnx_read_bytes(q->file, NULL, &o, error) : hn_onnx_read_file(q->path, &o, error);
}

gboolean quantize_prepare(Quantize *q, GError **error)
{
    if (!strcmp(q->path, "-") && (!hn_context_take_stdin(q->ctx, "the model", error) ||
                                  (q->file = hn_stdin_bytes(q->ctx->budget, error)) == NULL))
        return FALSE;
    HnModel *m = quantize_open_given(q, error);
    if (m == NULL || !hn_tool_has_outputs(m, q->path, error) || hn_model_store_dense(m, q->ctx->budget, error) < 0) {
        hn_model_free(m);
        return FALSE;
    }
    q->file_before = m->file_bytes;
    const int64_t opset = q->form == HN_FORM_W4 ? 21 : 13;
    q->prepared = hn_quant_prepare(m, opset, q->ctx->budget, &q->ctx->progress, error);
    return q->prepared != NULL && (q->f32 = quantize_open_prepared(q, error)) != NULL;
}

/* NULL with the option's name before the reason. */
static HnRegex *regex_of(const char *option, const char *pattern, GError **error)
{
    HnRegex *r = hn_regex_new(pattern, error);
    if (r == NULL)
        g_prefix_error(error, "option '%s': ", option);
    return r;
}

/* Its name or its first output. */
static gboolean matches(const char *option, HnRegex *regex, const HnNode *n, gboolean *found, GError **error)
{
    if (hn_regex_find(regex, hn_node_label(n), found, error) &&
        (*found || hn_regex_find(regex, hn_quant_name(n), found, error)))
        return TRUE;
    g_prefix_error(error, "option '%s': ", option);
    return FALSE;
}

/* USAGE: an option that names nodes names none; the nearest names, of nodes and of their first outputs, or operators.
 */
static gboolean names_none(const char *option, const char *asked, const GPtrArray *nodes, gboolean ops, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        g_ptr_array_add(names, (gpointer)(ops ? n->op_type : hn_node_label(n)));
        if (!ops)
            g_ptr_array_add(names, (gpointer)hn_quant_name(n));
    }
    g_ptr_array_add(names, NULL);
    g_autofree char *words = hn_nearest_words(asked, (const char *const *)names->pdata);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '%s': no node with weights %s '%s'%s", option,
                ops ? "is a" : "matches", asked, words);
    return FALSE;
}

static gboolean has_op(const GPtrArray *nodes, const char *op)
{
    for (guint i = 0; i < nodes->len; i++)
        if (!strcmp(((const HnNode *)nodes->pdata[i])->op_type, op))
            return TRUE;
    return FALSE;
}

/* Some operator of --only-ops is that of a node, and each of them is one: a list may serve several models. */
static gboolean check_ops(char *const *ops, const GPtrArray *nodes, GError **error)
{
    gboolean found = FALSE;
    for (char *const *op = ops; *op != NULL; op++) {
        const gboolean here = has_op(nodes, *op);
        found = found || here;
        if (!here && hn_op_find("", *op) == NULL)
            return names_none("--only-ops", *op, nodes, TRUE, error);
    }
    return found || names_none("--only-ops", ops[0] != NULL ? ops[0] : "", nodes, TRUE, error);
}

/* Every node that may be quantized is, unless the user says otherwise. */
static gboolean set_forms(Quantize *q, const GPtrArray *nodes, const HnQuantOptions *o, GError **error)
{
    g_autoptr(HnRegex) exclude = NULL;
    g_auto(GStrv) ops = q->p->only_ops != NULL ? g_strsplit(q->p->only_ops, ",", -1) : NULL;
    guint n_out = 0;
    if (q->p->exclude != NULL && (exclude = regex_of("--exclude", q->p->exclude, error)) == NULL)
        return FALSE;
    if (ops != NULL && q->recipe == NULL && !check_ops(ops, nodes, error))
        return FALSE;
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *n = nodes->pdata[i];
        gboolean out = FALSE;
        if (exclude != NULL && !matches("--exclude", exclude, n, &out, error))
            return FALSE;
        n_out += out;
        if (!out && (ops == NULL || g_strv_contains((const char *const *)ops, n->op_type)))
            hn_quant_plan_set_form(q->base, hn_quant_name(n), hn_quant_form_fit(n, q->form, o));
    }
    return exclude == NULL || q->recipe != NULL || n_out > 0 ||
           names_none("--exclude", q->p->exclude, nodes, FALSE, error);
}

/* One --set. */
static gboolean set_form(Quantize *q, const char *text, const GPtrArray *nodes, const HnQuantOptions *o, GError **error)
{
    const char *equals = strrchr(text, '=');
    g_autofree char *pattern = equals != NULL ? g_strndup(text, (gsize)(equals - text)) : NULL;
    HnQuantForm form;
    guint n = 0;
    if (equals == NULL || !hn_quant_form_parse(equals + 1, &form)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "option '--set': '%s' is no REGEX=FORM with a form of f32, int8, dynamic, w8, w4", text);
        return FALSE;
    }
    g_autoptr(HnRegex) regex = regex_of("--set", pattern, error);
    if (regex == NULL)
        return FALSE;
    for (guint i = 0; i < nodes->len; i++) {
        const HnNode *node = nodes->pdata[i];
        const char *name = hn_quant_name(node);
        gboolean found;
        if (!matches("--set", regex, node, &found, error))
            return FALSE;
        if (!found)
            continue;
        hn_quant_plan_set_form(q->base, name, hn_quant_form_fit(node, form, o));
        g_hash_table_add(q->pinned, g_strdup(name));
        n++;
    }
    return n > 0 || names_none("--set", pattern, nodes, FALSE, error);
}

/* Holds integers that stand for floats, or computes with them. */
static void count_quantized(HnNode *n, gpointer data)
{
    static const char *const names[] = {
        "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulNBits", "QGemm", NULL
    };
    guint *count = data;
    *count += g_strv_contains(names, n->op_type) || g_str_has_prefix(n->op_type, "QLinear") ||
              g_str_has_suffix(n->op_type, "Integer");
}

/* Some node is left that may be quantized: GUARD where none is; a warning where others are quantized already. */
static gboolean check_candidates(Quantize *q, const GPtrArray *nodes, GError **error)
{
    guint quantized = 0;
    hn_graph_foreach_node(q->f32->graph, count_quantized, &quantized);
    if (nodes->len == 0 && quantized > 0)
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD,
                    "the model is already quantized: %u of its nodes make integers of floats, or read such integers, "
                    "and no other has weights",
                    quantized);
    else if (nodes->len == 0)
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "the model has no node whose weights could be quantized");
    else if (quantized > 0)
        hn_context_warn(q->ctx, "the model is already quantized in part: what is, stays as it is");
    return nodes->len > 0;
}

gboolean quantize_base_plan(Quantize *q, GError **error)
{
    HnQuantOptions o;
    if (!quantize_parse_options(q, &o, error))
        return FALSE;
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(q->f32);
    if (!check_candidates(q, nodes, error))
        return FALSE;
    q->pinned = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (q->p->plan != NULL) {
        if (!quantize_read_plan(q, &o, nodes, error))
            return FALSE;
    } else {
        q->base = hn_quant_plan_new(&o);
        if (!set_forms(q, nodes, &o, error))
            return FALSE;
    }
    for (char **set = q->p->set; set != NULL && *set != NULL; set++)
        if (!set_form(q, *set, nodes, &o, error))
            return FALSE;
    if (g_hash_table_size(q->base->forms) == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_GUARD, "the model has no node whose weights could be quantized");
        return FALSE;
    }
    return TRUE;
}

/* --- data --------------------------------------------------------------------------------------------------------- */

gboolean quantize_open_data(Quantize *q, GError **error)
{
    const QuantizeParams *p = q->p;
    const char *source = p->calib != NULL ? p->calib : "random:8";
    HnToolDataParams from = p->from;
    int64_t copies;
    from.keep = q->ctx->common.mem_limit > 0 ? 0 : KEPT_BYTES;
    q->all = hn_tool_open_samples(q->ctx, q->f32, p->input, &from, q->path, source, q->shapes, error);
    if (q->all == NULL || (q->data = hn_data_distinct(q->all, p->samples, &copies, error)) == NULL)
        return FALSE;
    hn_tool_warn_copies(q->ctx, source, copies);
    const int64_t all = hn_data_count(q->data);
    q->held = all < 8 ? all : MAX(all / 4, 2); /* too few to be split: they serve for both */
    q->held_first = all - q->held;
    q->calib = all < 8 ? all : q->held_first;
    if (all == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "'%s' holds no samples", source);
        return FALSE;
    }
    if (q->backend->memory == NULL)
        return TRUE;
    g_autoptr(HnSample) one = hn_data_load(q->data, 0, error);
    if (one != NULL)
        hn_tool_note_device(q->ctx, q->f32, q->backend, one->in);
    return one != NULL;
}
