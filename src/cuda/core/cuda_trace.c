/*
 * HnBackend.trace: records of what ran on the device, by CUPTI.
 */
#include "cuda/core/cuda_backend.h"
#include "cuda/core/cupti.h"

static gboolean trace_start(gpointer stream, char **why)
{
    (void)stream;
    return hn_cupti_start(why);
}

static gboolean trace_stop(gpointer stream, guint expected, GArray *records, char **why)
{
    (void)stream;
    return hn_cupti_stop(expected, records, why);
}

static guint trace_work(gpointer stream)
{
    return ((const HnCudaStream *)stream)->work;
}

static guint limit(const HnCuda *c, int which)
{
    int value = 0;
    return c->driver->device_attribute(&value, (unsigned)which, c->index) == HN_CU_SUCCESS ? (guint)MAX(value, 0) : 0;
}

static void trace_limits(gpointer device, HnDeviceLimits *limits)
{
    const HnCuda *c = device;
    *limits = (HnDeviceLimits){ .multiprocessors = (guint)c->multiprocessors,
                                .threads = limit(c, HN_CU_SM_THREADS),
                                .blocks = limit(c, HN_CU_SM_BLOCKS),
                                .registers = limit(c, HN_CU_SM_REGISTERS),
                                .shared = limit(c, HN_CU_SM_SHARED),
                                .shared_extra = limit(c, HN_CU_RESERVED_SHARED) };
}

const HnDeviceTrace hn_cuda_trace = {
    .start = trace_start, .stop = trace_stop, .work = trace_work, .limits = trace_limits
};
