/*
 * Which files of pictures or sound a folder or a list names, and their labels.
 *
 *   FOLDER            its files, in the order of their names; labels of labels.txt or labels.csv in it
 *   FOLDER            of folders: class K is the K-th in the order of their names, from 0
 *   FILE.csv, .txt    a path a line, behind a comma, tab or blank its label; paths begin where the list is
 */
#pragma once

#include "data/media.h"

G_BEGIN_DECLS

typedef struct {
    HnMediaKind kind;   /* NONE: none were found */
    GPtrArray *paths;   /* char * */
    GArray *labels;     /* of gint64, as many; NULL: there are none */
    GPtrArray *classes; /* char *, names of folders; NULL: they are no classes */
} HnMediaFiles;

void hn_media_files_clear(HnMediaFiles *f);

/* FORMAT: files of several kinds, a class without any, a label that is wrong or missing. Arrays (.npy, .npz) are a
 * kind, too, but not listed: TRUE with kind NONE where they are all, or where nothing is there. */
gboolean hn_media_files_in(HnMediaFiles *f, const char *folder, GError **error);

/* Whether a text names files of pictures or sound, in its first line or the second. */
gboolean hn_media_files_are(const char *text, gsize size);
gboolean hn_media_files_list(HnMediaFiles *f, const char *text, gsize size, const char *path, GError **error);

G_END_DECLS
