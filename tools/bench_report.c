/* hone-bench: what was measured, as JSON, tables and remarks. */
#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"
#include "check/recipe.h"
#include "hone_bench.h"
#include "cli/report.h"
#include "noise_report.h"

#define INPUTS_WIDTH 60 /* characters of a line that lists inputs */

struct BenchReport {
    const Bench *b;
    JsonArray *runs, *compare, *baseline;
    gboolean measured;   /* any of the runs */
    gboolean has_device; /* with memory of its own, any of them */
    BenchPlot *plot;
    GArray *columns;                     /* HnColumn: of CSV */
    GPtrArray *paths;                    /* char *: theirs */
    GPtrArray *about, *compared, *notes; /* char *: lines before and after the tables */
};

/* --- JSON -------------------------------------------------------------------------------------------------------- */

BenchReport *bench_report_new(const Bench *b)
{
    BenchReport *r = g_new0(BenchReport, 1);
    r->b = b;
    r->runs = json_array_new();
    r->compare = json_array_new();
    r->baseline = json_array_new();
    g_autofree char *cpu = hn_cpu_model(NULL), *models = g_strjoinv(", ", b->labels);
    g_autofree char *about = g_strdup_printf("%s on %s (%s)", models, cpu, hn_cpu_isa_name(hn_cpu_isa()));
    r->plot = bench_plot_new(about);
    r->about = g_ptr_array_new_with_free_func(g_free);
    r->compared = g_ptr_array_new_with_free_func(g_free);
    r->notes = g_ptr_array_new_with_free_func(g_free);
    return r;
}

void bench_report_free(BenchReport *r)
{
    if (!r)
        return;
    json_array_unref(r->runs);
    json_array_unref(r->compare);
    json_array_unref(r->baseline);
    bench_plot_free(r->plot);
    if (r->columns)
        g_array_unref(r->columns);
    if (r->paths)
        g_ptr_array_unref(r->paths);
    g_ptr_array_unref(r->about);
    g_ptr_array_unref(r->compared);
    g_ptr_array_unref(r->notes);
    g_free(r);
}

static JsonObject *object(JsonObject *parent, const char *name)
{
    JsonObject *o = json_object_new();
    json_object_set_object_member(parent, name, o);
    return o;
}

/* A byte or event count; null where it is not known. */
static void set_count(JsonObject *o, const char *name, gint64 n, gboolean known)
{
    hn_json_set_count(o, name, known ? n : -1);
}

static void add_inputs(const Subject *s, JsonObject *row)
{
    JsonObject *shapes = object(row, "shapes"), *data = object(row, "data");
    const HnSample *set = s->sets[0];
    for (int i = 0; i < set->n; i++) {
        const char *name = s->names[i];
        if (!set->in[i]) {
            json_object_set_null_member(shapes, name);
            continue;
        }
        JsonArray *dims = json_array_new();
        for (int k = 0; k < set->in[i]->ndim; k++)
            json_array_add_int_element(dims, set->in[i]->dims[k]);
        json_object_set_array_member(shapes, name, dims);
    }
    json_object_set_string_member(data, "source", hn_data_source(s->data));
    json_object_set_boolean_member(data, "synthetic", hn_data_synthetic(s->data));
    json_object_set_int_member(data, "samples", hn_data_count(s->data));
    json_object_set_int_member(data, "used", s->n_sets);
    json_object_set_boolean_member(data, "shapes_vary", s->vary);
}

static void add_phases(const Subject *s, JsonObject *row)
{
    static const char *const names[BENCH_PHASES] = { "read", "parse", "optimize", "prepare", "first_run" };
    JsonObject *phases = object(row, "phases_ms");
    double total = 0;
    for (int i = 0; i < BENCH_PHASES; i++) {
        json_object_set_double_member(phases, names[i], s->phases[i]);
        total += isnan(s->phases[i]) ? 0 : s->phases[i];
    }
    json_object_set_double_member(phases, "total", total);
}

static void add_latency(const Subject *s, JsonObject *row)
{
    if (!s->has_measured) {
        json_object_set_null_member(row, "stop");
        json_object_set_null_member(row, "latency_ms");
        return;
    }
    const HnStats *t = &s->measured.ms;
    JsonObject *latency = object(row, "latency_ms");
    JsonArray *interval = json_array_new();
    json_object_set_string_member(row, "stop", hn_stop_name(s->measured.stop));
    json_object_set_int_member(latency, "n", (gint64)s->measured.runs);
    const struct {
        const char *name;
        double ms;
    } all[] = { { "mean", s->measured.busy * 1e3 / (double)s->measured.runs },
                { "stddev", t->stddev },
                { "min", t->min },
                { "p50", t->p50 },
                { "p90", t->p90 },
                { "p95", t->p95 },
                { "p99", t->p99 },
                { "max", t->max } };
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++)
        json_object_set_double_member(latency, all[i].name, all[i].ms);
    json_array_add_double_element(interval, t->lo);
    json_array_add_double_element(interval, t->hi);
    json_object_set_array_member(latency, "ci95", interval);
}

static double samples_per_s(const Subject *s)
{
    const HnMeasured *m = &s->measured;
    double samples = 0;
    for (guint k = 0; k < s->n_sets; k++)
        samples += (double)(m->runs / s->n_sets + (k < m->runs % s->n_sets)) * (double)subject_batch(s, k);
    return samples / m->wall;
}

static void add_throughput(const Subject *s, JsonObject *row)
{
    const HnMeasured *m = &s->measured;
    if (!s->has_measured) {
        json_object_set_null_member(row, "throughput");
        return;
    }
    JsonObject *throughput = object(row, "throughput");
    json_object_set_double_member(throughput, "samples_per_s", s->throughput);
    json_object_set_double_member(throughput, "batches_per_s", (double)m->runs / m->wall);
}

static void add_memory(const Subject *s, JsonObject *row)
{
    JsonObject *memory = object(row, "memory_bytes");
    set_count(memory, "peak_rss", (gint64)s->peak_rss, s->peak_rss > 0);
    set_count(memory, "private", (gint64)s->opened, s->before > 0);
    set_count(memory, "private_running", (gint64)s->running, s->before > 0 && s->has_warmed);
    json_object_set_int_member(memory, "arena", (gint64)s->stats.arena_bytes);
    json_object_set_int_member(memory, "outputs", (gint64)s->stats.output_bytes);
    json_object_set_int_member(memory, "weights", (gint64)hn_model_weight_bytes(s->model));
    json_object_set_int_member(memory, "packed", (gint64)s->stats.packed_bytes);
    json_object_set_int_member(memory, "file", (gint64)s->model->file_bytes);
    set_count(memory, "trained", (gint64)s->state_bytes, s->training != NULL);
    JsonObject *steps = object(row, "steps");
    json_object_set_int_member(steps, "all", s->stats.steps);
    json_object_set_int_member(steps, "ref", s->stats.ref_steps);
}

static void add_warmup(const Subject *s, JsonObject *row)
{
    if (!s->has_warmed) {
        json_object_set_null_member(row, "warmup");
        return;
    }
    JsonObject *warmup = object(row, "warmup");
    json_object_set_int_member(warmup, "runs", (gint64)s->warmed.runs);
    json_object_set_double_member(warmup, "ms", s->warmed.ms);
    if (s->b->warmup.kind == HN_WARMUP_AUTO)
        json_object_set_boolean_member(warmup, "steady", s->warmed.steady);
    else
        json_object_set_null_member(warmup, "steady");
}

static void add_noise(const Subject *s, JsonObject *row)
{
    if (s->has_measured)
        hn_report_noise(&s->noise, row);
    else
        json_object_set_null_member(row, "noise");
    if (s->has_outliers && s->has_measured)
        hn_report_outliers(&s->outliers, row);
    else
        json_object_set_null_member(row, "outliers");
}

/* --- text -------------------------------------------------------------------------------------------------------- */

static void note(BenchReport *r, const Subject *s, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void note(BenchReport *r, const Subject *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    gboolean several = bench_sides(r->b) > 1 || r->b->points->len > 1;
    g_ptr_array_add(r->notes, g_strconcat(several ? s->label : "", several ? ": " : "", text, NULL));
}

static void note_noise(BenchReport *r, const Subject *s)
{
    g_autofree char *noise = hn_noise_line(&s->noise);
    g_autofree char *outliers = s->has_outliers ? hn_outliers_line(&s->outliers, s->measured.runs) : NULL;
    g_autofree char *device = hn_device_noise_line(&s->device_noise);
    if (device)
        note(r, s, "%s", device);
    if (noise)
        note(r, s, "%s", noise);
    if (outliers)
        note(r, s, "%s", outliers);
}

/* What the numbers in the tables leave out. */
static void add_notes(BenchReport *r, const Subject *s)
{
    const HnStats *t = &s->measured.ms;
    if (s->has_warmed && s->b->warmup.kind == HN_WARMUP_AUTO && !s->warmed.steady)
        note(r, s, "the times had not settled when the warm-up ended");
    gboolean alone = bench_sides(r->b) == 1 || s->streams > 1;
    if (s->has_measured && alone && s->measured.stop == HN_STOP_LIMIT && isfinite(t->hi)) {
        g_autofree char *wide = hn_text_percent(MAX(t->hi - t->p50, t->p50 - t->lo) / t->p50);
        note(r, s, "after %d s the interval still reaches %s from the median", BENCH_LIMIT_S, wide);
    }
    if (s->has_measured && !isfinite(t->hi))
        note(r, s, "a 95 %% interval takes %d runs", HN_MIN_INTERVAL);
    if (s->has_measured) {
        note_noise(r, s);
    }
    if (s->has_measured && s->measured.stop == HN_STOP_INTERRUPTED)
        note(r, s, "interrupted: these are the runs until then");
    g_autofree char *beyond = bench_device_line(s);
    if (beyond)
        note(r, s, "%s", beyond);
    if (s->has_device && s->device_noise.after.emulated)
        note(r, s, "the device is emulated: times say nothing about a real one");
    if (!s->backend->computes)
        note(r, s, "the null device computes nothing: there is no latency");
    else if (s->stats.ref_steps)
        note(r, s, "%u of %u steps run on slow reference kernels; -v names them", s->stats.ref_steps, s->stats.steps);
}

/* "mnist-8/model.onnx: Input3 f32[1,1,28,28]; random data" */
static void add_about(BenchReport *r, const Subject *s)
{
    const HnSample *set = s->sets[0];
    g_autoptr(GString) text = g_string_new(NULL);
    for (int i = 0; i < set->n; i++) {
        g_autofree char *type = set->in[i] ? hn_tensor_describe(set->in[i]) : g_strdup("none");
        g_autofree char *one = g_strdup_printf("%s%s %s", i ? ", " : "", s->names[i], type);
        if (i && text->len + strlen(one) > INPUTS_WIDTH) {
            g_string_append(text, ", ...");
            break;
        }
        g_string_append(text, one);
    }
    const char *source = hn_data_source(s->data);
    g_autofree char *data = hn_data_synthetic(s->data) ? g_strdup("random data")
                            : source                   ? g_strdup_printf("data %s", source)
                                                       : g_strdup("given data");
    g_autofree char *samples = s->n_sets > 1 ? g_strdup_printf(", %u samples in turn", s->n_sets) : g_strdup("");
    g_ptr_array_add(r->about, g_strdup_printf("%s: %s%s%s%s%s", s->label, text->str, s->vary ? ", other shapes" : "",
                                              text->len ? "; " : "", data, samples));
}

/* Of the model's file, where somebody will read it: it takes some time for a large one. NULL: not known. */
static const char *hash_of(const BenchReport *r, const Subject *s)
{
    Bench *b = s->b;
    const HnCommon *c = &r->b->ctx->common;
    char **hash = &b->hash[s->number];
    if (*hash == NULL && (c->json || c->report || c->format != HN_FORMAT_TABLE || b->baseline))
        *hash = hn_recipe_hash_model(s->path, s->folder ? NULL : s->bytes, b->ctx->budget, NULL);
    return *hash;
}

static void add_swept(const Subject *s, JsonObject *row)
{
    JsonObject *swept = object(row, "swept");
    for (guint i = 0; i < s->point->swept->len; i++) {
        const Swept *x = &g_array_index(s->point->swept, Swept, i);
        if (x->is_number)
            json_object_set_int_member(swept, x->name, g_ascii_strtoll(x->text, NULL, 10));
        else
            json_object_set_string_member(swept, x->name, x->text);
    }
}

static void set_times(JsonObject *row, const char *name, const double *ms, gsize n)
{
    JsonArray *all = json_array_new();
    for (gsize i = 0; i < n; i++)
        json_array_add_double_element(all, ms[i]);
    json_object_set_array_member(row, name, all);
}

static void add_times(const Subject *s, JsonObject *row)
{
    if (s->n_rounds > 0)
        set_times(row, "instances_ms", s->round_ms, s->n_rounds);
    if (s->has_measured && s->measured.raw)
        set_times(row, "times_ms", s->measured.raw, s->measured.ms.n);
}

JsonObject *bench_report_last(const BenchReport *r)
{
    return json_array_get_object_element(r->runs, json_array_get_length(r->runs) - 1);
}

JsonNode *bench_report_env(const BenchReport *r)
{
    g_autoptr(HnReport) report =
        hn_report_new(r->b->ctx, "hone.bench/1", &(HnReportEnv){ .onednn = hn_tool_onednn(r->b->backend) });
    return json_node_init_object(json_node_alloc(), hn_report_root(report));
}

void bench_report_baseline(BenchReport *r, JsonObject *row, const char *line)
{
    json_array_add_object_element(r->baseline, row);
    g_ptr_array_add(r->compared, g_strdup(line));
}

void bench_report_add(BenchReport *r, Subject *s)
{
    static const char *const io[] = { "reuse", "copy", "fresh", "device" };
    if (s->has_measured)
        s->throughput = samples_per_s(s);
    JsonObject *row = json_object_new();
    json_object_set_string_member(row, "model", s->path);
    json_object_set_string_member(row, "name", s->label);
    json_object_set_string_member(row, "mode", s->training ? "train" : "run");
    add_inputs(s, row);
    json_object_set_int_member(row, "threads", s->point->threads);
    json_object_set_int_member(row, "streams", s->streams);
    json_object_set_string_member(row, "device", s->backend->name);
    json_object_set_string_member(row, "precision", s->point->precision);
    json_object_set_string_member(row, "io", io[s->point->io]);
    json_object_set_string_member(row, "model_hash", hash_of(r, s));
    add_swept(s, row);
    add_times(s, row);
    add_phases(s, row);
    add_warmup(s, row);
    add_latency(s, row);
    add_throughput(s, row);
    add_memory(s, row);
    add_noise(s, row);
    bench_report_device(s, row);
    if (s->training)
        bench_report_training(s, row);
    json_array_add_object_element(r->runs, row);
    add_about(r, s);
    add_notes(r, s);
    r->measured = r->measured || s->has_measured;
    r->has_device = r->has_device || s->has_device;
    if (s->has_measured)
        bench_plot_add(r->plot, s);
}

void bench_report_compare(BenchReport *r, const Subject *a, const Subject *b, const HnEffect *e, guint rounds)
{
    JsonObject *row = json_object_new();
    JsonArray *interval = json_array_new();
    json_object_set_string_member(row, "a", a->path);
    json_object_set_string_member(row, "b", b->path);
    json_object_set_string_member(row, "name_a", a->label);
    json_object_set_string_member(row, "name_b", b->label);
    json_object_set_double_member(row, "effect", e->effect);
    json_array_add_double_element(interval, e->lo);
    json_array_add_double_element(interval, e->hi);
    json_object_set_array_member(row, "ci95", interval);
    json_object_set_string_member(row, "verdict", hn_verdict_name(e->verdict));
    json_object_set_double_member(row, "margin", a->b->margin);
    json_object_set_int_member(row, "instances", rounds);
    json_array_add_object_element(r->compare, row);

    /* "new.onnx against old.onnx: slower, +5.1 % (95 %: +4.6 to +5.9; 12 instances)" */
    g_autofree char *within = isfinite(e->lo)
                                  ? g_strdup_printf("95 %%: %+.1f to %+.1f; ", (e->lo - 1) * 100, (e->hi - 1) * 100)
                                  : g_strdup("");
    g_ptr_array_add(r->compared, g_strdup_printf("%s against %s: %s, %+.1f %% (%s%u instances)", b->label, a->label,
                                                 hn_verdict_name(e->verdict), (e->effect - 1) * 100, within, rounds));
}

static const HnColumn latency_columns[] = {
    { "name", "latency", HN_COL_TEXT },           { "latency_ms.n", "runs", HN_COL_INT },
    { "latency_ms.p50", "median", HN_COL_MS },    { "latency_ms.ci95.0", "95 % from", HN_COL_MS },
    { "latency_ms.ci95.1", "to", HN_COL_MS },     { "latency_ms.mean", "mean", HN_COL_MS },
    { "latency_ms.stddev", "stddev", HN_COL_MS }, { 0 },
};

static const HnColumn train_columns[] = {
    { "name", "training", HN_COL_TEXT },
    { "train.forward_ms", "forward", HN_COL_MS },
    { "train.backward_ms", "backward", HN_COL_MS },
    { "train.update_ms", "update", HN_COL_MS },
    { "train.weights", "weights", HN_COL_INT },
    { "train.elements", "elements", HN_COL_INT },
    { "memory_bytes.trained", "with state", HN_COL_BYTES },
    { "train.losses.0", "first loss", HN_COL_NUMBER },
    { "train.last_loss", "last", HN_COL_NUMBER },
    { 0 },
};

static const HnColumn tail_columns[] = {
    { "name", "tail", HN_COL_TEXT },
    { "latency_ms.min", "min", HN_COL_MS },
    { "latency_ms.p90", "p90", HN_COL_MS },
    { "latency_ms.p95", "p95", HN_COL_MS },
    { "latency_ms.p99", "p99", HN_COL_MS },
    { "latency_ms.max", "max", HN_COL_MS },
    { "throughput.samples_per_s", "samples/s", HN_COL_NUMBER },
    { 0 },
};

static const HnColumn phase_columns[] = {
    { "name", "start", HN_COL_TEXT },
    { "phases_ms.read", "read", HN_COL_MS },
    { "phases_ms.parse", "parse", HN_COL_MS },
    { "phases_ms.optimize", "optimize", HN_COL_MS },
    { "phases_ms.prepare", "prepare", HN_COL_MS },
    { "phases_ms.first_run", "first run", HN_COL_MS },
    { "phases_ms.total", "total", HN_COL_MS },
    { 0 },
};

static const HnColumn memory_columns[] = {
    { "name", "memory", HN_COL_TEXT },
    { "memory_bytes.file", "file", HN_COL_BYTES },
    { "memory_bytes.weights", "weights", HN_COL_BYTES },
    { "memory_bytes.packed", "packed", HN_COL_BYTES },
    { "memory_bytes.arena", "arena", HN_COL_BYTES },
    { "memory_bytes.private", "private", HN_COL_BYTES },
    { "memory_bytes.peak_rss", "peak RSS", HN_COL_BYTES },
    { 0 },
};

static const HnColumn device_columns[] = {
    { "name", "on the device", HN_COL_TEXT },
    { "gpu.times_ms.wall", "wall", HN_COL_MS },
    { "gpu.times_ms.kernels", "kernels", HN_COL_MS },
    { "gpu.times_ms.upload", "copies in", HN_COL_MS },
    { "gpu.times_ms.download", "copies out", HN_COL_MS },
    { "gpu.times_ms.gaps", "gaps", HN_COL_MS },
    { "gpu.times_ms.host", "host alone", HN_COL_MS },
    { 0 },
};

static const HnColumn device_memory_columns[] = {
    { "name", "its memory", HN_COL_TEXT },
    { "gpu.memory_bytes.arena", "arena", HN_COL_BYTES },
    { "gpu.memory_bytes.weights", "weights", HN_COL_BYTES },
    { "gpu.memory_bytes.planned", "planned", HN_COL_BYTES },
    { "gpu.memory_bytes.allocated", "allocated", HN_COL_BYTES },
    { "gpu.memory_bytes.context", "context", HN_COL_BYTES },
    { 0 },
};

/* Of CSV: all numbers of a run. */
// clang-format off
#define NUMBER(key) { key, key, HN_COL_NUMBER }
static const HnColumn all_columns[] = {
    { "model", "model", HN_COL_TEXT }, { "device", "device", HN_COL_TEXT }, NUMBER("threads"),
    NUMBER("streams"), { "name", "name", HN_COL_TEXT },
    NUMBER("latency_ms.n"), NUMBER("latency_ms.mean"), NUMBER("latency_ms.stddev"), NUMBER("latency_ms.min"),
    NUMBER("latency_ms.p50"), NUMBER("latency_ms.p90"), NUMBER("latency_ms.p95"), NUMBER("latency_ms.p99"),
    NUMBER("latency_ms.max"), NUMBER("latency_ms.ci95.0"), NUMBER("latency_ms.ci95.1"),
    NUMBER("throughput.samples_per_s"), NUMBER("throughput.batches_per_s"), NUMBER("phases_ms.read"),
    NUMBER("phases_ms.parse"), NUMBER("phases_ms.optimize"), NUMBER("phases_ms.prepare"),
    NUMBER("phases_ms.first_run"), NUMBER("phases_ms.total"), NUMBER("memory_bytes.file"),
    NUMBER("memory_bytes.weights"), NUMBER("memory_bytes.packed"), NUMBER("memory_bytes.arena"),
    NUMBER("memory_bytes.outputs"), NUMBER("memory_bytes.private"), NUMBER("memory_bytes.private_running"),
    NUMBER("memory_bytes.peak_rss"), NUMBER("gpu.times_ms.kernels"), NUMBER("gpu.times_ms.upload"),
    NUMBER("gpu.times_ms.download"), NUMBER("gpu.times_ms.gaps"), NUMBER("gpu.times_ms.host"),
    NUMBER("gpu.memory_bytes.planned"), NUMBER("gpu.memory_bytes.allocated"), { 0 },
};
// clang-format on

/* What the text says before the tables: the machine, and what is measured. */
static void report_about(BenchReport *report, HnReport *r, const char *engine)
{
    const GArray *threads = report->b->ctx->common.thread_list;
    g_autofree char *cpu = hn_cpu_model(NULL);
    g_autoptr(GString) counts = g_string_new(NULL);
    for (guint i = 0; i < threads->len; i++)
        g_string_append_printf(counts, "%s%" G_GINT64_FORMAT, i ? ", " : "", g_array_index(threads, gint64, i));
    hn_report_line(r, "%s, %s, %s thread%s%s%s", cpu, hn_cpu_isa_name(hn_cpu_isa()), counts->str,
                   strcmp(counts->str, "1") ? "s" : "", engine ? ", " : "", engine ? engine : "");
    for (guint i = 0; i < report->about->len; i++)
        hn_report_line(r, "%s", (char *)report->about->pdata[i]);
}

/* A column for each value that is swept, and all numbers. */
static const HnColumn *csv_columns(BenchReport *report)
{
    const Point *point = report->b->points->pdata[0];
    report->columns = g_array_new(TRUE, TRUE, sizeof(HnColumn));
    report->paths = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < point->swept->len; i++) {
        char *path = g_strconcat("swept.", g_array_index(point->swept, Swept, i).name, NULL);
        const HnColumn column = { path, path, HN_COL_NUMBER };
        g_ptr_array_add(report->paths, path);
        g_array_append_val(report->columns, column);
    }
    for (const HnColumn *c = all_columns; c->key; c++)
        g_array_append_vals(report->columns, c, 1);
    return (const HnColumn *)(gpointer)report->columns->data;
}

static void report_best(BenchReport *report, HnReport *r)
{
    JsonArray *best = bench_best(report->runs);
    json_object_set_array_member(hn_report_root(r), "best", best);
    if (json_array_get_length(best) > 0)
        hn_report_section(r, "Best batch");
    for (guint i = 0; i < json_array_get_length(best); i++) {
        JsonObject *o = json_array_get_object_element(best, i);
        const gint64 most = json_object_get_int_member(o, "best"), knee = json_object_get_int_member(o, "knee");
        g_autofree char *rate = hn_text_number(json_object_get_double_member(o, "samples_per_s"));
        g_autofree char *part = hn_text_percent(json_object_get_double_member(o, "knee_part"));
        const char *dim = json_object_get_string_member(o, "dim"), *of = json_object_get_string_member(o, "of");
        g_autofree char *less =
            knee == most ? g_strdup("") : g_strdup_printf("; %s=%" G_GINT64_FORMAT " has %s of them", dim, knee, part);
        hn_report_line(r, "%s: most samples/s at %s=%" G_GINT64_FORMAT " (%s)%s", of, dim, most, rate, less);
    }
}

static void report_tables(BenchReport *report, HnReport *r)
{
    static const struct {
        const char *title;
        const HnColumn *columns;
        gboolean of_times;
    } tables[] = { { "Latency", latency_columns, TRUE },
                   { "Tail and throughput", tail_columns, TRUE },
                   { "Start", phase_columns, FALSE },
                   { "Memory", memory_columns, FALSE } };
    for (gsize i = 0; i < G_N_ELEMENTS(tables); i++) {
        if (tables[i].of_times && !report->measured)
            continue;
        hn_report_section(r, tables[i].title);
        hn_report_table(r, "runs", tables[i].columns);
        if (i == 1)
            bench_plot_report(report->plot, r);
    }
    if (report->has_device) {
        hn_report_section(r, "Device");
        hn_report_table(r, "runs", device_columns);
        hn_report_table(r, "runs", device_memory_columns);
    }
    if (report->b->p->training.train && report->measured) {
        hn_report_section(r, "Training");
        hn_report_table(r, "runs", train_columns);
    }
    hn_report_csv_table(r, "runs", csv_columns(report));
}

static void report_lines(HnReport *r, const char *title, const GPtrArray *lines)
{
    if (lines->len)
        hn_report_section(r, title);
    for (guint i = 0; i < lines->len; i++)
        hn_report_line(r, "%s", (char *)lines->pdata[i]);
}

gboolean bench_report_rows(const Bench *b, const char *name, JsonArray *rows, const HnColumn *columns,
                           const char *notes, GError **error)
{
    static const char *const others[] = { "runs", "compare", "baseline", "best" };
    if (json_array_get_length(rows) == 0)
        return TRUE;
    g_autoptr(HnReport) r =
        hn_report_new(b->ctx, "hone.bench/1", &(HnReportEnv){ .onednn = hn_tool_onednn(b->backend) });
    JsonObject *root = hn_report_root(r);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        json_object_set_array_member(root, others[i], json_array_new());
    json_object_set_array_member(root, name, json_array_ref(rows));
    hn_report_table(r, name, columns);
    g_auto(GStrv) lines = g_strsplit(notes, "\n", -1);
    if (*notes)
        hn_report_section(r, "Remarks");
    for (char **line = lines; *line; line++)
        if (**line)
            hn_report_line(r, "%s", *line);
    return hn_report_write(r, error);
}

gboolean bench_report_write(BenchReport *report, GError **error)
{
    const Bench *b = report->b;
    if (json_array_get_length(report->runs) == 0)
        return TRUE;
    const char *engine = b->backend->describe ? b->backend->describe() : NULL;
    g_autoptr(HnReport) r =
        hn_report_new(b->ctx, "hone.bench/1", &(HnReportEnv){ .onednn = hn_tool_onednn(b->backend) });
    JsonObject *root = hn_report_root(r);
    json_object_set_array_member(root, "runs", json_array_ref(report->runs));
    json_object_set_array_member(root, "compare", json_array_ref(report->compare));
    report_about(report, r, engine);
    json_object_set_array_member(root, "baseline", json_array_ref(report->baseline));
    report_tables(report, r);
    report_best(report, r);
    report_lines(r, "Comparison", report->compared);
    report_lines(r, "Remarks", report->notes);
    return hn_report_write(r, error) && (!b->p->plot || bench_plot_write(report->plot, b->p->plot, error));
}
