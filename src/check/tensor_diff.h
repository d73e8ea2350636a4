/*
 * Two tensors side by side: are they equal within a tolerance, and where do they differ most.
 *
 * Types and shapes have to be equal. Elements are equal where |got - want| <= atol + rtol * |want| + part * size, with
 * the size of the element's channel where sizes are given; NaN equals NaN and an infinity equals itself. With min_cos
 * only the cosine of the two, read as vectors, is judged: pairs of equal NaN or infinity are left out of it, a pair of
 * which only one is finite makes it NaN, which fails. Strings are equal or not. Of sequences, optionals and maps the
 * lengths have to be equal, and their elements as above: HnDiff adds these up, and `worst` is the element.
 */
#pragma once

#include <math.h>

#include "ir/tensor.h"

G_BEGIN_DECLS

/* A ratio of powers: infinite where there is no noise. */
static inline double hn_decibels(double signal, double noise)
{
    return noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}

typedef struct {
    double rtol, atol;
    double min_cos; /* NaN: judge element by element */
    double part;
    const double *size; /* of each channel; NULL: none of them count */
    int64_t step;       /* elements from one channel to the next: element i is of channel i / step % channels */
    int64_t channels;
    double turn;   /* of numbers on a circle: those that are this far apart are the same; 0: they are on none */
    double beyond; /* with sizes: magnitude from which on a number has none; only rtol and atol count */
} HnTolerance;

typedef struct {
    gboolean equal; /* within the tolerance */
    gboolean same_type, same_shape;
    int64_t n;        /* elements compared; 0 where type or shape differ */
    int64_t n_wrong;  /* elements beyond atol + rtol * |want| */
    double max_abs;   /* largest |got - want|, infinite where only one is NaN or infinite */
    double max_part;  /* largest |got - want| / size, infinite where the size is 0; 0 without sizes */
    double max_rel;   /* largest |got - want| / |want| where want is not 0 */
    double cos;       /* 1 where both are empty or all zero, 0 where one is */
    double sqnr;      /* power of want over power of got - want in dB: infinite where all are the same; NaN as cos */
    int64_t worst;    /* the element furthest beyond its tolerance (or nearest to it); -1: n is 0 */
    double got, want; /* there */
} HnDiff;

/* Returns diff->equal. Complex numbers count as two elements. */
gboolean hn_compare(const HnTensor *got, const HnTensor *want, const HnTolerance *tolerance, HnDiff *diff);

/* The same for numbers of any types: f16 beside f32, say; same_type tells. Not for strings of one side only. */
gboolean hn_compare_numbers(const HnTensor *got, const HnTensor *want, const HnTolerance *tolerance, HnDiff *diff);

/* What differs, for a person: "12 of 100 elements differ, most at [0,3]: 1.5 instead of 1.25"; free with g_free. */
char *hn_diff_describe(const HnDiff *diff, const HnTensor *got, const HnTensor *want, const HnTolerance *tolerance);

/* Indices of element i: "[0,3]"; free with g_free. */
char *hn_index_describe(const HnTensor *t, int64_t i);

G_END_DECLS
