#include "perf/device_noise.h"

#include <math.h>

#include "base/clock.h"

#define PART 0.01  /* of the wall time, above which something is a cause */
#define CLOCK 0.02 /* by which a clock changes */

void hn_device_noise_begin(HnDeviceNoise *n, const HnBackend *backend, gpointer device)
{
    *n = (HnDeviceNoise){
        .there = backend->state != NULL, .watts = NAN, .capped_ms = NAN, .heated_ms = NAN, .others = -1
    };
    if (n->there)
        backend->state(backend->index, device, &n->before);
    n->wall_ms = (double)hn_now_ns() * 1e-6; /* the moment, until the end */
}

static double between_ms(gint64 before, gint64 after)
{
    return before >= 0 && after >= before ? (double)(after - before) * 1e-6 : NAN;
}

void hn_device_noise_end(HnDeviceNoise *n, const HnBackend *backend, gpointer device)
{
    if (!n->there)
        return;
    n->wall_ms = (double)hn_now_ns() * 1e-6 - n->wall_ms;
    backend->state(backend->index, device, &n->after);
    const double joules = n->after.joules - n->before.joules;
    n->watts = joules > 0 && n->wall_ms > 0 ? joules / n->wall_ms * 1e3 : n->after.watts;
    n->capped_ms = between_ms(n->before.capped_ns, n->after.capped_ns);
    n->heated_ms = between_ms(n->before.heated_ns, n->after.heated_ns);
    n->others = n->after.processes > 0 ? n->after.processes - 1 : -1; /* none: they are not shown */
}

const char **hn_device_noise_causes(const HnDeviceNoise *n)
{
    GPtrArray *out = g_ptr_array_new();
    if (n->there && n->capped_ms > PART * n->wall_ms)
        g_ptr_array_add(out, (gpointer) "power cap");
    if (n->there && n->heated_ms > PART * n->wall_ms)
        g_ptr_array_add(out, (gpointer) "heat");
    if (n->there && fabs(n->after.mhz - n->before.mhz) > CLOCK * n->before.mhz)
        g_ptr_array_add(out, (gpointer) "device clock");
    if (n->there && n->others > 0)
        g_ptr_array_add(out, (gpointer) "other process");
    g_ptr_array_add(out, NULL);
    return (const char **)g_ptr_array_free(out, FALSE);
}
