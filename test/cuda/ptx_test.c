/*
 * The emulated device's interpreter, by small kernels in PTX: values of instructions, and faults that are planted in
 * one line. Each fault is found and named, in several orders of lanes, warps and blocks; with the right line nothing
 * is.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "emu/emu.h"

enum { WORDS = 256, LANES = 32 };

/* What kernels of this test are given, by parameter. */
enum { X, Y, Z, CONSTANT, FREED, REGIONS };

typedef struct {
    EmuRegion region[REGIONS];
    EmuRegion *list[REGIONS];
    EmuSpace space;
    uint32_t word[REGIONS][WORDS];
    uint8_t defined[REGIONS][4 * WORDS];
} Device;

EmuRegion *emu_space_find(const EmuSpace *s, uint64_t address)
{
    for (size_t i = 0; i < s->n; i++)
        if (address - s->region[i]->base < s->region[i]->bytes)
            return s->region[i];
    return NULL;
}

/* x[i] = 7 i + 3, y is not defined, z is 0, what was freed is in no list. */
static Device *device_new(void)
{
    Device *d = g_new0(Device, 1);
    for (int i = 0; i < REGIONS; i++) {
        d->region[i] = (EmuRegion){ .base = UINT64_C(0x7000000000) + 0x1000u * (unsigned)i,
                                    .bytes = sizeof d->word[i],
                                    .data = (uint8_t *)d->word[i],
                                    .defined = d->defined[i],
                                    .constant = i == CONSTANT };
        memset(d->defined[i], i != Y, sizeof d->defined[i]);
        d->list[i] = &d->region[i];
    }
    for (unsigned i = 0; i < WORDS; i++)
        d->word[X][i] = 7 * i + 3;
    d->space = (EmuSpace){ d->list, FREED, FREED };
    return d;
}

static void device_free(Device *d)
{
    for (int i = 0; i < REGIONS; i++)
        free(d->region[i].races);
    g_free(d);
}

/*
 * A kernel around a body. It finds in %rd1, %rd2, %rd3 where x, y, z begin, in %rd4, %rd5, %rd6 the thread's word of
 * each, in %r1 the thread, in %r2 the block, in %r4 the thread in the grid, in %r5 256 words of shared memory, in %r6
 * the thread's word there, in %r10 its word of x.
 */
#define PARAMETERS ".param .u64 x, .param .u64 y, .param .u64 z, .param .u64 constant, .param .u64 freed"
static const char head[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
static const char begin[] = ".visible .entry k(" PARAMETERS ")\n{\n"
                            ".reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n"
                            ".reg .f32 %f<40>;\n.reg .f64 %fd<8>;\n.shared .align 16 .b8 s[1024];\n"
                            "ld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [y];\nld.param.u64 %rd3, [z];\n"
                            "cvta.to.global.u64 %rd1, %rd1;\ncvta.to.global.u64 %rd2, %rd2;\n"
                            "cvta.to.global.u64 %rd3, %rd3;\n"
                            "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n"
                            "mad.lo.u32 %r4, %r2, %r3, %r1;\nmul.wide.u32 %rd9, %r4, 4;\n"
                            "add.s64 %rd4, %rd1, %rd9;\nadd.s64 %rd5, %rd2, %rd9;\nadd.s64 %rd6, %rd3, %rd9;\n"
                            "mov.u32 %r5, s;\nshl.b32 %r6, %r1, 2;\nadd.u32 %r6, %r5, %r6;\n"
                            "ld.global.u32 %r10, [%rd4];\n";
static const char end[] = "ret;\n}\n";

static bool run(Device *d, const char *text, unsigned grid, unsigned block, unsigned order, EmuFault *fault)
{
    EmuModule *m = emu_module_new(text, strlen(text), fault);
    if (m == NULL)
        g_error("%s\n%s", fault->text, text);
    const EmuKernel *k = emu_module_kernel(m, "k", fault);
    if (k == NULL)
        g_error("%s\n%s", fault->text, text);
    uint64_t params[REGIONS];
    g_assert_cmpuint(emu_kernel_param_bytes(k), ==, sizeof params);
    for (int i = 0; i < REGIONS; i++)
        params[i] = d->region[i].base;
    const EmuLaunch l = {
        .grid = { grid, 1, 1 }, .block = { block, 1, 1 }, .params = (const uint8_t *)params, .order = order, .sms = 2
    };
    EmuCounts counts = { 0 };
    const bool ok = emu_launch(k, &l, &d->space, &counts, fault);
    emu_module_free(m);
    g_assert_cmpuint(counts.launches, ==, 1);
    return ok;
}

static const unsigned orders[] = { 0, 1, 7, 1234567 };

/* --- one instruction ---------------------------------------------------------------------------------------------- */

/* types: of the result and the operands: r, d, h 32, 64, 16 bits; f, D floats of 32 and 64; p a predicate. */
typedef struct {
    const char *op, *types;
    uint64_t want, in[3];
} Instruction;

#define F_1 0x3f800000
#define F_2 0x40000000
#define F_NAN 0x7fc00000
#define F_INF 0x7f800000
#define D_1 0x3ff0000000000000
#define TINY 0x30800000 /* 2^-30 */
#define U32_MAX 0xffffffff

static const Instruction instructions[] = {
    { "add.s32", "rrr", 0x80000001, { 0x7fffffff, 2 } },
    { "add.sat.s32", "rrr", 0x7fffffff, { 0x7fffffff, 2 } },
    { "sub.s32", "rrr", U32_MAX, { 4, 5 } },
    { "mul.lo.s32", "rrr", 0xfffffffa, { 0xfffffffe, 3 } },
    { "mul.hi.s32", "rrr", U32_MAX, { 0xfffffffe, 3 } },
    { "mul.hi.u32", "rrr", 2, { 0xfffffffe, 3 } },
    { "mul.wide.s32", "drr", 0xfffffffffffffffa, { 0xfffffffe, 3 } },
    { "mul.wide.u32", "drr", 0x2fffffffa, { 0xfffffffe, 3 } },
    { "mul.wide.s16", "rhh", 0xfffffffa, { 0xfffe, 3 } },
    { "mad.lo.s32", "rrrr", 47, { 5, 8, 7 } },
    { "mad.hi.u32", "rrrr", 9, { 0xfffffffe, 3, 7 } },
    { "mad.wide.s32", "drrd", 0xfffffffffffffffe, { 0xfffffffe, 3, 4 } },
    { "div.s32", "rrr", 0xfffffffd, { 0xfffffff9, 2 } },
    { "rem.s32", "rrr", U32_MAX, { 0xfffffff9, 2 } },
    { "div.u32", "rrr", 0x7ffffffc, { 0xfffffff9, 2 } },
    { "rem.u64", "ddd", 3, { 1000000000000000003, 1000 } },
    { "abs.s32", "rr", 7, { 0xfffffff9 } },
    { "neg.s32", "rr", 0xfffffff9, { 7 } },
    { "min.s32", "rrr", U32_MAX, { U32_MAX, 1 } },
    { "min.u32", "rrr", 1, { U32_MAX, 1 } },
    { "max.s32", "rrr", 1, { U32_MAX, 1 } },
    { "and.b32", "rrr", 8, { 12, 10 } },
    { "or.b32", "rrr", 14, { 12, 10 } },
    { "xor.b32", "rrr", 6, { 12, 10 } },
    { "not.b32", "rr", 0xfffffff3, { 12 } },
    { "cnot.b32", "rr", 0, { 12 } },
    { "shl.b32", "rrr", 0x80000000, { 1, 31 } },
    { "shl.b32", "rrr", 0, { 1, 32 } },
    { "shr.s32", "rrr", U32_MAX, { 0x80000000, 40 } },
    { "shr.u32", "rrr", 0, { 0x80000000, 40 } },
    { "shr.u32", "rrr", 8, { 0x80000000, 28 } },
    { "shl.b64", "ddr", 0x100000000, { 1, 32 } },
    { "shf.l.wrap.b32", "rrrr", 0x34567812, { 0x12000000, 0x12345678, 8 } },
    { "popc.b32", "rr", 5, { 0x80010013 } },
    { "clz.b32", "rr", 32, { 0 } },
    { "clz.b64", "rd", 31, { 0x100000000 } },
    { "brev.b32", "rr", 0x80000000, { 1 } },
    { "bfind.u32", "rr", 8, { 0x1ff } },
    { "bfe.s32", "rrrr", 0xfffffffa, { 0xa0, 4, 4 } },
    { "bfe.u32", "rrrr", 10, { 0xa0, 4, 4 } },
    { "prmt.b32", "rrrr", 0x88112244, { 0x11223344, 0x55667788, 0x4320 } },
    { "sad.s32", "rrrr", 12, { 0xfffffffe, 3, 7 } },
    { "dp4a.s32.s32", "rrrr", 4, { 0x01ff0203, 0x01020304, 0xfffffff3 } },
    { "setp.lt.s32", "prr", 1, { U32_MAX, 1 } },
    { "setp.lo.u32", "prr", 0, { U32_MAX, 1 } },
    { "setp.lt.f32", "pff", 0, { F_NAN, F_1 } },
    { "setp.ltu.f32", "pff", 1, { F_NAN, F_1 } },
    { "setp.neu.f32", "pff", 1, { F_NAN, F_NAN } },
    { "setp.eq.f32", "pff", 1, { 0, 0x80000000 } },
    { "add.f32", "fff", 0x40400000, { F_1, F_2 } },
    { "add.rn.f32", "fff", F_1, { F_1, TINY } },
    { "add.rp.f32", "fff", 0x3f800001, { F_1, TINY } },
    { "add.rm.f32", "fff", F_1, { F_1, TINY } },
    { "add.rz.f32", "fff", 0x3f7fffff, { F_1, 0x80000000 | TINY } },
    { "add.sat.f32", "fff", F_1, { F_1, F_2 } },
    { "mul.f32", "fff", 0x40c00000, { F_2, 0x40400000 } },
    { "fma.rn.f32", "ffff", 0x28800000, { 0x3f800001, 0x3f800001, 0xbf800002 } },
    { "div.rn.f32", "fff", 0x3eaaaaab, { F_1, 0x40400000 } },
    { "div.rz.f32", "fff", 0x3eaaaaaa, { F_1, 0x40400000 } },
    { "sqrt.rn.f32", "ff", 0x3fb504f3, { F_2 } },
    { "rcp.rn.f32", "ff", 0x3f000000, { F_2 } },
    { "ex2.approx.f32", "ff", 0x41000000, { 0x40400000 } },
    { "lg2.approx.f32", "ff", 0x40400000, { 0x41000000 } },
    { "min.f32", "fff", F_1, { F_NAN, F_1 } },
    { "max.NaN.f32", "fff", 0x7fffffff, { F_NAN, F_1 } },
    { "neg.f32", "ff", 0xbf800000, { F_1 } },
    { "abs.f32", "ff", F_INF, { 0xff800000 } },
    { "copysign.f32", "fff", 0xc0000000, { 0x80000000, F_2 } },
    { "add.f64", "DDD", 0x4000000000000000, { D_1, D_1 } },
    { "fma.rn.f64", "DDDD", 0x4000000000000000, { D_1, D_1, D_1 } },
    { "cvt.rni.s32.f32", "rf", 2, { 0x40200000 } },          /* 2.5 */
    { "cvt.rzi.s32.f32", "rf", 0xfffffffe, { 0xc02ccccd } }, /* -2.7 */
    { "cvt.rmi.s32.f32", "rf", 0xfffffffd, { 0xc0066666 } }, /* -2.1 */
    { "cvt.rpi.s32.f32", "rf", 3, { 0x40066666 } },
    { "cvt.rzi.s32.f32", "rf", 0x7fffffff, { 0x501502f9 } }, /* 1e10 */
    { "cvt.rzi.s32.f32", "rf", 0, { F_NAN } },
    { "cvt.rzi.u32.f32", "rf", 0, { 0xc02ccccd } },
    { "cvt.rni.f32.f32", "ff", F_2, { 0x40200000 } },
    { "cvt.rn.f32.s32", "fr", 0x4b800000, { 16777217 } },
    { "cvt.rp.f32.s32", "fr", 0x4b800001, { 16777217 } },
    { "cvt.rn.f32.f64", "fD", F_1, { D_1 + 1 } },
    { "cvt.rp.f32.f64", "fD", 0x3f800001, { D_1 + 1 } },
    { "cvt.f64.f32", "Df", D_1, { F_1 } },
    { "cvt.rn.f16.f32", "hf", 0x3c00, { 0x3f801000 } }, /* half way, to even */
    { "cvt.rn.f16.f32", "hf", 0x3c02, { 0x3f803000 } },
    { "cvt.rz.f16.f32", "hf", 0x3c01, { 0x3f803fff } },
    { "cvt.rn.f16.f32", "hf", 0x7c00, { 0x477ff000 } }, /* 65520 */
    { "cvt.rn.f16.f32", "hf", 0x0001, { 0x33800000 } }, /* 2^-24 */
    { "cvt.f32.f16", "fh", 0x33800000, { 0x0001 } },
    { "cvt.rn.bf16.f32", "hf", 0x3f80, { 0x3f808000 } },
    { "cvt.rn.bf16.f32", "hf", 0x3f82, { 0x3f818000 } },
    { "cvt.rz.bf16.f32", "hf", 0x3f81, { 0x3f81ffff } },
    { "cvt.rn.f16x2.f32", "rff", 0x3c004000, { F_1, F_2 } },
    { "cvt.rn.bf16x2.f32", "rff", 0x3f804000, { F_1, F_2 } },
    { "cvt.rna.tf32.f32", "rf", 0x3f802000, { 0x3f801000 } },
    { "cvt.sat.s8.s32", "rr", 127, { 300 } },
    { "cvt.s64.s32", "dr", 0xfffffffffffffffe, { 0xfffffffe } },
    { "cvt.u64.u32", "dr", 0xfffffffe, { 0xfffffffe } },
    { "cvt.s32.s8", "rr", 0xffffff80, { 0x12345680 } },
    { "cvt.u32.u8", "rr", 0x80, { 0x12345680 } },
    { "add.f16", "hhh", 0x4200, { 0x3c00, 0x4000 } },
    { "fma.rn.f16", "hhhh", 0x4500, { 0x4000, 0x4000, 0x3c00 } },
    { "add.f16x2", "rrr", 0x42004400, { 0x3c004000, 0x40004000 } },
    { "fma.rn.bf16x2", "rrrr", 0x40404000, { 0x3f803f80, 0x40003f80, 0x3f803f80 } },
    { "add.s64", "ddd", 0x100000000, { U32_MAX, 1 } },
    { "mul.lo.s64", "ddd", 0xfffffffffffffffa, { 0xfffffffffffffffe, 3 } },
    { "mul.hi.u64", "ddd", 2, { 0xfffffffffffffffe, 3 } },
};

static const char *file_of(char type)
{
    return type == 'r'   ? "%r"
           : type == 'd' ? "%rd"
           : type == 'h' ? "%h"
           : type == 'f' ? "%f"
           : type == 'D' ? "%fd"
                         : "%p";
}

static const char *bits_of(char type)
{
    return type == 'r' ? "b32" : type == 'd' ? "b64" : type == 'h' ? "b16" : type == 'f' ? "f32" : "f64";
}

static void test_instructions(void)
{
    int wrong = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(instructions); i++) {
        const Instruction *in = &instructions[i];
        Device *d = device_new();
        g_autoptr(GString) text = g_string_new(head);
        g_autoptr(GString) call = g_string_new(in->op);
        g_string_append(text, begin);
        char result = in->types[0];
        g_string_append_printf(call, " %s7", file_of(result));
        for (int j = 1; in->types[j]; j++) {
            const int r = j + 3; /* not those that hold addresses */
            const char t = in->types[j];
            const int row = t == 'd' ? r + 6 : t == 'r' ? r + 20 : r;
            g_string_append_printf(text, "ld.global.%s %s%d, [%%rd3+%d];\n", bits_of(t), file_of(t), row, 8 * (j - 1));
            g_string_append_printf(call, ", %s%d", file_of(t), row);
        }
        g_string_append_printf(text, "%s;\n", call->str);
        if (result == 'p')
            g_string_append(text, "selp.u32 %r7, 1, 0, %p7;\n");
        result = result == 'p' ? 'r' : result;
        g_string_append_printf(text, "mov.u64 %%rd8, 0;\nst.global.b64 [%%rd2], %%rd8;\nst.global.%s [%%rd2], %s7;\n%s",
                               bits_of(result), file_of(result), end);
        memcpy(d->word[Z], in->in, sizeof in->in);
        EmuFault fault;
        if (!run(d, text->str, 1, 1, 0, &fault))
            g_error("%s", fault.text);
        uint64_t got;
        memcpy(&got, d->word[Y], sizeof got);
        if (got != in->want) {
            g_test_message("%s: 0x%" G_GINT64_MODIFIER "x, 0x%" G_GINT64_MODIFIER "x is right", in->op, got, in->want);
            wrong++;
        }
        device_free(d);
    }
    g_assert_cmpint(wrong, ==, 0);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static uint32_t x_of(unsigned i)
{
    return 7 * i + 3;
}

/* A kernel whose thread i stores y[i]. */
typedef struct {
    const char *name;
    unsigned grid, block;
    uint32_t (*want)(unsigned i);
    const char *functions, *body;
} Kernel;

#define STORE "st.global.u32 [%rd5], %r11;\n"

static uint32_t want_up(unsigned i)
{
    return x_of(i % 32 >= 3 ? i - 3 : i) + (i % 32 >= 3 ? 1000 : 0);
}

static uint32_t want_down(unsigned i)
{
    return x_of(i % 8 + 2 < 8 ? i + 2 : i);
}

static uint32_t want_butterfly(unsigned i)
{
    return x_of(i ^ 5);
}

static uint32_t want_sum_of_warp(unsigned i)
{
    uint32_t s = 0;
    for (unsigned j = i / 32 * 32; j < i / 32 * 32 + 32; j++)
        s += x_of(j);
    return s;
}

static uint32_t want_votes(unsigned i)
{
    uint32_t odd = 0;
    for (unsigned j = 0; j < 32; j++)
        odd |= (x_of(i / 32 * 32 + j) % 3 == 0 ? 1u : 0) << j;
    return odd + 2; /* any, and not all */
}

static uint32_t want_match(unsigned i)
{
    return 0x11111111u << i % 4;
}

static uint32_t want_reversed(unsigned i)
{
    return x_of(i / 128 * 128 + 127 - i % 128);
}

static uint32_t want_all_of_block(unsigned i)
{
    uint32_t s = 0;
    for (unsigned j = 0; j < 128; j++)
        s += x_of(i / 128 * 128 + j);
    return s;
}

static uint32_t want_collatz(unsigned i)
{
    uint32_t n = i + 1, steps = 0;
    for (; n != 1; steps++)
        n = n & 1 ? 3 * n + 1 : n / 2;
    return steps;
}

static uint32_t want_function(unsigned i)
{
    return i & 1 ? 3 * x_of(i) + i : 5 * x_of(i) + i;
}

static uint32_t want_vectors(unsigned i)
{
    return x_of(i / 4 * 4 + 3 - i % 4);
}

static uint32_t want_table(unsigned i)
{
    return (i & 3) == 0 ? 10 : (i & 3) == 1 ? 20 : (i & 3) == 2 ? 30 : 40;
}

static uint32_t want_x(unsigned i)
{
    return x_of(i);
}

static uint32_t want_matrix(unsigned i)
{
    const unsigned lane = i / 4, m = i % 4;
    return x_of((8 * m + lane / 4) * 4 + lane % 4);
}

static uint32_t want_transposed(unsigned i)
{
    const unsigned lane = i / 4, m = i % 4;
    uint32_t v = 0;
    for (unsigned h = 0; h < 2; h++) { /* element (2 (lane % 4) + h, lane / 4) of 8 x 8 halves */
        const unsigned row = lane % 4 * 2 + h, column = lane / 4;
        v |= (x_of((8 * m + row) * 4 + column / 2) >> column % 2 * 16 & 0xffff) << 16 * h;
    }
    return v;
}

static uint32_t want_last_block(unsigned i)
{
    return i < 128 ? 3 : 0;
}

#define MATRICES(trans)                                                                     \
    "mul.lo.u32 %r20, %r1, 16;\ncvt.u64.u32 %rd10, %r20;\nadd.s64 %rd11, %rd1, %rd10;\n"    \
    "add.s64 %rd12, %rd2, %rd10;\nadd.u32 %r21, %r5, %r20;\n"                               \
    "ld.global.v4.u32 {%r22, %r23, %r24, %r25}, [%rd11];\n"                                 \
    "st.shared.v4.u32 [%r21], {%r22, %r23, %r24, %r25};\nbar.sync 0;\n"                     \
    "ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%r26, %r27, %r28, %r29}, [%r21];\n" \
    "st.global.v4.b32 [%rd12], {%r26, %r27, %r28, %r29};\n"

static const Kernel kernels[] = {
    { "shuffle-up", 2, 128, want_up, "",
      "shfl.sync.up.b32 %r11|%p1, %r10, 3, 0, -1;\n@%p1 add.u32 %r11, %r11, 1000;\n" STORE },
    { "shuffle-down", 2, 128, want_down, "", "shfl.sync.down.b32 %r11, %r10, 2, 0x1807, 0xffffffff;\n" STORE },
    { "shuffle-butterfly", 2, 128, want_butterfly, "", "shfl.sync.bfly.b32 %r11, %r10, 5, 31, -1;\n" STORE },
    { "redux", 2, 128, want_sum_of_warp, "", "redux.sync.add.u32 %r11, %r10, -1;\n" STORE },
    { "votes", 2, 128, want_votes, "",
      "rem.u32 %r20, %r10, 3;\nsetp.eq.u32 %p1, %r20, 0;\nvote.sync.ballot.b32 %r11, %p1, -1;\n"
      "vote.sync.any.pred %p2, %p1, -1;\nvote.sync.all.pred %p3, %p1, -1;\n@%p2 add.u32 %r11, %r11, 2;\n"
      "@%p3 add.u32 %r11, %r11, 1;\n" STORE },
    { "match", 2, 128, want_match, "", "and.b32 %r20, %r1, 3;\nmatch.any.sync.b32 %r11, %r20, -1;\n" STORE },
    { "shared", 2, 128, want_reversed, "",
      "st.shared.u32 [%r6], %r10;\nbar.sync 0;\nmov.u32 %r20, 127;\nsub.u32 %r20, %r20, %r1;\nshl.b32 %r20, %r20, 2;\n"
      "add.u32 %r20, %r5, %r20;\nld.shared.u32 %r11, [%r20];\n" STORE },
    { "atomics-shared", 2, 128, want_all_of_block, "",
      "setp.ne.u32 %p1, %r1, 0;\nmov.u32 %r20, 0;\n@!%p1 st.shared.u32 [%r5], %r20;\nbar.sync 0;\n"
      "atom.shared.add.u32 %r21, [%r5], %r10;\nbar.sync 0;\nld.shared.u32 %r11, [%r5];\n" STORE },
    { "barrier-red", 2, 128, want_x, "",
      "setp.lt.u32 %p1, %r1, 40;\nbarrier.sync.aligned 0;\nbar.red.popc.u32 %r20, 0, %p1;\nsub.u32 %r20, %r20, 40;\n"
      "add.u32 %r11, %r10, %r20;\n" STORE },
    { "diverged-loops", 2, 128, want_collatz, "",
      "add.u32 %r20, %r4, 1;\nmov.u32 %r11, 0;\n$L_next:\nsetp.eq.u32 %p1, %r20, 1;\n@%p1 bra $L_done;\n"
      "and.b32 %r21, %r20, 1;\nsetp.eq.u32 %p2, %r21, 0;\n@%p2 bra $L_even;\nmad.lo.u32 %r20, %r20, 3, 1;\n"
      "bra $L_join;\n$L_even:\nshr.u32 %r20, %r20, 1;\n$L_join:\nadd.u32 %r11, %r11, 1;\nbra $L_next;\n$L_done:\n"
      "bar.sync 0;\n" STORE },
    { "functions", 2, 128, want_function,
      ".func (.param .b32 o) scale(.param .b32 a, .param .b32 n)\n{\n.reg .b32 %r<4>;\nld.param.b32 %r1, [a];\n"
      "ld.param.b32 %r2, [n];\nmul.lo.u32 %r3, %r1, %r2;\nst.param.b32 [o], %r3;\nret;\n}\n",
      "and.b32 %r20, %r1, 1;\nsetp.eq.u32 %p1, %r20, 0;\n@%p1 bra $L_even;\n"
      "{\n.param .b32 a;\nst.param.b32 [a], %r10;\n.param .b32 n;\nst.param.b32 [n], 3;\n"
      ".param .b32 o;\ncall.uni (o), scale, (a, n);\nld.param.b32 %r21, [o];\n}\n"
      "bra $L_join;\n$L_even:\n{\n.param .b32 a;\nst.param.b32 [a], %r10;\n.param .b32 n;\nst.param.b32 [n], 5;\n"
      ".param .b32 o;\ncall.uni (o), scale, (a, n);\nld.param.b32 %r21, [o];\n}\n$L_join:\nadd.u32 %r11, %r21, "
      "%r4;\n" STORE },
    { "vectors", 1, 64, want_vectors, "",
      "mul.wide.u32 %rd10, %r1, 16;\nadd.s64 %rd11, %rd1, %rd10;\nadd.s64 %rd12, %rd2, %rd10;\n"
      "ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd11];\nst.global.v2.u32 [%rd12], {%r23, %r22};\n"
      "st.global.v2.u32 [%rd12+8], {%r21, %r20};\n" },
    { "table-of-branches", 2, 128, want_table, "",
      "and.b32 %r20, %r1, 3;\n$L_table: .branchtargets $L_a, $L_b, $L_c, $L_d;\nbrx.idx %r20, $L_table;\n"
      "$L_a:\nmov.u32 %r11, 10;\nbra $L_join;\n$L_b:\nmov.u32 %r11, 20;\nbra $L_join;\n$L_c:\nmov.u32 %r11, 30;\n"
      "bra $L_join;\n$L_d:\nmov.u32 %r11, 40;\n$L_join:\n" STORE },
    { "copies", 2, 128, want_x, "",
      "cp.async.ca.shared.global [%r6], [%rd4], 4;\ncp.async.commit_group;\ncp.async.wait_group 0;\n"
      "ld.shared.u32 %r11, [%r6];\n" STORE },
    { "matrices", 1, 32, want_matrix, "", MATRICES("") },
    { "matrices-transposed", 1, 32, want_transposed, "", MATRICES(".trans") },
    { "last-block", 2, 128, want_last_block, "",
      /* the block that comes last adds up what each block has written; the other one writes nothing of y[0..127] */
      "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra $L_wait;\nmul.wide.u32 %rd10, %r2, 4;\nadd.s64 %rd11, %rd3, %rd10;\n"
      "add.u32 %r20, %r2, 1;\nst.global.u32 [%rd11+64], %r20;\nmembar.gl;\natom.global.add.u32 %r21, [%rd3], 1;\n"
      "st.shared.u32 [%r5], %r21;\n$L_wait:\nbar.sync 0;\nld.shared.u32 %r21, [%r5];\nsetp.ne.u32 %p2, %r21, 1;\n"
      "@%p2 bra $L_end;\nmembar.gl;\nld.global.u32 %r22, [%rd3+64];\nld.global.u32 %r23, [%rd3+68];\n"
      "add.u32 %r11, %r22, %r23;\nmul.wide.u32 %rd10, %r1, 4;\nadd.s64 %rd11, %rd2, %rd10;\n"
      "st.global.u32 [%rd11], %r11;\n$L_end:\n" },
};

static void test_kernel(gconstpointer data)
{
    const Kernel *k = data;
    g_autofree char *text = g_strconcat(head, k->functions, begin, k->body, end, NULL);
    for (size_t o = 0; o < G_N_ELEMENTS(orders); o++) {
        Device *d = device_new();
        EmuFault fault;
        if (!run(d, text, k->grid, k->block, orders[o], &fault))
            g_error("order %u: %s", orders[o], fault.text);
        unsigned written = 0;
        for (unsigned i = 0; i < WORDS; i++)
            if (d->defined[Y][4 * i]) {
                g_assert_cmphex(d->word[Y][i], ==, k->want(i));
                written++;
            }
        g_assert_cmpuint(written, >=, 128);
        device_free(d);
    }
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* A 16 x K, B K x 8, C 16 x 8, of small integers. */
static int a_at(int r, int k)
{
    return (3 * r + 5 * k + r * k) % 9;
}

static int b_at(int k, int c)
{
    return (7 * k + 2 * c + k * k) % 8;
}

static int product(int r, int c, int depth)
{
    int s = r + 16 * c;
    for (int k = 0; k < depth; k++)
        s += a_at(r, k) * b_at(k, c);
    return s;
}

static uint32_t float_bits(int v)
{
    const float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static uint32_t half_bits(int v)
{
    static const uint16_t of[] = { 0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800 };
    return of[v];
}

/* Fragments as the PTX manual has them: x[lane][8]: A in 4 registers, B in 2; z[lane][4]: C. */
static void fragments(Device *d, int depth)
{
    for (int l = 0; l < LANES; l++) {
        const int g = l / 4, t = l % 4;
        for (int r = 0; r < 4; r++) {
            const int row = g + 8 * (r % 2), k = r / 2 * depth / 2;
            d->word[X][8 * l + r] = depth == 8
                                        ? float_bits(a_at(row, k + t))
                                        : half_bits(a_at(row, k + 2 * t)) | half_bits(a_at(row, k + 2 * t + 1)) << 16;
            d->word[Z][4 * l + r] = float_bits(g + 8 * (r / 2) + 16 * (2 * t + r % 2));
        }
        for (int r = 0; r < 2; r++) {
            const int k = r * depth / 2;
            d->word[X][8 * l + 4 + r] = depth == 8
                                            ? float_bits(b_at(k + t, g))
                                            : half_bits(b_at(k + 2 * t, g)) | half_bits(b_at(k + 2 * t + 1, g)) << 16;
        }
    }
}

/* How many of the 128 elements are the product's. */
static int right_elements(const char *op, const char *a, int depth)
{
    Device *d = device_new();
    fragments(d, depth);
    g_autofree char *body = g_strdup_printf(
        "mul.wide.u32 %%rd10, %%r1, 16;\nadd.s64 %%rd11, %%rd3, %%rd10;\nadd.s64 %%rd12, %%rd2, %%rd10;\n"
        "mul.wide.u32 %%rd13, %%r1, 32;\nadd.s64 %%rd14, %%rd1, %%rd13;\n"
        "ld.global.v4.b32 {%%r20, %%r21, %%r22, %%r23}, [%%rd14];\nld.global.v2.b32 {%%r24, %%r25}, [%%rd14+16];\n"
        "ld.global.v4.f32 {%%f0, %%f1, %%f2, %%f3}, [%%rd11];\n"
        "mma.sync.aligned.%s {%%f4, %%f5, %%f6, %%f7}, {%s}, {%%r24, %%r25}, {%%f0, %%f1, %%f2, %%f3};\n"
        "st.global.v4.f32 [%%rd12], {%%f4, %%f5, %%f6, %%f7};\n",
        op, a);
    g_autofree char *text = g_strconcat(head, begin, body, end, NULL);
    EmuFault fault;
    if (!run(d, text, 1, LANES, 0, &fault))
        g_error("%s", fault.text);
    int right = 0;
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 4; i++)
            right += d->word[Y][4 * l + i] == float_bits(product(l / 4 + i / 2 * 8, l % 4 * 2 + i % 2, depth));
    device_free(d);
    return right;
}

static void test_products(void)
{
    const char *tf32 = "m16n8k8.row.col.f32.tf32.tf32.f32", *half = "m16n8k16.row.col.f32.f16.f16.f32";
    const char *a = "%r20, %r21, %r22, %r23", *exchanged = "%r20, %r22, %r21, %r23";
    g_assert_cmpint(right_elements(tf32, a, 8), ==, 128);
    g_assert_cmpint(right_elements(half, a, 16), ==, 128);
    g_assert_cmpint(right_elements(tf32, exchanged, 8), <, 64);
    g_assert_cmpint(right_elements(half, exchanged, 16), <, 64);
}

/* --- planted faults ----------------------------------------------------------------------------------------------- */

/* A kernel of two blocks of 128 threads, whose middle is wrong or right, and what is said of it in the plain order. */
typedef struct {
    const char *name, *before, *wrong, *right, *after;
    const char *instruction; /* where it is found */
    unsigned block, thread;
    int result;
    const char *says; /* in any order */
} Planted;

#define NEIGHBOUR "xor.b32 %r20, %r1, 32;\nshl.b32 %r20, %r20, 2;\nadd.u32 %r20, %r5, %r20;\n"
#define COPY "cp.async.ca.shared.global [%r6], [%rd4], 4;\ncp.async.commit_group;\n"
#define BARRIER "bar.sync 0;\n"

static const Planted planted[] = {
    { "barrier-write-read",
      NEIGHBOUR "mov.u32 %r21, 0;\nst.shared.b32 [%r6], %r21;\n" BARRIER "st.shared.u32 [%r6], %r10;\n", "", BARRIER,
      "ld.shared.u32 %r11, [%r20];\n" STORE, "st.shared.u32 [%r6], %r10", 0, 32, 719, "race: * shared memory*" },
    { "barrier-read-write", NEIGHBOUR "st.shared.u32 [%r6], %r10;\n" BARRIER "ld.shared.u32 %r11, [%r20];\n", "",
      BARRIER, "st.shared.b32 [%r6], %r11;\n", "ld.shared.u32 %r11, [%r20]", 0, 32, 719, "race: * shared memory*" },
    { "barrier-loop",
      NEIGHBOUR "mov.u32 %r21, 0;\n$L_next:\nst.shared.u32 [%r6], %r10;\n" BARRIER "ld.shared.u32 %r11, [%r20];\n", "",
      BARRIER, "add.u32 %r21, %r21, 1;\nsetp.lt.u32 %p1, %r21, 4;\n@%p1 bra $L_next;\n" STORE,
      "ld.shared.u32 %r11, [%r20]", 0, 32, 719, "race: * shared memory*" },
    { "lanes-write-read",
      "st.shared.u32 [%r6], %r10;\nxor.b32 %r20, %r1, 1;\nshl.b32 %r20, %r20, 2;\nadd.u32 %r20, %r5, %r20;\n", "",
      "bar.warp.sync 0xffffffff;\n", "ld.shared.u32 %r11, [%r20];\n" STORE, "ld.shared.u32 %r11, [%r20]", 0, 0, 719,
      "race: reads shared memory at 0x* that lane * wrote with no barrier between" },
    { "lanes-read-write",
      "mov.u32 %r21, 0;\nst.shared.u32 [%r6], %r10;\nxor.b32 %r20, %r1, 1;\nshl.b32 %r20, %r20, 2;\n"
      "add.u32 %r20, %r5, %r20;\nbar.warp.sync 0xffffffff;\nld.shared.u32 %r11, [%r20];\n",
      "", "bar.warp.sync 0xffffffff;\n", "st.shared.b32 [%r6], %r21;\n" STORE, "st.shared.b32 [%r6], %r21", 0, 0, 719,
      "race: writes shared memory at 0x* that lane * read with no barrier between" },
    { "lanes-bytes",
      "add.u32 %r20, %r5, %r1;\nxor.b32 %r21, %r1, 1;\nadd.u32 %r21, %r5, %r21;\nst.shared.u8 [%r20], %r10;\n", "",
      "bar.warp.sync 0xffffffff;\n", "ld.shared.u8 %r11, [%r21];\n" STORE, "ld.shared.u8 %r11, [%r21]", 0, 0, 719,
      "race: reads shared memory at 0x* that lane * wrote with no barrier between" },
    /* byte i is of warp i % 4: what one writes does not hide what its neighbours wrote */
    { "warps-bytes",
      "shr.u32 %r20, %r1, 5;\nand.b32 %r22, %r1, 31;\nmad.lo.u32 %r22, %r22, 4, %r5;\nadd.u32 %r20, %r22, %r20;\n"
      "add.u32 %r21, %r5, %r1;\nst.shared.u8 [%r21], %r10;\n" BARRIER "st.shared.u8 [%r20], %r10;\n",
      "setp.lt.u32 %p1, %r1, 96;\n@%p1 bra $L_end;\n", BARRIER, "ld.shared.u8 %r11, [%r22];\n" STORE "$L_end:\n",
      "st.shared.u8 [%r20], %r10", 0, 0, 719, "race: * shared memory at 0x* that warp * with no barrier between" },
    { "lanes-write-one-place", "and.b32 %r20, %r1, 0xfffffffe;\nshl.b32 %r20, %r20, 2;\nadd.u32 %r20, %r5, %r20;\n",
      "st.shared.u32 [%r20], %r10;\n", "st.shared.u32 [%r20], %r20;\n", "", "st.shared.u32 [%r20], %r10", 0, 1, 719,
      "race: writes shared memory at 0x* that lane * wrote with another value and no barrier between" },
    { "lanes-write-later",
      "st.shared.u32 [%r6], %r10;\nxor.b32 %r20, %r1, 1;\nshl.b32 %r20, %r20, 2;\nadd.u32 %r20, %r5, %r20;\n", "",
      "bar.warp.sync 0xffffffff;\n", "st.shared.b32 [%r20], %r10;\n", "st.shared.b32 [%r20], %r10", 0, 0, 719,
      "race: writes shared memory at 0x* that lane * wrote with another value and no barrier between" },
    { "lanes-write-global", "and.b64 %rd10, %rd6, -8;\n", "st.global.u32 [%rd10], %r10;\n",
      "st.global.u32 [%rd10], %r2;\n", "", "st.global.u32 [%rd10], %r10", 0, 1, 719,
      "race: writes global memory at 0x* that lane * wrote with another value and no barrier between" },
    { "read-only", "st.global.u32 [%rd6], %r10;\n", "ld.global.nc.u32 %r11, [%rd6];\n", "ld.global.u32 %r11, [%rd6];\n",
      STORE, "ld.global.nc.u32 %r11, [%rd6]", 0, 0, 719,
      "reads 0x* as memory that nobody writes (.nc), but this launch has written it" },
    { "copy-source-changed", COPY, "st.global.u32 [%rd4], %r1;\ncp.async.wait_all;\n",
      "cp.async.wait_all;\nst.global.u32 [%rd4], %r1;\n", "ld.shared.u32 %r11, [%r6];\n" STORE,
      "cp.async.ca.shared.global [%r6], [%rd4], 4", 0, 0, 719,
      "what is copied was changed before anybody had waited for the copy" },
    { "write-behind", "", "add.s64 %rd5, %rd5, 4;\n", "", "st.global.u32 [%rd5], %r10;\n", "st.global.u32 [%rd5], %r10",
      1, 127, 700, "writes 4 bytes at 0x7000001400, where nothing is allocated" },
    { "read-behind", "", "add.s64 %rd4, %rd4, 4;\n", "", "ld.global.u32 %r11, [%rd4];\n" STORE,
      "ld.global.u32 %r11, [%rd4]", 1, 127, 700, "reads 4 bytes at 0x7000000400, where nothing is allocated" },
    { "read-before", "", "sub.s64 %rd4, %rd4, 4;\n", "", "ld.global.u32 %r11, [%rd4];\n" STORE,
      "ld.global.u32 %r11, [%rd4]", 0, 0, 700, "reads 4 bytes at 0x6ffffffffc, where nothing is allocated" },
    { "copy-behind", "", "add.s64 %rd4, %rd4, 4;\n", "", COPY "cp.async.wait_all;\nld.shared.u32 %r11, [%r6];\n" STORE,
      "cp.async.ca.shared.global [%r6], [%rd4], 4", 1, 127, 700, "reads 4 bytes at 0x7000000400, where nothing*" },
    { "shared-behind", "", "add.u32 %r6, %r6, 516;\n", "add.u32 %r6, %r6, 512;\n", "st.shared.u32 [%r6], %r10;\n",
      "st.shared.u32 [%r6], %r10", 0, 127, 700, "writes 4 bytes at 0x400 of shared memory, which has 1024 bytes" },
    { "freed", "", "ld.param.u64 %rd6, [freed];\n", "", "ld.global.u32 %r11, [%rd6];\n" STORE,
      "ld.global.u32 %r11, [%rd6]", 0, 0, 700, "reads 4 bytes at 0x7000004000, where nothing is allocated" },
    { "vector-global", "mul.wide.u32 %rd10, %r4, 4;\nand.b64 %rd10, %rd10, 0x3f0;\nadd.s64 %rd11, %rd1, %rd10;\n",
      "xor.b64 %rd11, %rd11, 8;\n", "", "ld.global.v4.u32 {%r11, %r12, %r13, %r14}, [%rd11];\n" STORE,
      "ld.global.v4.u32 {%r11, %r12, %r13, %r14}, [%rd11]", 0, 0, 716, "reads 16 bytes at 0x*, which is not aligned*" },
    { "vector-shared", "add.u32 %r6, %r6, %r6;\nsub.u32 %r6, %r6, %r5;\n", "xor.b32 %r6, %r6, 4;\n", "",
      "st.shared.v2.u32 [%r6], {%r10, %r10};\n", "st.shared.v2.u32 [%r6], {%r10, %r10}", 0, 0, 716,
      "writes 8 bytes at 0x*, which is not aligned*" },
    { "shared-unwritten", "", "", "st.shared.u32 [%r6], %r10;\n", "ld.shared.u32 %r11, [%r6];\n" STORE,
      "ld.shared.u32 %r11, [%r6]", 0, 0, 719, "reads 4 bytes at 0x* of shared memory that nobody has written" },
    { "global-unwritten", "", "", "st.global.u32 [%rd5], %r10;\n", "ld.global.u32 %r11, [%rd5];\n",
      "ld.global.u32 %r11, [%rd5]", 0, 0, 719, "reads 4 bytes at 0x*, that nobody has written" },
    { "atomic-unwritten", "", "mov.u64 %rd6, %rd5;\n", "", "red.global.add.u32 [%rd6], %r10;\n",
      "red.global.add.u32 [%rd6], %r10", 0, 0, 719, "changes atomically 4 bytes at 0x*, that nobody has written" },
    { "shuffle-absent", "setp.ge.u32 %p1, %r1, 16;\n@%p1 bra $L_end;\n", "mov.u32 %r20, 20;\n", "mov.u32 %r20, 3;\n",
      "shfl.sync.idx.b32 %r11, %r10, %r20, 31, 0xffff;\n" STORE "$L_end:\n",
      "shfl.sync.idx.b32 %r11, %r10, %r20, 31, 0xffff", 0, 0, 719, "reads the value of lane 20, which is not there" },
    { "shuffle-gone", "setp.ge.u32 %p1, %r1, 16;\n@%p1 exit;\n", "mov.u32 %r20, -1;\n", "mov.u32 %r20, 0xffff;\n",
      "shfl.sync.idx.b32 %r11, %r10, 3, 31, %r20;\n" STORE, "shfl.sync.idx.b32 %r11, %r10, 3, 31, %r20", 0, 0, 719,
      "lanes 0xffff0000 are named and not there" },
    { "shuffle-elsewhere", "setp.ge.u32 %p1, %r1, 16;\n@%p1 bra $L_end;\n", "mov.u32 %r20, -1;\n",
      "mov.u32 %r20, 0xffff;\n", "shfl.sync.idx.b32 %r11, %r10, 3, 31, %r20;\n" STORE "$L_end:\n",
      "shfl.sync.idx.b32 %r11, %r10, 3, 31, %r20", 0, 0, 719,
      "lanes 0x0000ffff wait here for others of their warp, which do not come" },
    { "barrier-guarded", "setp.lt.u32 %p1, %r1, 16;\n", "@%p1 bar.sync 0;\n", BARRIER, "", "@%p1 bar.sync 0", 0, 0, 719,
      "a barrier in diverged code: lanes 0xffff0000 of the warp do not come here" },
    { "barrier-passed-by", "", "setp.lt.u32 %p1, %r1, 16;\n", "setp.lt.u32 %p1, %r1, 1000;\n",
      "@!%p1 bra $L_end;\n" BARRIER "$L_end:\n", "bar.sync 0", 0, 0, 719,
      "a barrier in diverged code: lanes 0xffff0000 of the warp do not come here" },
    { "barrier-either", "", "setp.lt.u32 %p1, %r1, 16;\n", "setp.lt.u32 %p1, %r1, 32;\n",
      "@%p1 bra $L_one;\nbar.sync 0;\nbra $L_end;\n$L_one:\nbarrier.sync.aligned 0;\n$L_end:\n", "bar.sync 0", 0, 16,
      719, "a barrier in diverged code: lanes 0x0000ffff of the warp do not come here" },
    { "barrier-one-warp", "", "setp.lt.u32 %p1, %r1, 64;\n", "setp.lt.u32 %p1, %r1, 1000;\n",
      "@%p1 bra $L_bar;\nbra $L_wait;\n$L_bar:\nbar.sync 0;\n$L_wait:\nbar.sync 1, 128;\n", "bar.sync 0", 0, 0, 702,
      "waits for threads that do not come: * of 128 have arrived" },
    { "copy-not-waited", COPY, "", "cp.async.wait_group 0;\n", "ld.shared.u32 %r11, [%r6];\n" STORE,
      "ld.shared.u32 %r11, [%r6]", 0, 0, 719, "*to which a copy (cp.async) is under way that nobody has waited for" },
    { "copy-of-the-last-group", COPY "cp.async.ca.shared.global [%r6+512], [%rd4], 4;\ncp.async.commit_group;\n",
      "cp.async.wait_group 1;\n", "cp.async.wait_group 0;\n", "ld.shared.u32 %r11, [%r6+512];\n" STORE,
      "ld.shared.u32 %r11, [%r6+512]", 0, 0, 719, "*to which a copy (cp.async) is under way that nobody*" },
    { "copy-of-another-warp", NEIGHBOUR "st.shared.u32 [%r6], %r10;\n" BARRIER COPY "cp.async.wait_all;\n", "", BARRIER,
      "ld.shared.u32 %r11, [%r20];\n" STORE, "cp.async.ca.shared.global [%r6], [%rd4], 4", 0, 32, 719,
      "race: * shared memory*" },
    { "blocks-write", "setp.ne.u32 %p1, %r1, 5;\n@%p1 bra $L_end;\n", "st.global.u32 [%rd3], %r10;\n",
      "red.global.add.u32 [%rd3], %r10;\n", "$L_end:\n", "st.global.u32 [%rd3], %r10", 1, 5, 719,
      "race: writes global memory at 0x7000002000 that block * wrote with no barrier between" },
    { "blocks-read", "xor.b32 %r20, %r4, 128;\n", "mul.wide.u32 %rd10, %r20, 4;\n", "mul.wide.u32 %rd10, %r4, 4;\n",
      "add.s64 %rd11, %rd1, %rd10;\nld.global.u32 %r11, [%rd11];\nst.global.u32 [%rd4], %r11;\n",
      "ld.global.u32 %r11, [%rd11]", 1, 0, 719, "race: * global memory at 0x*" },
    { "fence-forgotten",
      "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra $L_end;\nmul.wide.u32 %rd10, %r2, 4;\nadd.s64 %rd11, %rd3, %rd10;\n"
      "st.global.u32 [%rd11+64], %r10;\n",
      "", "membar.gl;\n",
      "atom.global.add.u32 %r21, [%rd3], 1;\nsetp.ne.u32 %p2, %r21, 1;\n@%p2 bra $L_end;\n"
      "ld.global.u32 %r22, [%rd3+64];\nld.global.u32 %r23, [%rd3+68];\n$L_end:\n",
      "ld.global.u32 %r22, [%rd3+64]", 1, 0, 719, "race: reads global memory at 0x* that block * wrote*" },
    { "constant", "", "ld.param.u64 %rd5, [constant];\n", "", "st.global.u32 [%rd5], %r10;\n",
      "st.global.u32 [%rd5], %r10", 0, 0, 700, "writes constant memory at 0x7000003000" },
    { "endless", "mov.u32 %r20, 0;\n$L_next:\n", "add.u32 %r20, %r20, 0;\n", "add.u32 %r20, %r20, 1;\n",
      "setp.lt.u32 %p1, %r20, 100;\n@%p1 bra $L_next;\n", NULL, 0, 0, 702,
      "the kernel does not end within 100000 instructions (HONE_EMU_STEPS)" },
};

/* The line in which an instruction stands, that there is once. */
static unsigned line_of(const char *text, const char *instruction)
{
    const char *at = strstr(text, instruction);
    g_assert_nonnull(at);
    g_assert_true(at == g_strrstr(text, instruction));
    unsigned line = 1;
    for (const char *s = text; s < at; s++)
        line += *s == '\n';
    return line;
}

static void test_planted(gconstpointer data)
{
    const Planted *p = data;
    g_autofree char *wrong = g_strconcat(head, begin, p->before, p->wrong, p->after, end, NULL);
    g_autofree char *right = g_strconcat(head, begin, p->before, p->right, p->after, end, NULL);
    for (size_t o = 0; o < G_N_ELEMENTS(orders); o++) {
        Device *d = device_new();
        EmuFault fault;
        const bool ok = run(d, wrong, 2, 128, orders[o], &fault);
        device_free(d);
        g_assert_false(ok);
        g_test_message("order %u: %s", orders[o], fault.text);
        g_assert_cmpint(fault.result, ==, p->result);
        g_autofree char *any =
            g_strconcat("kernel k, '*' (line * of the PTX), block (*,0,0), thread (*,0,0): ", p->says, NULL);
        g_assert_true(g_pattern_match_simple(any, fault.text));
        if (orders[o] == 0 && p->instruction != NULL) {
            g_autofree char *where = g_strdup_printf(
                "kernel k, '%s' (line %u of the PTX), block (%u,0,0), thread (%u,0,0): ", p->instruction,
                line_of(wrong, p->instruction), p->block, p->thread);
            if (!g_str_has_prefix(fault.text, where))
                g_error("'%s' does not begin with '%s'", fault.text, where);
        }
        d = device_new();
        if (!run(d, right, 2, 128, orders[o], &fault))
            g_error("order %u: a false alarm: %s", orders[o], fault.text);
        device_free(d);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_setenv("HONE_EMU_STEPS", "100000", TRUE);
    g_test_add_func("/ptx/instructions", test_instructions);
    g_test_add_func("/ptx/products", test_products);
    for (size_t i = 0; i < G_N_ELEMENTS(kernels); i++) {
        g_autofree char *path = g_strdup_printf("/ptx/kernel/%s", kernels[i].name);
        g_test_add_data_func(path, &kernels[i], test_kernel);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(planted); i++) {
        g_autofree char *path = g_strdup_printf("/ptx/planted/%s", planted[i].name);
        g_test_add_data_func(path, &planted[i], test_planted);
    }
    return g_test_run();
}
