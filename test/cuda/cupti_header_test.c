/*
 * What src/cuda/core/cupti.h declares of CUPTI is what its own headers say, of each version of its records: built only
 * where they are.
 */
#include <cupti.h>
#include <glib.h>
#include <stddef.h>

#include "cuda/core/cupti.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define SAME_PLACE(ours, member, theirs, its)                                          \
    _Static_assert(offsetof(ours, member) == offsetof(theirs, its), #theirs " " #its); \
    _Static_assert(sizeof(((ours *)NULL)->member) == sizeof(((theirs *)NULL)->its), #theirs " " #its)

SAME(HN_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(HN_CUPTI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
SAME(HN_CUPTI_MAX_LIMIT, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(HN_CUPTI_HELD, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(HN_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(HN_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(HN_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(HN_CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(HN_CUPTI_TO_DEVICE, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(HN_CUPTI_TO_HOST, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
_Static_assert(CUPTI_API_VERSION >= HN_CUPTI_OLDEST && CUPTI_API_VERSION <= HN_CUPTI_NEWEST, "version");

/* The last 8 bytes of ours are the last ones that are read. */
#define KERNEL(theirs)                                                      \
    _Static_assert(sizeof(HnCuptiKernel) <= sizeof(theirs), #theirs);       \
    SAME_PLACE(HnCuptiKernel, kind, theirs, kind);                          \
    SAME_PLACE(HnCuptiKernel, registers, theirs, registersPerThread);       \
    SAME_PLACE(HnCuptiKernel, start, theirs, start);                        \
    SAME_PLACE(HnCuptiKernel, end, theirs, end);                            \
    SAME_PLACE(HnCuptiKernel, device, theirs, deviceId);                    \
    SAME_PLACE(HnCuptiKernel, context, theirs, contextId);                  \
    SAME_PLACE(HnCuptiKernel, stream, theirs, streamId);                    \
    SAME_PLACE(HnCuptiKernel, grid[0], theirs, gridX);                      \
    SAME_PLACE(HnCuptiKernel, grid[2], theirs, gridZ);                      \
    SAME_PLACE(HnCuptiKernel, block[0], theirs, blockX);                    \
    SAME_PLACE(HnCuptiKernel, block[2], theirs, blockZ);                    \
    SAME_PLACE(HnCuptiKernel, static_shared, theirs, staticSharedMemory);   \
    SAME_PLACE(HnCuptiKernel, dynamic_shared, theirs, dynamicSharedMemory); \
    SAME_PLACE(HnCuptiKernel, correlation, theirs, correlationId);          \
    SAME_PLACE(HnCuptiKernel, name, theirs, name);                          \
    SAME_PLACE(HnCuptiKernel, graph_node, theirs, graphNodeId)
#define COPY(theirs)                                                \
    _Static_assert(sizeof(HnCuptiCopy) <= sizeof(theirs), #theirs); \
    SAME_PLACE(HnCuptiCopy, kind, theirs, kind);                    \
    SAME_PLACE(HnCuptiCopy, way, theirs, copyKind);                 \
    SAME_PLACE(HnCuptiCopy, bytes, theirs, bytes);                  \
    SAME_PLACE(HnCuptiCopy, start, theirs, start);                  \
    SAME_PLACE(HnCuptiCopy, end, theirs, end);                      \
    SAME_PLACE(HnCuptiCopy, stream, theirs, streamId);              \
    SAME_PLACE(HnCuptiCopy, correlation, theirs, correlationId);    \
    SAME_PLACE(HnCuptiCopy, graph_node, theirs, graphNodeId)
#define FILL(theirs)                                                \
    _Static_assert(sizeof(HnCuptiFill) <= sizeof(theirs), #theirs); \
    SAME_PLACE(HnCuptiFill, kind, theirs, kind);                    \
    SAME_PLACE(HnCuptiFill, bytes, theirs, bytes);                  \
    SAME_PLACE(HnCuptiFill, start, theirs, start);                  \
    SAME_PLACE(HnCuptiFill, end, theirs, end);                      \
    SAME_PLACE(HnCuptiFill, stream, theirs, streamId);              \
    SAME_PLACE(HnCuptiFill, correlation, theirs, correlationId);    \
    SAME_PLACE(HnCuptiFill, graph_node, theirs, graphNodeId)

KERNEL(CUpti_ActivityKernel7);
KERNEL(CUpti_ActivityKernel8);
KERNEL(CUpti_ActivityKernel9);
COPY(CUpti_ActivityMemcpy5);
FILL(CUpti_ActivityMemset3);
FILL(CUpti_ActivityMemset4);
#if CUPTI_API_VERSION >= 130000
KERNEL(CUpti_ActivityKernel10);
COPY(CUpti_ActivityMemcpy6);
#endif

/* All of them are there, and take what stands for their arguments: enumerations, handles and pointers. */
_Static_assert(sizeof(CUpti_ActivityKind) == sizeof(int) && sizeof(CUptiResult) == sizeof(int), "enumerations");
_Static_assert(sizeof(HnCuContext) == sizeof(CUcontext), "handles");
#define HN_CUPTI(name, symbol, arguments) _Static_assert(sizeof(&symbol) > 0, #symbol);
#include "cuda/core/cupti.def"
#undef HN_CUPTI

static void test_members(void)
{
    const size_t functions = 0
#define HN_CUPTI(name, symbol, arguments) +1
#include "cuda/core/cupti.def"
#undef HN_CUPTI
        ;
    g_assert_cmpuint(sizeof(HnCupti), ==, functions * sizeof(void (*)(void))); /* nothing else is in it */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cuda/cupti-header", test_members);
    return g_test_run();
}
