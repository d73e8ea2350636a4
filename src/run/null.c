/*
 * The backends without kernels: null plans everything and computes nothing, ref computes everything on the host.
 */
#include "run/backend.h"

static gpointer open_nothing(int threads, GError **error)
{
    (void)threads;
    (void)error;
    return NULL;
}

static void close_nothing(gpointer device)
{
    (void)device;
}

static const HnKernel *const *no_kernels(const HnOp *op)
{
    (void)op;
    return NULL;
}

static gsize no_bytes(gpointer device)
{
    (void)device;
    return 0;
}

static gboolean never_equal(const HnLayout *a, const HnLayout *b)
{
    return a == b;
}

#define WITHOUT_KERNELS                                                                            \
    .open = open_nothing, .close = close_nothing, .kernels = no_kernels, .packed_bytes = no_bytes, \
    .layout_equal = never_equal

const HnBackend hn_backend_null = { .name = "null", WITHOUT_KERNELS };
const HnBackend hn_backend_ref = { .name = "ref", WITHOUT_KERNELS, .computes = TRUE };
