/*
 * Pieces of work that have nothing to do with each other, on threads of their own: models that are made and run one by
 * one, say. What a piece does in parallel regions (base/team.h) it does alone where others run.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef void (*HnEachFn)(gpointer data, gint64 i);

/* fn(data, i) for each i below n, `workers` of them at a time, the caller's thread one of them; returns when all are
 * done. In any order, but with one worker in theirs. */
void hn_each(gint64 n, int workers, HnEachFn fn, gpointer data);

G_END_DECLS
