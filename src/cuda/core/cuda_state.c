/*
 * What the driver and the management library say of a device.
 */
#include <math.h>
#include <string.h>

#include "cuda/core/cuda_backend.h"
#include "cuda/core/nvml.h"

#define BUS_NAME 32
#define EMULATED "emulated" /* test/cuda/emu calls its devices so */

/* The answer of a function with one number, by `scale`; NaN: there is none. */
static double number(int (*function)(HnNvmlDevice, unsigned *), HnNvmlDevice device, double scale)
{
    unsigned n = 0;
    return function != NULL && function(device, &n) == HN_NVML_SUCCESS ? n * scale : NAN;
}

/* The same of a function that is told which one. */
static double number_of(int (*function)(HnNvmlDevice, unsigned, unsigned *), HnNvmlDevice device, unsigned which)
{
    unsigned n = 0;
    return function != NULL && function(device, which, &n) == HN_NVML_SUCCESS ? n : NAN;
}

static gint64 violation(const HnNvml *m, HnNvmlDevice device, unsigned policy)
{
    HnNvmlViolation v = { 0 };
    return m->violation != NULL && m->violation(device, policy, &v) == HN_NVML_SUCCESS ? (gint64)v.violation : -1;
}

static gint64 processes(const HnNvml *m, HnNvmlDevice device)
{
    unsigned n = 0;
    const int result = m->processes != NULL ? m->processes(device, &n, NULL) : -1;
    return result == HN_NVML_SUCCESS || result == HN_NVML_MORE ? (gint64)n : -1;
}

static void ask_nvml(const HnNvml *m, const char *bus, HnDeviceState *s)
{
    HnNvmlDevice d = NULL;
    HnNvmlBusy busy = { 0 };
    HnNvmlMemory memory = { 0 };
    unsigned long long millijoules = 0;
    if (m == NULL || m->by_bus(bus, &d) != HN_NVML_SUCCESS)
        return;
    s->mhz = number_of(m->clock, d, HN_NVML_CLOCK_SM);
    s->memory_mhz = number_of(m->clock, d, HN_NVML_CLOCK_MEMORY);
    s->celsius = number_of(m->temperature, d, 0);
    s->watts = number(m->power, d, 1e-3);
    s->limit_watts = number(m->power_limit, d, 1e-3);
    s->capped_ns = violation(m, d, HN_NVML_BY_POWER);
    s->heated_ns = violation(m, d, HN_NVML_BY_HEAT);
    s->processes = processes(m, d);
    if (m->energy != NULL && m->energy(d, &millijoules) == HN_NVML_SUCCESS)
        s->joules = (double)millijoules * 1e-3;
    if (m->busy != NULL && m->busy(d, &busy) == HN_NVML_SUCCESS)
        s->busy = busy.gpu * 1e-2;
    if (m->memory != NULL && m->memory(d, &memory) == HN_NVML_SUCCESS)
        s->used = (gint64)memory.used;
}

static void ask_device(HnCuda *c, HnDeviceState *s)
{
    size_t left = 0, all = 0;
    g_mutex_lock(&c->lock);
    s->allocated = (gint64)c->used;
    g_mutex_unlock(&c->lock);
    if (hn_cuda_enter(c, NULL) && c->driver->memory_info(&left, &all) == HN_CU_SUCCESS)
        s->free = (gint64)left;
}

void hn_cuda_state(int index, gpointer device, HnDeviceState *out)
{
    const HnCudaDriver *driver = hn_cuda_driver(NULL);
    HnCuDevice d = 0;
    char bus[BUS_NAME] = "";
    size_t bytes = 0;
    *out = (HnDeviceState){ .total = -1,
                            .free = -1,
                            .used = -1,
                            .mhz = NAN,
                            .memory_mhz = NAN,
                            .celsius = NAN,
                            .watts = NAN,
                            .limit_watts = NAN,
                            .busy = NAN,
                            .joules = NAN,
                            .capped_ns = -1,
                            .heated_ns = -1,
                            .processes = -1 };
    if (driver == NULL || driver->device_get(&d, index) != HN_CU_SUCCESS)
        return;
    if (driver->device_name(out->name, (int)sizeof out->name, d) != HN_CU_SUCCESS)
        out->name[0] = '\0';
    out->emulated = strncmp(out->name, EMULATED, strlen(EMULATED)) == 0;
    if (driver->device_total(&bytes, d) == HN_CU_SUCCESS)
        out->total = (gint64)bytes;
    if (driver->device_bus(bus, (int)sizeof bus, d) == HN_CU_SUCCESS)
        ask_nvml(hn_nvml(), bus, out);
    if (device != NULL)
        ask_device(device, out);
}
