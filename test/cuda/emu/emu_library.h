/*
 * What libraries that launch kernels of their own ask of the emulated driver: work that is put into a stream, recorded
 * and replayed as launches are, and done by a function of the host instead of an interpreted kernel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMU_LIBRARY_RANGES = 6 };

/* Memory on the device. Of what is read all bytes must have been written; what is written becomes so. */
typedef struct {
    const char *what; /* in messages, a constant */
    uint64_t address;
    size_t bytes;
    bool wrote;
} EmuLibraryRange;

typedef struct {
    const char *name; /* a constant */
    int n;
    EmuLibraryRange range[EMU_LIBRARY_RANGES];
    void (*compute)(const void *data, uint8_t *const *memory); /* memory[i]: the bytes of range i */
    void *data;                                                /* of g_malloc(), taken: freed with the work */
} EmuLibraryWork;

/* Puts it at the end of the stream; a CUresult. */
int emu_library_push(void *stream, const EmuLibraryWork *w);
/* Says it as the driver does, on stderr and in its log; whatever is said is a mistake of the caller. */
void emu_library_say(const char *sentence);
