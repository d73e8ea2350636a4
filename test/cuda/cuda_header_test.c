/*
 * What src/cuda/core/cuda_driver.h declares of the driver is what CUDA's own header says: built only where that is.
 */
#include <cuda.h>
#include <glib.h>

#include "cuda/core/cuda_driver.h"

/* Enumerations are passed as unsigned numbers. */
#define HN_CU(name, symbol, arguments) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), CUresult(*) arguments), #symbol);
#include "cuda/core/cuda_driver.def"
#undef HN_CU

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(HN_CU_SUCCESS, CUDA_SUCCESS);
SAME(HN_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(HN_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(HN_CU_STUB, CUDA_ERROR_STUB_LIBRARY);
SAME(HN_CU_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(HN_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(HN_CU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(HN_CU_NO_BINARY, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(HN_CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(HN_CU_SHARED_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(HN_CU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(HN_CU_SM_THREADS, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(HN_CU_SM_SHARED, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(HN_CU_SM_REGISTERS, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME(HN_CU_SM_BLOCKS, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
SAME(HN_CU_RESERVED_SHARED, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
SAME(HN_CU_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(HN_CU_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(HN_CU_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(HN_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(HN_CU_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(HN_CU_MAP_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(HN_CU_MAP_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME(HN_CU_MAP_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(HN_CU_MAP_SWIZZLE_128, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(HN_CU_MAP_PROMOTE_128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
_Static_assert(sizeof(HnCuTensorMap) == sizeof(CUtensorMap), "CUtensorMap");
SAME(HN_CU_CAPTURE_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

static void test_members(void)
{
    const size_t functions = 0
#define HN_CU(name, symbol, arguments) +1
#include "cuda/core/cuda_driver.def"
#undef HN_CU
        ;
    g_assert_cmpuint(sizeof(HnCudaDriver), ==, functions * sizeof(void (*)(void))); /* nothing else is in it */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda/header", test_members);
    return g_test_run();
}
