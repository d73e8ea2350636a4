/*
 * A model and its data file are put in place so that whoever looks, at any moment, finds a model with its own weights.
 *
 * The data file's name holds a hash of its content: OUT.HASH.data, HASH being the first 16 digits of its SHA-1. Both
 * files are complete and synced under no name, or a temporary one, before anything is put in place. Then, with the
 * folder locked (flock on its descriptor, which leaves nothing behind and ends with the program):
 *
 *   1. Each data file OUT.HASH.data that the model to be replaced names gets a temporary second name (base/temp.h).
 *   2. The new data file gets its name, besides its temporary one. One with the same content is used as it is.
 *   3. The model is renamed.
 *   4. The data files of 1 that no model in the folder names are removed, then the temporary names.
 *
 * A program killed before 3 leaves the old model with its old data, killed after it the new model with the new data. A
 * data file that is in doubt then has a temporary second name that nobody has locked: the next program that writes OUT
 * finds it and removes both where no model names it. Two writers exclude each other from 1 to 4, so that one's data
 * file is never in doubt to the other. Where a file system has no second names a killed program can leave a data file;
 * where folders cannot be locked no data file is removed.
 *
 * What a folder's models name is looked up in their bytes without raw_data. Models are the files *.onnx, and models
 * under names that begin as OUT's does (backups). A *.onnx that cannot be read counts as naming everything. Data files
 * under other names, OUT.data among them, are never removed: their names do not tell who wrote them.
 */
#pragma once

#include "base/file.h"

G_BEGIN_DECLS

#define HN_PAIR_HASH 16 /* hexadecimal digits */

/* "OUT.HASH.data" for the path of OUT, sum being the SHA-1 in hexadecimal digits; g_free(). */
char *hn_pair_data_name(const char *path, const char *sum);
/* The SHA-1 of bytes in hexadecimal digits; g_free(). */
char *hn_pair_sum(GBytes *bytes);

/* Puts both files in place, synced as they are. path: of the model; data is NULL where it has none, and freed in any
 * case. */
gboolean hn_pair_commit(HnOutFile *out, const char *path, HnOutFile *data, const char *sum, GError **error);

/* Removes a model, and what of its data files 4 would remove. */
void hn_pair_remove(const char *path);

G_END_DECLS
