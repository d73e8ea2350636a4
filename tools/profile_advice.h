/*
 * hone-profile's advice: what other commands of hone would gain for this model on this machine. Nothing is guessed:
 * each model is made in memory and raced against the one that was profiled, both interleaved (check/speedup.h).
 */
#pragma once

#include "check/speedup.h"
#include "hone_profile.h"

/* What somebody could do, and what came of it. */
typedef struct {
    const char *name; /* "int8" */
    char *command;    /* that does it; NULL: there is nothing to do for this model */
    char *what;       /* "8-bit integers in 12 of 14 nodes with weights" */
    HnModel *model;   /* NULL: as it is */
    int threads;      /* other than those profiled; 0: the same */
    HnSample *sample; /* its inputs, where they are others */
    double samples;   /* that a run of it computes while the profiled one computes one */
    char *why_not;    /* it was not raced; NULL: it was */
    HnSpeedup speedup;
    double gain, lo, hi; /* times as fast, for a sample; lo to hi: with 95 %, NaN: not known */
    gboolean helps;
} ProfileTrial;

/* profile_trials.c: what is tried, one after the other; the last has no name. FALSE with an error: it cannot be made.
 * Leaves t->command NULL where there is nothing to do. */
typedef struct {
    const char *name;
    gboolean (*make)(Profiling *f, ProfileTrial *t, GError **error);
} ProfileIdea;

extern const ProfileIdea profile_ideas[];

/* The file as it is, read anew. */
HnModel *profile_read_plain(const Profiling *f, GError **error);

/* Part of the time that nodes take which reach `part` of the roofline and more, by what limits them. */
double profile_share_at(const Profiling *f, HnBound bound, double part);
