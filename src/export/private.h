/*
 * What the files of export/ share; nobody else includes this.
 */
#pragma once

#include "export/export.h"

G_BEGIN_DECLS

/* One export. */
typedef struct {
    const HnExportOptions *o;
    const HnVerify *verify; /* NULL: nothing is compared */
    HnExported *x;
    GHashTable *banned;      /* hn_site_key() of rewrites that are not made */
    gboolean keep_functions; /* though the options do not ask for it */
    int64_t core_opset;      /* that HnExportOptions.to_core takes; 0: the model's own will do */
    gboolean contrib;        /* what was made has operators of ONNX Runtime's domain */
    gboolean lean;           /* HnPassOptions.lean */
    gboolean may_grow;       /* the size of the result is not looked at any more */
    gboolean noisy;          /* whether growing is worth it could not be measured */
} HnExportJob;

/* The model with at most so many rewrites; those that fail are dropped on the way. x->log is of this one. */
HnModel *hn_export_build(HnExportJob *e, guint64 most, GError **error);
/* The same with none, and nothing of x changes. */
HnModel *hn_export_plain(const HnExportJob *e, GError **error);
HnDropped *hn_dropped_new(const HnSite *site, const char *why);
void hn_dropped_free(gpointer dropped);
/* Into x->grown. */
void hn_export_note_growth(HnExported *x, const HnSite *site);

/* Takes out of x->model, which is in place, what makes it too large (HnExportOptions.file_bytes). *again: the model was
 * made again. Errors: GUARD where it stays too large, and those of hn_export(). */
gboolean hn_export_fit(HnExportJob *e, gboolean *again, GError **error);

/* Writes the smallest piece of `before` around value `site` on which `pass` still changes results; the path (g_free),
 * or NULL where no piece shows it or it cannot be written. `before` is used up. number makes the file's name unique. */
char *hn_export_repro(const HnExportOptions *o, HnModel *before, const HnPass *pass, const char *site, guint number);

/* Converts the precision of x->model, which is in place and proved. verify may be NULL. */
gboolean hn_export_half(const HnExportOptions *o, const HnVerify *verify, HnExported *x, GError **error);

G_END_DECLS
