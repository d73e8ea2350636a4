/*
 * A model of one node: what a case of an operator is run as.
 */
#pragma once

#include "case.h"
#include "op/op.h"

typedef struct {
    HnModel *model;
    HnNode *node;
    GArray *in; /* HnSpec */
} HnSubject;

/* f32 elements as another float type; other tensors as they are. A new reference. */
HnTensor *hn_subject_as(HnTensor *t, HnDtype dtype);
/* The case's inputs, f32 as dtype: HnSpec. */
GArray *hn_subject_inputs(const HnCase *c, uint64_t seed, HnDtype dtype);
void hn_subject_inputs_free(GArray *in);
/* in: of hn_subject_inputs(), referred to and left as it is. */
void hn_subject_init(HnSubject *s, const HnOp *op, const HnCase *c, const GArray *in, int n_out);
void hn_subject_clear(HnSubject *s);
int hn_subject_outputs(const HnCase *c); /* that are named */
