/*
 * Pictures that gnuplot draws.
 */
#pragma once

#include "common.h"

/* USAGE: an ending other than .svg and .png; IO: there is no gnuplot. */
gboolean hn_plot_check(const char *path, GError **error);

/* The head of a script for a picture of that size, "900,500". */
void hn_plot_begin(GString *out, const char *path, const char *size);
void hn_plot_number(GString *out, double x, char after);
/* What a quoted text can hold: neither the end of it, nor a command in backquotes, nor an escape; g_free(). */
char *hn_plot_text(const char *text);

/* Runs it and writes the picture. IO: it fails. */
gboolean hn_plot_draw(const char *path, const char *script, GError **error);
