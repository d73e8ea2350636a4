/*
 * HnNvtx: ranges for a tool that watches the process through NVTX. Such a tool names its library in
 * NVTX_INJECTION64_PATH, and the library puts functions of its own into a table that it is given, as NVTX's header-only
 * library (version 3) does it; none of that library is needed.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef struct {
    int (*push)(const char *name); /* a range begins on this thread, ... */
    int (*pop)(void);              /* ... and the last one ends */
} HnNvtx;

/* NULL: nobody watches. */
const HnNvtx *hn_nvtx(void);

/* --- what the tool's library sees ------------------------------------------------------------------------------- */

typedef void (*HnNvtxFunction)(void);

typedef struct {
    size_t bytes; /* of this structure */
    /* Places of the module's functions by their numbers, one more than *n of them, the last one NULL; 0: none. */
    int (*functions)(int module, HnNvtxFunction ***places, unsigned *n);
} HnNvtxExport;

typedef const void *(*HnNvtxExportFn)(uint32_t table);
typedef int (*HnNvtxInitFn)(HnNvtxExportFn table);

enum {
    HN_NVTX_CALLBACKS = 1, /* the table that is an HnNvtxExport */
    HN_NVTX_CORE = 1,      /* modules */
    HN_NVTX_CORE2 = 5,
    HN_NVTX_PUSH = 9, /* functions of the core, RangePushA and RangePop, ... */
    HN_NVTX_POP = 11,
    HN_NVTX_FUNCTIONS = 16, /* ... and how many both modules have */
};
#define HN_NVTX_INIT "InitializeInjectionNvtx2"

G_END_DECLS
