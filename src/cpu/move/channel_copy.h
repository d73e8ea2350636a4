/*
 * Channels of channels-last values moved in groups: Concat, Split, Slice and Gather along the channels. Whole pixels
 * are never gathered in between, and pitches are obeyed.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"

G_BEGIN_DECLS

/* The state of such a step: parts, each of them input i (into output 0) or output i (out of input 0). */
typedef struct {
    gboolean into;
    int threads;
    int64_t pixels;
    gsize size; /* of an element */
    guint n;
    struct {
        int port;
        int64_t first, step, count; /* channels of the whole; the part has `count` adjacent ones */
    } part[];
} HnChannelCopy;

/* The value is 3 to 5 axes of f32 or bytes, channels last as it comes, and `axis` is that of the channels. */
gboolean hn_channel_copy_of(const HnSlot *slot, int axis);

/* Sets s->state with n empty parts, and the ports' layouts. */
HnChannelCopy *hn_channel_copy_prepare(HnStep *s, gboolean into, guint n);

/* For HnKernel */
gboolean hn_channel_copy_run(HnStep *s, GError **error);
HnPlace hn_channel_copy_joins(const HnStep *s, int i, gsize *offset);
HnPlace hn_channel_copy_splits(const HnStep *s, int k, gsize *offset);

G_END_DECLS
