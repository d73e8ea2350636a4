/*
 * Models by the names of folders.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A folder stands for its model.onnx, or for the only file *.onnx in it; all else is itself. g_free. Errors: IO: a
 * folder with none or several. */
char *hn_model_path(const char *name, GError **error);

G_END_DECLS
