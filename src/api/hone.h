/*
 * hone.h: ONNX models in a program of your own, with libhone.so.
 *
 *     HoneModel *model;
 *     HoneSession *session;
 *     if (hone_open("model.onnx", NULL, &model) != HONE_OK || hone_session_new(model, &session) != HONE_OK)
 *         puts(hone_error());
 *     int64_t dims[] = { 1, 10 };
 *     HoneTensor in = { HONE_F32, 2, dims, numbers, sizeof numbers }, out;
 *     if (hone_run(session, &in, &out) == HONE_OK) ... out.data, until the next run of the session ...
 *
 * Build with `pkg-config --cflags --libs hone`; an example is in share/doc/hone/examples.
 *
 * Threads: a model may be used by several threads at once, a session by one at a time; sessions of a model run at the
 * same time. What a model needs is allocated when it is opened and at the first run with new shapes; where small memory
 * is used up, GLib ends the process.
 */
#ifndef HONE_H
#define HONE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are the tools' exit statuses, hone-exit-status(7). */
typedef enum {
    HONE_OK = 0,
    HONE_INVALID = 1,     /* a model or tensor cannot be read or is not valid, or the values are out of range */
    HONE_USAGE = 2,       /* arguments that make no sense */
    HONE_UNSUPPORTED = 4, /* valid, but hone cannot: operator, type, device */
    HONE_BUDGET = 6,      /* the memory limit was reached */
} HoneStatus;

/* The last failure of the calling thread, one sentence that names the node, file or input in quotes; "" before the
 * first. It stays until the thread's next failure. */
const char *hone_error(void);
const char *hone_version(void); /* "0.1.0" */

/* Types of elements; the numbers are those of ONNX's TensorProto.DataType, which has more than are named here. Types of
 * less than 8 bits are packed, low bits first. */
typedef enum {
    HONE_NONE = 0, /* not known, or no tensor */
    HONE_F32 = 1,
    HONE_U8 = 2,
    HONE_I8 = 3,
    HONE_U16 = 4,
    HONE_I16 = 5,
    HONE_I32 = 6,
    HONE_I64 = 7,
    HONE_STRING = 8, /* data is an array of `const char *`, each UTF-8 that ends with NUL; bytes is that of the array */
    HONE_BOOL = 9,   /* a byte, 0 or 1 */
    HONE_F16 = 10,
    HONE_F64 = 11,
    HONE_U32 = 12,
    HONE_U64 = 13,
    HONE_BF16 = 16,
} HoneType;

/* Elements, row-major and without gaps. Given to hone_run(): borrowed until the outputs have been used. Filled in by
 * it: memory of the session. */
typedef struct {
    HoneType type;       /* HONE_NONE: an optional input that is not given, an optional output that is empty */
    int rank;            /* 0: a scalar */
    const int64_t *dims; /* rank of them */
    const void *data;
    size_t bytes; /* of data */
} HoneTensor;

/* An input or output as the model declares it. */
typedef struct {
    const char *name;
    HoneType type;              /* HONE_NONE: a sequence or the like, which hone_run() does not take */
    int rank;                   /* -1: any */
    const int64_t *dims;        /* rank of them; -1: any */
    const char *const *symbols; /* rank of them: what the model calls a dimension that is free, or NULL */
} HonePort;

/* All zeros but size: defaults. */
typedef struct {
    size_t size;         /* sizeof(HoneOptions): what a later version adds stays at its default */
    const char *device;  /* "cpu", "ref"; NULL: cpu */
    int threads;         /* of a session; 0: as many as the process may use */
    size_t memory_limit; /* bytes for the model, its plans and results; 0: none */
    int strict_math;     /* not 0: only algorithms that add up what the operators say: no Winograd */
    int strict;          /* not 0: a node without a fast kernel is an error that names it */
} HoneOptions;

typedef struct HoneModel HoneModel;
typedef struct HoneSession HoneSession;

/* A model from a file; options may be NULL. *model is NULL where it fails. */
HoneStatus hone_open(const char *path, const HoneOptions *options, HoneModel **model);
/* The same from n bytes, which are copied; folder: where external data lies, NULL: the working directory. */
HoneStatus hone_open_bytes(const void *bytes, size_t n, const char *folder, const HoneOptions *options,
                           HoneModel **model);
void hone_close(HoneModel *model); /* NULL is fine; sessions that are left go on */

/* What to give and what comes out, in the order of hone_run(). NULL: k is none. They live as long as the model. */
size_t hone_n_inputs(const HoneModel *model);
size_t hone_n_outputs(const HoneModel *model);
const HonePort *hone_input(const HoneModel *model, size_t k);
const HonePort *hone_output(const HoneModel *model, size_t k);

HoneStatus hone_session_new(HoneModel *model, HoneSession **session);
void hone_session_free(HoneSession *session); /* NULL is fine */

/* inputs: hone_n_inputs() of them; outputs: room for hone_n_outputs(), valid until the session's next run or its end.
 * A type or shape that the model does not take is HONE_INVALID. */
HoneStatus hone_run(HoneSession *session, const HoneTensor *inputs, HoneTensor *outputs);

#ifdef __cplusplus
}
#endif

#endif
