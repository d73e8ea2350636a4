/*
 * Reading the texts of a case (case.h): tensors and attributes.
 */
#pragma once

#include "base/rng.h"
#include "ir/graph.h"

typedef struct {
    HnTensor *tensor; /* NULL: absent; for an expectation without elements: see `open` */
    gboolean weight;  /* written with '!' */
    gboolean open;    /* no elements given: random for an input, shape only for an expectation */
} HnSpec;

void hn_spec_clear(HnSpec *s);
/* Words separated by blanks, blanks inside quotes, braces and brackets kept. NULL gives none. Free with g_strfreev. */
char **hn_spec_words(const char *text);
/* One input or expectation. Asserts on bad syntax: cases are our own. */
HnSpec hn_spec_parse(const char *word, HnRng *rng);
HnAttr *hn_spec_attr(const char *word);
