/*
 * Temporary names beside a file that is being written: ".NAME.hone-0", ".NAME.hone-1" and so on.
 *
 * Whoever has given a file such a name holds a lock (flock) on it, which ends with the program however that ends. A
 * name whose file nobody has locked was left behind, and the next program that writes NAME removes it. Where files
 * cannot be locked, nothing is ever taken for left behind.
 */
#pragma once

#include <glib.h>
#include <sys/stat.h>

G_BEGIN_DECLS

typedef struct {
    char *path;
    dev_t dev; /* which file it is a name of */
    ino_t ino;
    int fd; /* holds the lock; -1: the caller's does */
} HnTemp;

/* Each returns NULL with errno set. beside: the file NAME, which need not exist. */
HnTemp *hn_temp_create(const char *beside, int *fd);                  /* a new file, open for writing: the caller's */
HnTemp *hn_temp_name(int fd, const char *beside);                     /* for an open file that has no name yet */
HnTemp *hn_temp_link(const char *path, const char *beside);           /* a second name for an existing file */
gboolean hn_temp_rename(HnTemp *temp, const char *path, int *errnum); /* path replaces it; frees temp in any case */
void hn_temp_remove(HnTemp *temp);                                    /* and frees it; NULL is fine */

/* Removes what was left behind beside NAME. Second names of files that have another one are locked and returned instead
 * (HnTemp *, removed as the list is freed) where `linked` is TRUE, else left alone: they say that somebody died while
 * that other name was in doubt. */
GPtrArray *hn_temp_sweep(const char *beside, gboolean linked);

G_END_DECLS
