/*
 * HnMemoryTimeline: how much memory is in use at each step of a session's plans, and by which tensors at the peak.
 *
 * Counted are inputs, values between steps, scratch memory and results, all of the main graph; weights and the memory
 * of sub-graphs stay the same and are not in it.
 */
#pragma once

#include "run/session.h"

G_BEGIN_DECLS

typedef struct {
    const HnNode *node; /* NULL: a reorder */
    gsize bytes;
} HnMemoryPoint;

typedef struct {
    char *name;           /* of the value, or "scratch" */
    char *type;           /* "f32[1,64,56,56]"; NULL: scratch */
    const HnNode *source; /* that made it; NULL: none did */
    const char *kind;     /* "input", "between", "result", "scratch" */
    gsize bytes;
} HnMemoryTensor;

typedef struct {
    GArray *points; /* HnMemoryPoint, in order of execution */
    guint peak;     /* index of the point with most; 0 where there are none */
    GArray *alive;  /* HnMemoryTensor at the peak, largest first */
} HnMemoryTimeline;

void hn_memory_timeline(const HnSession *s, HnMemoryTimeline *out);
/* Of what is in that place alone. */
void hn_memory_timeline_in(const HnSession *s, HnWhere where, HnMemoryTimeline *out);
void hn_memory_timeline_clear(HnMemoryTimeline *t);

G_END_DECLS
