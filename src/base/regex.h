/*
 * Patterns that people type, or that a recipe holds, over names that come out of a model: both may be meant to keep a
 * matcher busy for ever. A pattern is at most HN_REGEX_BYTES long, and so is a name; from each place of a name so many
 * steps are tried and no more, and all names together may take a second of processor time.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_REGEX_BYTES 2000

typedef struct HnRegex HnRegex;

/* A pattern of Perl. Errors: USAGE saying what is wrong with it. */
HnRegex *hn_regex_new(const char *pattern, GError **error);
/* The same for who matches by himself, texts of any length: from one place so many steps are tried, behind which GRegex
 * fails. The pattern does not begin with limits of its own. */
GRegex *hn_regex_limited(const char *pattern, int steps, GRegexCompileFlags flags, GError **error);
void hn_regex_free(HnRegex *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnRegex, hn_regex_free)

/* *found: it is somewhere in `name`, of which bytes that are no UTF-8 count as U+FFFD. Errors: USAGE: that takes more
 * steps, or time, than it may. */
gboolean hn_regex_find(HnRegex *r, const char *name, gboolean *found, GError **error);

G_END_DECLS
