/*
 * HnCupti: functions of NVIDIA's library for profilers (libcupti.so.13 or .12, of a toolkit), which is opened when a
 * report first wants records of what ran on a device. Nothing else needs it. It is declared here as the driver is, with
 * the part of its records that is used: that part lies alike in all versions from CUDA 12.0 on.
 */
#pragma once

#include "cuda/core/cuda_driver.h"
#include "run/device_trace.h"

G_BEGIN_DECLS

typedef void (*HnCuptiRequestedFn)(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void (*HnCuptiCompletedFn)(HnCuContext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

enum {
    HN_CUPTI_SUCCESS = 0,
    HN_CUPTI_INVALID_KIND = 21, /* CUPTI_ERROR_INVALID_KIND */
    HN_CUPTI_MAX_LIMIT = 12,    /* CUPTI_ERROR_MAX_LIMIT_REACHED: no more records in a buffer */
    HN_CUPTI_HELD = 39,         /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
    HN_CUPTI_OLDEST = 18,       /* CUPTI_API_VERSION of CUDA 12.0 ... */
    HN_CUPTI_NEWEST = 139999,   /* ... and the last one of 13 */
    HN_CUPTI_FLUSH_FORCED = 1,  /* CUPTI_ACTIVITY_FLAG_FLUSH_FORCED */
    HN_CUPTI_MEMCPY = 1,        /* CUpti_ActivityKind */
    HN_CUPTI_MEMSET = 2,
    HN_CUPTI_KERNEL = 10,   /* CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL */
    HN_CUPTI_TO_DEVICE = 1, /* CUpti_ActivityMemcpyKind */
    HN_CUPTI_TO_HOST = 2,
};

/* Records begin like this. */
typedef struct {
    int32_t kind;
    uint8_t cache, shared_form;
    uint16_t registers; /* of a thread */
    int32_t partitioned[2];
    uint64_t start, end; /* ns */
    uint64_t completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared; /* bytes of a block */
    uint32_t local_bytes, local_total;
    uint32_t correlation;
    int64_t number;
    const char *name; /* shared by all records of the kernel */
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch[4];
    uint32_t shared_executed;
    uint64_t graph_node; /* 0: of no graph */
} HnCuptiKernel;

typedef struct {
    int32_t kind;
    uint8_t way, from, to, flags;
    uint64_t bytes;
    uint64_t start, end; /* ns */
    uint32_t device, context, stream;
    uint32_t correlation, runtime, pad;
    void *reserved;
    uint64_t graph_node;
} HnCuptiCopy;

typedef struct {
    int32_t kind;
    uint32_t value;
    uint64_t bytes;
    uint64_t start, end; /* ns */
    uint32_t device, context, stream;
    uint32_t correlation;
    uint16_t flags, memory;
    uint32_t pad;
    void *reserved;
    uint64_t graph_node;
} HnCuptiFill;

typedef struct {
#define HN_CUPTI(name, symbol, arguments) int(*name) arguments;
#include "cuda/core/cupti.def"
#undef HN_CUPTI
} HnCupti;

/* HnDeviceTrace.start and stop, of all devices of the process. HONE_CUPTI in the environment names another library;
 * with another driver (HONE_CUDA_DRIVER) only that is opened. */
gboolean hn_cupti_start(char **why);
gboolean hn_cupti_stop(guint expected, GArray *records, char **why);

G_END_DECLS
