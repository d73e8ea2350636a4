/*
 * A backend for tests whose memory the host cannot touch: a device without a device.
 *
 * Its memory is mapped twice: where the rest of the program sees it, reading and writing are a fault of the process;
 * the other mapping is this file's own. Kernels are the operators' refs. Nothing is done before it is waited for: a
 * result that is read too early is not there, a source that is overwritten too early has been copied already. New and
 * freed memory holds bytes that look like neither numbers nor zeros.
 */
#pragma once

#include "run/session.h"

G_BEGIN_DECLS

/* Operators run on it but for random ones, such with sub-graphs, strings, and results whose shape depends on elements.
 * Kernels are called fence.device, and fence.host where all inputs but the first are read on the host when it is
 * enqueued: choose it by HnSessionOptions.prefer. */
extern const HnBackend hn_backend_fence;

/* What was done on the device, over all its sessions. */
typedef struct {
    int uploads, downloads, copies, launches, waits, recorded, replays;
    gsize bytes; /* allocated at present */
} HnFenceCounts;
HnFenceCounts hn_fence_counts(const HnDevice *d);

/* The k-th allocation from now fails (1 is the next one), or the k-th kernel once it is waited for; 0: none. */
void hn_fence_fail(const HnDevice *d, int allocation, int kernel);

G_END_DECLS
