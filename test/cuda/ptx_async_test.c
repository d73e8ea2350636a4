/*
 * The emulated device's interpreter: barriers in shared memory, copies of tiles and products of warpgroups. Values
 * against plain sums, and faults that are planted in one line; each is found and named, in several orders of warps.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "emu/emu.h"

enum { WARPGROUP = 128, LINE = 128, A_BYTES = 16384, B_AT = 16384, SHARED = 32768, MOST_N = 64, WORDS = 8192 };

typedef struct {
    EmuRegion x, y; /* x: what tiles are copied from; y: results */
    EmuRegion *list[2];
    EmuSpace space;
    uint32_t word[2][WORDS];
    uint8_t defined[2][4 * WORDS];
} Device;

EmuRegion *emu_space_find(const EmuSpace *s, uint64_t address)
{
    for (size_t i = 0; i < s->n; i++)
        if (address - s->region[i]->base < s->region[i]->bytes)
            return s->region[i];
    return NULL;
}

static Device *device_new(void)
{
    Device *d = g_new0(Device, 1);
    for (int i = 0; i < 2; i++) {
        EmuRegion *r = i ? &d->y : &d->x;
        *r = (EmuRegion){ .base = UINT64_C(0x7000000000) + 0x100000u * (unsigned)i,
                          .bytes = sizeof d->word[i],
                          .data = (uint8_t *)d->word[i],
                          .defined = d->defined[i] };
        memset(d->defined[i], 1, sizeof d->defined[i]);
        d->list[i] = r;
    }
    d->space = (EmuSpace){ d->list, 2, 2 };
    return d;
}

/* Of x, rows of halves: bytes from one to the next, halves and rows that there are, rows of 64 that are copied. */
static EmuTensorMap map_of(const Device *d, uint64_t stride, uint32_t columns, uint32_t rows, uint32_t copied)
{
    return (EmuTensorMap){ .magic = EMU_TENSOR_MAP,
                           .size = 2,
                           .rank = 2,
                           .swizzled = 1,
                           .address = d->x.base,
                           .strides = { stride },
                           .dims = { columns, rows },
                           .box = { 64, copied } };
}

static void device_free(Device *d)
{
    free(d->x.races);
    free(d->y.races);
    g_free(d);
}

/* Parameters of a kernel: a map of x, and y. */
typedef struct {
    union {
        EmuTensorMap map;
        uint8_t bytes[128];
    };
    uint64_t y;
} Params;

static bool run(Device *d, const char *text, const EmuTensorMap *map, unsigned order, EmuFault *fault)
{
    EmuModule *m = emu_module_new(text, strlen(text), fault);
    const EmuKernel *k = m != NULL ? emu_module_kernel(m, "k", fault) : NULL;
    if (k == NULL)
        g_error("%s\n%s", fault->text, text);
    Params p = { .y = d->y.base };
    p.map = *map;
    g_assert_cmpuint(emu_kernel_param_bytes(k), ==, sizeof p);
    const EmuLaunch l = {
        .grid = { 1, 1, 1 }, .block = { WARPGROUP, 1, 1 }, .params = (const uint8_t *)&p, .order = order, .sms = 2
    };
    EmuCounts counts = { 0 };
    const bool ok = emu_launch(k, &l, &d->space, &counts, fault);
    emu_module_free(m);
    return ok;
}

static const unsigned orders[] = { 0, 1, 7, 1234567 };

/* %r1 the thread, %p1 it is not thread 0, %r2 shared memory, %r3 a barrier behind it, %rd1 y, %rd3 the map. */
static const char head[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 y)\n{\n"
    ".reg .pred %p<8>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n.reg .b16 %h<4>;\n.reg .f32 %f<40>;\n"
    ".shared .align 1024 .b8 s[32784];\n"
    "ld.param.u64 %rd1, [y];\ncvta.to.global.u64 %rd1, %rd1;\n"
    "mov.b64 %rd2, map;\ncvta.param.u64 %rd3, %rd2;\n"
    "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\nmov.u32 %r2, s;\nadd.u32 %r3, %r2, 32768;\n"
    "setp.eq.u32 %p3, %r1, %r1;\n";

/* What goes on beside the warps may use the barriers that were made. */
#define SHOWN "fence.mbarrier_init.release.cluster;\n"

/* --- values ------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *type;
    bool registers, a_across, b_across;
    int n;
} Form;

static const Form forms[] = {
    { "f16", false, false, false, 8 },  { "f16", false, true, true, 64 },   { "bf16", false, false, true, 16 },
    { "bf16", false, true, false, 24 }, { "tf32", false, false, false, 8 }, { "tf32", true, false, false, 32 },
    { "f16", true, false, true, 64 },
};

static bool is_tf32(const Form *f)
{
    return g_str_equal(f->type, "tf32");
}

/* The number at position i of shared memory, in elements. */
static int number(int i)
{
    return i * 7 % 23 - 11;
}

/* Of element k of a line of an operand, in elements. */
static int position(int size, bool across, int line, int k)
{
    int at = across ? line / 64 * 8192 + k * LINE + line % 64 * size : line * LINE + k * size;
    return (at ^ (at >> 7 & 7) << 4) / size;
}

static uint64_t descriptor(int at)
{
    const uint64_t leading = 8192 / 16, stride = 1024 / 16;
    return (uint64_t)at >> 4 | leading << 16 | stride << 32 | UINT64_C(1) << 62;
}

/* Fills shared memory with numbers, multiplies twice (the second time -A, and added), stores the sums. */
static char *product_text(const Form *f)
{
    const bool tf32 = is_tf32(f);
    const int sums = f->n / 2;
    GString *t = g_string_new(head), *d = g_string_new(NULL), *across = g_string_new(NULL);
    g_string_append_printf(t,
                           "mov.u32 %%r10, %%r1;\n$L_fill:\nmul.lo.u32 %%r11, %%r10, 7;\nrem.u32 %%r11, %%r11, 23;\n"
                           "sub.s32 %%r11, %%r11, 11;\ncvt.rn.f32.s32 %%f39, %%r11;\n"
                           "mad.lo.u32 %%r12, %%r10, %d, %%r2;\n%s"
                           "add.u32 %%r10, %%r10, 128;\nsetp.lt.u32 %%p2, %%r10, %d;\n@%%p2 bra $L_fill;\n"
                           "fence.proxy.async.shared::cta;\nbar.sync 0;\n",
                           tf32 ? 4 : 2,
                           tf32                          ? "st.shared.f32 [%r12], %f39;\n"
                           : g_str_equal(f->type, "f16") ? "cvt.rn.f16.f32 %h1, %f39;\nst.shared.b16 [%r12], %h1;\n"
                                                         : "cvt.rn.bf16.f32 %h1, %f39;\nst.shared.b16 [%r12], %h1;\n",
                           SHARED / (tf32 ? 4 : 2));
    for (int i = 0; i < sums; i++)
        g_string_append_printf(d, "%s%%f%d", i ? ", " : "", i);
    if (!tf32)
        g_string_append_printf(across, f->registers ? ", %d" : ", %d, %d", f->registers ? f->b_across : f->a_across,
                               f->b_across);
    g_string_append_printf(t,
                           "mov.u64 %%rd4, %" G_GUINT64_FORMAT ";\nmov.u64 %%rd5, %" G_GUINT64_FORMAT ";\n"
                           "mov.b32 %%r20, 0x%x;\nmov.b32 %%r21, 0x%x;\nmov.b32 %%r22, 0x%x;\nmov.b32 %%r23, 0x%x;\n"
                           "setp.ne.u32 %%p4, %%r1, %%r1;\nwgmma.fence.sync.aligned;\n",
                           descriptor(0), descriptor(B_AT), tf32 ? 0x3f800000 : 0x3c003c00,
                           tf32 ? 0x40000000 : 0x40003c00, tf32 ? 0x40400000 : 0x42003c00,
                           tf32 ? 0x40800000 : 0x44003c00); /* 1; 1 and 2, 3, 4 */
    for (int i = 0; i < 2; i++)
        g_string_append_printf(t, "wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {%s}, %s, %%rd5, %s, %s, 1%s;\n",
                               f->n, tf32 ? 8 : 16, f->type, f->type, d->str,
                               f->registers ? "{%r20, %r21, %r22, %r23}" : "%rd4", i ? "%p3" : "%p4", i ? "-1" : "1",
                               across->str);
    g_string_append(t, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    g_string_append_printf(t, "mul.wide.u32 %%rd6, %%r1, %d;\nadd.s64 %%rd6, %%rd1, %%rd6;\n", 4 * sums);
    for (int i = 0; i < sums; i++)
        g_string_append_printf(t, "st.global.f32 [%%rd6+%d], %%f%d;\n", 4 * i, i);
    g_string_append(t, "ret;\n}\n");
    g_string_free(d, TRUE);
    g_string_free(across, TRUE);
    return g_string_free(t, FALSE);
}

/* What the first product alone gives: the second one takes it away again, so the text has it only once for `once`. */
static double sum_of(const Form *f, int row, int column)
{
    const int depth = is_tf32(f) ? 8 : 16, size = is_tf32(f) ? 4 : 2;
    double s = 0;
    for (int k = 0; k < depth; k++) {
        const int per = depth / 8, word = k / per / 4 * 2 + row % 16 / 8; /* of four registers */
        const double in_word = word + 1, a_register = per == 1 || k % 2 ? in_word : 1;
        const double a = f->registers ? a_register : number(position(size, f->a_across, row, k));
        s += a * number(B_AT / size + position(size, f->b_across, column, k));
    }
    return s;
}

static void check_product(const Form *f, bool once)
{
    Device *d = device_new();
    EmuFault fault;
    g_autofree char *text = product_text(f);
    char *second = g_strrstr(text, "wgmma.mma_async");
    if (once)
        memmove(second, strchr(second, '\n'), strlen(strchr(second, '\n')) + 1);
    const EmuTensorMap none = { 0 };
    if (!run(d, text, &none, once, &fault))
        g_error("%s\n%s", fault.text, text);
    for (int t = 0; t < WARPGROUP; t++)
        for (int i = 0; i < f->n / 2; i++) {
            float got;
            memcpy(&got, &d->word[1][t * f->n / 2 + i], 4);
            const int row = t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + t % 4 * 2 + i % 2;
            g_assert_cmpfloat((double)got, ==, once ? sum_of(f, row, column) : 0.0);
        }
    device_free(d);
}

static void test_products(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        check_product(&forms[i], true);
        check_product(&forms[i], false);
    }
}

/* A box of 4 lines from -1, 2 on of a tensor of 40 x 5 halves: outside of it zeros. */
static void test_tile(void)
{
    Device *d = device_new();
    EmuFault fault;
    const EmuTensorMap map = map_of(d, 96, 40, 5, 4);
    uint16_t *x = (uint16_t *)d->word[0];
    for (int i = 0; i < 240; i++)
        x[i] = (uint16_t)(i + 1);
    g_autofree char *text = g_strconcat(
        head,
        "@%p1 bra $L_wait;\nmbarrier.init.shared::cta.b64 [%r3], 1;\n" SHOWN "mov.b32 %r5, -1;\nmov.b32 %r6, 2;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd3, {%r5, %r6}], "
        "[%r3];\n"
        "$L_wait:\nbar.sync 0;\n$L_again:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n@!%p2 bra "
        "$L_again;\n"
        "shl.b32 %r7, %r1, 2;\nadd.u32 %r8, %r2, %r7;\nld.shared.u32 %r9, [%r8];\nmul.wide.u32 %rd6, %r1, 4;\n"
        "add.s64 %rd6, %rd1, %rd6;\nst.global.u32 [%rd6], %r9;\nret;\n}\n",
        NULL);
    if (!run(d, text, &map, 0, &fault))
        g_error("%s", fault.text);
    const uint16_t *got = (const uint16_t *)d->word[1];
    for (int line = 0; line < 4; line++)
        for (int i = 0; i < 64; i++) {
            const int from = i - 1, at = line * LINE + 2 * i, place = at ^ (at >> 7 & 7) << 4;
            g_assert_cmpuint(got[place / 2], ==, from < 0 || from >= 40 || line > 2 ? 0 : (line + 2) * 48 + from + 1);
        }
    device_free(d);
}

/* Copies bytes from there to `to` of shared memory, and 64 of them to y. */
static char *line_text(uint64_t from, int bytes, int to)
{
    return g_strdup_printf(
        "%s@%%p1 bra $L_wait;\nmbarrier.init.shared::cta.b64 [%%r3], 1;\n" SHOWN "mov.u64 %%rd7, %" G_GUINT64_FORMAT
        ";\nmov.u32 %%r5, %d;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r3], %d;\nadd.u32 %%r4, %%r2, %d;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%r4], [%%rd7], %%r5, [%%r3];\n"
        "$L_wait:\nbar.sync 0;\n$L_again:\nmbarrier.try_wait.parity.shared::cta.b64 %%p2, [%%r3], 0;\n"
        "@!%%p2 bra $L_again;\nsetp.gt.u32 %%p4, %%r1, 15;\n@%%p4 bra $L_end;\nshl.b32 %%r7, %%r1, 2;\n"
        "add.u32 %%r8, %%r2, %%r7;\nld.shared.u32 %%r9, [%%r8];\nmul.wide.u32 %%rd6, %%r1, 4;\n"
        "add.s64 %%rd6, %%rd1, %%rd6;\nst.global.u32 [%%rd6], %%r9;\n$L_end:\nret;\n}\n",
        head, from, bytes, bytes, to);
}

static void test_line(void)
{
    Device *d = device_new();
    EmuFault fault;
    const EmuTensorMap none = { 0 };
    for (uint32_t i = 0; i < 64; i++)
        d->word[0][i] = 3 * i + 1;
    g_autofree char *text = line_text(d->x.base + 16, 64, 0);
    if (!run(d, text, &none, 0, &fault))
        g_error("%s", fault.text);
    for (uint32_t i = 0; i < 16; i++)
        g_assert_cmpuint(d->word[1][i], ==, 3 * (i + 4) + 1);
    device_free(d);
}

/* From, to, and how much: multiples of 16; beyond the end of x. */
static void test_line_wrong(void)
{
    static const struct {
        uint64_t from;
        int bytes, to, result;
        const char *says;
    } wrong[] = { { 24, 64, 0, 716, "*copies 64 bytes from 0x7000000018 to 0x0 of shared*no multiples of 16" },
                  { 16, 56, 0, 716, "*copies 56 bytes*no multiples of 16" },
                  { 16, 64, 8, 716, "*to 0x8 of shared memory, which are no multiples of 16" },
                  { 4 * WORDS - 32, 64, 0, 700, "*reads 16 bytes at 0x7000008000, where nothing is allocated" },
                  { 16, 64, 32720, 719,
                    "*race: changes atomically shared memory at 0x8000 that a copy of warp 0 wrote*" } };
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        Device *d = device_new();
        EmuFault fault;
        const EmuTensorMap none = { 0 };
        g_autofree char *text = line_text(d->x.base + wrong[i].from, wrong[i].bytes, wrong[i].to);
        g_assert_false(run(d, text, &none, 0, &fault));
        g_test_message("%s", fault.text);
        g_assert_cmpint(fault.result, ==, wrong[i].result);
        g_assert_true(g_pattern_match_simple(wrong[i].says, fault.text));
        device_free(d);
    }
}

/* Operands in registers: they stay as they are until the product has been waited for, and are there before the fence.
 */
static void test_registers_wrong(void)
{
    static const char *const says[] = { "*changes a register that a product (wgmma) reads*",
                                        "*a product without wgmma.fence behind what used one of its registers" };
    for (int i = 0; i < 2; i++) {
        Device *d = device_new();
        EmuFault fault;
        const EmuTensorMap none = { 0 };
        g_autofree char *text = product_text(&forms[5]);
        const char *at = i == 0 ? strstr(text, "wgmma.commit_group") : strstr(text, "wgmma.mma_async");
        g_autofree char *before = g_strndup(text, (gsize)(at - text));
        g_autofree char *wrong = g_strconcat(before, "mov.b32 %r21, 0;\n", at, NULL);
        g_assert_false(run(d, wrong, &none, 0, &fault));
        g_test_message("%s", fault.text);
        g_assert_true(g_pattern_match_simple(says[i], fault.text));
        device_free(d);
    }
}

/* --- planted faults ----------------------------------------------------------------------------------------------- */

/* A product whose A is written by all threads and whose B is copied; a line of it is another one. */
#define GATE "mbarrier.init.shared::cta.b64 [%r3], 1;\n"
#define PROXY "fence.proxy.async.shared::cta;\n"
#define WRITTEN "bar.sync 0; // written\n"
#define EXPECT "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1024;\n"
#define TILE                                                                                                \
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r4], [%rd3, {%r5, " \
    "%r5}], [%r3];\n"
#define WAIT "@!%p2 bra $L_again;\n"
#define FENCE "wgmma.fence.sync.aligned;\n"
#define A_DESC "mov.u64 %rd4, 4611686293338849280;\n"
#define PRODUCT "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd4, %rd5, %p3, 1, 1, 0, 0;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define READY "wgmma.wait_group.sync.aligned 0;\n"
#define END "bar.sync 0; // end\n"
/* The tile comes once more, and waits for that end of that phase. */
#define ONCE_MORE(parity)                                                                              \
    "bar.sync 0;\n@%p1 bra $L_more;\n" EXPECT TILE                                                     \
    "$L_more:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], " parity ";\n@!%p2 bra $L_more;\n" \
    "ld.shared.u32 %r13, [%r4];\n"
static const char right_text[] =
    "add.u32 %r4, %r2, 16384;\nmov.b32 %r5, 0;\n@%p1 bra $L_go;\n" GATE SHOWN "$L_go:\n"
    "mov.u32 %r10, %r1;\nmov.b32 %r11, 0x3c003c00;\n$L_fill:\nshl.b32 %r12, %r10, 2;\nadd.u32 %r12, %r12, %r2;\n"
    "st.shared.u32 [%r12], %r11;\nadd.u32 %r10, %r10, 128;\nsetp.lt.u32 %p2, %r10, 2048;\n@%p2 bra $L_fill;\n" PROXY
        WRITTEN "@%p1 bra $L_again;\n" EXPECT TILE
    "$L_again:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n" WAIT A_DESC
    "mov.u64 %rd5, 4611686293338850304;\n" FENCE PRODUCT COMMIT READY "add.f32 %f1, %f1, %f2;\n" END
    "shl.b32 %r12, %r1, 2;\nadd.u32 %r12, %r12, %r2;\nst.shared.u32 [%r12], %r11;\n"
    "mul.wide.u32 %rd6, %r1, 4;\nadd.s64 %rd6, %rd1, %rd6;\nst.global.f32 [%rd6], %f1;\nret;\n}\n";

typedef struct {
    const char *name, *line, *instead, *says;
} Planted;

static const Planted planted[] = {
    { "no-barrier-there", GATE, "", "there is no mbarrier at 0x8000 of shared memory" },
    { "no-arrivals", GATE, "mbarrier.init.shared::cta.b64 [%r3], 0;\n", "an mbarrier for 0 arrivals" },
    { "gate-again", GATE, GATE GATE, "there is an mbarrier at 0x8000 already" },
    { "gate-overwritten", SHOWN, "st.shared.u32 [%r3], %r5;\n" SHOWN, "writes over the mbarrier at 0x8000 of shared*" },
    { "gate-copied-over", SHOWN, "cp.async.ca.shared.global [%r3], [%rd1], 8;\n" SHOWN,
      "writes over the mbarrier at 0x8000 of shared*" },
    { "gate-not-shown", EXPECT, "add.u32 %r3, %r3, 8;\n" GATE EXPECT,
      "the mbarrier at 0x8008 was made without a fence (mbarrier_init or proxy.async) behind it" },
    { "sums-used-behind-fence", FENCE, FENCE "mov.f32 %f1, 0f00000000;\n",
      "a product without wgmma.fence behind what used one of its registers" },
    { "one-warp-does-more", FENCE, FENCE "setp.lt.u32 %p4, %r1, 96;\n@%p4 bra $L_less;\n" PRODUCT "$L_less:\n",
      "the products (wgmma) of this warp are not those of the other warps of its warpgroup" },
    { "proxy-forgotten", PROXY, "", "reads 0x* of shared memory that warp * wrote, with no fence.proxy.async between" },
    { "not-written", WRITTEN, "", "* shared memory*" },
    { "too-many-bytes", EXPECT, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1040;\n",
      "waits for a phase of the mbarrier at 0x8000 that does not end: 0 arrivals and 16 bytes are missing" },
    { "nobody-arrives", EXPECT, "", "waits for a phase of the mbarrier at 0x8000 that does not end: 1 arrivals *" },
    { "arrives-twice", EXPECT, EXPECT "mbarrier.arrive.shared::cta.b64 _, [%r3], 2;\n",
      "the mbarrier at 0x8000 waits for 0 arrivals, not for 2" },
    { "not-waited", WAIT, "", "* shared memory*" },
    { "phase-used-again", READY, READY ONCE_MORE("0"), "* shared memory*" },
    { "tile-place", TILE, "add.u32 %r4, %r4, 64;\n" TILE,
      "a tile at 0x4040 of shared memory, which is no multiple of 128" },
    { "fence-forgotten", FENCE, "", "a product without wgmma.fence behind what changed its registers" },
    { "fence-before", FENCE, FENCE "wgmma.wait_group.sync.aligned 0;\n", "a product without wgmma.fence *" },
    { "no-swizzle", A_DESC, "mov.u64 %rd4, 274911461376;\n", "a descriptor of a matrix without the 128-byte swizzle*" },
    { "within-pattern", A_DESC, "mov.u64 %rd4, 4611686293338849288;\n",
      "a matrix at 0x80 of shared memory: it begins within*" },
    { "stride", A_DESC, "mov.u64 %rd4, 4611686155899895808;\n",
      "a matrix whose groups are * bytes apart, no multiples of 1024" },
    { "beyond", A_DESC, "mov.u64 %rd4, 4611686293338851200;\n", "* shared memory*" },
    { "wait-forgotten", READY, "",
      "uses a register of a product (wgmma) that nobody has waited for (wgmma.wait_group)" },
    { "group-open", COMMIT, "", "uses a register of a product (wgmma) *" },
    { "wait-for-others", READY, "wgmma.wait_group.sync.aligned 1;\n", "uses a register of a product (wgmma) *" },
    { "overwritten", COMMIT, COMMIT "@%p1 bra $L_on;\nst.shared.u32 [%r2], %r11;\n$L_on:\n",
      "reads 0x0 of shared memory, which was written before anybody had waited for this product" },
    { "others-read", END, "", "race: * shared memory at 0x* with no barrier between" },
};

static void test_planted(gconstpointer data)
{
    const Planted *p = data;
    const char *at = strstr(right_text, p->line);
    g_assert_nonnull(at);
    g_autofree char *before = g_strndup(right_text, (gsize)(at - right_text));
    g_autofree char *wrong = g_strconcat(head, before, p->instead, at + strlen(p->line), NULL);
    for (size_t o = 0; o < G_N_ELEMENTS(orders); o++) {
        Device *d = device_new();
        EmuFault fault;
        const EmuTensorMap map = map_of(d, 128, 64, 8, 8);
        g_assert_false(run(d, wrong, &map, orders[o], &fault));
        g_test_message("order %u: %s", orders[o], fault.text);
        g_autofree char *any =
            g_strconcat("kernel k, '*' (line * of the PTX), block (0,0,0), thread (*,0,0): ", p->says, NULL);
        g_assert_true(g_pattern_match_simple(any, fault.text));
        device_free(d);
    }
}

static void assert_right(const char *body)
{
    g_autofree char *text = g_strconcat(head, body, NULL);
    for (size_t o = 0; o < G_N_ELEMENTS(orders); o++) {
        Device *d = device_new();
        EmuFault fault;
        const EmuTensorMap map = map_of(d, 128, 64, 8, 8);
        if (!run(d, text, &map, orders[o], &fault))
            g_error("a false alarm: %s", fault.text);
        device_free(d);
    }
}

static void test_right(void)
{
    const char *ready = strstr(right_text, READY) + strlen(READY);
    g_autofree char *before = g_strndup(right_text, (gsize)(ready - right_text));
    g_autofree char *twice = g_strconcat(before, ONCE_MORE("1"), ready, NULL);
    assert_right(right_text);
    assert_right(twice);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ptx-async/products", test_products);
    g_test_add_func("/ptx-async/tile", test_tile);
    g_test_add_func("/ptx-async/line", test_line);
    g_test_add_func("/ptx-async/line-wrong", test_line_wrong);
    g_test_add_func("/ptx-async/registers-wrong", test_registers_wrong);
    g_test_add_func("/ptx-async/right", test_right);
    for (size_t i = 0; i < G_N_ELEMENTS(planted); i++) {
        g_autofree char *path = g_strdup_printf("/ptx-async/planted/%s", planted[i].name);
        g_test_add_data_func(path, &planted[i], test_planted);
    }
    return g_test_run();
}
