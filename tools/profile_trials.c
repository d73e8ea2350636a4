/* hone-profile: other forms of the model, made in memory as other tools make files of them. */
#include <string.h>

#include "base/cpu.h"
#include "check/calibrate.h"
#include "export/export.h"
#include "ir/copy.h"
#include "ir/sparse.h"
#include "op/infer.h"
#include "onnx/onnx.h"
#include "profile_advice.h"
#include "prune/count.h"
#include "prune/ready.h"
#include "prune/widths.h"
#include "quant/int8_partition.h"
#include "quant/prepare.h"
#include "quant/qdq.h"
#include "quant/table.h"

#define OPSET 13           /* the least that 8-bit forms need */
#define BLOCK 32           /* hone-quantize's */
#define CALIBRATED 4       /* samples that ranges come from */
#define TIMING_SECONDS 0.3 /* for the times of all nodes in one form */
#define SLOW_MS 300        /* a run of this length is too long for that */
#define BATCH 8
#define RATIO 0.3 /* of the channels that go */
#define BOUND 0.1 /* part of the time at the limit of a memory, from which on fewer bytes are worth a trial */
#define NEAR 0.5  /* of the roofline: is limited by it */
#define EXPORT_LEVEL 2

HnModel *profile_read_plain(const Profiling *f, GError **error)
{
    return hn_onnx_read_file(f->path, &(HnOnnxOptions){ .budget = f->ctx->budget }, error);
}

/* HnExportOptions.open */
static HnModel *open_plain(gpointer data, GError **error)
{
    return profile_read_plain(data, error);
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

/* "mnist-8" of "mnist-8.onnx" */
static char *stem(const Profiling *f)
{
    const gsize n = strlen(f->label) - (g_str_has_suffix(f->label, ".onnx") ? strlen(".onnx") : 0);
    g_autofree char *name = g_strndup(f->label, n);
    return g_strdelimit(g_steal_pointer(&name), " '\"\\/", '_');
}

static void add_list(GString *text, const char *option, char **list)
{
    for (char **x = list; x != NULL && *x != NULL; x++) {
        g_autofree char *quoted = g_shell_quote(*x);
        g_string_append_printf(text, " %s %s", option, quoted);
    }
}

/* "hone-quantize m.onnx --mode weights -o m.w8.onnx": `options` with what was said about data and threads; suffix NULL:
 * writes no file. */
static char *command(const Profiling *f, const char *tool, const char *options, gboolean sized, const char *suffix)
{
    g_autofree char *name = stem(f);
    GString *text = g_string_new(tool);
    g_string_append_printf(text, " %s%s%s", f->quoted, *options ? " " : "", options);
    if (sized) {
        add_list(text, "--dim", f->p->dim);
        add_list(text, "--shapes", f->p->shapes);
    }
    if (f->ctx->common.threads != hn_cpu_threads(NULL))
        g_string_append_printf(text, " -t %d", f->ctx->common.threads);
    if (suffix != NULL)
        g_string_append_printf(text, " -o %s.%s.onnx", name, suffix);
    return g_string_free(text, FALSE);
}

/* What the tool needs to decide with: the samples, or a model for measuring speed only. */
static char *with_data(const Profiling *f, const char *option)
{
    if (f->p->data == NULL || hn_data_synthetic(f->data) || !strcmp(f->p->data, "-"))
        return g_strdup_printf("--speed-only%s%s", *option ? " " : "", option);
    g_autofree char *quoted = g_shell_quote(f->p->data);
    return g_strdup_printf("--calib %s%s%s", quoted, *option ? " " : "", option);
}

/* --- export ------------------------------------------------------------------------------------------------------- */

static gboolean export_to(Profiling *f, ProfileTrial *t, HnDtype to, GError **error)
{
    HnContext *ctx = f->ctx;
    const HnExportOptions o = {
        .open = open_plain,
        .data = f,
        .pass = { .level = EXPORT_LEVEL,
                  .fold_bytes = HN_FOLD_BYTES,
                  .budget = ctx->budget,
                  .progress = &ctx->progress },
        .to = to,
        .keep_io = to != HN_UNDEFINED,
        .file_bytes = to == HN_UNDEFINED ? f->model->file_bytes : 0,
        .growth = HN_GROWTH_GOES,
        .threads = ctx->common.threads,
        .backend = f->backend,
        .progress = &ctx->progress,
    };
    HnExported x;
    const gboolean ok = hn_export(&o, NULL, &x, error);
    if (ok) {
        t->what = to == HN_UNDEFINED ? g_strdup_printf("%u rewrites", x.log.made->len)
                                     : g_strdup("weights of 16 bits, computed in f32");
        t->model = g_steal_pointer(&x.model);
    }
    hn_exported_clear(&x);
    return ok;
}

static gboolean make_export(Profiling *f, ProfileTrial *t, GError **error)
{
    if (!export_to(f, t, HN_UNDEFINED, error))
        return FALSE;
    t->command = command(f, "hone-export", "", FALSE, "export");
    return TRUE;
}

static gboolean waits_for_bytes(const Profiling *f)
{
    return profile_share_at(f, HN_BOUND_MEMORY, NEAR) + profile_share_at(f, HN_BOUND_CACHE, NEAR) >= BOUND;
}

static gboolean make_bf16(Profiling *f, ProfileTrial *t, GError **error)
{
    if (!waits_for_bytes(f))
        return TRUE;
    if (!export_to(f, t, HN_BF16, error))
        return FALSE;
    t->command = command(f, "hone-export", "--to bf16 --keep-io", FALSE, "bf16");
    return TRUE;
}

/* --- quantize ----------------------------------------------------------------------------------------------------- */

/* A model ready for plans, and the nodes of it that may have another form. */
typedef struct {
    HnModel *prepared;
    HnQuantPlan *plan;
    guint nodes;
} Base;

static HnModel *fresh(const Base *b, GError **error)
{
    g_autoptr(HnModel) m = hn_model_copy(b->prepared);
    return hn_graph_infer(m->graph, FALSE, error) ? g_steal_pointer(&m) : NULL;
}

static gboolean open_base(Profiling *f, HnQuantForm form, Base *b, GError **error)
{
    const HnQuantOptions o = { .activations = HN_U8, .reduced = TRUE, .block = BLOCK };
    HnModel *given = profile_read_plain(f, error);
    if (given == NULL || hn_model_store_dense(given, f->ctx->budget, error) < 0) {
        hn_model_free(given);
        return FALSE;
    }
    b->prepared = hn_quant_prepare(given, OPSET, f->ctx->budget, &f->ctx->progress, error);
    g_autoptr(HnModel) m = b->prepared != NULL ? fresh(b, error) : NULL;
    if (m == NULL)
        return FALSE;
    g_autoptr(GPtrArray) nodes = hn_quant_candidates(m);
    b->plan = hn_quant_plan_new(&o);
    b->nodes = nodes->len;
    for (guint i = 0; i < nodes->len; i++)
        hn_quant_plan_set_form(b->plan, hn_quant_name(nodes->pdata[i]), hn_quant_form_fit(nodes->pdata[i], form, &o));
    return TRUE;
}

static void base_clear(Base *b)
{
    hn_model_free(b->prepared);
    hn_quant_plan_free(b->plan);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Base, base_clear)

static HnModel *build(const Profiling *f, const Base *b, const HnQuantPlan *p, GError **error)
{
    HnQuantLog log;
    g_autoptr(HnModel) m = fresh(b, error);
    if (m == NULL)
        return NULL;
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(p);
    hn_quant_spread(spread, m);
    return hn_quant_apply(spread, m, f->ctx->budget, &log, error) ? g_steal_pointer(&m) : NULL;
}

static gboolean find_spans(Profiling *f, Base *b, GError **error)
{
    const HnQuantizer quantizer = hn_quantizer_of(&b->plan->o);
    g_autoptr(HnModel) m = fresh(b, error);
    if (m == NULL)
        return FALSE;
    g_autoptr(HnQuantPlan) spread = hn_quant_plan_copy(b->plan);
    hn_quant_spread(spread, m);
    g_autoptr(GPtrArray) values = hn_quant_wanted(spread, m), names = g_ptr_array_new();
    for (guint i = 0; i < values->len; i++)
        g_ptr_array_add(names, ((const HnValue *)values->pdata[i])->name);
    g_ptr_array_add(names, NULL);
    const HnCalibrateOptions o = { .values = (const char *const *)names->pdata,
                                   .threads = f->ctx->common.threads,
                                   .budget = f->ctx->budget,
                                   .progress = &f->ctx->progress };
    g_autoptr(HnCalibrator) c = hn_calibrator_new(m, f->backend, &o, error);
    if (c == NULL || !hn_calibrator_prepare(c, f->sets[0]->in, NULL, error))
        return FALSE;
    for (guint k = 0; k < MIN(f->n_sets, CALIBRATED); k++)
        if (!hn_calibrator_run(c, f->sets[k]->in, error))
            return FALSE;
    for (guint i = 0; i < values->len; i++) {
        const HnValue *v = values->pdata[i];
        HnQuantSpan span = { 0, 0 };
        if (v->producer == NULL || v->producer->op == NULL || !hn_quant_span_fixed(v->producer, &span))
            hn_calib_span(c, v->name, HN_CALIB_MINMAX, 0, &quantizer, &span);
        hn_quant_plan_set_span(b->plan, v->name, span.lo, span.hi);
    }
    return TRUE;
}

static HnNodeTimes *time_of(Profiling *f, HnModel *m, GError **error)
{
    const HnTimingOptions o = { .backend = f->backend,
                                .threads = f->ctx->common.threads,
                                .in = f->sets[0]->in,
                                .seconds = TIMING_SECONDS,
                                .budget = f->ctx->budget,
                                .progress = &f->ctx->progress };
    return m != NULL ? hn_node_times_measure(m, &o, error) : NULL;
}

/* Without what floats compute faster, conversions at the borders included, by times of nodes in both forms. */
static gboolean leave_slow(Profiling *f, Base *b, GError **error)
{
    g_autoptr(HnModel) plain = fresh(b, error), whole = plain != NULL ? build(f, b, b->plan, error) : NULL,
                       m = whole != NULL ? fresh(b, error) : NULL;
    g_autoptr(HnNodeTimes) floats = m != NULL ? time_of(f, plain, error) : NULL,
                           integers = floats != NULL ? time_of(f, whole, error) : NULL;
    if (integers == NULL)
        return FALSE;
    const HnPartitionOptions o = { .f32 = floats, .integers = integers };
    HnQuantPlan *p = hn_partition_choose(b->plan, m, &o);
    hn_quant_plan_free(b->plan);
    b->plan = p;
    return TRUE;
}

static guint count_forms(const HnQuantPlan *p)
{
    GHashTableIter iter;
    gpointer form;
    guint n = 0;
    g_hash_table_iter_init(&iter, p->forms);
    while (g_hash_table_iter_next(&iter, NULL, &form))
        n += GPOINTER_TO_INT(form) != HN_FORM_F32;
    return n;
}

static gboolean make_int8(Profiling *f, ProfileTrial *t, GError **error)
{
    g_auto(Base) b = { 0 };
    if (!open_base(f, HN_FORM_INT8, &b, error))
        return FALSE;
    if (b.nodes == 0)
        return TRUE;
    if (!find_spans(f, &b, error) || (f->profile.unprofiled_ms < SLOW_MS && !leave_slow(f, &b, error)))
        return FALSE;
    const guint n = count_forms(b.plan);
    if (n == 0)
        return TRUE;
    g_autofree char *options = with_data(f, "");
    t->model = build(f, &b, b.plan, error);
    t->what = g_strdup_printf("8-bit integers in %u of %u nodes with weights", n, b.nodes);
    t->command = command(f, "hone-quantize", options, TRUE, "int8");
    return t->model != NULL;
}

static gboolean make_weights(Profiling *f, ProfileTrial *t, GError **error)
{
    g_auto(Base) b = { 0 };
    if (!waits_for_bytes(f))
        return TRUE;
    if (!open_base(f, HN_FORM_W8, &b, error))
        return FALSE;
    const guint n = count_forms(b.plan);
    if (n == 0)
        return TRUE;
    t->model = build(f, &b, b.plan, error);
    t->what = g_strdup_printf("8-bit weights in %u of %u nodes with weights", n, b.nodes);
    t->command = command(f, "hone-quantize", "--mode weights", TRUE, "w8");
    return t->model != NULL;
}

/* --- prune -------------------------------------------------------------------------------------------------------- */

static gboolean make_pruned(Profiling *f, ProfileTrial *t, GError **error)
{
    HnContext *ctx = f->ctx;
    const HnPruneOptions o = {
        .backend = f->backend, .threads = ctx->common.threads, .budget = ctx->budget, .progress = &ctx->progress
    };
    g_autoptr(HnModel) m = profile_read_plain(f, error);
    if (m == NULL || !hn_prune_ready(m, ctx->budget, &ctx->progress, error))
        return FALSE;
    g_autoptr(HnPruneMap) map = hn_prune_map_new(m, ctx->budget, error);
    if (map == NULL)
        return FALSE;
    if (map->classes->len == 0)
        return TRUE;
    g_autofree int *keep = g_new(int, map->classes->len + 1u);
    hn_prune_uniform(map, RATIO, hn_cpu_isa() >= HN_ISA_AVX512 ? 16 : 8, keep);
    g_autofree char *options = with_data(f, "--ratio 0.3");
    t->model = hn_prune_narrow(map, &o, keep, error);
    t->what = g_strdup_printf("0.3 of the channels of %u classes gone", map->classes->len);
    t->command = command(f, "hone-prune", options, TRUE, "pruned");
    return t->model != NULL;
}

/* --- the same model ----------------------------------------------------------------------------------------------- */

static gboolean make_threads(Profiling *f, ProfileTrial *t, G_GNUC_UNUSED GError **error)
{
    const int all = hn_cpu_threads(NULL), now = f->ctx->common.threads;
    if (all == 1 && now == 1)
        return TRUE;
    t->threads = now > 1 ? 1 : all;
    g_autofree char *name = g_strdup_printf("hone-bench %s -t %d", f->quoted, t->threads);
    GString *text = g_string_new(name);
    add_list(text, "--dim", f->p->dim);
    add_list(text, "--shapes", f->p->shapes);
    t->command = g_string_free(text, FALSE);
    t->what = g_strdup_printf("%d thread%s instead of %d", t->threads, t->threads == 1 ? "" : "s", now);
    return TRUE;
}

/* The symbol that is the first dimension of an input; NULL: none, or it is said what it is. */
static const char *batch_name(const Profiling *f)
{
    for (int i = 0; i < hn_session_n_inputs(f->session) && hn_data_synthetic(f->data); i++) {
        const HnType *t = hn_session_input(f->session, i)->type;
        const char *name = hn_type_is_tensor(t) && t->rank > 1 ? t->dims[0].sym : NULL;
        if (name != NULL && g_regex_match_simple("^[A-Za-z_][A-Za-z0-9_]*$", name, 0, 0))
            return f->p->dim == NULL && f->p->shapes == NULL && f->given.names->len == 0 ? name : NULL;
    }
    return NULL;
}

static HnSample *batch_sample(Profiling *f, const char *size, GError **error)
{
    const char *dims[] = { size, NULL };
    int n;
    g_autoptr(HnShapes) shapes = hn_tool_shapes((char **)dims, NULL, error);
    g_autofree HnValue **inputs = hn_tool_session_inputs(f->session, &n);
    if (shapes == NULL)
        return NULL;
    const HnDataOptions o = { .budget = f->ctx->budget, .seed = f->ctx->common.seed, .shapes = shapes };
    g_autoptr(HnData) d = hn_tool_open_data(f->ctx, &f->p->from, f->path, "random", inputs, n, &o, error);
    return d != NULL ? hn_data_load(d, 0, error) : NULL;
}

static gboolean make_batch(Profiling *f, ProfileTrial *t, GError **error)
{
    const char *name = batch_name(f);
    if (name == NULL)
        return TRUE;
    g_autofree char *size = g_strdup_printf("%s=%d", name, BATCH), *options = g_strdup_printf("--dim %s", size);
    t->sample = batch_sample(f, size, error);
    t->samples = BATCH;
    t->what = g_strdup_printf("%d samples in a run", BATCH);
    t->command = command(f, "hone-bench", options, FALSE, NULL);
    return t->sample != NULL;
}

const ProfileIdea profile_ideas[] = {
    { "export", make_export }, { "int8", make_int8 },       { "weights", make_weights }, { "bf16", make_bf16 },
    { "prune", make_pruned },  { "threads", make_threads }, { "batch", make_batch },     { 0 },
};
