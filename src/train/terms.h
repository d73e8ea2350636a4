/*
 * "name:key=value:key=value": how options name a loss or an optimizer, with numbers that become attributes.
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

typedef struct {
    char *key;
    double value;
} HnTerm;

typedef struct {
    char *name;
    GArray *terms; /* HnTerm, in the order of the text */
} HnTerms;

/* Of text[0..n). what: for messages, "option '--loss'". Errors: USAGE. */
HnTerms *hn_terms_parse(const char *what, const char *text, gsize n, GError **error);
void hn_terms_free(HnTerms *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnTerms, hn_terms_free)
/* NaN: there is none. */
double hn_terms_get(const HnTerms *t, const char *key);
/* For a key that there is none of. */
void hn_terms_set(HnTerms *t, const char *key, double value);
/* All keys are in one of the `n` lists, ended by NULL or NULL themselves. Errors: USAGE that lists them. */
gboolean hn_terms_check(const HnTerms *t, const char *what, const char *const *const *lists, int n, GError **error);
/* Those that are among them become attributes of n: numbers, and integers. */
void hn_terms_apply(const HnTerms *t, const char *const *floats, const char *const *ints, HnNode *n);

G_END_DECLS
