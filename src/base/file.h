/*
 * Whole files in, whole files out.
 *
 * In: a regular file (also one given as stdin) is mapped read-only, so its bytes cost no private memory and start
 * page-aligned; pipes are read to their end into memory counted by the budget.
 *
 * Out: HnOutFile writes beside its target and puts the file into place, synced, in hn_out_commit(). Freed before that
 * it leaves nothing behind, and the target as it was. Devices, pipes and "-" (stdout) are written directly.
 */
#pragma once

#include <glib.h>

#include "base/budget.h"

G_BEGIN_DECLS

/* The content of a file; "-" is stdin. Errors: HN_ERROR_IO, HN_ERROR_BUDGET. budget may be NULL. */
GBytes *hn_file_bytes(const char *path, HnBudget *budget, GError **error);
GBytes *hn_stdin_bytes(HnBudget *budget, GError **error);

/* The same of a file that is small if it is right, and may be one without end. Errors: FORMAT: more than `most` bytes.
 */
GBytes *hn_file_bytes_most(const char *path, gsize most, HnBudget *budget, GError **error);

/* The same for an open descriptor, from where it stands; name is for messages. fd stays open. */
GBytes *hn_fd_bytes(int fd, const char *name, HnBudget *budget, GError **error);

typedef struct HnOutFile HnOutFile;

HnOutFile *hn_out_open(const char *path, GError **error);
gboolean hn_out_write(HnOutFile *file, gconstpointer data, gsize size, GError **error);
guint64 hn_out_tell(const HnOutFile *file); /* bytes written so far */

/* Sync and rename into place; nothing can be written afterwards. The file still has to be freed. */
gboolean hn_out_commit(HnOutFile *file, GError **error);
void hn_out_free(HnOutFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnOutFile, hn_out_free)

/* open, write all, commit */
gboolean hn_out_save(const char *path, gconstpointer data, gsize size, GError **error);

G_END_DECLS
