#include "device_report.h"

#include <math.h>
#include <string.h>

#include "base/jsonread.h"
#include "base/text.h"

void hn_device_bytes(const HnSession *s, const HnDeviceState *before, HnDeviceBytes *out)
{
    const HnDevice *d = hn_engine_device(hn_session_engine(s));
    HnSessionStats stats;
    HnDeviceState now;
    hn_session_stats(s, &stats);
    d->backend->state(d->backend->index, d->handle, &now);
    *out = (HnDeviceBytes){ .arena = (gint64)(stats.device_bytes - stats.packed_bytes),
                            .weights = (gint64)stats.packed_bytes,
                            .allocated = now.allocated,
                            .context = -1,
                            .total = now.total,
                            .free = now.free };
    if (before->used >= 0 && now.used >= before->used + now.allocated)
        out->context = now.used - before->used - now.allocated;
}

static JsonObject *bytes_object(const HnDeviceBytes *b)
{
    JsonObject *o = json_object_new();
    hn_json_set_count(o, "arena", b->arena);
    hn_json_set_count(o, "weights", b->weights);
    hn_json_set_count(o, "planned", b->arena + b->weights);
    hn_json_set_count(o, "allocated", b->allocated);
    hn_json_set_count(o, "context", b->context);
    hn_json_set_count(o, "total", b->total);
    hn_json_set_count(o, "free", b->free);
    return o;
}

static JsonObject *noise_object(const HnDeviceNoise *n)
{
    JsonObject *o = json_object_new();
    JsonArray *list = json_array_new();
    const struct {
        const char *name;
        double x;
    } numbers[] = { { "wall_ms", n->wall_ms },
                    { "mhz_before", n->before.mhz },
                    { "mhz_after", n->after.mhz },
                    { "memory_mhz", n->after.memory_mhz },
                    { "celsius", n->after.celsius },
                    { "watts", n->watts },
                    { "limit_watts", n->after.limit_watts },
                    { "busy", n->after.busy },
                    { "capped_ms", n->capped_ms },
                    { "heated_ms", n->heated_ms } };
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        json_object_set_double_member(o, numbers[i].name, numbers[i].x);
    hn_json_set_count(o, "other_processes", n->others);
    g_autofree const char **causes = hn_device_noise_causes(n);
    for (int i = 0; causes[i]; i++)
        json_array_add_string_element(list, causes[i]);
    json_object_set_array_member(o, "causes", list);
    return o;
}

void hn_report_device(const HnDeviceNoise *n, const HnDeviceBytes *bytes, JsonObject *o)
{
    json_object_set_string_member(o, "name", n->after.name);
    json_object_set_boolean_member(o, "emulated", n->after.emulated);
    json_object_set_object_member(o, "memory_bytes", bytes_object(bytes));
    json_object_set_object_member(o, "noise", noise_object(n));
}

char *hn_device_noise_line(const HnDeviceNoise *n)
{
    g_autofree const char **causes = hn_device_noise_causes(n);
    g_autoptr(GString) text = g_string_new(NULL);
    for (int i = 0; causes[i]; i++) {
        const double ms = !strcmp(causes[i], "power cap") ? n->capped_ms
                          : !strcmp(causes[i], "heat")    ? n->heated_ms
                                                          : NAN;
        g_autofree char *time = isnan(ms) ? NULL : hn_text_time(ms * 1e-3);
        g_string_append_printf(text, "%s%s%s%s", i ? ", " : "", causes[i], time ? " " : "", time ? time : "");
    }
    return text->len ? g_strdup_printf("noise on the device: %s", text->str) : NULL;
}
