/*
 * Parameters of SVMRegressor and SVMClassifier, for records and backends.
 */
#pragma once

#include "op/ml.h"

typedef enum { HN_SVM_LINEAR, HN_SVM_POLY, HN_SVM_RBF, HN_SVM_SIGMOID } HnSvmKernel;

typedef struct {
    HnSvmKernel kernel;
    double gamma, coef0, degree;
    int64_t vectors, features;    /* support vectors; 0: coefficients are weights of features */
    const float *support;         /* [vectors, features] */
    const float *coefficients;    /* regressor: [vectors] or [features]; classifier: [classes - 1, vectors] or
                                     [classes, features] */
    const float *rho;             /* of each pair of classes, or one */
    HnMlTransform transform;      /* of a classifier */
    gboolean one_class;           /* of a regressor: 1 or -1 */
    int64_t classes, pairs;       /* of a classifier; pairs: classes * (classes - 1) / 2 */
    const int64_t *per_class;     /* [classes] support vectors of each class; NULL without any */
    const float *prob_a, *prob_b; /* of each pair; NULL: no probabilities */
    gboolean positive;            /* no coefficient is below 0 */
    HnMlLabels labels;
} HnSvm;
