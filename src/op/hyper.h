/*
 * What an optimizer is told at each step (op/optimizer.h); plain numbers, for kernels of any kind.
 */
#pragma once

/* Elements of input `hyper`, f32[4]: what changes from step to step. */
enum {
    HN_HYPER_RATE,   /* learning rate */
    HN_HYPER_FIRST,  /* 1 / (1 - beta1^t) in step t, from 1 on */
    HN_HYPER_SECOND, /* 1 / (1 - beta2^t) */
    HN_HYPER_SCALE,  /* what gradients are multiplied by first; not finite: the step is skipped */
    HN_HYPERS
};

#define HN_CLIP_EPSILON 1e-6 /* beside the norm that ClipByNorm divides its limit by */
