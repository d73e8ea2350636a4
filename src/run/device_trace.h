/*
 * HnDeviceTrace: records that a device keeps of what ran there, if a library can be had that hands them out.
 *
 * Each piece of work that is enqueued (a kernel, a copy, a fill) makes one record, replayed ones too. A session counts
 * what each step enqueues; records in order of their start are those pieces in the order of the stream, if there are as
 * many of them and kernels are where kernels were enqueued (hn_session_device_records()).
 */
#pragma once

#include "ir/graph.h"

G_BEGIN_DECLS

typedef enum { HN_WORK_KERNEL, HN_WORK_UPLOAD, HN_WORK_DOWNLOAD, HN_WORK_COPY, HN_WORK_FILL } HnWorkKind;

typedef struct {
    HnWorkKind kind;
    const char *name;  /* of a kernel, constant; else NULL */
    double start, end; /* ns since start() */
    guint64 bytes;     /* of copies and fills */
    guint grid[3];     /* of kernels, as what follows: blocks, ... */
    guint block[3];    /* ... threads of one, ... */
    guint registers;   /* ... of a thread, ... */
    guint shared;      /* ... and bytes of shared memory of a block */
    gboolean graph;    /* it was part of what was replayed */
} HnDeviceRecord;

/* What one multiprocessor holds at a time; 0: not known. */
typedef struct {
    guint multiprocessors;
    guint threads, blocks, registers;
    guint shared, shared_extra; /* bytes, and those that each block takes beyond its own */
} HnDeviceLimits;

typedef struct {
    /* From now on records are kept. FALSE: they cannot be; *why (g_free) is part of a sentence. */
    gboolean (*start)(gpointer stream, char **why);
    /* Behind wait(): adds the records since then to a list of HnDeviceRecord, in order of their start, and keeps no
     * more. `expected`: so many are to come, and a while is waited for them. FALSE: some were lost, as *why says. */
    gboolean (*stop)(gpointer stream, guint expected, GArray *records, char **why);
    guint (*work)(gpointer stream); /* pieces of work that were enqueued there so far */
    void (*limits)(gpointer device, HnDeviceLimits *limits);
} HnDeviceTrace;

/* What a step enqueued: pieces of work [from, to) of a run. */
typedef struct {
    const HnNode *node; /* as in HnSpan */
    const HnValue *value;
    guint from, to;
    guint launches;  /* kernels among them */
    guint shared_by; /* steps that were enqueued together as these pieces, each of which has an entry like this; mostly
                        1 */
    gboolean moves;  /* from one memory to the other */
} HnStepWork;

G_END_DECLS
