/*
 * HnRecorded: which of a tool's options a recipe holds, and how they come out of one again.
 *
 * A recipe is somebody else's text. It holds switches, numbers and words, and those are all that is taken from it: an
 * option that takes a file's name is never recorded and never read, and of a program no more is recorded than that
 * there was one ("cmd"). What an older recipe says beyond that ("cmd:PROGRAM") is read as "cmd".
 */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

typedef struct {
    const GOptionEntry *entries; /* of a parameter struct, by offsets (cli/options.h), ended by a NULL name */
    const char *const *left_out; /* names of those that have no part in the result, ended by NULL */
    const char *program;         /* the option that may be "cmd:PROGRAM" */
    gconstpointer defaults;      /* a struct without strings */
} HnRecorded;

gboolean hn_recorded_has(const HnRecorded *r, const GOptionEntry *e);

/* Those of `params` that are not as they are by default; seed: the common option. */
JsonObject *hn_recorded_json(const HnRecorded *r, gconstpointer params, guint64 seed);

/* Into `params`, which are as by default so far; strings are copies, hn_recorded_clear() frees them, after a failure
 * too. Errors: UNSUPPORTED naming the option. */
gboolean hn_recorded_read(const HnRecorded *r, JsonObject *options, gpointer params, guint64 *seed, GError **error);
void hn_recorded_clear(const HnRecorded *r, gpointer params);

G_END_DECLS
