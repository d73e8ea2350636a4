/*
 * Stands in for libnvidia-ml.so.1 (HONE_NVML=PATH).
 *
 *   HONE_EMU_NVML=NAME   power, heat: clocks are held down for a second each time somebody asks; clock: it halves;
 * other: a second process is there; dead: the library does not start; apart: it knows no such device
 */
#include <glib.h>
#include <string.h>

#include "cuda/core/nvml.h"

enum { UNKNOWN_ERROR = 999, NOT_FOUND = 6, SECOND = 1000000000 };

#define CALL(name, ...)                                           \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

static gboolean is_case(const char *name)
{
    return g_strcmp0(g_getenv("HONE_EMU_NVML"), name) == 0;
}

/* How often `counter` was asked. */
static unsigned count(gint *counter)
{
    return (unsigned)g_atomic_int_add(counter, 1);
}

CALL(nvmlInit_v2, void)
{
    return is_case("dead") ? UNKNOWN_ERROR : HN_NVML_SUCCESS;
}

CALL(nvmlDeviceGetHandleByPciBusId_v2, const char *bus, HnNvmlDevice *device)
{
    static int device_0;
    if (is_case("apart") || strcmp(bus, "0000:01:00.0") != 0)
        return NOT_FOUND;
    *device = (HnNvmlDevice)(gpointer)&device_0;
    return HN_NVML_SUCCESS;
}

CALL(nvmlDeviceGetClockInfo, HnNvmlDevice device, unsigned which, unsigned *mhz)
{
    static gint asked;
    (void)device;
    *mhz = which == HN_NVML_CLOCK_MEMORY ? 2619 : is_case("clock") && count(&asked) % 2 == 1 ? 990 : 1980;
    return HN_NVML_SUCCESS;
}

CALL(nvmlDeviceGetTemperature, HnNvmlDevice device, unsigned sensor, unsigned *celsius)
{
    (void)device;
    *celsius = sensor == 0 ? 54 : 0;
    return HN_NVML_SUCCESS;
}

CALL(nvmlDeviceGetPowerUsage, HnNvmlDevice device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 321000;
    return HN_NVML_SUCCESS;
}

CALL(nvmlDeviceGetEnforcedPowerLimit, HnNvmlDevice device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 700000;
    return HN_NVML_SUCCESS;
}

CALL(nvmlDeviceGetUtilizationRates, HnNvmlDevice device, HnNvmlBusy *busy)
{
    (void)device;
    *busy = (HnNvmlBusy){ 75, 25 };
    return HN_NVML_SUCCESS;
}

/* 500 MB as soon as somebody has asked once. */
CALL(nvmlDeviceGetMemoryInfo, HnNvmlDevice device, HnNvmlMemory *memory)
{
    static gint asked;
    (void)device;
    const unsigned long long total = 8ull << 30, used = count(&asked) > 0 ? 500000000 : 0;
    *memory = (HnNvmlMemory){ total, total - used, used };
    return HN_NVML_SUCCESS;
}

CALL(nvmlDeviceGetViolationStatus, HnNvmlDevice device, unsigned policy, HnNvmlViolation *v)
{
    static gint asked;
    (void)device;
    const gboolean held = is_case(policy == HN_NVML_BY_POWER ? "power" : "heat");
    *v = (HnNvmlViolation){ 0, held ? (unsigned long long)count(&asked) * SECOND : 0 };
    return HN_NVML_SUCCESS;
}

CALL(nvmlDeviceGetComputeRunningProcesses_v3, HnNvmlDevice device, unsigned *n, void *list)
{
    (void)device;
    (void)list;
    *n = is_case("other") ? 2 : 1;
    return HN_NVML_MORE;
}
