/*
 * Polynomials with integer coefficients over atoms, and their text: what the arithmetic of ir/dim.h is made of. Nobody
 * outside ir/ includes this.
 *
 * Functions that return gboolean say FALSE where the result overflows or grows beyond the limits below.
 *
 * The text of an expression, and the only way to write it (that is what makes equal texts equal expressions):
 *
 *     sum    = ["-"] term { ("+" | "-") term }     by degree, highest first, then by name; the number comes last
 *     term   = number | [number "*"] atom { "*" atom }
 *     atom   = name | "'" any name with \' and \\ "'" | "floor(" sum "/" sum ")" | "ceil(" sum "/" sum ")"
 *            | "max(" sum "," sum ")" | "min(" sum "," sum ")"
 *
 * Sums under floor and ceil stand in parentheses where they have several terms. A lone name is written without quotes,
 * as in the file. Remainders are written a-b*floor(a/b).
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

enum {
    HN_POLY_TERMS = 24,
    HN_POLY_DEGREE = 8,
    HN_POLY_TEXT = 512,
    HN_POLY_DEPTH = 16, /* of atoms inside atoms */
};

typedef struct {
    int64_t c;
    int degree;
    const char *atoms[HN_POLY_DEGREE]; /* interned, sorted */
} HnTerm;

/* Sorted, no zero coefficients; n == 0 is the number 0. */
typedef struct {
    int n;
    HnTerm t[HN_POLY_TERMS];
} HnPoly;

/* What an atom is made of. word: NULL for a name, else one of floor, ceil, max, min. */
typedef struct {
    const char *word;
    char *name;
    HnPoly a, b;
} HnAtom;

/* A copy of the text that lives for ever, the same one at each call. Any thread. */
const char *hn_poly_intern(const char *text);

HnPoly hn_poly_number(int64_t c);
HnPoly hn_poly_atom(const char *atom); /* interned text of an atom */
gboolean hn_poly_is_number(const HnPoly *p, int64_t *c);

gboolean hn_poly_add_term(HnPoly *p, const HnTerm *t);
gboolean hn_poly_add_scaled(HnPoly *a, const HnPoly *b, int64_t c); /* a += b * c */
gboolean hn_poly_mul(const HnPoly *a, const HnPoly *b, HnPoly *out);
/* x / y where that leaves no remainder; y is not 0. */
gboolean hn_term_div(const HnTerm *x, const HnTerm *y, HnTerm *out);
gboolean hn_poly_div_exact(const HnPoly *a, const HnPoly *b, HnPoly *out);

gboolean hn_poly_is_name(const char *s); /* needs no quotes */
void hn_poly_print_name(const char *name, GString *out);
void hn_poly_print(const HnPoly *p, GString *out);
/* "floor(a/b)" or "max(a,b)", interned; NULL: too long. */
const char *hn_poly_make_atom(const char *word, const HnPoly *a, const HnPoly *b);
/* The atom that starts at *s, which moves behind it; depth 0 for a caller outside. x->name is the caller's to free. */
gboolean hn_poly_parse_atom(const char **s, HnAtom *x, int depth);
/* An expression written the canonical way that is neither a number nor a lone quoted name; FALSE: a name. */
gboolean hn_poly_parse(const char *text, HnPoly *p, int depth);

G_END_DECLS
