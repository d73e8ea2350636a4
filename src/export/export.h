/*
 * HnExport: from a model to the one that is written: cut, converted, simplified, and proved to compute the same.
 *
 * Everything is made from fresh copies of the model, in a way that repeats: a rewrite that breaks the graph, or one
 * that changes results, is undone by making the model again without it. Which one changed results is found by bisection
 * over the number of rewrites.
 */
#pragma once

#include "check/speedup.h"
#include "check/verify.h"
#include "pass/pass.h"
#include "pass/precision/precision.h"

G_BEGIN_DECLS

typedef enum {
    HN_GROWTH_MEASURED, /* stays where the model is faster */
    HN_GROWTH_STAYS,
    HN_GROWTH_GOES,
} HnGrowth;

typedef struct {
    /* A fresh copy of the model, each time the same. */
    HnModel *(*open)(gpointer data, GError **error);
    gpointer data;

    const char *const *extract_in, *const *extract_out; /* hn_extract(); NULL: all */
    const HnShapes *fix;                                /* hn_fix_shapes(); NULL: nothing */
    int64_t opset; /* of the default domain; 0: as it is, or, where `to` is bf16, the lowest that can hold it */
    gboolean keep_functions; /* calls are not replaced by their bodies */
    gboolean to_core;        /* operators of ONNX Runtime's domain become those of the default one; not with both */
    HnPassOptions pass;      /* most and banned are not looked at */

    HnDtype to;       /* HN_F16, HN_BF16, HN_F32; HN_UNDEFINED: types stay */
    gboolean keep_io; /* inputs and outputs do */
    double half_tol;  /* of what is in halves then, HnVerifyTolerance.part */

    /* Length of the original, data files included. Where the result is more than a tenth longer, its speed is measured,
     * and without a gain what made it longer is undone; 0: it may be of any length. What the conversion to an opset
     * adds, `to` and `infer_shapes` do not count. */
    guint64 file_bytes;
    HnGrowth growth; /* otherwise as a recipe says */
    int threads;     /* that the speed is measured with; 0: hn_cpu_threads() */

    gboolean infer_shapes;   /* every value's type is declared */
    gboolean clear_metadata; /* doc strings, metadata, producer, names of nodes' origins */
    HnVerifyTolerance tolerance;
    const HnBackend *backend; /* that looks at ranges, for `to` */
    const char *repro;        /* path for a minimal model of each rewrite that changes results: "DIR/"; NULL: none */
    const HnProgress *progress;
} HnExportOptions;

/* A rewrite that was undone. */
typedef struct {
    char *pass, *op, *site;
    char *why;    /* one sentence */
    char *repro;  /* the file written; NULL: none */
    gint64 bytes; /* that the file grew by */
} HnDropped;

typedef struct {
    HnModel *model;       /* the result */
    HnPassLog log;        /* of the run that made it */
    GPtrArray *dropped;   /* HnDropped * */
    GPtrArray *grown;     /* HnDropped *: right, but they made the file longer */
    gboolean functions;   /* are kept, since their bodies would make the file longer */
    gboolean has_speedup; /* the speed was measured, since the file is longer: */
    HnSpeedup speedup;
    GPtrArray *blocked;  /* char *: nodes that have no equivalent in the opset asked for, where that is the error */
    HnVerified verified; /* of the result; n is 0 where nothing was verified */
    gboolean converted;  /* the precision was; then: */
    HnPrecisionLog precision;
} HnExported;

/* Errors: those of reading and of options; UNSUPPORTED with x->blocked filled in; GUARD where outputs differ and no
 * rewrite is to blame, or the precision is not enough; INTERRUPTED. verify NULL: results are not looked at. */
gboolean hn_export(const HnExportOptions *o, const HnVerify *verify, HnExported *x, GError **error);
void hn_exported_clear(HnExported *x);

/* Latency of m beside that of the original, on the first of the samples. */
gboolean hn_export_speedup(const HnExportOptions *o, const HnVerify *verify, HnModel *m, const HnSpeedupOptions *how,
                           HnSpeedup *speedup, GError **error);

/* The model before anything is rewritten: cut, and with its shapes fixed. What hn_verify_new() is to be given. */
HnModel *hn_export_original(const HnExportOptions *o, GError **error);

G_END_DECLS
