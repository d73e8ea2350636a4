/*
 * HnCudaDriver: the functions of the CUDA driver (libcuda.so.1), which is opened when the first device wants it. What
 * is used of its header is declared here, so that this is built and tested where there is no CUDA; a test compares it
 * with the real header where there is one (test/cuda/cuda_header_test.c).
 */
#pragma once

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/core/tensor_map.h"

G_BEGIN_DECLS

typedef int HnCuDevice;
typedef unsigned long long HnCuAddress; /* of memory on the device */
typedef struct CUctx_st *HnCuContext;
typedef struct CUmod_st *HnCuModule;
typedef struct CUfunc_st *HnCuFunction;
typedef struct CUstream_st *HnCuStream;
typedef struct CUgraph_st *HnCuGraph;
typedef struct CUgraphExec_st *HnCuGraphExec;
typedef struct CUevent_st *HnCuEvent;
struct CUctxCreateParams_st; /* none is ever given */
struct CUtensorMap_st;       /* HnCuTensorMap */
typedef void (*HnCuHostFn)(void *data);

/* CUresult, what hone tells apart */
enum {
    HN_CU_SUCCESS = 0,
    HN_CU_INVALID_VALUE = 1,
    HN_CU_OUT_OF_MEMORY = 2,
    HN_CU_STUB = 34, /* the library is the linker's stand-in, not a driver */
    HN_CU_UNAVAILABLE = 46,
    HN_CU_NO_DEVICE = 100,
    HN_CU_INVALID_IMAGE = 200,
    HN_CU_NO_BINARY = 209,
    HN_CU_NOT_FOUND = 500,
    HN_CU_FAULTS = 700, /* from here on something that ran on the device did what it must not */
    HN_CU_FAULTS_END = 800,
};

/* CUdevice_attribute, CUfunction_attribute, and flags */
enum {
    HN_CU_SHARED_OPTIN = 97, /* most bytes of shared memory of a block, behind HN_CU_MAX_DYNAMIC_SHARED */
    HN_CU_MULTIPROCESSORS = 16,
    HN_CU_SM_THREADS = 39, /* most of a multiprocessor at a time, as are the next three */
    HN_CU_SM_SHARED = 81,
    HN_CU_SM_REGISTERS = 82,
    HN_CU_SM_BLOCKS = 106,
    HN_CU_RESERVED_SHARED = 111, /* bytes that a block takes beyond its own */
    HN_CU_MAJOR = 75,
    HN_CU_MINOR = 76,
    HN_CU_MAX_DYNAMIC_SHARED = 8, /* of a function */
    HN_CU_STREAM_NON_BLOCKING = 1,
    HN_CU_EVENT_NO_TIMING = 2,
    HN_CU_CAPTURE_THREAD = 1, /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
    HN_CU_MAP_F16 = 6,        /* CUtensorMapDataType */
    HN_CU_MAP_F32 = 7,
    HN_CU_MAP_BF16 = 9,
    HN_CU_MAP_SWIZZLE_128 = 3,
    HN_CU_MAP_PROMOTE_128 = 2, /* in the L2 cache */
};

#define HN_CU_DRIVER_VERSION 12000 /* at least: what the kernels' PTX was made for */

typedef struct {
#define HN_CU(name, symbol, arguments) int(*name) arguments;
#include "cuda/core/cuda_driver.def"
#undef HN_CU
} HnCudaDriver;

/* The driver, started; NULL: UNSUPPORTED, and says which library was looked for and what is wrong. HONE_CUDA_DRIVER in
 * the environment names another file than libcuda.so.1. */
const HnCudaDriver *hn_cuda_driver(GError **error);

/* What the driver calls that result. */
const char *hn_cuda_result_text(const HnCudaDriver *d, int result);

G_END_DECLS
