/*
 * A file that is nowhere: for what opens files by their names.
 */
#pragma once

#include "fuzz.h"

G_BEGIN_DECLS

typedef struct Scratch Scratch;

Scratch *scratch_new(const uint8_t *data, size_t size);
const char *scratch_path(const Scratch *s);
void scratch_free(Scratch *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Scratch, scratch_free)

G_END_DECLS
