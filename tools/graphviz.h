/*
 * Graphs that graphviz's dot lays out and draws.
 */
#pragma once

#include "common.h"

/* IO: there is no dot. */
gboolean hn_dot_check(GError **error);

/* What a quoted text can hold: no end of it, no escape; g_free(). */
char *hn_dot_text(const char *text);

/* Runs it on `script` and writes the picture to path; nodes: how many it has, which decides how hard dot tries. IO: it
 * fails. */
gboolean hn_dot_draw(const char *path, const char *script, guint nodes, GError **error);
