/*
 * What disturbed a measurement: what the machine took away or did between two moments, where it says so.
 */
#pragma once

#include "base/clock.h"
#include "base/cpu.h"

G_BEGIN_DECLS

/* Unknown: NaN, or -1. */
typedef struct {
    double wall_ms;
    double cpu_ms;       /* CPU time of all threads */
    double steal_ms;     /* taken by the hypervisor, of all CPUs together */
    double waiting_ms;   /* threads were ready to run and had no CPU, of all threads alive at the end together */
    double throttled_ms; /* taken by the quota of the control group */
    double mhz_before, mhz_after; /* mean clock */
    gint64 minor_faults, major_faults;
    gint64 waits, preemptions; /* context switches asked for and forced */
    gint64 migrations;         /* of the main thread */
} HnNoise;

/* A moment; what it holds is for hn_noise_between() alone. */
typedef struct {
    guint64 now, cpu;
    HnUsage usage;
    HnCpuStat stat;
    gboolean has_stat;
    double waiting_ms, throttled_ms, mhz;
} HnNoiseMark;

/* root is for tests, as in base/cpu.h: where /proc and /sys are read; NULL: here */
void hn_noise_mark(const char *root, HnNoiseMark *mark);
void hn_noise_between(const HnNoiseMark *before, const HnNoiseMark *after, HnNoise *noise);

/* Names of what probably moved the times, NULL at the end: "steal", "quota" and "waiting" (each over 1 % of the wall
 * time), "page faults" (from a disk), "clock" (over 2 % between start and end). Constant strings in a g_malloc'ed
 * array. */
const char **hn_noise_causes(const HnNoise *noise);

G_END_DECLS
