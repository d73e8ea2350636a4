/*
 * Inside of the pass fuse-qdq: real numbers that stand for quantized ones.
 *
 * While the pass runs, what DequantizeLinear makes of bytes, and each element-wise function of it, is a hone.ByteTable
 * from those bytes to f32. A consumer that can compute with integers reads the bytes instead; a table that nobody reads
 * any more goes. What is left are the values that f32 kernels want.
 */
#pragma once

#include "lower/lower.h"
#include "pass/rewrite.h"

G_BEGIN_DECLS

#define HN_QDQ_BYTES 256
#define HN_QDQ_INPUTS 128 /* of a concatenation, at most */

/* Scale and zero point of a whole tensor. */
typedef struct {
    HnDtype dtype; /* HN_U8 or HN_I8 */
    float scale;
    int zero;
    HnValue *scale_of, *zero_of; /* zero_of NULL: 0 */
} HnQdqStep;

typedef struct {
    HnValue *bytes;
    HnDtype dtype;  /* of the bytes */
    HnQdqStep step; /* plain: of the bytes; else one that the numbers are of, most probably */
    gboolean plain;
    int lo, hi; /* bytes that occur, as numbers */
    float value[HN_QDQ_BYTES];
} HnQdqReal;

/* How all consumers quantize a value, limited to [lo, hi] first. */
typedef struct {
    HnQdqStep step;
    float lo, hi;
} HnQdqWant;

/* `made`, a new node, does the work of n, though none of n's results may be one of its; NULL: of none. */
void hn_lower_credit(HnRewrite *r, HnNode *made, const HnNode *n);
/* v's element type where its shape is known, too. */
HnDtype hn_qdq_dtype(const HnRewrite *r, const HnValue *v);
gboolean hn_qdq_is_byte(HnDtype d);
/* hn_rw_known(), as hn_op_qparams() asks. */
HnTensor *hn_qdq_known(gconstpointer r, HnValue *v);
/* n quantizes or dequantizes bytes with one scale, which is known. */
gboolean hn_qdq_step(const HnRewrite *r, const HnNode *n, HnQdqStep *s);
gboolean hn_qdq_same_step(const HnQdqStep *a, const HnQdqStep *b);
float hn_qdq_number(const HnQdqStep *s, int byte);
/* As QuantizeLinear. */
int hn_qdq_byte(const HnQdqStep *s, float v);
/* The numbers of all bytes. */
void hn_qdq_numbers(const HnQdqStep *s, float *value);
/* Limits of a node that does nothing but limit its input 0. */
gboolean hn_qdq_limits(const HnRewrite *r, const HnNode *n, float *lo, float *hi);
gboolean hn_qdq_takes_bytes(const HnNode *n);

/* v is such a table, whose bytes are computed. */
gboolean hn_qdq_real(const HnRewrite *r, const HnValue *v, HnQdqReal *h);
gboolean hn_qdq_occurs(const HnQdqReal *h, int byte);
/* The bytes that occur stay what they are under `map`, in elements of dtype. */
gboolean hn_qdq_keeps(const HnQdqReal *h, const uint8_t *map, HnDtype dtype);
/* The bytes that occur as those of h->step, which give the same numbers. FALSE: there are none. */
gboolean hn_qdq_fits(const HnQdqReal *h, uint8_t *map);
/* Such bytes of v in the place of h->bytes, by a table of their own where they are not those. Behind hn_rw_go(). */
HnValue *hn_qdq_as_bytes(HnRewrite *r, const HnNode *n, HnValue *v, HnQdqReal *h);
/* All consumers of v quantize it alike. */
gboolean hn_qdq_wanted(const HnRewrite *r, const HnValue *v, HnQdqWant *w);

/* A kernel takes a table from `bytes` to elements of dtype. */
gboolean hn_qdq_table_runs(HnRewrite *r, const HnValue *bytes, HnDtype dtype);
/* Such a table in front of `before`, without its result; f32 with the step of its numbers. Credited to `of`, if any. */
HnNode *hn_qdq_table(HnRewrite *r, HnNode *before, const HnNode *of, HnValue *bytes, HnDtype dtype, const void *table,
                     const HnQdqStep *step);
/* v, where it is read, is made of `bytes`, a new value, by that table of f32. */
void hn_qdq_hold(HnRewrite *r, HnNode *before, HnValue *v, HnValue *bytes, const float *table, const HnQdqStep *step);

/* The inputs of an integer operator: values that are there, or tensors that have to become some. */
typedef struct {
    HnValue *v[HN_QDQ_INPUTS];
    HnTensor *t[HN_QDQ_INPUTS]; /* owned; for the draft */
    int n;
} HnQdqInputs;

void hn_qdq_set(HnRewrite *r, HnQdqInputs *in, int i, HnValue *v);
/* Takes t. */
void hn_qdq_set_tensor(HnQdqInputs *in, int i, HnTensor *t);
/* Scale and zero point are inputs i and i + 1. */
void hn_qdq_set_step(HnRewrite *r, HnQdqInputs *in, int i, const HnQdqStep *s);
/* Bytes of h->step, of v's dims; the value itself follows from hn_qdq_as_bytes(). */
void hn_qdq_set_bytes(HnRewrite *r, HnQdqInputs *in, int i, const HnQdqReal *h);
void hn_qdq_clear(HnQdqInputs *in);
/* A kernel takes it, with a result of dtype and of the dims of y. */
gboolean hn_qdq_runs(HnRewrite *r, const HnOp *op, gconstpointer params, const HnQdqInputs *in, const HnValue *y,
                     HnDtype dtype);
/* The node in front of n, credited to it, without its result. Attributes are those of `like`, if any. */
HnNode *hn_qdq_add(HnRewrite *r, HnNode *n, const HnOp *op, HnQdqInputs *in, const HnNode *like);
void hn_qdq_set_limits(HnNode *m, float lo, float hi);
/* m makes y, or the bytes that are wanted of it (want NULL: none are). */
gboolean hn_qdq_put(HnRewrite *r, HnNode *m, HnNode *before, HnValue *y, const HnQdqWant *want);

/* --- qdq_integer.c: what is computed with integers. Each is a pass's function for a node. */

gboolean hn_qdq_product(HnRewrite *r, HnNode *n);
/* n, a QuantConv or QuantMatMul that makes numbers: bytes where all consumers want these. */
gboolean hn_qdq_requantize(HnRewrite *r, HnNode *n);
gboolean hn_qdq_binary(HnRewrite *r, HnNode *n);
gboolean hn_qdq_mean(HnRewrite *r, HnNode *n);
/* The node that computes on v element by element and is all that reads it, in the same shape; NULL: there is none. */
HnNode *hn_qdq_elementwise_reader(const HnRewrite *r, const HnValue *v);

G_END_DECLS
