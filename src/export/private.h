/*
 * What the files of export/ share; nobody else includes this.
 */
#pragma once

#include "export/export.h"

G_BEGIN_DECLS

/* Writes the smallest piece of `before` around value `site` on which `pass` still changes results; the path (g_free),
 * or NULL where no piece shows it or it cannot be written. `before` is used up. number makes the file's name unique. */
char *hn_export_repro(const HnExportOptions *o, HnModel *before, const HnPass *pass, const char *site, guint number);

/* Converts the precision of x->model, which is in place and proved. verify may be NULL. */
gboolean hn_export_half(const HnExportOptions *o, const HnVerify *verify, HnExported *x, GError **error);

G_END_DECLS
