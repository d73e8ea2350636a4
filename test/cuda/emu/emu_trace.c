/*
 * Tells what the device does.
 */
#include "emu_trace.h"

#include "emu_device.h"

static EmuTraceFn told;
static uint64_t clock_ns;

__attribute__((visibility("default"))) void emuTraceSet(EmuTraceFn fn);
void emuTraceSet(EmuTraceFn fn)
{
    __atomic_store_n(&told, fn, __ATOMIC_SEQ_CST);
}

__attribute__((visibility("default"))) uint64_t emuClock(void);
uint64_t emuClock(void)
{
    return __atomic_load_n(&clock_ns, __ATOMIC_SEQ_CST);
}

gboolean emu_trace_on(void)
{
    return __atomic_load_n(&told, __ATOMIC_SEQ_CST) != NULL;
}

void emu_trace(const EmuContext *c, const EmuOp *op, double before)
{
    static const int kinds[] = {
        [EMU_LAUNCH] = EMU_TRACED_KERNEL, [EMU_TO_DEVICE] = EMU_TRACED_TO_DEVICE, [EMU_TO_HOST] = EMU_TRACED_TO_HOST,
        [EMU_WITHIN] = EMU_TRACED_COPY,   [EMU_SET8] = EMU_TRACED_FILL,           [EMU_SET32] = EMU_TRACED_FILL,
        [EMU_LIBRARY] = EMU_TRACED_KERNEL
    };
    const EmuTraceFn fn = __atomic_load_n(&told, __ATOMIC_SEQ_CST);
    __atomic_store_n(&clock_ns, (uint64_t)(c->clock * 1e6), __ATOMIC_SEQ_CST);
    if (fn == NULL || op->work == EMU_HOST || c->node == EMU_NODE_UNSEEN)
        return;
    EmuTraced t = { .kind = (EmuTracedKind)kinds[op->work],
                    .start = (uint64_t)(before * 1e6),
                    .end = (uint64_t)(c->clock * 1e6),
                    .bytes = op->bytes,
                    .stream = (unsigned)op->stream,
                    .graph_node = c->node };
    if (op->work == EMU_LAUNCH) {
        t.name = emu_kernel_name(op->function->kernel);
        t.registers = op->function->registers > 0 ? (unsigned)op->function->registers : EMU_REGISTERS;
        t.shared = (unsigned)emu_kernel_shared(op->function->kernel);
        t.dynamic = (unsigned)op->launch.shared;
        for (int i = 0; i < 3; i++) {
            t.grid[i] = op->launch.grid[i];
            t.block[i] = op->launch.block[i];
        }
    }
    for (int i = 0; op->work == EMU_LIBRARY && i < 3; i++) {
        t.name = "a kernel of a library";
        t.grid[i] = t.block[i] = 1;
    }
    fn(&t);
}
