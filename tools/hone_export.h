/*
 * What the files of hone-export share.
 */
#pragma once

#include "check/recorded.h"
#include "cli/report.h"
#include "common.h"
#include "export/export.h"
#include "export/face.h"
#include "export/facts.h"
#include "onnx/onnx.h"
#include "check/speedup.h"

#define EXPORT_TOOL "hone-export" /* in recipes */

typedef struct {
    char *output, *external, *extract, *data, *repro, *to, *replay;
    char **dim, **shapes, **only, **skip;
    char **input;
    char **free, **rename, **nhwc_input, **u8_input, **top_k, **softmax; /* the interface */
    int level, samples;
    gint64 opset, fold_limit;
    double rtol, atol;
    gboolean no_check, force, explain, list_passes, infer_shapes, clear_metadata, keep_functions, bench, keep_io;
    gboolean to_core, no_zipmap;
    gboolean allow_larger;
    HnToolDataParams from;
} ExportParams;

typedef struct {
    HnContext *ctx;
    const ExportParams *p;
    ExportParams replayed; /* with --replay what p is */
    JsonObject *recipe;    /* of --replay; NULL: none */
    HnGrowth growth;
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
    gboolean verified;        /* files of weights are compared with their checksums when they are first read */
    gboolean unfolds;         /* functions, or operators that are others spelled out */
    gboolean sparse;          /* some of its weights are stored so */
    HnPreprocess *preprocess; /* of --data */
    HnToolInputs given;       /* of --input, in the names of the new interface */
    GPtrArray *given_names;   /* those of it, NULL at the end */
    HnShapes *given_shapes;   /* e->shapes, with sizes that it says; NULL: no --input */
    HnSamplesOptions vo;
    HnVerify *verify;
    HnFaceOptions *face;
    HnFaced faced;      /* without a model: the interface stays */
    gboolean overrides; /* --shapes says other sizes than the model */
    char **u8_said;     /* --u8-input with its numbers, for the recipe */
    HnFacts before, after;
    guint64 file_before, orphaned;
    gsize file_after; /* bytes, data files included */
    gboolean has_speedup;
    HnSpeedup speedup; /* latency of both models, interleaved on the first sample */
} Export;

extern const ExportParams export_defaults;
extern const HnRecorded export_recorded; /* options that have a part in the result */

/* export_replay.c */
gboolean export_add_recipe(Export *e, GError **error);          /* to the result's metadata, unless that is cleared */
gboolean export_read_recipe(Export *e, GError **error);         /* options: e->p */
gboolean export_check_input(const Export *e, GError **error);   /* GUARD: made of another model */
gboolean export_check_samples(const Export *e, GError **error); /* GUARD: proved on others */
void export_clear_replayed(Export *e);

/* --input, for m, as it will be compared. */
gboolean export_take_inputs(Export *e, const HnModel *m, GError **error);

/* export_face.c */
gboolean export_on_softmax(const char *name, const char *value, gpointer params, GError **error);
/* The model with another interface, as the options say, from m, which is used up; compared with it. */
gboolean export_make_face(Export *e, HnModel *m, GError **error);
gboolean export_has_face(const Export *e);
void export_report_face(const Export *e, HnReport *report);
void export_clear_face(Export *e);

/* The tables, lines and JSON of what was done. */
gboolean export_report(const Export *e, GError **error);
gboolean export_list_passes(HnContext *ctx, GError **error);
