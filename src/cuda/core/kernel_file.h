/*
 * The file of kernels: what nvcc made of each .cu file, as the driver loads it, under the file's name without ending.
 *
 * Format, little-endian: "HONEKRNL", u32 version of the format, u32 number of entries, 64 characters of a hash of the
 * sources (kernels_key.py), which must be that of this library; then for each entry name (64 bytes, padded with zeros),
 * u64 offset from the file's start, u64 bytes.
 * src/cuda/pack_kernels.py writes it.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct HnKernelFile HnKernelFile;

/* Opens the one of this build: $HONE_CUDA_KERNELS, else hone/kernels.cuda beside this library or program, else where
 * the build makes it. Errors: UNSUPPORTED: missing, or of another version, and says which files were looked for. */
HnKernelFile *hn_kernel_file_open(GError **error);
void hn_kernel_file_free(HnKernelFile *f); /* NULL is fine */

/* What belongs to `name`, borrowed; NULL: there is none. */
const void *hn_kernel_file_find(const HnKernelFile *f, const char *name, gsize *bytes);

G_END_DECLS
