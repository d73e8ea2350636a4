/* hone-profile: what was measured, as JSON, tables and remarks. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/text.h"
#include "cli/report.h"
#include "perf/blocks.h"
#include "hone_profile.h"
#include "noise_report.h"

#define NEAR_LIMIT 0.5 /* part of the roofline from which on a node is taken to be at its limit */
#define ALIVE_SHOWN 5
#define WEIGHTS_SHOWN 20
#define TYPES_SHOWN 8
#define BLOCKS_SHOWN 8
#define SMALL_MS 0.02
#define NEARLY_ALL 0.8 /* of a sum, by one of its rows */
#define ALL 0.95       /* of the time: a block that takes as much is no part of the model */
#define SUM_RULE 0.02  /* by which nodes and outside may miss the unprofiled median */

typedef struct {
    Profiling *f;
    HnReport *report;
    JsonObject *root;
    JsonArray *bottlenecks;
    GPtrArray *order;  /* HnProfileRow *, longest first */
    GPtrArray *blocks; /* HnProfileBlock * */
    double total;      /* ms of a run: nodes and outside */
    double agreement;  /* of that with the unprofiled median: 1 is all of it */
    char *model;       /* as on a command line */
    const char *open;  /* a free dimension that --dim can name; NULL: none */
} Report;

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

/* --- sums ------------------------------------------------------------------------------------------------- */

/* Of rows with one key. */
typedef struct {
    const char *name, *op;
    const char *inside; /* of a block: the one around it; else NULL */
    guint nodes;
    double calls, ms, flops, bytes, limit_ms, spread;
    double largest; /* ms of its longest row */
} Sum;

static const char *all_operators(const HnProfileRow *row)
{
    return row->op;
}

/* "Conv" of "Conv+Relu" */
static const char *main_operator(const HnProfileRow *row)
{
    return row->node ? row->node->op_type : row->op;
}

static void add_row(Sum *s, const HnProfileRow *row)
{
    s->nodes += row->place != HN_ROW_REST;
    s->calls += row->per_run;
    s->ms += row->ms;
    s->spread += row->spread;
    s->flops += row->known ? row->flops * row->per_run : 0;
    s->bytes += row->known ? row->bytes * row->per_run : 0;
    s->limit_ms += isnan(row->limit_ms) ? 0 : row->limit_ms;
    s->largest = fmax(s->largest, row->ms);
}

static gint longer_sum_first(gconstpointer a, gconstpointer b)
{
    double x = ((const Sum *)a)->ms, y = ((const Sum *)b)->ms;
    return (x < y) - (x > y);
}

static GArray *sum_by(const Report *r, const char *(*key)(const HnProfileRow *row))
{
    GArray *sums = g_array_new(FALSE, TRUE, sizeof(Sum));
    for (guint i = 0; i < r->order->len; i++) {
        const HnProfileRow *row = r->order->pdata[i];
        guint k = 0;
        while (k < sums->len && strcmp(g_array_index(sums, Sum, k).op, key(row)))
            k++;
        if (k == sums->len)
            g_array_set_size(sums, k + 1);
        Sum *s = &g_array_index(sums, Sum, k);
        s->name = s->op = key(row);
        add_row(s, row);
    }
    g_array_sort(sums, longer_sum_first);
    return sums;
}

static Sum sum_block(const HnProfileBlock *b)
{
    Sum s = { .name = b->name, .op = "block" };
    for (guint i = 0; i < b->rows->len; i++)
        add_row(&s, b->rows->pdata[i]);
    return s;
}

/* key: what the name is of */
static JsonObject *sum_object(const Report *r, const Sum *s, const char *key)
{
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, key, s->name);
    json_object_set_int_member(o, "nodes", s->nodes);
    json_object_set_double_member(o, "calls", s->calls);
    json_object_set_double_member(o, "ms", s->ms);
    json_object_set_double_member(o, "spread", ratio(s->spread, s->ms));
    json_object_set_double_member(o, "share", ratio(s->ms, r->total));
    json_object_set_double_member(o, "flops", s->flops);
    json_object_set_double_member(o, "bytes", s->bytes);
    json_object_set_double_member(o, "gflop_per_s", ratio(s->flops, s->ms * 1e6));
    json_object_set_double_member(o, "gb_per_s", ratio(s->bytes, s->ms * 1e6));
    json_object_set_double_member(o, "limit_ms", s->limit_ms);
    json_object_set_double_member(o, "of_limit", ratio(s->limit_ms, s->ms));
    return o;
}

/* --- bottlenecks ------------------------------------------------------------------------------------------- */

static const char *open_dim(const Profiling *f)
{
    for (int i = 0; i < hn_session_n_inputs(f->session) && hn_data_synthetic(f->data); i++) {
        const HnType *t = hn_session_input(f->session, i)->type;
        for (int k = 0; hn_type_is_tensor(t) && k < t->rank; k++)
            if (t->dims[k].sym && g_regex_match_simple("^[A-Za-z_][A-Za-z0-9_]*$", t->dims[k].sym, 0, 0))
                return t->dims[k].sym;
    }
    return NULL;
}

static char *command(const Report *r, const char *format, ...) G_GNUC_PRINTF(2, 3);

static char *command(const Report *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *options = g_strdup_vprintf(format, args);
    va_end(args);
    return g_strdup_printf("hone-profile %s %s", options, r->model);
}

/* More work at a time makes what each call costs matter less. */
static char *try_larger(const Report *r)
{
    return r->open ? command(r, "--dim %s=8", r->open) : command(r, "--trace trace.json");
}

static gboolean has_bodies(const HnProfileRow *row)
{
    return row->node && row->node->op && (row->node->op->flags & HN_OP_CONTROL) != 0;
}

static const char *at_limit(HnBound bound)
{
    return bound == HN_BOUND_COMPUTE  ? "near what the processor can compute"
           : bound == HN_BOUND_MEMORY ? "near what the memory can move"
                                      : "near what the caches can move";
}

/* What may help where the machine is the limit. */
static char *try_threads(const Report *r)
{
    if (profile_on_device(r->f))
        return try_larger(r);
    const int threads = r->f->roofline.threads, all = hn_cpu_threads(NULL);
    return threads < all ? command(r, "--threads %d", all) : command(r, "--weights");
}

/* Why a node takes so long, as far as one can see from here, and what to try (g_free). */
static const char *diagnose(const Report *r, const HnProfileRow *row, char **try)
{
    if (has_bodies(row)) {
        *try = command(r, "--folded stacks.txt");
        return "runs sub-graphs, whose nodes have rows of their own";
    }
    if (profile_diagnose_device(row)) {
        *try = try_larger(r);
        return profile_diagnose_device(row);
    }
    if (!row->node) {
        *try = command(r, "-v --top 0");
        return "a change of layout between kernels that want different ones";
    }
    if (!row->kernel) {
        *try = command(r, "-v --top 0");
        return "runs on its reference kernel";
    }
    if (ratio(row->limit_ms, row->ms) >= NEAR_LIMIT) {
        *try = try_threads(r);
        return row->place == HN_ROW_DEVICE ? "near what the device can do" : at_limit(row->bound);
    }
    if (row->ms < SMALL_MS * fmax(row->per_run, 1)) {
        *try = try_larger(r);
        return row->place == HN_ROW_DEVICE ? "too little work to keep the device busy"
                                           : "too little work to keep the processor busy";
    }
    *try =
        row->place == HN_ROW_HOST && r->f->roofline.threads > 1 ? command(r, "--threads 1") : command(r, "-v --top 0");
    return row->place == HN_ROW_DEVICE ? "far from what the device can do" : "far from what the machine can do";
}

static char *share_text(double share)
{
    return g_strdup_printf("%.0f %%", share * 100);
}

static void add_bottleneck(Report *r, const char *kind, const char *name, const char *op, double ms, const char *why,
                           char *try)
{
    JsonObject *o = json_object_new();
    json_object_set_string_member(o, "kind", kind);
    json_object_set_string_member(o, "name", name);
    json_object_set_string_member(o, "op", op);
    json_object_set_double_member(o, "share", ratio(ms, r->total));
    json_object_set_string_member(o, "why", why);
    json_object_set_string_member(o, "try", try);
    json_array_add_object_element(r->bottlenecks, o);
    g_free(try);
}

static gboolean is_bottleneck(const Report *r, double ms)
{
    return ratio(ms, r->total) > BOTTLENECK;
}

/* What many nodes together are due to. Of those that one node makes up nearly all by itself that one is told of. */
static void check_sum(Report *r, const char *kind, const Sum *s)
{
    if (!is_bottleneck(r, s->ms) || s->nodes < 2 || s->largest > NEARLY_ALL * s->ms)
        return;
    const double part = ratio(s->limit_ms, s->ms);
    const char *how = part >= NEAR_LIMIT                     ? "together near what the machine can do"
                      : s->ms < SMALL_MS * fmax(s->calls, 1) ? "with too little work each to keep the processor busy"
                                                             : "together far from what the machine can do";
    char *try = part >= NEAR_LIMIT                     ? try_threads(r)
                : s->ms < SMALL_MS * fmax(s->calls, 1) ? try_larger(r)
                                                       : command(r, "-v --top 0");
    g_autofree char *why = g_strdup_printf("%u nodes, %s", s->nodes, how);
    add_bottleneck(r, kind, s->name, s->op, s->ms, why, try);
}

/* Operators, whatever is computed along with them. */
static void check_types(Report *r)
{
    g_autoptr(GArray) sums = sum_by(r, main_operator);
    for (guint i = 0; i < sums->len; i++)
        check_sum(r, "type", &g_array_index(sums, Sum, i));
}

/* Blocks of which no part by itself takes that long. What is nearly all of the model is no part of it. */
static void check_blocks(Report *r)
{
    const guint n = r->blocks->len;
    g_autofree Sum *sums = g_new0(Sum, n + 1);
    g_autofree gboolean *outer = g_new0(gboolean, n + 1);
    for (guint i = n; i > 0; i--) { /* those inside come behind those around them */
        const HnProfileBlock *b = r->blocks->pdata[i - 1];
        sums[i - 1] = sum_block(b);
        if (b->parent >= 0 && is_bottleneck(r, sums[i - 1].ms))
            outer[b->parent] = TRUE;
    }
    for (guint i = 0; i < n; i++)
        if (!outer[i] && sums[i].ms < ALL * r->total)
            check_sum(r, "block", &sums[i]);
}

static void find_bottlenecks(Report *r)
{
    const HnProfile *p = &r->f->profile;
    for (guint i = 0; i < r->order->len; i++) {
        const HnProfileRow *row = r->order->pdata[i];
        char *try = NULL;
        if (!is_bottleneck(r, row->ms))
            break;
        const char *why = diagnose(r, row, &try);
        add_bottleneck(r, "node", row->name, row->op, row->ms, why, try);
    }
    check_types(r);
    check_blocks(r);
    if (is_bottleneck(r, p->outside_ms))
        add_bottleneck(r, "outside", "outside nodes", "outside", p->outside_ms,
                       "binding inputs and handing out results: the nodes have little to do", try_larger(r));
}

/* --- nodes and types --------------------------------------------------------------------------------------- */

static void set_known(JsonObject *o, const char *name, double x, gboolean known)
{
    json_object_set_double_member(o, name, known ? x : NAN);
}

static void add_refusals(const HnProfileRow *row, JsonObject *o)
{
    JsonArray *list = json_array_new();
    for (guint i = 0; i + 1 < row->refusals->len; i += 2) {
        JsonObject *one = json_object_new();
        json_object_set_string_member(one, "kernel", row->refusals->pdata[i]);
        json_object_set_string_member(one, "reason", row->refusals->pdata[i + 1]);
        json_array_add_object_element(list, one);
    }
    json_object_set_array_member(o, "refused", list);
}

static JsonArray *types_array(char **types)
{
    JsonArray *list = json_array_new();
    for (char **t = types; t != NULL && *t != NULL; t++)
        json_array_add_string_element(list, *t);
    return list;
}

/* "1x64x56x56" of "f32[1,64,56,56]", "i64 3x2" of "i64[3,2]", "scalar"; g_free. */
static char *short_type(const char *type)
{
    const char *open = strchr(type, '[');
    if (open == NULL)
        return g_strdup(type);
    g_autofree char *dims = g_strndup(open + 1, strlen(open + 1) - 1);
    g_strdelimit(dims, ",", 'x');
    const gboolean plain = g_str_has_prefix(type, "f32[");
    return g_strdup_printf("%.*s%s%s", plain ? 0 : (int)(open - type), type, plain ? "" : " ", *dims ? dims : "scalar");
}

/* "1x3x224x224 > 1x64x112x112": the first input and output, f32 where nothing is said; NULL: not known */
static char *shape_text(const HnProfileRow *row)
{
    if (row->in == NULL || row->out == NULL || row->out[0] == NULL)
        return NULL;
    g_autofree char *in = row->in[0] != NULL ? short_type(row->in[0]) : g_strdup(""), *out = short_type(row->out[0]);
    return !strcmp(in, out) ? g_strdup(out) : g_strdup_printf("%s > %s", in, out);
}

/* "3", or "3-5" where it cannot be told apart from others. */
static char *rank_text(const HnProfileRow *row)
{
    return row->places.first == row->places.last ? g_strdup_printf("%u", row->places.first)
                                                 : g_strdup_printf("%u-%u", row->places.first, row->places.last);
}

static const char *kernel_name(const HnProfileRow *row)
{
    return row->place == HN_ROW_REST ? "-" : row->kernel ? row->kernel->name : "ref";
}

static JsonObject *node_object(const Report *r, const HnProfileRow *row, guint index)
{
    const HnProfile *p = &r->f->profile;
    JsonObject *o = json_object_new();
    const HnProfileRow *parent = row->parent >= 0 ? p->rows->pdata[row->parent] : NULL;
    g_autofree char *shape = shape_text(row), *rank = rank_text(row);
    json_object_set_string_member(o, "name", row->name);
    json_object_set_string_member(o, "op", row->op);
    json_object_set_string_member(o, "kernel", kernel_name(row));
    json_object_set_string_member(o, "place", hn_row_place_name(row->place));
    json_object_set_double_member(o, "kernels", (double)row->launches / (double)p->profiled.seen);
    json_object_set_array_member(o, "in", types_array(row->in));
    json_object_set_array_member(o, "out", types_array(row->out));
    json_object_set_string_member(o, "shape", shape);
    json_object_set_int_member(o, "index", index);
    json_object_set_string_member(o, "inside", parent ? parent->name : NULL);
    json_object_set_double_member(o, "calls", row->per_run);
    json_object_set_double_member(o, "ms", row->ms);
    json_object_set_double_member(o, "p10", row->p10);
    json_object_set_double_member(o, "p90", row->p90);
    json_object_set_double_member(o, "spread", ratio(row->spread, row->ms));
    json_object_set_double_member(o, "lo", row->lo);
    json_object_set_double_member(o, "hi", row->hi);
    json_object_set_string_member(o, "rank", rank);
    json_object_set_double_member(o, "level", row->level);
    json_object_set_double_member(o, "with_inner_ms", row->with_ms);
    json_object_set_double_member(o, "share", ratio(row->ms, r->total));
    set_known(o, "flops", row->flops * row->per_run, row->known);
    set_known(o, "bytes", row->bytes * row->per_run, row->known);
    json_object_set_double_member(o, "gflop_per_s", row->gflops);
    json_object_set_double_member(o, "gb_per_s", row->gbytes);
    json_object_set_double_member(o, "limit_ms", row->limit_ms);
    json_object_set_double_member(o, "of_limit", ratio(row->limit_ms, row->ms));
    json_object_set_string_member(o, "bound", hn_bound_name(row->bound));
    json_object_set_boolean_member(o, "bottleneck", is_bottleneck(r, row->ms));
    json_object_set_double_member(o, "error", row->error);
    add_refusals(row, o);
    return o;
}

static int longer_first(gconstpointer a, gconstpointer b)
{
    const HnProfileRow *x = *(HnProfileRow *const *)a, *y = *(HnProfileRow *const *)b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

static void add_nodes(Report *r)
{
    JsonArray *nodes = json_array_new();
    g_autoptr(GHashTable) index = g_hash_table_new(NULL, NULL);
    const GPtrArray *rows = r->f->profile.rows;
    for (guint i = 0; i < rows->len; i++) {
        g_ptr_array_add(r->order, rows->pdata[i]);
        g_hash_table_insert(index, rows->pdata[i], GUINT_TO_POINTER(i));
    }
    g_ptr_array_sort(r->order, longer_first);
    for (guint i = 0; i < r->order->len; i++) {
        const HnProfileRow *row = r->order->pdata[i];
        json_array_add_object_element(nodes, node_object(r, row, GPOINTER_TO_UINT(g_hash_table_lookup(index, row))));
    }
    json_object_set_array_member(r->root, "nodes", nodes);
}

static void add_types(Report *r)
{
    g_autoptr(GArray) types = sum_by(r, all_operators);
    JsonArray *list = json_array_new();
    for (guint i = 0; i < types->len; i++)
        json_array_add_object_element(list, sum_object(r, &g_array_index(types, Sum, i), "op"));
    json_object_set_array_member(r->root, "types", list);
}

static void add_blocks(Report *r)
{
    g_autoptr(GArray) sums = g_array_new(FALSE, TRUE, sizeof(Sum));
    JsonArray *list = json_array_new();
    for (guint i = 0; i < r->blocks->len; i++) {
        const HnProfileBlock *b = r->blocks->pdata[i];
        Sum s = sum_block(b);
        s.inside = b->parent >= 0 ? ((HnProfileBlock *)r->blocks->pdata[b->parent])->name : NULL;
        g_array_append_val(sums, s);
    }
    g_array_sort(sums, longer_sum_first);
    for (guint i = 0; i < sums->len; i++) {
        const Sum *s = &g_array_index(sums, Sum, i);
        JsonObject *o = sum_object(r, s, "block");
        json_object_set_string_member(o, "inside", s->inside);
        json_array_add_object_element(list, o);
    }
    json_object_set_array_member(r->root, "blocks", list);
}

/* --- the whole run ----------------------------------------------------------------------------------------- */

static void add_inputs(Report *r)
{
    const Profiling *f = r->f;
    JsonObject *shapes = json_object_new(), *data = json_object_new();
    for (int i = 0; i < f->sets[0]->n; i++) {
        const HnTensor *t = f->sets[0]->in[i];
        const char *name = hn_session_input(f->session, i)->name;
        JsonArray *dims = t ? json_array_new() : NULL;
        for (int k = 0; t && k < t->ndim; k++)
            json_array_add_int_element(dims, t->dims[k]);
        if (t)
            json_object_set_array_member(shapes, name, dims);
        else
            json_object_set_null_member(shapes, name);
    }
    json_object_set_string_member(data, "source", hn_data_source(f->data));
    json_object_set_boolean_member(data, "synthetic", hn_data_synthetic(f->data));
    json_object_set_int_member(data, "samples", hn_data_count(f->data));
    json_object_set_int_member(data, "used", f->n_sets);
    json_object_set_string_member(r->root, "model", f->path);
    json_object_set_object_member(r->root, "shapes", shapes);
    json_object_set_object_member(r->root, "data", data);
    json_object_set_int_member(r->root, "threads", f->ctx->common.threads);
    json_object_set_string_member(r->root, "device", f->ctx->common.device);
}

static gboolean adds_up(const Report *r)
{
    return fabs(r->agreement - 1) <= SUM_RULE;
}

static void add_noise(Report *r)
{
    const HnProfile *p = &r->f->profile;
    hn_report_noise(&r->f->noise, r->root);
    if (isfinite(p->outliers.limit_ns))
        hn_report_outliers(&p->outliers, r->root);
    else
        json_object_set_null_member(r->root, "outliers");
}

static void add_totals(Report *r)
{
    const HnProfile *p = &r->f->profile;
    const HnRoofline *roof = &r->f->roofline;
    JsonObject *outside = json_object_new(), *overhead = json_object_new(), *roofline = json_object_new();
    JsonArray *tiers = json_array_new();
    json_object_set_int_member(r->root, "runs", (gint64)p->profiled.seen);
    json_object_set_double_member(r->root, "total_ms", r->total);
    json_object_set_double_member(r->root, "nodes_ms", p->nodes_ms);
    json_object_set_double_member(r->root, "outside_ms", p->outside_ms);
    json_object_set_double_member(outside, "p10", p->outside_p10);
    json_object_set_double_member(outside, "p90", p->outside_p90);
    json_object_set_double_member(outside, "share", ratio(p->outside_ms, r->total));
    json_object_set_object_member(r->root, "outside", outside);
    json_object_set_double_member(r->root, "unprofiled_p50_ms", p->without.p50);
    json_object_set_double_member(r->root, "profiled_p50_ms", p->with.p50);
    json_object_set_double_member(r->root, "unprofiled_ms", p->unprofiled_ms);
    json_object_set_double_member(r->root, "agreement", r->agreement);
    json_object_set_boolean_member(r->root, "adds_up", adds_up(r));
    json_object_set_double_member(r->root, "disturbed_ms", p->disturbed_ms);
    json_object_set_int_member(r->root, "kinds", p->kinds);
    double steps = ratio(p->spans, (double)p->profiled.seen);
    json_object_set_double_member(overhead, "stamp_ns", p->ticks.stamp);
    json_object_set_double_member(overhead, "steps_per_run", steps);
    json_object_set_double_member(overhead, "stamps_ms", steps * p->ticks.stamp * 1e-6);
    json_object_set_double_member(overhead, "relative", p->overhead);
    json_object_set_boolean_member(overhead, "complete", p->timer.dropped == 0);
    json_object_set_object_member(r->root, "overhead", overhead);
    for (int k = 0; k < HN_ROOFLINE_TIERS; k++) {
        JsonObject *o = json_object_new();
        json_object_set_double_member(o, "bytes", roof->tiers[k].bytes);
        json_object_set_double_member(o, "gb_per_s", roof->tiers[k].bytes_per_s * 1e-9);
        json_array_add_object_element(tiers, o);
    }
    json_object_set_double_member(roofline, "gflop_per_s", roof->flops * 1e-9);
    json_object_set_double_member(roofline, "int8_gop_per_s", roof->int8_ops * 1e-9);
    json_object_set_array_member(roofline, "memory", tiers);
    json_object_set_boolean_member(roofline, "cached", roof->cached);
    json_object_set_object_member(r->root, "roofline", roofline);
}

/* --- text -------------------------------------------------------------------------------------------------- */

static const HnColumn type_columns[] = {
    { "op", "type", HN_COL_TEXT },
    { "nodes", "nodes", HN_COL_INT },
    { "ms", "time", HN_COL_MS },
    { "spread", "spread", HN_COL_PERCENT },
    { "share", "share", HN_COL_PERCENT },
    { "gflop_per_s", "GFLOP/s", HN_COL_NUMBER },
    { "gb_per_s", "GB/s", HN_COL_NUMBER },
    { "of_limit", "% of roofline", HN_COL_PERCENT },
    { 0 },
};

static const HnColumn block_columns[] = {
    { "block", "block", HN_COL_TEXT },
    { "nodes", "nodes", HN_COL_INT },
    { "ms", "time", HN_COL_MS },
    { "spread", "spread", HN_COL_PERCENT },
    { "share", "share", HN_COL_PERCENT },
    { "gflop_per_s", "GFLOP/s", HN_COL_NUMBER | HN_COL_MINOR },
    { "gb_per_s", "GB/s", HN_COL_NUMBER | HN_COL_MINOR },
    { "of_limit", "% of roofline", HN_COL_PERCENT },
    { 0 },
};

static const HnColumn node_columns[] = {
    { "rank", "rank", HN_COL_TEXT | HN_COL_MINOR },
    { "name", "node", HN_COL_TEXT },
    { "op", "type", HN_COL_TEXT },
    { "kernel", "kernel", HN_COL_TEXT },
    { "ms", "time", HN_COL_MS },
    { "spread", "+-", HN_COL_PERCENT | HN_COL_MINOR },
    { "share", "share", HN_COL_PERCENT },
    { "gflop_per_s", "GF/s", HN_COL_NUMBER | HN_COL_MINOR },
    { "gb_per_s", "GB/s", HN_COL_NUMBER | HN_COL_MINOR },
    { "of_limit", "roofline", HN_COL_PERCENT },
    { "shape", "shapes", HN_COL_TEXT | HN_COL_MINOR },
    { 0 },
};

static const HnColumn alive_columns[] = {
    { "name", "alive at the peak", HN_COL_TEXT }, { "type", "type", HN_COL_TEXT },    { "kind", "kind", HN_COL_TEXT },
    { "node", "made by", HN_COL_TEXT },           { "bytes", "bytes", HN_COL_BYTES }, { 0 },
};

static const HnColumn weight_columns[] = {
    { "name", "weight", HN_COL_TEXT },     { "type", "type", HN_COL_TEXT },
    { "bytes", "bytes", HN_COL_BYTES },    { "zeros", "zeros", HN_COL_PERCENT },
    { "min", "min", HN_COL_NUMBER },       { "max", "max", HN_COL_NUMBER },
    { "stddev", "stddev", HN_COL_NUMBER }, { "dead", "dead", HN_COL_INT },
    { "channels", "of", HN_COL_INT },      { 0 },
};

static const HnColumn train_columns[] = {
    { "name", "in training", HN_COL_TEXT },
    { "op", "type", HN_COL_TEXT },
    { "forward_ms", "forward", HN_COL_MS },
    { "backward_ms", "backward", HN_COL_MS },
    { 0 },
};

/* Of CSV: all numbers of a node. */
// clang-format off
#define NUMBER(key) { key, key, HN_COL_NUMBER }
static const HnColumn all_columns[] = {
    { "name", "name", HN_COL_TEXT }, { "op", "op", HN_COL_TEXT }, { "kernel", "kernel", HN_COL_TEXT },
    { "inside", "inside", HN_COL_TEXT }, NUMBER("index"), NUMBER("calls"), NUMBER("ms"), NUMBER("p10"), NUMBER("p90"),
    NUMBER("with_inner_ms"), NUMBER("share"), NUMBER("flops"), NUMBER("bytes"), NUMBER("gflop_per_s"),
    NUMBER("gb_per_s"), NUMBER("limit_ms"), NUMBER("of_limit"), { "shape", "shape", HN_COL_TEXT }, { 0 },
};
// clang-format on

static void head_lines(const Report *r)
{
    const Profiling *f = r->f;
    const HnProfile *p = &f->profile;
    const HnRoofline *roof = &f->roofline;
    g_autofree char *plain = hn_text_time(p->unprofiled_ms * 1e-3), *sum = hn_text_percent(r->agreement);
    g_autofree char *more = hn_text_percent(p->overhead);
    g_autofree char *flops = hn_text_number(roof->flops * 1e-9);
    g_autofree char *near = hn_text_number(roof->tiers[1].bytes_per_s * 1e-9);
    g_autofree char *far = hn_text_number(roof->tiers[HN_ROOFLINE_TIERS - 1].bytes_per_s * 1e-9);
    hn_report_line(r->report, "%s: %s data, %d thread%s, %" G_GUINT64_FORMAT " profiled runs", f->label,
                   hn_data_synthetic(f->data) ? "random" : "given", roof->threads, roof->threads > 1 ? "s" : "",
                   p->profiled.seen);
    hn_report_line(r->report, "a run takes %s (median, unprofiled); profiling adds %s", plain, more);
    if (adds_up(r))
        hn_report_line(r->report, "nodes and what is outside of them add up to %s of it", sum);
    else
        hn_report_line(r->report, "nodes and what is outside of them add up to %s of it, not to 98 %% to 102 %%: %s",
                       sum, r->agreement < 1 ? "see 'disturbed'" : "unprofiled runs met better conditions");
    hn_report_line(r->report, "machine: %s GFLOP/s; %s GB/s in caches, %s GB/s in memory%s", flops, near, far,
                   roof->cached ? "" : " (measured now)");
}

/* All nodes together. */
static void total_line(const Report *r)
{
    Sum all = { .name = "total" };
    for (guint i = 0; i < r->order->len; i++)
        add_row(&all, r->order->pdata[i]);
    g_autofree char *time = hn_text_time(all.ms * 1e-3), *flops = hn_text_number(all.flops),
                    *bytes = hn_text_size((guint64)all.bytes), *rate = hn_text_number(ratio(all.flops, all.ms * 1e6)),
                    *gb = hn_text_number(ratio(all.bytes, all.ms * 1e6)),
                    *part = hn_text_percent(ratio(all.limit_ms, all.ms));
    hn_report_line(r->report, "total: %u nodes, %s, %s operations, %s moved: %s GFLOP/s, %s GB/s, %s of roofline",
                   all.nodes, time, flops, bytes, rate, gb, part);
}

static void outside_line(const Report *r)
{
    const HnProfile *p = &r->f->profile;
    g_autofree char *time = hn_text_time(p->outside_ms * 1e-3);
    g_autofree char *share = hn_text_percent(ratio(p->outside_ms, r->total));
    guint top = r->f->p->top > 0 ? (guint)r->f->p->top : G_MAXUINT;
    if (r->order->len > top)
        hn_report_line(r->report, "(%u more nodes; --top 0 shows all)", r->order->len - top);
    hn_report_line(r->report, "outside nodes: %s, %s", time, share);
}

/* What runs take beyond the usual times of their nodes, and what the machine says of that. */
static void disturbed_lines(const Report *r)
{
    const HnProfile *p = &r->f->profile;
    g_autofree char *time = hn_text_time(p->disturbed_ms * 1e-3);
    g_autofree char *share = hn_text_percent(ratio(p->disturbed_ms, p->unprofiled_ms));
    g_autofree char *noise = hn_noise_line(&r->f->noise);
    g_autofree char *outliers = hn_outliers_line(&p->outliers, p->runs_made);
    hn_report_line(r->report, "disturbed: %s, %s of the median, in no node's usual time", time, share);
    if (noise)
        hn_report_line(r->report, "%s", noise);
    if (outliers)
        hn_report_line(r->report, "%s", outliers);
}

static void bottleneck_lines(const Report *r)
{
    for (guint i = 0; i < json_array_get_length(r->bottlenecks); i++) {
        JsonObject *o = json_array_get_object_element(r->bottlenecks, i);
        g_autofree char *share = share_text(json_object_get_double_member(o, "share"));
        const char *op = json_object_get_string_member(o, "op"), *name = json_object_get_string_member(o, "name");
        if (!strcmp(json_object_get_string_member(o, "kind"), "type"))
            hn_report_line(r->report, "bottleneck: all %s, %s of the time,", op, share);
        else
            hn_report_line(r->report, "bottleneck: %s '%s', %s of the time,", op, name, share);
        const gboolean try = !profile_helped(r->f); /* else there is better advice */
        hn_report_line(r->report, "  %s%s", json_object_get_string_member(o, "why"), try ? "; try:" : "");
        if (try)
            hn_report_line(r->report, "    %s", json_object_get_string_member(o, "try"));
    }
}

/* With -v: what other kernels have against the nodes in the table, and by how much a faster algorithm is wrong. */
static void refusal_lines(const Report *r)
{
    guint top = r->f->p->top > 0 ? (guint)r->f->p->top : G_MAXUINT;
    for (guint i = 0; r->f->ctx->common.verbose > 0 && i < MIN(r->order->len, top); i++) {
        const HnProfileRow *row = r->order->pdata[i];
        for (guint k = 0; k + 1 < row->refusals->len; k += 2)
            hn_report_line(r->report, "%s '%s' runs on %s, not %s: %s", row->op, row->name,
                           row->kernel ? row->kernel->name : "ref", (const char *)row->refusals->pdata[k],
                           (const char *)row->refusals->pdata[k + 1]);
        if (!isnan(row->error))
            hn_report_line(r->report, "%s '%s' on %s: error %.1e of the largest result", row->op, row->name,
                           row->kernel ? row->kernel->name : "ref", row->error);
    }
}

static void memory_line(const Report *r, const HnMemoryTimeline *t)
{
    if (!t->points->len)
        return;
    const HnMemoryPoint *peak = &g_array_index(t->points, HnMemoryPoint, t->peak);
    g_autofree char *size = hn_text_size(peak->bytes);
    hn_report_line(r->report, "memory: most at node '%s' (step %u of %u): %s in %u tensor%s", profile_point_name(peak),
                   t->peak + 1, t->points->len, size, t->alive->len, t->alive->len == 1 ? "" : "s");
}

static void training_line(const Report *r)
{
    JsonObject *t = json_object_get_object_member(r->root, "train");
    g_autofree char *forward = hn_text_time(json_object_get_double_member(t, "forward_ms") * 1e-3);
    g_autofree char *backward = hn_text_time(json_object_get_double_member(t, "backward_ms") * 1e-3);
    g_autofree char *update = hn_text_time(json_object_get_double_member(t, "update_ms") * 1e-3);
    hn_report_line(r->report, "forward %s, backward %s, update %s", forward, backward, update);
}

static void lay_out(const Report *r, const HnMemoryTimeline *t)
{
    HnReport *report = r->report;
    guint top = (guint)r->f->p->top;
    hn_report_csv_table(report, "nodes", all_columns);
    head_lines(r);
    hn_report_section(report, "Types");
    hn_report_top_table(report, "types", type_columns, TYPES_SHOWN);
    profile_plot_types(r->f, r->root, report);
    if (r->blocks->len > 1) {
        hn_report_section(report, "Blocks");
        hn_report_top_table(report, "blocks", block_columns, BLOCKS_SHOWN);
    }
    hn_report_section(report, "Nodes");
    hn_report_top_table(report, "nodes", node_columns, top);
    profile_plot_nodes(r->f, r->root, report);
    total_line(r);
    outside_line(r);
    if (r->f->training) {
        hn_report_section(report, "Training");
        hn_report_top_table(report, "train.nodes", train_columns, top);
        training_line(r);
    }
    profile_tell_kernels(r->f, report);
    profile_tell_device(r->f, report);
    disturbed_lines(r);
    refusal_lines(r);
    bottleneck_lines(r);
    profile_tell_advice(r->f, report);
    profile_tell_compare(r->f, r->root, report);
    if (r->f->profile.timer.dropped)
        hn_report_line(report, "sub-graphs ran too many nodes to time all of them: the rest counts as their holders'");
    hn_report_section(report, "Memory");
    memory_line(r, t);
    hn_report_top_table(report, "memory_bytes.alive", alive_columns, ALIVE_SHOWN);
    if (r->f->p->weights) {
        hn_report_section(report, "Weights");
        hn_report_top_table(report, "weights", weight_columns, top ? WEIGHTS_SHOWN : 0);
    }
}

gboolean profile_report(Profiling *f, GError **error)
{
    g_autoptr(HnReport) report =
        hn_report_new(f->ctx, "hone.profile/1", &(HnReportEnv){ .onednn = hn_tool_onednn(f->backend) });
    g_autoptr(GPtrArray) order = g_ptr_array_new(), blocks = hn_profile_blocks(&f->profile);
    Report r = { .f = f,
                 .report = report,
                 .root = hn_report_root(report),
                 .bottlenecks = json_array_new(),
                 .order = order,
                 .blocks = blocks,
                 .total = f->profile.total_ms,
                 .agreement = ratio(f->profile.total_ms, f->profile.unprofiled_ms),
                 .model = f->quoted,
                 .open = open_dim(f) };
    HnMemoryTimeline timeline;
    hn_memory_timeline(f->session, &timeline);
    add_inputs(&r);
    add_totals(&r);
    add_noise(&r);
    add_nodes(&r);
    add_types(&r);
    add_blocks(&r);
    profile_add_device(f, r.root);
    if (f->training)
        profile_add_training(f, r.root);
    find_bottlenecks(&r);
    json_object_set_array_member(r.root, "bottlenecks", r.bottlenecks);
    profile_add_advice(f, r.root);
    profile_add_compare(f, r.root);
    profile_add_memory(f, &timeline, r.root);
    if (f->p->weights)
        profile_add_weights(f, r.root);
    lay_out(&r, &timeline);
    gboolean ok = hn_report_write(report, error);
    hn_memory_timeline_clear(&timeline);
    return ok;
}
