/* hone-profile: what is told of a device with memory of its own. */
#include <math.h>

#include "base/text.h"
#include "cli/report.h"
#include "hone_profile.h"
#include "perf/occupancy.h"

gboolean profile_on_device(const Profiling *f)
{
    return f->backend->memory != NULL && f->backend->state != NULL;
}

const char *profile_diagnose_device(const HnProfileRow *row)
{
    switch (row->place) {
    case HN_ROW_COPY:
        return "a copy between the memories of host and device";
    case HN_ROW_REST:
        return "no step: what passes between those of the device";
    default:
        return NULL;
    }
}

static double mean(double sum, guint64 n)
{
    return n > 0 ? sum / (double)n : NAN;
}

/* Rows of one place together, ms. */
static double sum_of(const HnProfile *p, HnRowPlace place)
{
    double sum = 0;
    for (guint i = 0; i < p->rows->len; i++) {
        const HnProfileRow *r = p->rows->pdata[i];
        sum += r->place == place ? r->ms : 0;
    }
    return sum;
}

static JsonObject *roofline_object(const HnRoofline *r)
{
    JsonObject *o = json_object_new();
    JsonArray *tiers = json_array_new();
    for (int k = 0; k < HN_ROOFLINE_TIERS; k++) {
        JsonObject *one = json_object_new();
        json_object_set_double_member(one, "bytes", r->tiers[k].bytes);
        json_object_set_double_member(one, "gb_per_s", r->tiers[k].bytes_per_s * 1e-9);
        json_array_add_object_element(tiers, one);
    }
    json_object_set_double_member(o, "gflop_per_s", r->flops * 1e-9);
    json_object_set_double_member(o, "half_gflop_per_s", r->half_flops * 1e-9);
    json_object_set_double_member(o, "int8_gop_per_s", r->int8_ops * 1e-9);
    json_object_set_array_member(o, "memory", tiers);
    json_object_set_boolean_member(o, "cached", r->cached);
    return o;
}

static JsonArray *timeline_array(const HnMemoryTimeline *t)
{
    JsonArray *list = json_array_new();
    for (guint i = 0; i < t->points->len; i++) {
        const HnMemoryPoint *p = &g_array_index(t->points, HnMemoryPoint, i);
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "node", profile_point_name(p));
        json_object_set_int_member(o, "bytes", (gint64)p->bytes);
        json_array_add_object_element(list, o);
    }
    return list;
}

#define GAPS 10 /* longest ones that are told */

static const char *row_name(const HnProfile *p, int row)
{
    return row >= 0 ? ((const HnProfileRow *)p->rows->pdata[row])->name : NULL;
}

static JsonArray *numbers(const guint *n)
{
    JsonArray *list = json_array_new();
    for (int i = 0; i < 3; i++)
        json_array_add_int_element(list, n[i]);
    return list;
}

static char *by_text(const guint *n)
{
    return n[2] > 1   ? g_strdup_printf("%ux%ux%u", n[0], n[1], n[2])
           : n[1] > 1 ? g_strdup_printf("%ux%u", n[0], n[1])
                      : g_strdup_printf("%u", n[0]);
}

static JsonObject *work_object(const Profiling *f, const HnDeviceLimits *limits, const HnWorkSum *s)
{
    const HnProfile *p = &f->profile;
    const HnDeviceRecord *r = &s->record;
    const double runs = p->device_work.runs, ms = s->ms / runs;
    const gboolean kernel = r->kind == HN_WORK_KERNEL;
    const HnOccupancy full = kernel ? hn_occupancy(limits, r) : (HnOccupancy){ 0, NAN, NAN };
    JsonObject *o = json_object_new();
    g_autofree char *grid = kernel ? by_text(r->grid) : g_strdup("-");
    g_autofree char *block = kernel ? by_text(r->block) : g_strdup("-");
    g_autofree char *launch = kernel ? g_strdup_printf("%s x %s", grid, block) : g_strdup("-");
    json_object_set_string_member(o, "node", row_name(p, s->row));
    json_object_set_string_member(o, "kind", hn_work_kind_name(r->kind));
    json_object_set_string_member(o, "name", kernel ? r->name : hn_work_kind_name(r->kind));
    json_object_set_double_member(o, "count", s->count / runs);
    json_object_set_double_member(o, "ms", ms);
    json_object_set_double_member(o, "share", ms * runs / p->device_work.busy_ms);
    json_object_set_string_member(o, "launch", launch);
    json_object_set_array_member(o, "grid", kernel ? numbers(r->grid) : json_array_new());
    json_object_set_array_member(o, "block", kernel ? numbers(r->block) : json_array_new());
    json_object_set_double_member(o, "registers", kernel ? r->registers : NAN);
    json_object_set_double_member(o, "shared_bytes", kernel ? r->shared : NAN);
    json_object_set_double_member(o, "occupancy", full.occupancy);
    json_object_set_double_member(o, "waves", full.waves);
    json_object_set_double_member(o, "bytes", kernel ? NAN : (double)r->bytes);
    json_object_set_double_member(o, "gb_per_s", kernel ? NAN : (double)r->bytes * s->count / runs / (ms * 1e6));
    return o;
}

static JsonArray *gaps_array(const HnProfile *p)
{
    JsonArray *list = json_array_new();
    g_autoptr(GPtrArray) gaps = hn_device_work_gaps(&p->device_work);
    for (guint i = 0; i < MIN(gaps->len, GAPS); i++) {
        const HnWorkGap *g = gaps->pdata[i];
        JsonObject *o = json_object_new();
        json_object_set_string_member(o, "after", row_name(p, g->before));
        json_object_set_string_member(o, "before", row_name(p, g->after));
        json_object_set_double_member(o, "count", (double)g->count / p->device_work.runs);
        json_object_set_double_member(o, "ms", g->ms / p->device_work.runs);
        json_object_set_double_member(o, "longest_ms", g->longest);
        json_array_add_object_element(list, o);
    }
    return list;
}

static double median_of(const HnTimes *t, guint64 n)
{
    HnStats s = { .p50 = NAN };
    if (n > 0)
        hn_times_stats((HnTimes *)t, &s); /* sorts them */
    return s.p50;
}

/* What records made runs longer by, as a part; NaN: there were none. */
static double records_cost(const HnProfile *p)
{
    return median_of(&p->traced_ms, p->traced) / p->without.p50 - 1;
}

static void add_records(const Profiling *f, JsonObject *o)
{
    const HnProfile *p = &f->profile;
    const HnDeviceWork *w = &p->device_work;
    JsonObject *records = json_object_new();
    JsonArray *kernels = json_array_new();
    g_autoptr(GPtrArray) sums = hn_device_work_sums(w);
    HnDeviceLimits limits = { 0 };
    if (f->backend->trace != NULL)
        f->backend->trace->limits(hn_engine_device(hn_session_engine(f->session))->handle, &limits);
    for (guint i = 0; p->by_records && i < sums->len; i++)
        json_array_add_object_element(kernels, work_object(f, &limits, sums->pdata[i]));
    json_object_set_boolean_member(records, "used", p->by_records);
    json_object_set_string_member(records, "why_not", p->by_records ? NULL : p->no_records);
    json_object_set_int_member(records, "runs", (gint64)p->traced);
    json_object_set_int_member(records, "lost", (gint64)p->lost);
    json_object_set_double_member(records, "wall_ms", median_of(&p->traced_ms, p->traced));
    json_object_set_double_member(records, "overhead", records_cost(p));
    json_object_set_double_member(records, "per_run", w->pieces / w->runs);
    json_object_set_double_member(records, "busy_ms", w->busy_ms / w->runs);
    json_object_set_double_member(records, "idle_ms", w->idle_ms / w->runs);
    json_object_set_array_member(records, "gaps", gaps_array(p));
    json_object_set_object_member(o, "records", records);
    json_object_set_array_member(o, "kernels", kernels);
}

void profile_add_device(const Profiling *f, JsonObject *root)
{
    const HnProfile *p = &f->profile;
    if (!profile_on_device(f)) {
        json_object_set_null_member(root, "gpu");
        return;
    }
    JsonObject *o = json_object_new(), *times = json_object_new();
    HnMemoryTimeline t;
    hn_report_device(&f->device_noise, &f->device_bytes, o);
    json_object_set_double_member(times, "wall", median_of(&p->marked_ms, p->marked));
    json_object_set_double_member(times, "kernels", sum_of(p, HN_ROW_DEVICE));
    json_object_set_double_member(times, "copies", sum_of(p, HN_ROW_COPY));
    json_object_set_double_member(times, "host_steps", sum_of(p, HN_ROW_HOST));
    json_object_set_double_member(times, "idle", sum_of(p, HN_ROW_REST));
    json_object_set_double_member(times, "host", p->outside_ms);
    json_object_set_double_member(times, "mark", mean(p->mark_ms, p->settled));
    json_object_set_double_member(times, "segments", mean(p->segments, p->marked));
    json_object_set_double_member(times, "recorded", mean(p->recorded, p->marked));
    json_object_set_object_member(o, "times_ms", times);
    json_object_set_object_member(o, "roofline", roofline_object(&f->there));
    add_records(f, o);
    hn_memory_timeline_in(f->session, HN_DEVICE, &t);
    json_object_set_array_member(o, "timeline", timeline_array(&t));
    hn_memory_timeline_clear(&t);
    json_object_set_object_member(root, "gpu", o);
}

static const HnColumn kernel_columns[] = {
    { "name", "on the device", HN_COL_TEXT },
    { "node", "node", HN_COL_TEXT },
    { "count", "times", HN_COL_NUMBER },
    { "ms", "time", HN_COL_MS },
    { "share", "share", HN_COL_PERCENT },
    { "launch", "grid x block", HN_COL_TEXT | HN_COL_MINOR },
    { "registers", "registers", HN_COL_INT | HN_COL_MINOR },
    { "shared_bytes", "shared", HN_COL_BYTES | HN_COL_MINOR },
    { "occupancy", "occupancy", HN_COL_PERCENT },
    { "bytes", "bytes", HN_COL_BYTES | HN_COL_MINOR },
    { 0 },
};

/* The longest gap of them all together, as a sentence. */
static void tell_gaps(const HnProfile *p, HnReport *report)
{
    g_autoptr(GPtrArray) gaps = hn_device_work_gaps(&p->device_work);
    const HnWorkGap *g = gaps->len > 0 ? gaps->pdata[0] : NULL;
    g_autofree char *busy = hn_text_time(p->device_work.busy_ms / p->device_work.runs * 1e-3);
    g_autofree char *idle = hn_text_time(p->device_work.idle_ms / p->device_work.runs * 1e-3);
    g_autofree char *longest = g != NULL ? hn_text_time(g->ms / p->device_work.runs * 1e-3) : NULL;
    const char *after = g != NULL ? row_name(p, g->before) : NULL, *before = g != NULL ? row_name(p, g->after) : NULL;
    if (g != NULL)
        hn_report_line(report,
                       "with records the device is busy for %s and idle for %s, most of it, %s, between '%s' and '%s'",
                       busy, idle, longest, after != NULL ? after : "-", before != NULL ? before : "-");
    else
        hn_report_line(report, "with records the device is busy for %s, without a gap", busy);
}

static void tell_records(const Profiling *f, HnReport *report)
{
    const HnProfile *p = &f->profile;
    g_autofree char *mark = hn_text_time(mean(p->mark_ms, p->settled) * 1e-3);
    g_autofree char *cost = hn_text_percent(fmax(records_cost(p), 0));
    if (!p->by_records) {
        hn_report_line(report, "times of steps are by marks around each, which took %s of it, which was taken off",
                       mark);
        hn_report_line(report, "no records of kernels: %s", p->no_records != NULL ? p->no_records : "there was no run");
        return;
    }
    hn_report_line(report, "times of steps are by records of %.3g kernels and copies in a run, which added %s to it",
                   p->device_work.pieces / p->device_work.runs, cost);
    if (p->lost > 0)
        hn_report_line(report, "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " runs with records are left out: %s",
                       p->lost, p->lost + p->traced, p->no_records);
    tell_gaps(p, report);
}

void profile_tell_kernels(const Profiling *f, HnReport *report)
{
    if (!profile_on_device(f) || !f->profile.by_records)
        return;
    hn_report_section(report, "Kernels");
    hn_report_top_table(report, "gpu.kernels", kernel_columns, (guint)f->p->top);
}

void profile_tell_device(const Profiling *f, HnReport *report)
{
    const HnProfile *p = &f->profile;
    if (!profile_on_device(f))
        return;
    const HnDeviceBytes *b = &f->device_bytes;
    g_autofree char *kernels = hn_text_time(sum_of(p, HN_ROW_DEVICE) * 1e-3);
    g_autofree char *copies = hn_text_time(sum_of(p, HN_ROW_COPY) * 1e-3);
    g_autofree char *idle = hn_text_time(sum_of(p, HN_ROW_REST) * 1e-3);
    g_autofree char *host = hn_text_time((p->outside_ms + sum_of(p, HN_ROW_HOST)) * 1e-3);
    g_autofree char *flops = hn_text_number(f->there.flops * 1e-9), *half = hn_text_number(f->there.half_flops * 1e-9);
    g_autofree char *far = hn_text_number(f->there.tiers[HN_ROOFLINE_TIERS - 1].bytes_per_s * 1e-9);
    g_autofree char *planned = hn_text_size((guint64)(b->arena + b->weights));
    g_autofree char *taken = hn_text_size((guint64)MAX(b->allocated, 0));
    g_autofree char *noise = hn_device_noise_line(&f->device_noise);
    hn_report_line(report, "%s: %s GFLOP/s, %s in halves, %s GB/s in memory%s", f->device_noise.after.name, flops, half,
                   far, f->there.cached ? "" : " (measured now)");
    if (f->device_noise.after.emulated)
        hn_report_line(report, "the device is emulated: its times say nothing about a real one");
    hn_report_line(report, "kernels %s, copies %s, idle %s, host %s; %.3g of %.3g segments were recorded", kernels,
                   copies, idle, host, mean(p->recorded, p->marked), mean(p->segments, p->marked));
    tell_records(f, report);
    hn_report_line(report, "memory of the device: %s planned, %s allocated", planned, taken);
    if (noise)
        hn_report_line(report, "%s", noise);
}
