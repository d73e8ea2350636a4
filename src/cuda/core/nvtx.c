#include "cuda/core/nvtx.h"

#include <dlfcn.h>

/* A constant once the library has filled it in, which gets no pointer of ours to it: places, and what is put there. */
static struct {
    HnNvtxFunction there[2][HN_NVTX_FUNCTIONS];
    HnNvtxFunction *places[2][HN_NVTX_FUNCTIONS + 1];
    HnNvtx nvtx;
} table;

static gsize opened;

static int functions(int module, HnNvtxFunction ***places, unsigned *n)
{
    const int which = module == HN_NVTX_CORE ? 0 : module == HN_NVTX_CORE2 ? 1 : -1;
    if (which < 0)
        return 0;
    if (places != NULL)
        *places = table.places[which];
    if (n != NULL)
        *n = HN_NVTX_FUNCTIONS;
    return 1;
}

static const void *export_table(uint32_t which)
{
    static const HnNvtxExport callbacks = { sizeof callbacks, functions };
    return which == HN_NVTX_CALLBACKS ? &callbacks : NULL;
}

static void open_library(void)
{
    const char *name = g_getenv("NVTX_INJECTION64_PATH");
    void *library = name != NULL && *name != '\0' ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
    HnNvtxInitFn init = NULL;
    if (library == NULL || (*(void **)&init = dlsym(library, HN_NVTX_INIT)) == NULL)
        return;
    for (int m = 0; m < 2; m++)
        for (int i = 1; i < HN_NVTX_FUNCTIONS; i++)
            table.places[m][i] = &table.there[m][i];
    if (init(export_table) == 0 || table.there[0][HN_NVTX_PUSH] == NULL || table.there[0][HN_NVTX_POP] == NULL)
        return;
    table.nvtx.push = (int (*)(const char *))(void *)table.there[0][HN_NVTX_PUSH];
    table.nvtx.pop = (int (*)(void))(void *)table.there[0][HN_NVTX_POP];
}

const HnNvtx *hn_nvtx(void)
{
    if (g_once_init_enter(&opened)) {
        open_library();
        g_once_init_leave(&opened, 1);
    }
    return table.nvtx.push != NULL ? &table.nvtx : NULL;
}
