/*
 * What src/cuda/core/cublaslt.h declares of cuBLASLt is what its own header says: built only where that is.
 */
#include <cublasLt.h>
#include <glib.h>
#include <stddef.h>

#include "cuda/core/cublaslt.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define SAME_PLACE(ours, member, theirs, its)                \
    _Static_assert(sizeof(ours) == sizeof(theirs), #theirs); \
    _Static_assert(offsetof(ours, member) == offsetof(theirs, its), #its)

SAME(HN_LT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(HN_LT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(HN_LT_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(HN_LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(HN_LT_NO_TRANSPOSE, CUBLAS_OP_N);
SAME(HN_LT_TRANSPOSE, CUBLAS_OP_T);
SAME(HN_LT_SUMS_F32, CUBLAS_COMPUTE_32F);
SAME(HN_LT_F32, CUDA_R_32F);
SAME(HN_LT_F16, CUDA_R_16F);
SAME(HN_LT_BF16, CUDA_R_16BF);
SAME(HN_LT_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(HN_LT_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(HN_LT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(HN_LT_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(HN_LT_BIAS_TYPE, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME(HN_LT_BATCH, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(HN_LT_BATCH_STEP, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(HN_LT_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(HN_LT_REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(HN_LT_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(HN_LT_ALIGNMENT_A + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(HN_LT_ALIGNMENT_A + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(HN_LT_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(HN_LT_END_NONE, CUBLASLT_EPILOGUE_DEFAULT);
SAME(HN_LT_END_RELU, CUBLASLT_EPILOGUE_RELU);
SAME(HN_LT_END_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(HN_LT_END_GELU, CUBLASLT_EPILOGUE_GELU);
SAME(HN_LT_END_RELU | HN_LT_END_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(HN_LT_END_GELU | HN_LT_END_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS);
SAME(HN_LT_REDUCE_F32, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(HN_LT_REDUCE_ALL, CUBLASLT_REDUCTION_SCHEME_MASK);
SAME_PLACE(HnLtChoice, algorithm, cublasLtMatmulHeuristicResult_t, algo);
SAME_PLACE(HnLtChoice, workspace, cublasLtMatmulHeuristicResult_t, workspaceSize);
SAME_PLACE(HnLtChoice, state, cublasLtMatmulHeuristicResult_t, state);
SAME_PLACE(HnLtChoice, waves, cublasLtMatmulHeuristicResult_t, wavesCount);

/* Enumerations and handles are as wide as what stands for them. */
_Static_assert(sizeof(HnLtAlgorithm) == sizeof(cublasLtMatmulAlgo_t), "an algorithm");
_Static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int), "enumerations");
_Static_assert(sizeof(HnLtProduct) == sizeof(cublasLtMatmulDesc_t) && sizeof(HnLtHandle) == sizeof(cublasLtHandle_t),
               "handles");
/* All of them are there under these names. */
#define HN_LT(name, symbol, arguments) _Static_assert(sizeof(&symbol) > 0, #symbol);
#include "cuda/core/cublaslt.def"
#undef HN_LT

static void test_members(void)
{
    const size_t functions = 0
#define HN_LT(name, symbol, arguments) +1
#include "cuda/core/cublaslt.def"
#undef HN_LT
        ;
    g_assert_cmpuint(sizeof(HnCublasLt), ==, functions * sizeof(void (*)(void))); /* nothing else is in it */
}

/* The library itself, where it is found: describing products needs no GPU. Attributes have the sizes that hone gives.
 */
static void test_attributes(void)
{
    const char *why;
    const HnCublasLt *lt = hn_cublaslt(&why);
    const int32_t i32 = 1;
    const uint32_t alignment = 16;
    const int64_t i64 = 64;
    const void *pointer = NULL;
    HnLtProduct product;
    HnLtMatrix matrix;
    HnLtWish wish;
    if (lt == NULL) {
        g_test_skip(why);
        return;
    }
    g_assert_cmpint(lt->product_new(&product, HN_LT_SUMS_F32, HN_LT_F32), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->product_set(product, HN_LT_TRANSPOSE_A, &i32, sizeof i32), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->product_set(product, HN_LT_TRANSPOSE_B, &i32, sizeof i32), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->product_set(product, HN_LT_TRANSPOSE_B, &i64, sizeof i64), ==, HN_LT_INVALID_VALUE);
    g_assert_cmpint(lt->product_set(product, HN_LT_EPILOGUE, &i32, sizeof i32), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->product_set(product, HN_LT_BIAS, &pointer, sizeof pointer), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->product_free(product), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->matrix_new(&matrix, HN_LT_BF16, 8, 4, 8), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->matrix_set(matrix, HN_LT_BATCH, &i32, sizeof i32), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->matrix_set(matrix, HN_LT_BATCH_STEP, &i64, sizeof i64), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->matrix_free(matrix), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->wish_new(&wish), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->wish_set(wish, HN_LT_WORKSPACE, &i64, sizeof i64), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->wish_set(wish, HN_LT_REDUCTIONS, &alignment, sizeof alignment), ==, HN_LT_SUCCESS);
    for (int i = HN_LT_ALIGNMENT_A; i <= HN_LT_ALIGNMENT_D; i++)
        g_assert_cmpint(lt->wish_set(wish, i, &alignment, sizeof alignment), ==, HN_LT_SUCCESS);
    g_assert_cmpint(lt->wish_free(wish), ==, HN_LT_SUCCESS);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda/cublaslt-header", test_members);
    g_test_add_func("/cuda/cublaslt-attributes", test_attributes);
    return g_test_run();
}
