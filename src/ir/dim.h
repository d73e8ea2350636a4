/*
 * One dimension of a shape: a number, a symbolic expression, or unknown.
 *
 * A symbolic dimension is an interned text in canonical form ("N", "2*N+1", "floor((h+1)/2)"): two dimensions with the
 * same text are equal. Arithmetic works on polynomials with integer coefficients over atoms; an atom is a name of the
 * file or an opaque floor/ceil/max/min expression. Where a result cannot be written down it is unknown, which
 * equals nothing, itself included.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef struct {
    int64_t n;       /* >= 0: known (negative numbers occur only inside shape arithmetic, with sym == NULL and known) */
    const char *sym; /* interned; NULL where the number is known */
    gboolean known;  /* n is the value */
} HnDim;

static inline HnDim hn_dim(int64_t n)
{
    return (HnDim){ n, NULL, TRUE };
}
static inline HnDim hn_dim_unknown(void)
{
    return (HnDim){ -1, NULL, FALSE };
}
/* A name as found in a file (dim_param). The text is taken as one atom unless it is a canonical expression of ours. */
HnDim hn_dim_symbol(const char *name);

static inline gboolean hn_dim_is(HnDim d, int64_t n)
{
    return d.known && d.n == n;
}
/* Known to be equal: both known and same number, or same expression. */
gboolean hn_dim_equal(HnDim a, HnDim b);
/* Known to differ: both known and different, or the difference of the expressions is a non-zero number. */
gboolean hn_dim_differ(HnDim a, HnDim b);

/* Overflow gives unknown. */
HnDim hn_dim_add(HnDim a, HnDim b);
HnDim hn_dim_sub(HnDim a, HnDim b);
HnDim hn_dim_mul(HnDim a, HnDim b);
HnDim hn_dim_floor_div(HnDim a, HnDim b); /* exact quotients of polynomials are taken; division by 0 is unknown */
HnDim hn_dim_ceil_div(HnDim a, HnDim b);
HnDim hn_dim_mod(HnDim a, HnDim b);
HnDim hn_dim_max(HnDim a, HnDim b);
HnDim hn_dim_min(HnDim a, HnDim b);

/* Value of an expression with names bound: table of name -> int64_t (GINT_TO_POINTER not used; values are int64_t *).
 * FALSE when a name is missing or the result overflows. */
gboolean hn_dim_eval(HnDim d, GHashTable *names, int64_t *value);
/* Appends "8", "2*N+1" or "?". */
void hn_dim_print(HnDim d, GString *out);

G_END_DECLS
