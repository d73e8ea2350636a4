/*
 * Programs of hone that start others of it.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The folder that this program lies in; NULL where the system does not tell. g_free. */
char *hn_program_folder(void);

/* Becomes the program `name` with `args` (char *, without the name and without a NULL): the one beside this program,
 * else the one on PATH. Returns only where that fails: UNSUPPORTED where there is none, else IO. */
void hn_program_become(const char *name, const GPtrArray *args, GError **error);

G_END_DECLS
