/*
 * The backends without kernels: null plans everything and computes nothing, ref computes everything on the host.
 */
#include "run/backend.h"

static gpointer open_nothing(int index, GError **error)
{
    (void)index;
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

static gboolean never_equal(const HnLayout *a, const HnLayout *b)
{
    return a == b;
}

#define WITHOUT_KERNELS .open = open_nothing, .close = close_nothing, .kernels = no_kernels, .layout_equal = never_equal

const HnBackend hn_backend_null = { .name = "null", WITHOUT_KERNELS, .lowers = TRUE };
const HnBackend hn_backend_ref = { .name = "ref", WITHOUT_KERNELS, .computes = TRUE };
