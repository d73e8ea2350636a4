/*
 * Tokens, types and tensors of ir/ir_text.h; nobody outside ir/ includes this.
 *
 * A function that returns FALSE or NULL has set x->error, with the line's number.
 */
#pragma once

#include "ir/ir_text.h"

G_BEGIN_DECLS

typedef struct {
    const char *start, *s; /* NUL-terminated text, and where we are */
    HnBudget *budget;
    int depth; /* of types in types and graphs in graphs */
    GError *error;
} HnLexer;

#define HN_TEXT_DEPTH 100

gboolean hn_lex_fail(HnLexer *x, const char *format, ...) G_GNUC_PRINTF(2, 3);
void hn_lex_blank(HnLexer *x); /* skips blanks, line ends and comments */
/* The text comes next: moves behind it. */
gboolean hn_lex_accept(HnLexer *x, const char *text);
/* The word comes next and ends there. */
gboolean hn_lex_word(HnLexer *x, const char *word);
gboolean hn_lex_expect(HnLexer *x, const char *text);
gboolean hn_lex_peek(HnLexer *x, char c);
/* A bare or double-quoted name; never empty. */
char *hn_lex_name(HnLexer *x);
gboolean hn_lex_int(HnLexer *x, int64_t *v);
gboolean hn_lex_real(HnLexer *x, double *v);
gboolean hn_lex_at_number(HnLexer *x, gboolean *real); /* a number comes next; written as a real one or not */
GBytes *hn_lex_string(HnLexer *x);                     /* 'text' */

HnType *hn_lex_type(HnLexer *x);
/* A type with fixed dimensions and perhaps elements; `name` seeds those that are not given. */
HnTensor *hn_lex_tensor(HnLexer *x, const char *name);
HnSparse *hn_lex_sparse(HnLexer *x, const char *name); /* behind the word sparse */

G_END_DECLS
