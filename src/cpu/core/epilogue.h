/*
 * The epilogue of convolutions and matrix products, computed before results are stored: activations, a residual sum,
 * and constants per channel (a bias that is a node of its own, BatchNormalization).
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "cpu/core/post.h"
#include "cpu/elementwise/unary.h"

G_BEGIN_DECLS

typedef enum {
    HN_EPILOGUE_RELU,
    HN_EPILOGUE_LEAKY, /* y < 0: a * y */
    HN_EPILOGUE_CLIP,  /* into [a, b] */
    HN_EPILOGUE_SIGMOID,
    HN_EPILOGUE_HARDSIGMOID, /* a * y + b into [0, 1] */
    HN_EPILOGUE_SWISH,       /* y * sigmoid(a * y) */
    HN_EPILOGUE_GELU,        /* with erf */
    HN_EPILOGUE_GELU_TANH,
    HN_EPILOGUE_HARDSWISH, /* y * (y / 6 + 1/2 into [0, 1]) */
    HN_EPILOGUE_ADD,       /* the slot of a port, of the result's shape */
    HN_EPILOGUE_AFFINE,    /* y * scale[c] + shift[c] */
} HnEpilogueKind;

typedef struct {
    HnEpilogueKind kind;
    float a, b;
    HnUnary unary; /* the loop of an activation other than clip */
    int port;
    float *scale, *shift; /* one each per channel; scale NULL: all 1 */
} HnEpilogueOp;

typedef struct {
    int n; /* of op, one for each fused node */
    int64_t channels;
    HnEpilogueOp *op;
} HnEpilogue;

/* Is every fused node of the step one of these? `axis` is the result's axis of channels. */
gboolean hn_epilogue_fits(const HnStep *s, int axis);
/* HnKernel.fuses of a convolution of f32: the step has these nodes, or none, behind it. */
gboolean hn_epilogue_conv_fuses(const HnStep *s);
/* Reads the fused nodes, which fit, and their constants; ports that run() need not read are marked. */
void hn_epilogue_init(HnEpilogue *a, HnStep *s, int axis);
void hn_epilogue_clear(HnEpilogue *a);

/* What the first n operations, which are AFFINE, make of a channel's sum, to which *shift is added already: sum *
 * *scale + *shift. */
void hn_epilogue_constants(const HnEpilogue *a, int n, int64_t channel, double *scale, double *shift);

/* Row of n results of one channel, or (channel < 0) one result of each of n channels; at: index of the first. */
void hn_epilogue_row(const HnEpilogue *a, const HnStep *s, float *y, int64_t at, int64_t n, int64_t channel);

/* What a kernel that computes rows of channels by tiles (cpu/gemm/gemm_kernel.h) leaves to their end. */
typedef struct {
    int rest;     /* the first that is left to hn_epilogue_rest() */
    int add_port; /* of a residual sum; -1: none */
    float lo, hi; /* what results are clamped to behind that */
} HnEpilogueEnd;

/* Those from `first` on. */
HnEpilogueEnd hn_epilogue_end(const HnEpilogue *a, int first);
/* For a kernel that has post operations between the sum and the bounds: those that can be such a one do not belong to
 * the rest, but become post[HN_FUSED_MAX + 1]. How many. */
int hn_epilogue_posts(const HnEpilogue *a, HnEpilogueEnd *e, HnPost *post);
/* Behind that, for one that has post operations of finished rows: the first ones of the rest that can be such a one
 * become late[HN_FUSED_MAX]. How many. */
int hn_epilogue_late(const HnEpilogue *a, HnEpilogueEnd *e, HnPost *late);
/* The fused nodes are no more than that: a sum with a value that is no weight, then bounds, or one of them. */
gboolean hn_epilogue_is_end(const HnStep *s, int axis);
/* Those from `first` on, for channels [col, col + cols) of rows [row, row + rows) of y, which are `pitch` apart; the
 * rows of residual sums are as far apart as their slots say where they lie channels last. */
void hn_epilogue_rest(const HnEpilogue *a, int first, const HnStep *s, float *y, int64_t pitch, int64_t row,
                      int64_t rows, int64_t col, int64_t cols);

/* oneDNN attributes that do the same to a result of these dims, in bf16 where `bf16`: NULL when oneDNN cannot. To be
 * destroyed. */
dnnl_primitive_attr_t hn_epilogue_attr(const HnEpilogue *a, int ndim, const int64_t *dims, int axis, gboolean bf16);
/* Arguments of the primitive that carry operands, behind the n there are: the new n. Asks ports for layouts. */
int hn_epilogue_args(const HnEpilogue *a, HnStep *s, const_dnnl_primitive_desc_t pd, int *args, int n);
/* Their data, in the same order. */
int hn_epilogue_data(const HnEpilogue *a, const HnStep *s, void **data, int n);

G_END_DECLS
