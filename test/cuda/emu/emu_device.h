/*
 * The emulated driver's own structures: devices with their memory, contexts, streams with what waits to be done,
 * graphs.
 *
 * Everything is done under one lock. A call puts work at the end of a stream; it is done when somebody waits for it,
 * and no earlier. Environment: see emu_driver.c.
 */
#pragma once

#include <glib.h>

#include "emu.h"
#include "emu_library.h"

/* CUresult */
enum {
    EMU_OK = 0,
    EMU_INVALID_VALUE = 1,
    EMU_OUT_OF_MEMORY = 2,
    EMU_NOT_INITIALIZED = 3,
    EMU_STUB = 34,
    EMU_UNAVAILABLE = 46,
    EMU_NO_DEVICE = 100,
    EMU_INVALID_DEVICE = 101,
    EMU_INVALID_IMAGE = 200,
    EMU_INVALID_CONTEXT = 201,
    EMU_NO_BINARY = 209,
    EMU_INVALID_PTX = 218,
    EMU_PTX_VERSION = 222,
    EMU_INVALID_HANDLE = 400,
    EMU_ILLEGAL_STATE = 401,
    EMU_NOT_FOUND = 500,
    EMU_NOT_READY = 600,
    EMU_ILLEGAL_ADDRESS = 700,
    EMU_OUT_OF_RESOURCES = 701,
    EMU_LAUNCH_FAILED = 719,
    EMU_CAPTURE_UNSUPPORTED = 900,
    EMU_CAPTURE_INVALIDATED = 901,
    EMU_CAPTURE_MERGE = 902,
    EMU_CAPTURE_UNMATCHED = 903,
    EMU_CAPTURE_UNJOINED = 904,
    EMU_CAPTURE_ISOLATION = 905,
    EMU_CAPTURE_IMPLICIT = 906,
    EMU_CAPTURED_EVENT = 907,
    EMU_CAPTURE_WRONG_THREAD = 908,
};

/* --- memory ------------------------------------------------------------------------------------------------------ */

enum { EMU_BINS = 256, EMU_ALIGN = 256 };
enum { EMU_REGISTERS = 64 }; /* what a thread is taken to need: the interpreter does not allocate any */

/* Addresses of one kind of allocation, and where those that were freed wait before they are used again. */
typedef struct {
    size_t begin, end, next; /* offsets in the reservation */
} EmuArea;

typedef struct {
    EmuSpace space;
    uint8_t *seen, *data, *defined; /* three reservations of the same size: what kernels see has no access */
    EmuArea small, large;
    GQueue bin[EMU_BINS]; /* offsets of small pieces that were freed, by their size in EMU_ALIGN */
    size_t total, used;   /* bytes that the device has and that are taken */
} EmuMemory;

/* An allocation, as the driver knows it. */
typedef struct {
    EmuRegion r;
    guint64 serial;  /* counts allocations of the process: the same address again is another allocation */
    size_t room;     /* bytes it takes, its gap included */
    gboolean module; /* a module's variable */
} EmuBlock;

gboolean emu_memory_init(EmuMemory *m, size_t total);
void emu_memory_clear(EmuMemory *m);
/* NULL: there is no room. */
EmuBlock *emu_memory_alloc(EmuMemory *m, size_t bytes);
void emu_memory_free(EmuMemory *m, EmuBlock *b);
/* The allocation that holds all of these bytes; NULL: none, and *why says what is there (g_free). */
EmuBlock *emu_memory_range(const EmuMemory *m, uint64_t address, size_t bytes, char **why);
/* Host addresses that only kernels may use. */
gboolean emu_memory_sees(const EmuMemory *m, uint64_t address);

void emu_space_add(EmuSpace *s, EmuRegion *r);
void emu_space_remove(EmuSpace *s, const EmuRegion *r);

/* --- devices and contexts ---------------------------------------------------------------------------------------- */

typedef struct EmuContext EmuContext;
typedef struct EmuStream EmuStream;
typedef struct EmuGraph EmuGraph;

typedef struct {
    int index;
    EmuMemory memory;
    int retained;
    EmuContext *context; /* the primary one */
} EmuDevice;

typedef enum { EMU_FREED, EMU_MODULE, EMU_FUNCTION, EMU_STREAM, EMU_EVENT, EMU_GRAPH, EMU_EXEC } EmuKind;

struct EmuContext {
    EmuDevice *device;
    GHashTable *objects; /* handle -> EmuKind */
    EmuSpace pinned;
    GPtrArray *streams;        /* EmuStream, [0]: the legacy default one */
    GPtrArray *captures;       /* EmuCapture, begun and not ended */
    struct EmuMark *legacy;    /* behind the last work of the default stream, which blocking streams wait for */
    int fault;                 /* CUresult that all calls answer from now on */
    double clock;              /* ms; of the device */
    GArray *clock_of_host;     /* guint32 by stream: how much of it the host has waited for */
    guint waited;              /* how often that changed */
    int indices;               /* streams that ever were */
    GPtrArray *remembered;     /* emu_order.c */
    const struct EmuOp *doing; /* the stream's work that is done now */
    uint64_t node;             /* of the graph that is replayed; 0: none */
};

typedef struct {
    EmuContext *context;
    EmuModule *ptx;
    GHashTable *functions; /* name -> EmuFunction */
    GPtrArray *variables;  /* EmuBlock */
    guint64 serial;
} EmuModuleHandle;

typedef struct {
    EmuModuleHandle *module;
    const EmuKernel *kernel;
    int dynamic;   /* most bytes of dynamic shared memory */
    int registers; /* of a thread; 0: not known */
    EmuCounts *counts;
} EmuFunction;

/* What the environment says. */
typedef struct {
    gboolean read, leaks;
    int cc, sms, devices, version;
    size_t memory;
    guint64 fail; /* the allocation that fails, counted from 1; 0: none */
    guint32 order;
    const char *fault;  /* HONE_EMU_CASE */
    const char *faulty; /* HONE_EMU_FAULT: a kernel */
    const char *counts;
    const char *log;
    const char *budget; /* HONE_EMU_BUDGET: a file of what kernels need, as test/cuda/budget.txt */
    gboolean idle;      /* HONE_EMU_IDLE: launches are checked, and nothing is computed */
} EmuSettings;
extern EmuSettings emu_settings;

/* Says it on stderr and in the log, with a line's end. */
void emu_say(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* The same; from now on all calls in the context answer that. */
int emu_fail(EmuContext *c, int result, const char *format, ...) G_GNUC_PRINTF(3, 4);

gboolean emu_is(const EmuContext *c, const void *handle, EmuKind kind);

/* --- streams ----------------------------------------------------------------------------------------------------- */

/* A place in a stream, behind the work that was there. */
typedef struct EmuMark {
    int refs;
    EmuStream *stream; /* while it is not done */
    gboolean done;
    double ms;
    GArray *clock; /* what comes before; and this turn of this stream */
    int index;
    guint32 turn;
} EmuMark;

typedef enum {
    EMU_LAUNCH,
    EMU_TO_DEVICE,
    EMU_TO_HOST,
    EMU_WITHIN,
    EMU_SET8,
    EMU_SET32,
    EMU_HOST, /* a function of the host: `to`, with `from` */
    EMU_LIBRARY,
    EMU_REACH, /* a mark */
    EMU_WAIT,  /* for a mark */
    EMU_REPLAY
} EmuWork;

/* Memory that recorded work used when it was recorded. */
typedef struct {
    uint64_t address;
    guint64 serial;
} EmuUse;

typedef struct EmuOp {
    int refs;
    EmuWork work;
    int stream, number; /* where: place in clocks, number in messages */
    guint32 turn;
    GArray *clock;         /* guint32 by stream: how much of it comes before; NULL: nothing */
    EmuFunction *function; /* of a launch, with its module as it was */
    guint64 module;
    EmuLaunch launch;
    uint8_t *params;
    uint64_t to, from;
    size_t bytes;
    uint32_t value;
    uint8_t *staged; /* source of an upload from memory that is not pinned, copied when it was asked for */
    EmuMark *mark;
    struct EmuExec *exec;
    EmuLibraryWork *library;
    GArray *uses;  /* EmuUse; of recorded work */
    GArray *after; /* int: of recorded work, what must be done before */
} EmuOp;

typedef struct {
    int mode; /* 0 global, 1 thread local, 2 relaxed */
    GThread *thread;
    EmuStream *origin;
    GPtrArray *ops; /* EmuOp */
    gboolean broken;
} EmuCapture;

struct EmuStream {
    EmuContext *context;
    int index;         /* in clocks; 0: the default stream */
    int number;        /* in messages */
    guint32 turn;      /* of its work, counted */
    GArray *clock;     /* what comes before what is asked for next */
    guint waited;      /* when the host's clock was last looked at */
    gboolean blocking; /* waits for the default stream, and that one for it */
    GQueue ops;        /* EmuOp */
    EmuMark *legacy;   /* of the default stream, already waited for */
    EmuCapture *capture;
    GArray *tail; /* int: of the capture's work, what the next one comes behind */
};

typedef struct {
    EmuContext *context;
    gboolean timed;
    EmuMark *mark;       /* NULL: never recorded */
    EmuCapture *capture; /* recorded while capturing */
    GArray *tail;
} EmuEvent;

struct EmuGraph {
    EmuContext *context;
    GPtrArray *ops; /* EmuOp */
};

typedef struct EmuExec {
    int refs;
    EmuContext *context;
    GPtrArray *ops;
    EmuMark *last; /* behind the last launch of it */
    gboolean seen; /* somebody was told of work when it was made */
} EmuExec;

EmuStream *emu_stream_new(EmuContext *c, gboolean blocking);
void emu_stream_free(EmuStream *s);
void emu_op_unref(gpointer op);
void emu_mark_unref(EmuMark *m);
void emu_event_free(EmuEvent *e);
void emu_graph_free(EmuGraph *g);
void emu_exec_unref(EmuExec *x);
/* Does everything that waits anywhere in the context. */
int emu_run_all(EmuContext *c);
/* Does all of the stream; with NULL all of the default stream and of those that it waits for. */
int emu_run_stream(EmuStream *s);
int emu_wait_stream(EmuStream *s); /* the same; what is asked for later comes behind it */
int emu_run_mark(EmuMark *m);
/* One piece of the stream's work, if there is any. */
int emu_run_one(EmuStream *s);
/* A call that the manual forbids while somebody captures: its code, and the capture is broken; else 0. */
int emu_unsafe(EmuContext *c, const char *call);
/* Takes the op: the end of the stream, or of what it captures. */
int emu_push(EmuStream *s, EmuOp *op);
EmuOp *emu_op_new(EmuWork work);
/* A mark behind all that is in the stream now. */
EmuMark *emu_mark_here(EmuStream *s);
/* What comes into the stream from now on waits for the mark. */
void emu_push_wait(EmuStream *s, EmuMark *m);
/* What to call the work in messages. */
const char *emu_name_of(const EmuOp *op);
/* --- order --- */
void emu_order_op(EmuStream *s, EmuOp *op);           /* it is put into the stream */
void emu_order_mark(const EmuStream *s, EmuMark *m);  /* the mark is put there */
void emu_order_wait(EmuStream *s, const EmuMark *m);  /* the stream waits for it */
void emu_order_host(EmuContext *c, const EmuMark *m); /* the host does */
void emu_order_host_stream(const EmuStream *s);       /* the host waits for all of it */
/* Around work: true when it may run beside other work, and emu_order_end() is to judge what it used. */
gboolean emu_order_begin(EmuContext *c, const EmuOp *op);
void emu_order_end(EmuContext *c, const EmuOp *op);
GPtrArray *emu_order_new(void);
/* --- work of libraries --- */
void emu_library_do(EmuContext *c, const EmuOp *op);
void emu_library_free(EmuLibraryWork *w);

/* Takes the op: behind the stream's capture. */
int emu_record(EmuStream *s, EmuOp *op);
/* Does the recorded work. */
void emu_replay(EmuContext *c, const EmuExec *x);
void emu_do(EmuContext *c, const EmuOp *op);
guint32 emu_random(guint32 n);
/* emu_trace.c: somebody is told of work; tells that it was done, from `before` on (ms). Of a graph whose nodes are
 * EMU_NODE_UNSEEN nobody is told. */
#define EMU_NODE_UNSEEN UINT64_MAX
gboolean emu_trace_on(void);
void emu_trace(const EmuContext *c, const EmuOp *op, double before);
/* The allocations at which the words of a parameter block, or a copy's ends, point. */
GArray *emu_uses(const EmuContext *c, const EmuOp *op);

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* A function of the driver, seen from outside. */
#define EMU_CALL(name, ...)                                       \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

/* Takes the lock; 0, or what the call is to answer. With the context of this thread in *c. */
int emu_enter(EmuContext **c);
/* Gives it back; always at the end, whatever emu_enter() said. */
int emu_leave(int result);
/* NULL is the default stream; NULL as the answer: there is no such stream. */
EmuStream *emu_stream_of(EmuContext *c, void *handle);
void emu_module_handle_free(EmuModuleHandle *m);
/* To HONE_EMU_COUNTS. */
void emu_write_counts(void);

/* The PTX in an image for this compute capability, in *text[*n], which lies in the image, or in *made, which is to be
 * freed (g_free) in any case. */
int emu_image_ptx(const void *image, int cc, const char **text, size_t *n, char **made);
