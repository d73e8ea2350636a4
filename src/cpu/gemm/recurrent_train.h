/*
 * What kernels that train LSTM and GRU layers share (recurrent_train.c, gru_train.c): f32, whole sequences, the usual
 * functions of the gates.
 */
#pragma once

#include "cpu/core/cpu_kernel.h"
#include "cpu/gemm/gemm_kernel.h"
#include "op/recurrent.h"

typedef struct {
    int64_t steps, batch, directions, inputs, hidden, width; /* width: of all gates */
    int threads;
    gboolean only_backwards; /* the one direction */
    int64_t at_once;         /* steps whose gradients are summed up at a time */
    int64_t room;            /* floats of a thread for blocks of these, transposed */
} HnTrainLayer;

void hn_layer_measure(const HnStep *s, HnTrainLayer *l);
/* NULL: types, parameters and weights are as above. lens, peepholes: inputs that have to be absent. */
const char *hn_layer_reject(const HnStep *s, int lens, int peepholes);
/* The product by all threads; rooms: HnTrainLayer.room of each, where its left operand is transposed, else NULL. */
void hn_layer_share(const HnTrainLayer *l, const HnGemmBlocked *g, float *rooms);
/* to[n] += the sum of `rows` rows of n, in their order. */
void hn_layer_add_rows(float *to, const float *from, int64_t rows, int64_t n);
/* Gradients of the states of n samples of direction d, from `from` on: from input i, or zeros; to output k. */
void hn_layer_begin(const HnStep *s, const HnTrainLayer *l, float *to, int i, int64_t d, int64_t from, int64_t n);
void hn_layer_finish(const HnStep *s, const HnTrainLayer *l, const float *v, int k, int64_t d, int64_t from, int64_t n);

/* Input i is absent or has n elements. */
static inline gboolean hn_layer_holds(const HnStep *s, int i, int64_t n)
{
    return hn_cpu_in(s, i) == NULL || hn_cpu_in(s, i)->n == n;
}

static inline const float *hn_layer_input(const HnStep *s, int i)
{
    return hn_cpu_in(s, i) != NULL ? hn_cpu_data(&s->in[i]) : NULL;
}

static inline float *hn_layer_output(const HnStep *s, int k)
{
    return k < s->n_out && s->out[k].slot != NULL ? hn_cpu_data(&s->out[k]) : NULL;
}

static inline gboolean hn_layer_backwards(const HnTrainLayer *l, int64_t d)
{
    return l->only_backwards || d == 1;
}

/* First of direction d's rows of step t, in values [T,D,B,...]. */
static inline int64_t hn_layer_row_of(const HnTrainLayer *l, int64_t d, int64_t t)
{
    return (t * l->directions + d) * l->batch;
}

/* c [m, n] = a [m, k] b [k, n], b packed */
static inline HnGemmBlocked hn_layer_product(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    return (HnGemmBlocked){ .m = m,
                            .n = n,
                            .k = k,
                            .a = a,
                            .b = b,
                            .c = c,
                            .a_pitch = k,
                            .a_k = 1,
                            .c_pitch = n,
                            .lo = HN_GEMM_KERNEL_LOW,
                            .hi = HN_GEMM_KERNEL_HIGH };
}
