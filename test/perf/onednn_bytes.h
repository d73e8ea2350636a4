/*
 * oneDNN's convolutions of bytes, called by themselves: no kernel of hone's is made of them.
 */
#pragma once

#include <glib.h>

typedef struct {
    int n, c, h, w, m, k, stride, pad, dilation, group; /* images, channels, sizes, out channels, kernel */
} PerfConv;

/* The least time of u8 by s8 to u8, channels last, without scales, in us; measured for so many ns. NAN: it has none. */
double perf_onednn_bytes(const PerfConv *c, int threads, double ns);
