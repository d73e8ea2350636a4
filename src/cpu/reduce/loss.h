/*
 * The loops of losses over rows, for loss.c at the machine's instruction level. Elements are f32, sums double.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/* A row whose elements are taken as (x - most) * by. */
typedef struct {
    const float *x;
    float most, by;
} HnSoftRow;

/* Sums of products of two rows. */
typedef struct {
    double ab, aa, bb;
} HnRowDots;

typedef struct {
    double (*sum)(const float *x, int64_t n, float most);                /* of x - most */
    double (*squares)(const float *x, int64_t n, double mean);           /* of (x - mean)^2 */
    double (*powers)(const HnSoftRow *a, int64_t n);                     /* of e^a */
    double (*powers_kept)(float *y, const HnSoftRow *a, int64_t n);      /* the same, of which each becomes y */
    double (*excess)(const HnSoftRow *a, const HnSoftRow *b, int64_t n); /* of e^b (b - a) */
    /* y = e^a * of_a - e^b * of_b; the sum of y * a */
    double (*difference)(float *y, const HnSoftRow *a, const HnSoftRow *b, float of_a, float of_b, int64_t n);
    void (*dots)(HnRowDots *sums, const float *a, const float *b, int64_t n);
    /* y = a * of_a + (b - most) * of_b + c */
    void (*mix)(float *y, const float *a, float of_a, const float *b, float most, float of_b, float c, int64_t n);
} HnLossFns;
