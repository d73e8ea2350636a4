/*
 * What src/cuda/core/nvml.h declares of the management library is what its own header says: built only where that is.
 */
#include <glib.h>
#include <nvml.h>
#include <stddef.h>

#include "cuda/core/nvml.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define SAME_PLACE(ours, member, theirs, its)                \
    _Static_assert(sizeof(ours) == sizeof(theirs), #theirs); \
    _Static_assert(offsetof(ours, member) == offsetof(theirs, its), #its)

SAME(HN_NVML_SUCCESS, NVML_SUCCESS);
SAME(HN_NVML_MORE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(HN_NVML_CLOCK_SM, NVML_CLOCK_SM);
SAME(HN_NVML_CLOCK_MEMORY, NVML_CLOCK_MEM);
SAME(HN_NVML_BY_POWER, NVML_PERF_POLICY_POWER);
SAME(HN_NVML_BY_HEAT, NVML_PERF_POLICY_THERMAL);
SAME(0, NVML_TEMPERATURE_GPU);
SAME_PLACE(HnNvmlBusy, gpu, nvmlUtilization_t, gpu);
SAME_PLACE(HnNvmlBusy, memory, nvmlUtilization_t, memory);
SAME_PLACE(HnNvmlMemory, total, nvmlMemory_t, total);
SAME_PLACE(HnNvmlMemory, free, nvmlMemory_t, free);
SAME_PLACE(HnNvmlMemory, used, nvmlMemory_t, used);
SAME_PLACE(HnNvmlViolation, reference, nvmlViolationTime_t, referenceTime);
SAME_PLACE(HnNvmlViolation, violation, nvmlViolationTime_t, violationTime);

/* Enumerations and handles are as wide as what stands for them, and so are pointers. */
_Static_assert(sizeof(nvmlClockType_t) == sizeof(unsigned), "enumerations");
_Static_assert(sizeof(nvmlReturn_t) == sizeof(int), "results");
_Static_assert(sizeof(HnNvmlDevice) == sizeof(nvmlDevice_t), "handles");
/* All of them are there under these names. */
#define HN_NVML(name, symbol, arguments) _Static_assert(sizeof(&symbol) > 0, #symbol);
#include "cuda/core/nvml.def"
#undef HN_NVML

static void test_members(void)
{
    const size_t functions = 0
#define HN_NVML(name, symbol, arguments) +1
#include "cuda/core/nvml.def"
#undef HN_NVML
        ;
    g_assert_cmpuint(sizeof(HnNvml), ==, functions * sizeof(void (*)(void))); /* nothing else is in it */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda/nvml-header", test_members);
    return g_test_run();
}
