/*
 * A smallest cut: vertices are put on two sides so that the edges that lead from the first to the second cost least.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

#define HN_CUT_SOURCE 0 /* always on the first side */
#define HN_CUT_SINK 1   /* always on the second */
#define HN_CUT_NEVER G_MAXINT32

typedef struct HnCut HnCut;

HnCut *hn_cut_new(void); /* with the two vertices above */
void hn_cut_free(HnCut *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnCut, hn_cut_free)
guint hn_cut_vertex(HnCut *c);
/* The edge is cut where `from` is on the first side and `to` on the second. */
void hn_cut_edge(HnCut *c, guint from, guint to, gint32 cost);
/* What the cut costs; hn_cut_second() tells which side v is on then: as few as can be are on the second. */
int64_t hn_cut_run(HnCut *c);
gboolean hn_cut_second(const HnCut *c, guint v);

G_END_DECLS
