/*
 * A program of element-wise nodes (run/element_program.h) as the kernel that interprets it reads it.
 *
 * Numbers are in the accumulator, where each instruction leaves its result, in registers, and in the port that an
 * instruction loads before it computes.
 */
#pragma once

#include "cuda/elementwise/cuda_walk_args.h"

#define HN_CUDA_NONE 255
#define HN_CUDA_RESULT 254 /* an operand: of the instruction before */
#define HN_CUDA_LOADED 253 /* ... what this instruction has loaded; others are registers */

#define HN_CUDA_QUADS 2 /* times four elements at a time, for a thread */

enum {
    HN_CUDA_LOADS = 250 /* a code beside HnElementCode: the result is what was loaded */
};

typedef struct {
    uint8_t code, port, keep; /* port: to be loaded; keep: a register that gets the result, too */
    uint8_t arg[3];
    uint8_t unused[2];
    float a, b;
} __attribute__((aligned(16))) HnCudaDo; /* read at once */

/* Types of elements in memory. */
enum {
    HN_CUDA_F32,
    HN_CUDA_F16,
    HN_CUDA_BF16,
    HN_CUDA_F64,
    HN_CUDA_BOOL,
    HN_CUDA_U8,
    HN_CUDA_I8,
    HN_CUDA_I32,
    HN_CUDA_I64
};

typedef struct {
    uint8_t type, kind; /* HN_CUDA_DENSE ... */
    uint16_t stride;    /* of its first axis, in the table */
} HnCudaPort;

#define HN_CUDA_TABLE(name, PORTS, CODE, AXES, STRIDES)    \
    typedef struct {                                       \
        HnCudaShape shape;                                 \
        int32_t n, type; /* instructions; of the result */ \
        HnCudaPort port[PORTS];                            \
        HnCudaDo code[CODE];                               \
        HnCudaAxis axis[AXES];                             \
        int64_t stride[STRIDES];                           \
    } name;

#define HN_CUDA_FEW_PORTS 16
#define HN_CUDA_FEW_CODES 32
#define HN_CUDA_FEW_AXES 6
#define HN_CUDA_FEW_STRIDES 36
HN_CUDA_TABLE(HnCudaFew, HN_CUDA_FEW_PORTS, HN_CUDA_FEW_CODES, HN_CUDA_FEW_AXES, HN_CUDA_FEW_STRIDES)

/* At most: ports of a group, instructions and loads of its nodes. */
#define HN_CUDA_MANY_PORTS 64
#define HN_CUDA_MANY_CODES 512
#define HN_CUDA_MANY_STRIDES (HN_CUDA_MANY_PORTS * HN_CUDA_AXES)
HN_CUDA_TABLE(HnCudaMany, HN_CUDA_MANY_PORTS, HN_CUDA_MANY_CODES, HN_CUDA_AXES, HN_CUDA_MANY_STRIDES)

typedef struct {
    uint64_t z, x[HN_CUDA_FEW_PORTS];
    HnCudaFew table;
} HnCudaFewArgs;

typedef struct {
    uint64_t z, x[HN_CUDA_MANY_PORTS];
    uint64_t table; /* where the HnCudaMany is on the device */
} HnCudaManyArgs;
