/*
 * What the emulated device tells of each piece of work that it has done, for a stand-in of libcupti (emu_cupti.c),
 * which finds these two functions in the driver's library.
 */
#pragma once

#include <stdint.h>

typedef enum {
    EMU_TRACED_KERNEL,
    EMU_TRACED_TO_DEVICE,
    EMU_TRACED_TO_HOST,
    EMU_TRACED_COPY,
    EMU_TRACED_FILL
} EmuTracedKind;

typedef struct {
    EmuTracedKind kind;
    uint64_t start, end; /* ns of the device's clock, which counts instructions */
    const char *name;    /* of a kernel, while its module is there */
    unsigned grid[3], block[3], registers, shared, dynamic;
    uint64_t bytes;
    unsigned stream;
    uint64_t graph_node; /* 0: of no graph */
} EmuTraced;

typedef void (*EmuTraceFn)(const EmuTraced *t);
/* NULL: nobody is told any more. Graphs that are made meanwhile stay untold. */
typedef void (*EmuTraceSetFn)(EmuTraceFn fn);
typedef uint64_t (*EmuClockFn)(void); /* ns */
#define EMU_TRACE_SET "emuTraceSet"
#define EMU_CLOCK "emuClock"
