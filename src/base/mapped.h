/*
 * What a signal handler may have to know: which files are mapped where, which temporary files have names, and whether
 * a thread waits for what cannot be ended.
 *
 * A mapped file that another program cuts short has no bytes behind its new end: whoever reads there gets SIGBUS. The
 * library installs no handler for it; a program that does can ask here, whatever thread was hit, which file it was, and
 * remove what it would leave behind. The handler's functions take no lock and allocate nothing.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct HnGuard HnGuard;

/* size bytes from start on are those of the file called name, until hn_guard_end(), which comes before munmap(). */
HnGuard *hn_guard_mapping(gconstpointer start, gsize size, const char *name);
/* path is a temporary file's, to be removed however the program ends. */
HnGuard *hn_guard_temp(const char *path);
void hn_guard_end(HnGuard *guard); /* NULL is fine */

/* The file that the address belongs to; NULL: none. For signal handlers. */
const char *hn_guard_find(gconstpointer address);
/* Removes the temporary files. For signal handlers that end the program. */
void hn_guard_unlink(void);

/* Around a wait that nobody can end, as that for a device is. */
void hn_guard_wait_begin(void);
void hn_guard_wait_end(void);
/* The number of the one that began last, where a thread is in one; 0: none is. For signal handlers. */
guint hn_guard_waits(void);

G_END_DECLS
