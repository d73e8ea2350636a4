/*
 * What a file may be that was given as a model or tensor and is none. Asked only after reading has failed: nothing is
 * refused by its first bytes.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* "a PNG image"; NULL: nothing known. */
const char *hn_onnx_other_kind(const guint8 *data, gsize size);

G_END_DECLS
