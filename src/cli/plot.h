/*
 * Pictures that gnuplot draws, from commands that say what is in them: axes, titles, "plot '-' ..." with its data.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* USAGE: an ending other than .svg and .png; IO: there is no gnuplot. */
gboolean hn_plot_check(const char *path, GError **error);

void hn_plot_number(GString *out, double x, char after);
/* What a quoted text can hold: neither the end of it, nor a command in backquotes, nor an escape; g_free(). */
char *hn_plot_text(const char *text);

/* Runs it and writes the picture of that size, "900,500". IO: it fails. */
gboolean hn_plot_draw(const char *path, const char *size, const char *commands, GError **error);
/* The same as an element of a page, "<svg ...>...</svg>"; g_free(). */
char *hn_plot_svg(const char *size, const char *commands, GError **error);

G_END_DECLS
