#include "backends.h"

#include <string.h>

#include "cpu/core/cpu_backend.h"
#include "cuda/core/cuda_backend.h"

static const HnBackend *find_cuda(int index, GError **error)
{
    if (!hn_cuda_has_device(index, error))
        return NULL;
    return hn_backend_cuda(index);
}

const HnBackend *hn_backend_find(const char *device, GError **error)
{
    guint64 index;
    static const HnBackend *const backends[] = { &hn_backend_cpu, &hn_backend_null, &hn_backend_ref };
    if (device == NULL)
        return &hn_backend_cpu;
    for (size_t i = 0; i < G_N_ELEMENTS(backends); i++)
        if (strcmp(backends[i]->name, device) == 0)
            return backends[i];
    if (strcmp(device, "cuda") == 0)
        return find_cuda(0, error);
    if (g_str_has_prefix(device, "cuda:") && g_ascii_string_to_unsigned(device + 5, 10, 0, G_MAXINT32, &index, NULL))
        return find_cuda((int)index, error);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "device '%s' is none of cpu, cuda, null, ref", device);
    return NULL;
}
