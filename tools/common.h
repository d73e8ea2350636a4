/*
 * What the tools share beyond options and reports: models, devices and inputs as their command lines name them.
 */
#pragma once

#include "cli/tool.h"
#include "data/data.h"
#include "onnx/onnx.h"
#include "run/session.h"

/* Sets a USAGE error; FALSE. */
gboolean hn_tool_usage(GError **error, const char *text);

/* Where a job notes what it tried: as --journal says ("none": NULL), or beside the file that it makes; NULL: nowhere.
 */
char *hn_tool_journal_path(const char *journal, const char *output);
/* Where times are kept: as --timing-cache says ("none": NULL), or in the user's cache. */
char *hn_tool_cache_path(const char *timing_cache);

/* The value of --external; NULL: auto. */
gboolean hn_tool_parse_external(const char *text, HnExternal *external, GError **error);

/* The one model that the arguments name. Errors: USAGE where there is none or more. */
const char *hn_tool_one_model(HnContext *ctx, GError **error);

/* Reads a model within the memory limit; "-" takes stdin. Warns as below. */
HnModel *hn_tool_read_model(HnContext *ctx, const char *path, GError **error);

/* FALSE for a model that computes nothing. */
gboolean hn_tool_has_outputs(const HnModel *m, const char *path, GError **error);

/* Says so where a model is for measuring speed only (check/recipe.h). */
void hn_tool_warn_speed_only(HnContext *ctx, const char *path, const HnModel *m);

/* Says so where a recipe is of another version of hone than this; NULL: unknown. */
void hn_tool_warn_version(HnContext *ctx, const char *path, const char *version);

/* The backend of --device. */
const HnBackend *hn_tool_backend(HnContext *ctx, GError **error);

/* The version of oneDNN that a backend computes with, NULL: none; for HnReportEnv. */
const char *hn_tool_onednn(const HnBackend *backend);

/* Can the device compute as --precision says? NULL: as the model says. */
gboolean hn_tool_precision(const HnContext *ctx, const char *precision, GError **error);

/* The values of --dim and --shapes; lists may be NULL. */
HnShapes *hn_tool_shapes(char **dims, char **shapes, GError **error);

/* The values of --input: tensors for some graph inputs, initializers among them. */
typedef struct {
    GPtrArray *names;   /* char * */
    GPtrArray *tensors; /* HnTensor * */
    GPtrArray *feeds;   /* char *, borrowed, NULL at the end: those that are initializers, for HnSessionOptions.feeds */
} HnToolInputs;

/* inputs: list of "NAME=FILE", may be NULL. Errors: USAGE where the model has no such input, and those of reading. */
gboolean hn_tool_inputs(HnContext *ctx, const HnModel *m, char **inputs, HnToolInputs *out, GError **error);
void hn_tool_inputs_clear(HnToolInputs *inputs);

/* Two samples whose inputs are of the same shapes, the same ones absent. */
gboolean hn_tool_same_shapes(const HnSample *a, const HnSample *b);

/* The tensor given for an input, NULL: none. */
HnTensor *hn_tool_input(const HnToolInputs *inputs, const char *name);

/* With -v: a line for each node that runs on its reference kernel; with -vv what other kernels have against it. */
void hn_tool_note_refs(HnContext *ctx, const HnSession *s);
