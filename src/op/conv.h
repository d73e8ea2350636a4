/*
 * Parameters and geometry of Conv, ConvInteger, QLinearConv and ConvTranspose, for their records and for backends.
 */
#pragma once

#include "op/window.h"

G_BEGIN_DECLS

/* An attribute of gradients, in graphs that run: which kernel is the better one. No file has it. */
#define HN_CONV_FEW "few"

/* Params of Conv, ConvInteger, QLinearConv and ConvWeightGrad. */
typedef struct {
    HnWindow window;
    int64_t group;
    gboolean few; /* ConvWeightGrad: the gradient of the result is 0 nearly everywhere, as far as planning knows */
} HnConv;

/* Params of ConvTranspose. */
typedef struct {
    HnWindow window;
    int64_t group;
    const int64_t *output_padding; /* spatial axes of them; NULL: 0 */
    const int64_t *output_shape;   /* spatial axes of them; NULL: follows from the rest */
    int n_output;                  /* spatial axes that these two lists speak of; 0: neither is given */
    gboolean few;                  /* in a step of training: the input is 0 nearly everywhere */
} HnConvTranspose;

/*
 * A convolution with all sizes known: x [batch, group * in_channels, in...], w [group * out_channels, in_channels,
 * kernel...], y [batch, group * out_channels, out...].
 *
 * ConvTranspose is the adjoint of a convolution and described by that convolution's axes: axis[i].out is the size of
 * *its input*, axis[i].in that of its output; w is [group * in_channels, out_channels, kernel...].
 */
typedef struct {
    int n;                                           /* spatial axes */
    int64_t batch, group, in_channels, out_channels; /* channels of one group */
    int64_t x_plane, y_plane, taps;                  /* products of the spatial sizes; 0 where x, y or w is empty */
    HnWindowAxis axis[HN_MAX_RANK];
} HnConvPlan;

/* ndim is the rank of x and of w. Errors: ATTRIBUTE, SHAPE. */
gboolean hn_conv_plan(const HnConv *p, int ndim, const int64_t *x, int w_ndim, const int64_t *w, HnConvPlan *plan,
                      GError **error);
gboolean hn_conv_transpose_plan(const HnConvTranspose *p, int ndim, const int64_t *x, int w_ndim, const int64_t *w,
                                HnConvPlan *plan, GError **error);
/* Dims of the output of either: plan->n + 2 places. */
void hn_conv_out_dims(const HnConvPlan *plan, gboolean transposed, int64_t *dims);

/* Shared by the convolutions' records. */
void hn_conv_bind(HnBind *b, void *params);
/* Output 0 of inputs x and w (numbers of inputs), of type dtype. */
void hn_conv_infer(HnInfer *x, int ix, int iw, HnDtype dtype);
/* The reference convolution of f32, f64 or i32 memory; bias [group * out_channels] or NULL. FALSE: e->error is set. */
gboolean hn_conv_run(HnEval *e, const HnConvPlan *plan, HnDtype dtype, const void *x, const void *w, const void *bias,
                     void *y);

G_END_DECLS
