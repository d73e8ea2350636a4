/*
 * The emulated device's two halves: the interpreter (ptx_*.c), which knows PTX and what a launch may do, and the driver
 * (emu_driver*.c), which stands in for libcuda.so.1 and owns memory, modules, streams and graphs.
 *
 * One thread at a time calls the interpreter: the driver holds its lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An allocation on the device, with exactly the bytes that were asked for. */
typedef struct EmuRegion {
    uint64_t base; /* address that kernels see; the host has no access to it */
    size_t bytes;
    uint8_t *data;    /* the same memory, where the interpreter and the driver's copies reach it */
    uint8_t *defined; /* for each byte: somebody has written it */
    void *races;      /* the interpreter's: last readers and writers within a launch; freed with free() */
    bool constant;    /* kernels must not write (.const) */
} EmuRegion;

/* All allocations, by base, ascending. */
typedef struct {
    EmuRegion **region;
    size_t n, room;
} EmuSpace;

/* The region that holds the address; NULL: none. */
EmuRegion *emu_space_find(const EmuSpace *s, uint64_t address);

typedef struct {
    int result;      /* CUresult: 700 illegal address, 715 illegal instruction, 716 misaligned, 718 ..., 719 failure */
    char text[1024]; /* kernel, instruction with its line in the PTX, block, thread, and what is wrong, in one line */
} EmuFault;

/* What launches did, in sum. */
typedef struct {
    uint64_t launches, blocks;
    uint64_t instructions; /* of warps */
    uint64_t sectors,
        sectors_needed;         /* of 32 bytes in global memory: touched, and what the bytes would need if dense */
    uint64_t shared, conflicts; /* accesses of warps to shared memory, and turns beyond the first that they took */
} EmuCounts;

/* What the driver puts into the 128 bytes of a CUtensorMap. */
#define EMU_TENSOR_MAP 0x7e57a9u
typedef struct {
    uint32_t magic;
    uint8_t size, rank, swizzled; /* bytes of an element; axes; in patterns of 128 bytes by 8 */
    uint64_t address, strides[4]; /* bytes; of axes 1 and on */
    uint32_t dims[5], box[5];
} EmuTensorMap;

typedef struct EmuModule EmuModule;
typedef struct EmuKernel EmuKernel;

/* text[n]: PTX; kept by the module as a copy. Bodies are parsed when a kernel is first asked for. NULL: *fault says
 * why. */
EmuModule *emu_module_new(const char *text, size_t n, EmuFault *fault);
void emu_module_free(EmuModule *m);
/* NULL: there is none (fault->text empty), or it has something that the interpreter does not know. */
const EmuKernel *emu_module_kernel(EmuModule *m, const char *name, EmuFault *fault);

/* Variables of the module (.global, .const at module level): the driver allocates a region for each and says where. */
typedef struct {
    const char *name;
    size_t bytes;
    const uint8_t *initial; /* [bytes]; NULL: none, undefined */
    bool constant;
} EmuVariable;
int emu_module_variables(const EmuModule *m); /* how many */
const EmuVariable *emu_module_variable(const EmuModule *m, int i);
void emu_module_place_variable(EmuModule *m, int i, uint64_t address);

const char *emu_kernel_name(const EmuKernel *k);
int emu_kernel_params(const EmuKernel *k);
void emu_kernel_param(const EmuKernel *k, int i, size_t *offset, size_t *bytes); /* within the parameter block */
size_t emu_kernel_param_bytes(const EmuKernel *k);                               /* of the block */
size_t emu_kernel_shared(const EmuKernel *k);                                    /* static shared memory, bytes */
int emu_kernel_max_threads(const EmuKernel *k);                                  /* .maxntid or 1024 */

typedef struct {
    unsigned grid[3], block[3];
    size_t shared;         /* dynamic shared memory, bytes */
    const uint8_t *params; /* [emu_kernel_param_bytes()] */
    unsigned order;        /* 0: lanes, warps and blocks in order; else the seed of another order */
    int sms;               /* what %nsmid and the like say */
} EmuLaunch;

/* Runs the whole grid. False: *fault. */
bool emu_launch(const EmuKernel *k, const EmuLaunch *l, const EmuSpace *space, EmuCounts *counts, EmuFault *fault);
