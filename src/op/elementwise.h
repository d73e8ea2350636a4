/*
 * What element-wise operators share: loops over broadcast operands, the two kinds of broadcasting of ONNX, and
 * following small integer tensors symbolically through arithmetic.
 *
 * Since opset 7 both operands broadcast as in numpy. Before, only the second one did, only with `broadcast` set, and
 * its axes were laid against those of the first from `axis` on (by default: against the last ones).
 *
 * The params of every record that uses hn_binary_*() begin with an HnBinary.
 *
 * A binary kernel computes a run of n elements of the output; its operands advance by sx and sy, which are 0 or 1.
 * HN_BINARY_LOOP makes one from an expression macro M(T, W, p, q): T is the element type, W the unsigned type in which
 * integers of type T may wrap.
 */
#pragma once

#include "op/index.h"
#include "op/op.h"

G_BEGIN_DECLS

/* --- walking over broadcast operands --------------------------------------------------------------------------------
 */

#define HN_BROADCAST_MAX 3

/* An output of `total` elements as rows of n; operand j of a row starts at off[j] and advances by step[j]. */
typedef struct {
    int64_t n, total;
    int k, ndim; /* operands; axes outside the rows */
    int step[HN_BROADCAST_MAX];
    int64_t off[HN_BROADCAST_MAX];
    int64_t dims[HN_MAX_RANK], idx[HN_MAX_RANK];
    int64_t strides[HN_BROADCAST_MAX][HN_MAX_RANK];
    int64_t *rows[HN_BROADCAST_MAX]; /* of strides */
} HnBroadcast;

/* strides[j] as of hn_broadcast_strides(). Axes are merged so that rows become long. Dims were counted before. */
void hn_broadcast_start(HnBroadcast *p, int ndim, const int64_t *dims, int k, int64_t (*strides)[HN_MAX_RANK]);

static inline gboolean hn_broadcast_next(HnBroadcast *p)
{
    return hn_index_next(p->ndim, p->dims, p->idx, p->k, p->rows, p->off);
}

/* --- binary operators ------------------------------------------------------------------------------------------------
 */

typedef struct {
    gboolean limited;   /* before opset 7 */
    gboolean broadcast; /* attribute of that time */
    gboolean has_axis;
    int64_t axis;
    int mode; /* the operator's own */
} HnBinary;

typedef void (*HnBinaryFn)(void *z, const void *x, const void *y, int64_t n, int sx, int sy);

void hn_binary_bind(HnBind *b, void *params);
/* Output 0: the broadcast shape of inputs 0 and 1; HN_UNDEFINED: their type. FALSE: failed. */
gboolean hn_binary_infer(HnInfer *x, HnDtype dtype);
/* Output 0 = fns[type of the inputs] over both inputs; HN_UNDEFINED: their type. */
void hn_binary_run(HnEval *e, const HnBinaryFn *fns, HnDtype dtype);
/* Output 0, of type `dtype`, = fn over two tensors in the place of the inputs. */
void hn_binary_run_on(HnEval *e, HnBinaryFn fn, const HnTensor *a, const HnTensor *b, HnDtype dtype);
/* Output z of `ndim` dims = fn over x and y of any type, seen through the given strides. */
void hn_binary_apply(HnBinaryFn fn, int ndim, const int64_t *dims, void *z, size_t z_size, const void *x, size_t x_size,
                     const void *y, size_t y_size, int64_t (*strides)[HN_MAX_RANK]);
/* Bytes per element in memory, strings (pointers) included. */
size_t hn_element_size(HnDtype dtype);
/* Fails where the dtype has no entry. */
void hn_eval_fail_type(HnEval *e, int i);

#define HN_BINARY_LOOP(name, T, W, Z, M)                                               \
    static void name(void *z, const void *x, const void *y, int64_t n, int sx, int sy) \
    {                                                                                  \
        const T *a = x, *b = y;                                                        \
        Z *c = z;                                                                      \
        if (sx != 0 && sy != 0) {                                                      \
            for (int64_t i = 0; i < n; i++) {                                          \
                const T p = a[i], q = b[i];                                            \
                c[i] = (Z)M(T, W, p, q);                                               \
            }                                                                          \
        } else if (sx != 0) {                                                          \
            const T q = b[0];                                                          \
            for (int64_t i = 0; i < n; i++) {                                          \
                const T p = a[i];                                                      \
                c[i] = (Z)M(T, W, p, q);                                               \
            }                                                                          \
        } else {                                                                       \
            const T p = a[0];                                                          \
            for (int64_t i = 0; i < n; i++) {                                          \
                const T q = b[sy != 0 ? i : 0];                                        \
                c[i] = (Z)M(T, W, p, q);                                               \
            }                                                                          \
        }                                                                              \
    }

#define HN_BINARY_SINTS(name, Z, M)                              \
    HN_BINARY_LOOP(name##_i8, int8_t, uint32_t, Z(int8_t), M)    \
    HN_BINARY_LOOP(name##_i16, int16_t, uint32_t, Z(int16_t), M) \
    HN_BINARY_LOOP(name##_i32, int32_t, uint32_t, Z(int32_t), M) \
    HN_BINARY_LOOP(name##_i64, int64_t, uint64_t, Z(int64_t), M)
#define HN_BINARY_UINTS(name, Z, M)                                \
    HN_BINARY_LOOP(name##_u8, uint8_t, uint32_t, Z(uint8_t), M)    \
    HN_BINARY_LOOP(name##_u16, uint16_t, uint32_t, Z(uint16_t), M) \
    HN_BINARY_LOOP(name##_u32, uint32_t, uint32_t, Z(uint32_t), M) \
    HN_BINARY_LOOP(name##_u64, uint64_t, uint64_t, Z(uint64_t), M)
#define HN_BINARY_FLOATS(name, Z, M)                      \
    HN_BINARY_LOOP(name##_f32, float, float, Z(float), M) \
    HN_BINARY_LOOP(name##_f64, double, double, Z(double), M)
/* The output's type: that of the inputs, or bool. */
#define HN_SAME(T) T
#define HN_TRUTH(T) uint8_t

#define HN_SINT_ENTRIES(name) [HN_I8] = name##_i8, [HN_I16] = name##_i16, [HN_I32] = name##_i32, [HN_I64] = name##_i64
#define HN_UINT_ENTRIES(name) [HN_U8] = name##_u8, [HN_U16] = name##_u16, [HN_U32] = name##_u32, [HN_U64] = name##_u64
#define HN_FLOAT_ENTRIES(name) [HN_F32] = name##_f32, [HN_F64] = name##_f64

/* --- following contents ----------------------------------------------------------------------------------------------
 */

/* Elements of input i as dimensions, from its symbolic contents or from its known elements where these are whole
 * numbers (floats and bools too); NULL: not known. g_free. */
HnContents *hn_infer_contents(const HnInfer *x, int i);
/* Contents of output 0, element by element, broadcast; what does not fit its type is unknown. */
void hn_infer_map1(HnInfer *x, HnDim (*fn)(HnDim a));
HnDim hn_dim_same(HnDim d); /* d */
void hn_infer_map2(HnInfer *x, HnDim (*fn)(HnDim a, HnDim b));
/* d where it is a number that `dtype` holds exactly, or an expression; else unknown. */
HnDim hn_dim_fit(HnDim d, HnDtype dtype);
/* d >= 0 for all sizes that its names may stand for (it may be so without this saying so). */
gboolean hn_dim_never_negative(HnDim d);

G_END_DECLS
