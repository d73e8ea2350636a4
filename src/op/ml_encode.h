/*
 * Parameters of OneHotEncoder, LabelEncoder and CategoryMapper.
 */
#pragma once

#include "op/ml.h"

typedef struct {
    HnMlLabels categories;
    gboolean zeros; /* what is no category is all zeros; else an error */
} HnOneHotEncoder;

/* A list of keys or values: one of these. */
typedef struct {
    HnDtype dtype; /* of the elements that it stands for */
    int64_t n;
    GBytes *const *strings;
    const int64_t *ints;
    const float *floats;
    const HnTensor *tensor;
} HnMlList;

typedef struct {
    HnMlList keys, values;
    HnMlList other; /* one element: what is no key becomes this */
    /* Forms that go both ways, from strings to integers and back: CategoryMapper, LabelEncoder of version 1. */
    gboolean both;
    int64_t other_int;
    float other_float;
    GBytes *other_string;
} HnMlMapping;
