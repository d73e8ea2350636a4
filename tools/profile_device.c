/* hone-profile: what is told of a device with memory of its own. */
#include <math.h>

#include "base/text.h"
#include "cli/report.h"
#include "hone_profile.h"

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
    HnStats marked = { .p50 = NAN };
    if (p->marked > 0)
        hn_times_stats((HnTimes *)&p->marked_ms, &marked); /* sorts them */
    json_object_set_double_member(times, "wall", marked.p50);
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
    hn_memory_timeline_in(f->session, HN_DEVICE, &t);
    json_object_set_array_member(o, "timeline", timeline_array(&t));
    hn_memory_timeline_clear(&t);
    json_object_set_object_member(root, "gpu", o);
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
    g_autofree char *mark = hn_text_time(mean(p->mark_ms, p->settled) * 1e-3);
    hn_report_line(report, "%s: %s GFLOP/s, %s in halves, %s GB/s in memory%s", f->device_noise.after.name, flops, half,
                   far, f->there.cached ? "" : " (measured now)");
    if (f->device_noise.after.emulated)
        hn_report_line(report, "the device is emulated: its times say nothing about a real one");
    hn_report_line(report, "kernels %s, copies %s, idle %s, host %s; %.3g of %.3g segments were recorded", kernels,
                   copies, idle, host, mean(p->recorded, p->marked), mean(p->segments, p->marked));
    hn_report_line(report, "marks around each step took %s of it, which was taken off", mark);
    hn_report_line(report, "memory of the device: %s planned, %s allocated", planned, taken);
    if (noise)
        hn_report_line(report, "%s", noise);
}
