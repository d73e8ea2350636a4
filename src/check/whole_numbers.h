/*
 * What integers of a graph are: real numbers that were rounded, as boxes in whole pixels, counts, lengths; or names and
 * places, which are right or wrong.
 *
 * Both look alike. Where they come from tells: a real number that element by element becomes an integer stays one, and
 * whatever moves it or computes with it element by element, too. What an operator says of floats otherwise (the largest
 * is the third) is a place.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

/* v, integers in a graph whose operators are bound, is of real numbers. */
gboolean hn_whole_numbers_are_real(const HnValue *v);

G_END_DECLS
