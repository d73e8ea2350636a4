/*
 * Bytes for bytes, y = table[x], in rows: pixels of some channels, or all bytes at once.
 *
 * Most tables are straight lines between two limits: a change of scale. hn_int8_lut_init() finds whether integers of 16
 * bits compute the same 256 bytes; with AVX2 that is several times as fast as looking them up.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

#define HN_INT8_LUT 256 /* elements of a table */

/* table[x] == limited(((x ^ x_flip) * 256 + low) * by / 65536 + plus - minus) >> shift) ^ y_flip, in bytes with lo and
 * hi as limits; unsigned, rounded down, sums saturate. */
typedef struct {
    uint16_t by, plus, minus;
    uint8_t low, shift;
    uint8_t x_flip, y_flip, lo, hi;
} HnInt8Line;

typedef struct {
    uint8_t table[HN_INT8_LUT];
    uint8_t steps[HN_INT8_LUT]; /* from 16 elements to the next 16, as exclusive or; those of each half begin anew */
    gboolean is_made, is_line;
    HnInt8Line line;
} HnInt8Lut;

/* Takes some microseconds. */
void hn_int8_lut_init(HnInt8Lut *m, const uint8_t *table);

/* HnStep.table, which comes behind prepare: made of it in the first run(), outside of parallel regions. */
static inline void hn_int8_lut_once(HnInt8Lut *m, const uint8_t *table)
{
    if (table != NULL && !m->is_made)
        hn_int8_lut_init(m, table);
}

/* `rows` rows of n bytes, y_pitch and x_pitch bytes apart; y is x, or they do not overlap. */
void hn_int8_lut_rows(const HnInt8Lut *m, uint8_t *y, int64_t y_pitch, const uint8_t *x, int64_t x_pitch, int64_t rows,
                      int64_t n);

/* The same by a table that nothing is known about. */
void hn_int8_exchange_rows(uint8_t *y, int64_t y_pitch, const uint8_t *x, int64_t x_pitch, const uint8_t *table,
                           int64_t rows, int64_t n);

/* Instructions that look up 128 bytes at once may be used: not by processors that are limited to VNNI, whose first ones
 * had none. */
gboolean hn_int8_has_vbmi(void);

G_END_DECLS
