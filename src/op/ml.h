/*
 * What the operators of domain ai.onnx.ml share: rows of features, class labels, what is done with scores at the end.
 *
 * The standard leaves much of this open. Where it does, the rules are those of ONNX Runtime, which models are made for.
 */
#pragma once

#include "op/op.h"

G_BEGIN_DECLS

#define HN_DOMAIN_ML "ai.onnx.ml"
#define HN_ML_OPSET_MAX 5 /* newest version of it that hone knows */
#define HN_ML_LABEL_TYPES (HN_BIT(HN_STRING) | HN_BIT(HN_I64))
#define HN_ML_NUMBERS (HN_BIT(HN_F32) | HN_BIT(HN_F64) | HN_BIT(HN_I64) | HN_BIT(HN_I32))

typedef enum { HN_ML_NONE, HN_ML_SOFTMAX, HN_ML_LOGISTIC, HN_ML_SOFTMAX_ZERO, HN_ML_PROBIT } HnMlTransform;

/* What the second class of two gets where there is one score, and LOGISTIC only changes signed ones. */
typedef enum {
    HN_ML_ONE,        /* nothing: the score stays alone */
    HN_ML_COMPLEMENT, /* { 1 - s, s } */
    HN_ML_SIGNED,     /* { -s, s } */
} HnMlSecond;

/* Texts or integers; strings NULL: integers. Borrowed from attributes. */
typedef struct {
    int64_t n;
    GBytes *const *strings;
    const int64_t *ints;
} HnMlLabels;

/* Borrowed from the attribute; NULL and *n = 0 where it is absent or empty. */
GBytes *const *hn_ml_bind_strings(HnBind *b, const char *name, int64_t *n);
/* A list of strings or of integers, of which not both may have elements. */
void hn_ml_bind_labels(HnBind *b, const char *strings, const char *ints, HnMlLabels *labels);
/* Attribute `post_transform`. */
HnMlTransform hn_ml_bind_transform(HnBind *b);

/* A tensor of [rows, features], or one row of rank 1. Failure for other ranks. */
gboolean hn_ml_rows(HnEval *e, const HnTensor *x, int64_t *rows, int64_t *features);
/* Output k is [rows of input 0, n]. */
void hn_ml_infer_scores(HnInfer *x, int k, HnDtype dtype, int64_t n);
/* Output k is [rows of input 0]. */
void hn_ml_infer_labels(HnInfer *x, int k, const HnMlLabels *labels);
/* Output k with room for `rows` labels; NULL: failed. hn_ml_label() stores number c of the labels at row i. */
void *hn_ml_labels_out(HnEval *e, int k, const HnMlLabels *labels, int64_t rows);
void hn_ml_label(HnTensor *y, int64_t i, const HnMlLabels *labels, int64_t c);

/* n elements from i on, as doubles. */
void hn_ml_read(double *v, const HnTensor *x, int64_t i, int64_t n);
/* Output k with room for f32; NULL: failed. */
float *hn_ml_floats_out(HnEval *e, int k, int ndim, const int64_t *dims);

/* In place, over the scores of a row. */
void hn_ml_transform(double *s, int64_t n, HnMlTransform transform);
/* One score becomes s[0], or s[0] and s[1]; returns how many. */
int hn_ml_second(double *s, HnMlSecond second, HnMlTransform transform);
double hn_ml_logistic(double v);

G_END_DECLS
