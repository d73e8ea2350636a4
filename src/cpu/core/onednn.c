#include "cpu/core/onednn.h"

#include <dlfcn.h>
#include <string.h>

#include "base/cpu.h"

#define LIBRARY "libdnnl.so.3"
#define FOLDER "hone" /* beside this library, or the program that this is in: where an installation has its own */

/* oneDNN's choice of instructions is one of the process, made before its first use. */
static void cap_isa(HnOneDnn *t)
{
    static const dnnl_cpu_isa_t isa[] = {
        [HN_ISA_NONE] = dnnl_cpu_isa_sse41,
        [HN_ISA_AVX2] = dnnl_cpu_isa_avx2,
        [HN_ISA_AVX512] = dnnl_cpu_isa_avx512_core,
        [HN_ISA_VNNI] = dnnl_cpu_isa_avx512_core_vnni,
        [HN_ISA_BF16] = dnnl_cpu_isa_avx512_core_bf16,
        [HN_ISA_AMX] = dnnl_cpu_isa_avx512_core_amx,
    };
    t->isa = hn_cpu_lowest_isa();
    if (t->isa < hn_cpu_machine_isa())
        t->set_max_cpu_isa(isa[t->isa]);
}

/* The installation's own, else the system's. */
static void *find_library(void)
{
    static const int how = RTLD_LAZY | RTLD_LOCAL;
    Dl_info here;
    void *library = NULL;
    if (dladdr((void *)hn_onednn, &here) != 0 && here.dli_fname != NULL && strchr(here.dli_fname, '/') != NULL) {
        g_autofree char *folder = g_path_get_dirname(here.dli_fname);
        g_autofree char *path = g_build_filename(folder, FOLDER, LIBRARY, NULL);
        library = dlopen(path, how);
    }
    return library != NULL ? library : dlopen(LIBRARY, how);
}

/* OpenMP's functions as oneDNN sees them: the program's own (tools/omp.c), else those of a library that came with it.
 * What this library's pragmas call is another thing (tools/libhone.map.in). */
static void *find_openmp(void *library, const char *name)
{
    void *f = dlsym(RTLD_DEFAULT, name);
    return f != NULL ? f : dlsym(library, name);
}

static HnOneDnn *open_library(void)
{
    void *library = find_library();
    HnOneDnn *t = g_new0(HnOneDnn, 1);
    gboolean whole = library != NULL;
    if (whole) {
        *(void **)&t->max_threads = find_openmp(library, "omp_get_max_threads");
        *(void **)&t->set_threads = find_openmp(library, "omp_set_num_threads");
        whole = t->max_threads != NULL && t->set_threads != NULL;
    }
#define HN_DNNL(name) \
    if (whole)        \
        whole = (*(void **)&t->name = dlsym(library, "dnnl_" #name)) != NULL;
#include "cpu/core/onednn.def"
#undef HN_DNNL
    if (!whole) {
        if (library != NULL)
            dlclose(library);
        g_free(t);
        return NULL;
    }
    cap_isa(t);
    return t;
}

static gsize opened; /* 0: not asked yet, 1: not there, else the table: a constant once made */

const HnOneDnn *hn_onednn(void)
{
    if (g_once_init_enter(&opened)) {
        HnOneDnn *t = open_library();
        g_once_init_leave(&opened, t != NULL ? (gsize)t : 1);
    }
    return opened != 1 ? (const HnOneDnn *)opened : NULL;
}

gboolean hn_onednn_is_open(void)
{
    return g_atomic_pointer_get(&opened) > 1;
}
