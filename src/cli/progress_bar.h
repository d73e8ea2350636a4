/*
 * HnBar: the progress bar on a terminal. It appears after half a second, changes at most six times a second, shows rate
 * and time left, and is wiped when it ends. Where fd is not a terminal or enabled is FALSE it does nothing.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct HnBar HnBar;

HnBar *hn_bar_new(int fd, gboolean enabled);
void hn_bar_tell(gpointer bar, const char *what, guint64 done, guint64 total); /* an HnProgressFn; from any thread */
/* What is told from now on is of phase 1 to `phases` of the work, which the bar shows: "2/5 repairs". */
void hn_bar_phase(HnBar *bar, guint phase, guint phases);
/* One bar for work of several phases, of all of which `part` is done: from any thread. */
void hn_bar_part(HnBar *bar, const char *what, double part);
void hn_bar_wipe(HnBar *bar); /* before something else is printed; the next tell draws it again */
void hn_bar_free(HnBar *bar);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnBar, hn_bar_free)

/* Columns of the terminal behind fd: 80 where it does not say, 0 where fd is no terminal. */
int hn_terminal_width(int fd);
/* Columns that a character takes: 0, 1 or 2. */
int hn_terminal_char(gunichar c);
/* Appends a line and its end; what goes beyond `width` columns (0: no limit) follows indented, broken between words. A
 * line that begins with four blanks is a command to be copied, and not broken. */
void hn_terminal_wrap(GString *out, const char *line, int width);
/* The same with an indent of so many columns. */
void hn_terminal_wrap_to(GString *out, const char *line, int width, int indent);

G_END_DECLS
