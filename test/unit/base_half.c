/* Conversions of small floating-point formats: every code, every midpoint between neighbours, and right beside it. */
#include <float.h>
#include <math.h>

#include "base/half.h"
#include "base/rng.h"

/* value of a 16-bit code with e exponent bits, by the definition of the format; infinity where the code says so */
static double value16(unsigned code, int e)
{
    int m = 15 - e, bias = (1 << (e - 1)) - 1;
    int exponent = (int)(code >> m & ((1u << e) - 1)), fraction = (int)(code & ((1u << m) - 1));
    double x = exponent ? ldexp((1 << m) + fraction, exponent - bias - m) : ldexp(fraction, 1 - bias - m);
    return code & 0x8000 ? -x : x;
}

static void check16(uint16_t (*from32)(float), uint16_t (*from64)(double), float (*to32)(uint16_t), int e)
{
    unsigned inf = ((1u << e) - 1) << (15 - e);
    for (unsigned code = 0; code <= 0xffff; code++) {
        unsigned magnitude = code & 0x7fff;
        float x = to32((uint16_t)code);
        if (magnitude > inf) {
            g_assert_true(isnan(x));
            g_assert_cmpuint(from32(x) & 0x7fff, >, inf);
            g_assert_cmpuint(from64((double)x) & 0x7fff, >, inf);
            g_assert_cmpint(!!signbit(x), ==, code >> 15);
            continue;
        }
        double expected = magnitude == inf ? (code >> 15 ? -INFINITY : INFINITY) : value16(code, e);
        g_assert_true((double)x == expected);
        g_assert_cmpint(!!signbit(x), ==, code >> 15);
        g_assert_cmphex(from32(x), ==, code);
        g_assert_cmphex(from64(expected), ==, code);
        if (magnitude == inf)
            continue;
        /* halfway to the neighbour above (the one above the largest is infinity): ties go to the even code */
        double middle = (value16(code, e) + value16(code + 1, e)) / 2;
        unsigned even = code + (code & 1);
        double out = code >> 15 ? -INFINITY : INFINITY;
        g_assert_cmphex(from64(middle), ==, even);
        g_assert_cmphex(from64(nextafter(middle, 0)), ==, code);
        g_assert_cmphex(from64(nextafter(middle, out)), ==, code + 1);
        if ((double)(float)middle == middle) {
            g_assert_cmphex(from32((float)middle), ==, even);
            g_assert_cmphex(from32(nextafterf((float)middle, 0)), ==, code);
            g_assert_cmphex(from32(nextafterf((float)middle, (float)out)), ==, code + 1);
        }
    }
    g_assert_cmphex(from32(FLT_MAX), ==, from64(FLT_MAX));
    g_assert_cmphex(from64(1e300), ==, inf);
    g_assert_cmphex(from64(-1e300), ==, 0x8000 | inf);
    g_assert_cmphex(from64(-1e-300), ==, 0x8000);
    g_assert_cmphex(from32(1e-45f), ==, 0);
}

/* inline functions have no fixed address in the header: wrap them */
static uint16_t f16_from_f32(float x)
{
    return hn_f16_from_f32(x);
}

static uint16_t f16_from_f64(double x)
{
    return hn_f16_from_f64(x);
}

static float f16_to_f32(uint16_t x)
{
    return hn_f16_to_f32(x);
}

static uint16_t bf16_from_f32(float x)
{
    return hn_bf16_from_f32(x);
}

static float bf16_to_f32(uint16_t x)
{
    return hn_bf16_to_f32(x);
}

static void test_f16(void)
{
    check16(f16_from_f32, f16_from_f64, f16_to_f32, 5);
}

static void test_bf16(void)
{
    check16(bf16_from_f32, hn_bf16_from_f64, bf16_to_f32, 8);
}

/* the bulk forms give the same bits, whichever instructions they use and wherever the tail starts */
static void test_bulk(void)
{
    g_autofree uint16_t *codes = g_new(uint16_t, 65536), *back = g_new(uint16_t, 65536);
    g_autofree float *x = g_new(float, 65536), *y = g_new(float, 65536);
    for (unsigned i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    hn_f16_to_f32_n(x, codes, 65536);
    for (unsigned i = 0; i < 65536; i++)
        g_assert_cmphex(hn_f32_bits(x[i]), ==, hn_f32_bits(hn_f16_to_f32((uint16_t)i)));
    hn_bf16_to_f32_n(x, codes, 65536);
    for (unsigned i = 0; i < 65536; i++)
        g_assert_cmphex(hn_f32_bits(x[i]), ==, hn_f32_bits(hn_bf16_to_f32((uint16_t)i)));

    HnRng rng = hn_rng(7);
    for (unsigned i = 0; i < 65536; i++)
        y[i] = hn_f32_from_bits((uint32_t)hn_rng_u64(&rng));
    for (unsigned i = 0; i < 32768; i++) /* half of them where f16 has its values */
        y[i] = (float)ldexp(hn_rng_range(&rng, -1, 1), (int)hn_rng_int(&rng, -28, 17));
    for (size_t n = 0; n < 100; n++) {
        back[n] = 0xabcd;
        hn_f16_from_f32_n(back, y, n);
        g_assert_cmphex(back[n], ==, 0xabcd);
    }
    hn_f16_from_f32_n(back, y, 65536);
    for (unsigned i = 0; i < 65536; i++)
        g_assert_cmphex(back[i], ==, hn_f16_from_f32(y[i]));
    hn_bf16_from_f32_n(back, y, 65536);
    for (unsigned i = 0; i < 65536; i++)
        g_assert_cmphex(back[i], ==, hn_bf16_from_f32(y[i]));
}

static void test_small(void)
{
    static const struct {
        HnSmallFloat format;
        unsigned codes;        /* of non-negative values incl. NaN and infinity */
        double largest, least; /* least: smallest above 0 */
        unsigned last;         /* code of largest */
    } formats[] = {
        { HN_SMALL_E4M3FN, 128, 448, 0x1p-9, 0x7e },
        { HN_SMALL_E4M3FNUZ, 128, 240, 0x1p-10, 0x7f },
        { HN_SMALL_E5M2, 128, 57344, 0x1p-16, 0x7b },
        { HN_SMALL_E5M2FNUZ, 128, 57344, 0x1p-17, 0x7f },
        { HN_SMALL_E2M1, 8, 6, 0.5, 7 },
    };
    for (gsize f = 0; f < G_N_ELEMENTS(formats); f++) {
        HnSmallFloat format = formats[f].format;
        gboolean has_minus_zero = format != HN_SMALL_E4M3FNUZ && format != HN_SMALL_E5M2FNUZ;
        unsigned sign = formats[f].codes, last = formats[f].last;
        g_assert_cmpfloat(hn_small_to_f32(format, (uint8_t)last), ==, formats[f].largest);
        g_assert_cmpfloat(hn_small_to_f32(format, 1), ==, formats[f].least);
        for (unsigned code = 0; code <= last; code++) {
            double x = (double)hn_small_to_f32(format, (uint8_t)code);
            g_assert_cmphex(hn_small_from_f64(format, x, TRUE), ==, code);
            if (code || has_minus_zero) {
                g_assert_cmphex(hn_small_from_f64(format, -x, FALSE), ==, code | sign);
                g_assert_cmpfloat(hn_small_to_f32(format, (uint8_t)(code | sign)), ==, -x);
            }
            if (code == last)
                continue;
            double middle = (x + (double)hn_small_to_f32(format, (uint8_t)(code + 1))) / 2;
            g_assert_cmphex(hn_small_from_f64(format, middle, TRUE), ==, code + (code & 1));
            g_assert_cmphex(hn_small_from_f64(format, nextafter(middle, 0), TRUE), ==, code);
            g_assert_cmphex(hn_small_from_f64(format, nextafter(middle, 1e9), TRUE), ==, code + 1);
        }
        g_assert_cmphex(hn_small_from_f64(format, INFINITY, TRUE), ==, last);
        g_assert_cmphex(hn_small_from_f64(format, 1e30, TRUE), ==, last);
        g_assert_cmphex(hn_small_from_f64(format, -1e30, TRUE), ==, last | sign);
        if (format == HN_SMALL_E2M1)
            continue;
        g_assert_true(isnan(hn_small_to_f32(format, hn_small_from_f64(format, NAN, TRUE))));
        float over = hn_small_to_f32(format, hn_small_from_f64(format, -1e30, FALSE));
        g_assert_true(format == HN_SMALL_E5M2 ? (isinf(over) && over < 0) : isnan(over));
    }
    g_assert_cmphex(hn_small_from_f64(HN_SMALL_E4M3FNUZ, -0.0, TRUE), ==, 0);
    g_assert_cmphex(hn_small_from_f64(HN_SMALL_E4M3FN, -0.0, TRUE), ==, 0x80);
    g_assert_cmphex(hn_small_from_f64(HN_SMALL_E4M3FN, 464, FALSE), ==, 0x7e); /* a tie between 448 and 480 */
    g_assert_cmphex(hn_small_from_f64(HN_SMALL_E4M3FN, 464.1, FALSE), ==, 0x7f);
}

static void test_e8m0(void)
{
    for (unsigned code = 0; code < 0xff; code++) {
        double x = (double)hn_small_to_f32(HN_SMALL_E8M0, (uint8_t)code);
        g_assert_true(x == ldexp(1, (int)code - 127));
        for (int round = HN_E8M0_UP; round <= HN_E8M0_NEAREST; round++)
            g_assert_cmphex(hn_e8m0_from_f64(x, (HnE8m0Round)round, FALSE), ==, code);
        if (code == 0xfe)
            continue;
        g_assert_cmphex(hn_e8m0_from_f64(x * 1.25, HN_E8M0_UP, FALSE), ==, code + 1);
        g_assert_cmphex(hn_e8m0_from_f64(x * 1.75, HN_E8M0_DOWN, FALSE), ==, code);
        g_assert_cmphex(hn_e8m0_from_f64(x * 1.5, HN_E8M0_NEAREST, FALSE), ==, code + 1);
        g_assert_cmphex(hn_e8m0_from_f64(x * 1.49, HN_E8M0_NEAREST, FALSE), ==, code);
    }
    g_assert_true(isnan(hn_small_to_f32(HN_SMALL_E8M0, 0xff)));
    g_assert_cmphex(hn_e8m0_from_f64(NAN, HN_E8M0_UP, TRUE), ==, 0xff);
    g_assert_cmphex(hn_e8m0_from_f64(0, HN_E8M0_UP, TRUE), ==, 0);
    g_assert_cmphex(hn_e8m0_from_f64(0, HN_E8M0_NEAREST, FALSE), ==, 0xff);
    g_assert_cmphex(hn_e8m0_from_f64(INFINITY, HN_E8M0_UP, TRUE), ==, 0xfe);
    g_assert_cmphex(hn_e8m0_from_f64(0x1.8p127, HN_E8M0_UP, TRUE), ==, 0xfe);
    g_assert_cmphex(hn_e8m0_from_f64(0x1.8p127, HN_E8M0_UP, FALSE), ==, 0xff);
    g_assert_cmphex(hn_e8m0_from_f64(0x1p-140, HN_E8M0_DOWN, TRUE), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/half/f16", test_f16);
    g_test_add_func("/base/half/bf16", test_bf16);
    g_test_add_func("/base/half/bulk", test_bulk);
    g_test_add_func("/base/half/small", test_small);
    g_test_add_func("/base/half/e8m0", test_e8m0);
    return g_test_run();
}
