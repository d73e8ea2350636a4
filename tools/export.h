/*
 * What the files of hone-export share.
 */
#pragma once

#include "cli/report.h"
#include "common.h"
#include "export/export.h"
#include "export/facts.h"
#include "onnx/onnx.h"
#include "check/gain.h"

typedef struct {
    char *output, *external, *extract, *data, *repro, *to;
    char **dim, **shapes, **only, **skip;
    int level, samples;
    gint64 opset, fold_limit;
    double rtol, atol;
    gboolean no_check, force, explain, list_passes, infer_shapes, clear_metadata, keep_functions, bench, keep_io;
    gboolean allow_larger;
} ExportParams;

typedef struct {
    HnContext *ctx;
    const ExportParams *p;
    const char *path; /* of the model, as named */
    GBytes *bytes;    /* of a model from stdin */
    const HnBackend *backend;
    HnShapes *shapes;
    char **in, **out; /* of --extract; NULL: all */
    HnExternal external;
    HnDtype to; /* of --to */
    HnExportOptions o;
    HnExported x;
    HnModel *original;
    gboolean verified;      /* files of weights are compared with their checksums when they are first read */
    gboolean has_functions; /* of the model's own */
    HnVerifyOptions vo;
    HnVerify *verify;
    HnFacts before, after;
    guint64 file_before, file_after, orphaned; /* bytes, data files included */
    gboolean has_gain;
    HnGain gain; /* latency of both models, interleaved on the first sample */
} Export;

/* The tables, lines and JSON of what was done. */
gboolean export_report(const Export *e, GError **error);
gboolean export_list_passes(HnContext *ctx, GError **error);
