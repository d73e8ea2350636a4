/*
 * The end of memory. What follows from a file is counted by budgets, which say no with an error; this is for all else,
 * where g_malloc() would end a program by SIGTRAP, GLib's slices by SIGABRT and C++ by std::terminate().
 *
 * A tool's own malloc() (tools/malloc.c) asks hn_memory_may() first, and calls hn_memory_out() where a small block
 * cannot be had: that ends the process with one sentence and status 6. Results go into files without names until they
 * are complete, so ending anywhere leaves nothing behind. A large block that cannot be had is NULL: budgets turn that
 * into an error, and GLib's last words are caught.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_MEMORY_LARGE ((gsize)1 << 20) /* bytes: from here on malloc() may return NULL */

/* Once, before there are threads. name is the tool's; limit is what --mem-limit says, in bytes (0: nothing): from now
 * on private memory that goes beyond it by more than a twentieth and 16 MB is refused. Returns the limit for a budget:
 * that one, or what ulimit -v and ulimit -d leave where that is less; 0: none. */
gsize hn_memory_start(const char *name, gsize limit, int threads);

/* FALSE: n bytes more would go beyond the limit, as far as looks at every MB can tell. */
gboolean hn_memory_may(gsize n);
_Noreturn void hn_memory_out(void);

G_END_DECLS
