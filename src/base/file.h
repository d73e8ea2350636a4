/*
 * Whole files in, whole files out.
 *
 * In: a regular file (also one given as stdin) is mapped read-only, so its bytes cost no private memory and start
 * page-aligned; pipes are read to their end into memory counted by the budget.
 *
 * Out: HnOutFile writes beside its target and puts the file into place, synced, in hn_out_commit(). Freed before that
 * it leaves nothing behind, and the target as it was; what a killed program leaves is removed by the next one that
 * writes the same target (base/temp.h). A link is followed, and may lead to a file that is not there yet. Devices,
 * pipes and "-" (stdout) are written directly.
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
/* As far as can be told without it: permissions of the file and of the folder, behind links. Errors: IO. */
gboolean hn_out_possible(const char *path, GError **error);
gboolean hn_out_write(HnOutFile *file, gconstpointer data, gsize size, GError **error);
guint64 hn_out_tell(const HnOutFile *file); /* bytes written so far */

/* path is stdout: "-", "/dev/stdout" and its like, or the file that stdout was directed to. */
gboolean hn_out_is_stdout(const char *path);
gboolean hn_out_is_file(const HnOutFile *file); /* FALSE: it is written directly */

/* Everything that can fail for lack of room or by a bad disk; nothing can be written afterwards. */
gboolean hn_out_sync(HnOutFile *file, GError **error);
/* What was written, of a file that is synced and has not got its name yet. */
GBytes *hn_out_bytes(HnOutFile *file, GError **error);
/* Sync and rename into place; nothing can be written afterwards. The file still has to be freed. */
gboolean hn_out_commit(HnOutFile *file, GError **error);
void hn_out_free(HnOutFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnOutFile, hn_out_free)

/* A file that gets its name, which is in the folder of path, only when it is complete and synced. hn_out_link() gives
 * it and keeps the temporary one beside path, where the file system has second names, until the file is freed: it is
 * what the next program finds after this one was killed in between (hn_temp_sweep()). */
HnOutFile *hn_out_open_beside(const char *path, GError **error);
gboolean hn_out_link(HnOutFile *file, const char *name, GError **error);

/* A new name in the folder of path reaches the disk; where that cannot be asked for, nothing is lost by going on. */
void hn_sync_folder(const char *path);

/* open, write all, commit */
gboolean hn_out_save(const char *path, gconstpointer data, gsize size, GError **error);

G_END_DECLS
