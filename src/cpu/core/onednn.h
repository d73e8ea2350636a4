/*
 * oneDNN, opened when the first kernel wants it: loading and relocating its 50 MB takes longer than many a small model
 * runs, and more memory.
 *
 *     dnnl_status_t status = hn_dnnl(engine_create)(&engine, dnnl_cpu, 0);
 *
 * Only behind a reject() that went through hn_cpu_reject_onednn().
 */
#pragma once

#include <dnnl.h>

#include "base/cpu.h"

G_BEGIN_DECLS

typedef struct {
#define HN_DNNL(name) __typeof__(dnnl_##name) *name;
#include "cpu/core/onednn.def"
#undef HN_DNNL
    int (*max_threads)(void);   /* of the calling thread's next region in oneDNN */
    void (*set_threads)(int n); /* the same from now on */
    HnIsa isa;                  /* its kernels are of this level at most */
} HnOneDnn;

/* The library's functions; NULL: it is not there, or lacks one of them. Opened once, never closed. */
const HnOneDnn *hn_onednn(void);
/* Has anybody asked yet? */
gboolean hn_onednn_is_open(void);

#define hn_dnnl(name) (hn_onednn()->name)

G_END_DECLS
