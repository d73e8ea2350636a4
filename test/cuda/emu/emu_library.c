#include "emu_library.h"

#include <string.h>

#include "emu_device.h"

void emu_library_free(EmuLibraryWork *w)
{
    if (w != NULL)
        g_free(w->data);
    g_free(w);
}

EMU_CALL(emu_library_push, void *stream, const EmuLibraryWork *w)
{
    EmuContext *c;
    int result = emu_enter(&c);
    EmuStream *s = result == EMU_OK ? emu_stream_of(c, stream) : NULL;
    if (result == EMU_OK && s == NULL)
        result = EMU_INVALID_HANDLE;
    EmuLibraryWork *taken = g_memdup2(w, sizeof *w);
    if (result != EMU_OK) {
        emu_library_free(taken);
        return emu_leave(result);
    }
    EmuOp *op = emu_op_new(EMU_LIBRARY);
    op->library = taken;
    return emu_leave(emu_push(s, op));
}

__attribute__((visibility("default"))) void emu_library_say(const char *sentence)
{
    emu_say("%s", sentence);
}

/* The bytes of the range; NULL: something is wrong with it. */
static uint8_t *memory_of(EmuContext *c, const EmuLibraryWork *w, const EmuLibraryRange *r)
{
    char *why = NULL;
    const EmuBlock *b = emu_memory_range(&c->device->memory, r->address, r->bytes, &why);
    if (b == NULL) {
        emu_fail(c, EMU_ILLEGAL_ADDRESS, "%s, %s: %s", w->name, r->what, why);
        g_free(why);
        return NULL;
    }
    const size_t at = r->address - b->r.base;
    const uint8_t *hole = r->wrote ? NULL : memchr(b->r.defined + at, 0, r->bytes);
    if (hole == NULL)
        return b->r.data + at;
    emu_fail(c, EMU_LAUNCH_FAILED,
             "%s, %s: byte %zu of the allocation of %zu bytes at 0x%" G_GINT64_MODIFIER "x was never written", w->name,
             r->what, (size_t)(hole - b->r.defined), b->r.bytes, b->r.base);
    return NULL;
}

void emu_library_do(EmuContext *c, const EmuOp *op)
{
    const EmuLibraryWork *w = op->library;
    uint8_t *memory[EMU_LIBRARY_RANGES] = { NULL };
    if (g_strcmp0(emu_settings.faulty, w->name) == 0) {
        emu_fail(c, EMU_ILLEGAL_ADDRESS, "'%s' is said to be faulty", w->name);
        return;
    }
    for (int i = 0; i < w->n; i++)
        if ((memory[i] = memory_of(c, w, &w->range[i])) == NULL)
            return;
    w->compute(w->data, memory);
    for (int i = 0; i < w->n; i++) {
        const EmuLibraryRange *r = &w->range[i];
        const EmuBlock *b = (const EmuBlock *)emu_space_find(&c->device->memory.space, r->address);
        if (r->wrote)
            memset(b->r.defined + (r->address - b->r.base), 1, r->bytes);
    }
}
