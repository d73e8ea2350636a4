/*
 * What hone can do with each operator, as the records and a backend's kernels say: for the manual page, hone-inspect
 * and tests.
 */
#pragma once

#include "run/backend.h"

G_BEGIN_DECLS

/* Nothing is computed (a view, a constant, sub-graphs that are run), or the backend has kernels; else its reference
 * runs. */
gboolean hn_op_has_kernel(const HnOp *op, const HnBackend *backend);

/* The page hone-operators(7) as scdoc's source: operators by domain with opsets, types, kernels on the CPU and on GPUs,
 * gradient and quantization. Appends. */
void hn_abilities_page(const HnBackend *cpu, const HnBackend *gpu, GString *out);

G_END_DECLS
