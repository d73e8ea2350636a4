#include "backends.h"

#include <string.h>

#include "cpu/core/cpu_backend.h"
#include "cuda/core/cuda_backend.h"

const HnBackend *hn_backend_find(const char *device, GError **error)
{
    static const HnBackend *const backends[] = { &hn_backend_cpu, &hn_backend_null, &hn_backend_ref };
    if (device == NULL)
        return &hn_backend_cpu;
    for (size_t i = 0; i < G_N_ELEMENTS(backends); i++)
        if (strcmp(backends[i]->name, device) == 0)
            return backends[i];
    if (strcmp(device, "cuda") == 0 || g_str_has_prefix(device, "cuda:"))
        return hn_cuda_driver(error) != NULL ? &hn_backend_cuda : NULL;
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "device '%s' is none of cpu, cuda, null, ref", device);
    return NULL;
}
