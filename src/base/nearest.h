/*
 * What somebody may have meant: names that are most like a given one, by the number of edits between them (a character
 * inserted, left out or replaced, two neighbours swapped).
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The member of names (NULL-terminated) most like name, NULL where none is near. */
const char *hn_nearest(const char *name, const char *const *names);

/*
 * The end of an error that says that there is no `asked`: "; the nearest are 'a', 'b' and 'c'", the most like first,
 * "; there is 'a'" or "; there is none". What is asked for may be a regular expression, or a part of a name: it is
 * looked for inside names, without regard to case and to characters that are not plain text in an expression. Names
 * that come several times count once. g_free.
 */
char *hn_nearest_words(const char *asked, const char *const *names);

G_END_DECLS
