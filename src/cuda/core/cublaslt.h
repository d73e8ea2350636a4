/*
 * HnCublasLt: functions of NVIDIA's library of matrix products (libcublasLt.so.13 or .12), which is opened when the
 * first product may be computed by it, and only where HONE_CUDA_LIBRARIES asks for it: own kernels compute everything
 * without. It is declared here as the driver is, and compared with the real header in test/cuda/cublaslt_header_test.c.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "cuda/core/cuda_driver.h"

G_BEGIN_DECLS

typedef struct cublasLtContext *HnLtHandle;
typedef struct HnLtProductOpaque *HnLtProduct; /* cublasLtMatmulDesc_t */
typedef struct HnLtMatrixOpaque *HnLtMatrix;   /* cublasLtMatrixLayout_t */
typedef struct HnLtWishOpaque *HnLtWish;       /* cublasLtMatmulPreference_t */

/* cublasLtMatmulAlgo_t */
typedef struct {
    uint64_t data[8];
} HnLtAlgorithm;

/* cublasLtMatmulHeuristicResult_t */
typedef struct {
    HnLtAlgorithm algorithm;
    size_t workspace; /* bytes that it needs */
    int state;        /* cublasStatus_t: whether the rest means anything */
    float waves;
    int reserved[4];
} HnLtChoice;

enum {
    HN_LT_SUCCESS = 0,
    HN_LT_INVALID_VALUE = 7,
    HN_LT_EXECUTION_FAILED = 13,
    HN_LT_NOT_SUPPORTED = 15,
    HN_LT_NO_TRANSPOSE = 0, /* cublasOperation_t */
    HN_LT_TRANSPOSE = 1,
    HN_LT_SUMS_F32 = 68, /* cublasComputeType_t */
    HN_LT_F32 = 0,       /* cudaDataType_t */
    HN_LT_F16 = 2,
    HN_LT_BF16 = 14,
};

/* Attributes of products, matrices and wishes, with their types. */
enum {
    HN_LT_TRANSPOSE_A = 3, /* int32_t */
    HN_LT_TRANSPOSE_B = 4, /* int32_t */
    HN_LT_EPILOGUE = 7,    /* uint32_t */
    HN_LT_BIAS = 8,        /* const void *; for choose() its alignment alone counts */
    HN_LT_BIAS_TYPE = 26,  /* int32_t; -1: that of the result */
    HN_LT_BATCH = 5,       /* int32_t */
    HN_LT_BATCH_STEP = 6,  /* int64_t, elements */
    HN_LT_WORKSPACE = 1,   /* uint64_t, bytes at most */
    HN_LT_REDUCTIONS = 3,  /* uint32_t, bits */
    HN_LT_ALIGNMENT_A = 5, /* uint32_t, bytes at least; B, C, D follow */
    HN_LT_ALIGNMENT_D = 8,
};

enum {
    HN_LT_END_NONE = 1, /* cublasLtEpilogue_t */
    HN_LT_END_RELU = 2,
    HN_LT_END_BIAS = 4,  /* with the others, too: added first */
    HN_LT_END_GELU = 32, /* by tanh */
    /* cublasLtReductionScheme_t: sums of parts of k as f32 in the workspace, added up in a step of their own. The two
     * that are left out add up what was rounded to the result's type already. */
    HN_LT_REDUCE_F32 = 2,
    HN_LT_REDUCE_ALL = 7,
};

#define HN_LT_WORKSPACE_ALIGNMENT 256 /* bytes */

typedef struct {
#define HN_LT(name, symbol, arguments) int(*name) arguments;
#include "cuda/core/cublaslt.def"
#undef HN_LT
} HnCublasLt;

/* NULL: it is not there, and *why says what was looked for: a constant text. HONE_CUBLASLT in the environment names
 * another file. */
const HnCublasLt *hn_cublaslt(const char **why);

/* HONE_CUDA_LIBRARIES asks for it. Error: USAGE, of another value than "cublaslt" or none. */
gboolean hn_cublaslt_asked(gboolean *asked, GError **error);

G_END_DECLS
