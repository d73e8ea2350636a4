/*
 * HnJournal: what a search has measured, kept in files that only grow, so that it need not be measured again.
 *
 * There are two files, either of which may be missing. The journal belongs to one run and what continues it; the timing
 * cache to all runs on this machine, and holds times only. Both are lines of JSON (schemas/journal.json), each written
 * at once: what a killed process leaves behind is whole but for the last line, which is cut off when it is read again.
 *
 *     { "schema": "hone.journal/1", "hone": "0.1.0", "model": "5e1f...", "data": "...", "options": "...", ... }
 *     { "trial": 1, "what": "all", "plan": "77ab...", "score": { "top1": 1, ... }, "bytes": 26500, "f32": [] }
 *     { "times": "77ab...", "key": "...", "total_ms": 1.5, "nodes": { "conv1": { "ms": 0.4, "elements": 1024 } } }
 *     { "race": ["77ab...", "0c4d..."], "key": "...", "effect": 0.93, "lo": 0.91, "hi": 0.94 }
 *     { "found": "3f09...", "numbers": { "loss": 0.31, "top1": 0.97 } }
 *
 * Plans are named by hn_quant_plan_hash().
 */
#pragma once

#include <json-glib/json-glib.h>

#include "check/score.h"
#include "perf/contest.h"

G_BEGIN_DECLS

/* Own time of a node, and elements of its first output. */
typedef struct {
    double ms, elements;
} HnNodeTime;

typedef struct {
    GHashTable *nodes; /* char * first output -> HnNodeTime * */
    double total_ms;   /* of a run, as a median */
} HnNodeTimes;

HnNodeTimes *hn_node_times_new(void);
void hn_node_times_free(HnNodeTimes *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnNodeTimes, hn_node_times_free)

/* What was tried. */
typedef struct {
    char *plan; /* hash */
    char *what; /* "all", "only 'conv1'", "without 3" */
    HnScore score;
    guint64 bytes;  /* of the weights */
    GPtrArray *f32; /* char *: nodes with weights that are left alone */
} HnTried;

typedef struct HnJournal HnJournal;

/* What a journal is of: hashes of the model, the samples and the plan that the search begins with; all but the device
 * and its threads may be NULL. */
typedef struct {
    const char *model, *data, *plan;
    JsonObject *options;
    const char *metric; /* a program, which the options do not tell */
    const char *device;
    int threads;
} HnJournalOf;

JsonObject *hn_journal_header(const HnJournalOf *of);
/* Of a header, for hn_journal_use_cache(); g_free. */
char *hn_journal_key(JsonObject *header);

/* With nothing in it, and without files. */
HnJournal *hn_journal_new(void);
void hn_journal_free(HnJournal *j);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnJournal, hn_journal_free)

/*
 * Goes on with the journal at `path`, or starts it anew. `header`: members that say what it is a journal of, strings
 * all; going on, they must be the same. Errors: IO; FORMAT; USAGE naming the first member that differs, or a file that
 * is not there to go on with.
 */
gboolean hn_journal_open(HnJournal *j, const char *path, gboolean resume, JsonObject *header, GError **error);

/* Times of `key` are taken from the cache at `path`, and added to it: the key stands for all that they depend on. A
 * cache that cannot be read or written is no cache. */
void hn_journal_use_cache(HnJournal *j, const char *path, const char *key);

/*
 * What both do with bytes that are there: a line that is no JSON of an object ends a journal, and is passed over in a
 * cache (header NULL). *good: bytes up to the end of the last line that is whole. Errors: those of hn_journal_open().
 */
gboolean hn_journal_read(HnJournal *j, const char *path, const char *text, gsize n, JsonObject *header, gsize *good,
                         GError **error);

/* NULL: not known. */
const HnTried *hn_journal_tried(const HnJournal *j, const char *plan);
const HnNodeTimes *hn_journal_times(const HnJournal *j, const char *plan);
/* Of *e the effect and what decisions are made by; all else is NaN. */
gboolean hn_journal_race(const HnJournal *j, const char *before, const char *after, HnEffect *e);

/* Noted, and written. t, times: taken; times that are known stay as they are, a race takes the place of the one before.
 * Errors: IO. */
gboolean hn_journal_add_tried(HnJournal *j, HnTried *t, GError **error);
gboolean hn_journal_add_times(HnJournal *j, const char *plan, HnNodeTimes *times, GError **error);
gboolean hn_journal_add_race(HnJournal *j, const char *before, const char *after, const HnEffect *e, GError **error);
/* Numbers that were found under a name, whatever they are; borrowed, NULL: not known. */
JsonObject *hn_journal_found(const HnJournal *j, const char *name);
gboolean hn_journal_add_found(HnJournal *j, const char *name, JsonObject *numbers, GError **error); /* taken */
/* A line more that nobody reads again: how it ended. */
gboolean hn_journal_note(HnJournal *j, JsonObject *line, GError **error);

guint hn_journal_resumed(const HnJournal *j); /* trials, and what was found, that were there */
void hn_tried_free(HnTried *t);

G_END_DECLS
