/*
 * Time, and what the process costs: memory, page faults, context switches.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

guint64 hn_now_ns(void);         /* monotonic */
guint64 hn_thread_cpu_ns(void);  /* CPU time of the calling thread */
guint64 hn_process_cpu_ns(void); /* CPU time of all threads */
void hn_sleep_ns(guint64 ns);    /* ends early when a signal comes */

/* Bytes; each 0 where the kernel does not say. */
typedef struct {
    guint64 rss;      /* resident now: anon + file + shmem */
    guint64 peak_rss; /* highest rss since the start or hn_mem_reset_peak() */
    guint64 anon;     /* resident heap, stacks, arenas: what --mem-limit is about; cheap, exact to some 100 KB */
    guint64 file;     /* resident pages of mapped files: weights, code */
    guint64 shmem;
} HnMem;

gboolean hn_mem_read(HnMem *mem);

/* Resident bytes that no file backs, counted page by page: exact, takes up to a millisecond per GB. 0: not known. */
guint64 hn_mem_private(void);

/* Bytes that new memory may take before something has to be swapped out, of the whole machine; 0: not known. */
guint64 hn_mem_available(void);

/* Let peak_rss start again from the present; FALSE where the kernel does not allow that. */
gboolean hn_mem_reset_peak(void);

/* Totals since the start of the process, all threads. */
typedef struct {
    guint64 minor_faults; /* pages that needed no reading */
    guint64 major_faults; /* pages read from a disk */
    guint64 waits;        /* context switches asked for */
    guint64 preemptions;  /* context switches forced */
    gint64 migrations;    /* moves of the main thread between CPUs, -1: not known */
} HnUsage;

void hn_usage_read(HnUsage *usage);

G_END_DECLS
