/*
 * HnNvml: functions of NVIDIA's management library (libnvidia-ml.so.1), which comes with the driver and is opened when
 * a report first asks for a device's state. Only to read: nothing is ever set. It is declared here as the driver is.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct nvmlDevice_st *HnNvmlDevice;

typedef struct {
    unsigned gpu, memory; /* per cent */
} HnNvmlBusy;

typedef struct {
    unsigned long long total, free, used; /* bytes */
} HnNvmlMemory;

typedef struct {
    unsigned long long reference, violation; /* time: us since the driver was loaded, ns in violation */
} HnNvmlViolation;

enum {
    HN_NVML_SUCCESS = 0,
    HN_NVML_MORE = 7, /* NVML_ERROR_INSUFFICIENT_SIZE */
    HN_NVML_CLOCK_SM = 1,
    HN_NVML_CLOCK_MEMORY = 2,
    HN_NVML_BY_POWER = 0, /* policies of violations */
    HN_NVML_BY_HEAT = 1,
};

typedef struct {
#define HN_NVML(name, symbol, arguments) int(*name) arguments;
#include "cuda/core/nvml.def"
#undef HN_NVML
} HnNvml;

/* NULL: it is not there, or does not start. HONE_NVML in the environment names another file. */
const HnNvml *hn_nvml(void);

G_END_DECLS
