#include "case.h"

static const HnCase fakequantize[] = {
    /* halves to even, clipped at both ends, the zero point, NaN */
    { "f32[6]={0.24,0.25,0.75,-9,9,nan} f32={0.5}", "lowest=-4.0 highest=3.0", "f32[6]={0,0,1,-2,1.5,nan}" },
    { "f32[6]={0.24,0.26,0.75,-9,9,inf} f32={0.5} f32={3}", "lowest=0.0 highest=15.0", "f32[6]={0,0.5,1,-1.5,6,6}" },
    { "f32[2,3]={1,2,3,-4,5,600} f32[2]={0.5,2} f32[2]={0,1}", "axis=0 lowest=-128.0 highest=127.0",
      "f32[2,3]={1,2,3,-4,4,252}" },
    { "f32[2,3]={1,2,3,-4,5,600} f32[2,1]={0.5,2}", "axis=0 lowest=-128.0 highest=127.0", "f32[2,3]={1,2,3,-4,4,254}" },
    { "f32[2,3]={1,2,3,-4,5,600} f32[3]={2,2,3}", "axis=-1 lowest=-8.0 highest=7.0", "f32[2,3]={0,2,3,-4,4,21}" },
    { "f32[5]={1,2,3,4,5} f32[5]={2,2,2,2,3}", "axis=3 lowest=-8.0 highest=7.0", "f32[5]={0,2,4,4,6}" },
    /* blocks: of rows, of columns, the last one shorter */
    { "f32[2,5]={1,2,3,4,5,6,7,8,9,10} f32[2,3]={1,2,4,5,10,20} f32[2,3]={0,0,0,8,8,8}",
      "axis=1 block_size=2 lowest=0.0 highest=15.0", "f32[2,5]={1,2,4,4,4,5,5,10,10,0}" },
    { "f32[3,2]={1,2,3,4,5,6} f32[2,2]={2,3,4,5}", "axis=0 block_size=2 lowest=-8.0 highest=7.0",
      "f32[3,2]={0,3,4,3,4,5}" },
    { "f32[2,3,4,5] f32={0.03125}", "lowest=-8.0 highest=7.0" },
    { "f32[7,40,9]@-3:3 f32[40]@0.01:0.2 f32[40]@-3:3", "lowest=-128.0 highest=127.0" },
    { "f32[50,33]@-3:3 f32[33]@0.01:0.2", "lowest=-8.0 highest=7.0" },
    { "f32[96,70]@-3:3 f32[3,70]@0.01:0.2", "axis=0 block_size=32 lowest=-8.0 highest=7.0" },
    { "f32[70,100]@-3:3 f32[70,4]@0.01:0.2", "axis=1 block_size=32 lowest=-8.0 highest=7.0" },
    { "f32[9000]@-3:3 f32={0.02} f32={7}", "lowest=0.0 highest=255.0" },
    { "f32[3]@-1:1 f32={0.3}", "lowest=-2147483520.0 highest=2147483520.0 smooth=1 stays=1" },
    { "f32[0,3] f32={1}", "lowest=0.0 highest=15.0", "f32[0,3]={}" },
    { "f32[2,3] f32[2]", "axis=1 lowest=0.0 highest=15.0", .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2,3] f32={1}", "highest=15.0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2,3] f32={1}", "lowest=16.0 highest=15.0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(fakequantize, "FakeQuantize", fakequantize);

static const HnCase fakequantizegrad[] = {
    /* v = 0.5, -1.5, 9, -9: rounded 0, -2, held at 7, -8; ds = 1 (0 - 0.5) + 2 (-2 + 1.5) + 3 * 7 - 4 * 8 */
    { "f32[4]={1,2,3,4} f32[4]={1,-3,18,-18} f32={2}", "lowest=-8.0 highest=7.0", "f32[4]={1,2,0,0} f32={-12.5}" },
    { "f32[4]={1,2,3,4} f32[4]={1,-3,18,-18} f32={2} f32={1}", "lowest=-8.0 highest=7.0",
      "f32[4]={1,2,0,4} f32={16.5}" },
    /* the gain: 4 elements, 8 levels; of samples of 2, 9 levels */
    { "f32[4]={1,2,3,4} f32[4]={1,-3,18,-18} f32={2}", "lowest=-8.0 highest=7.0 gain=1",
      "f32[4]={1,2,0,0} f32={-2.2097087}" },
    { "f32[2,2]={1,2,3,4} f32[2,2]={1,-3,18,-18} f32={2} f32={1}", "lowest=-8.0 highest=7.0 gain=1 samples=1",
      "f32[2,2]={1,2,0,4} f32={3.8890873}" },
    { "f32[2,2]={1,1,1,1} f32[2,2]={1,3,18,-18} f32[2]={2,2}", "axis=0 lowest=-8.0 highest=7.0",
      "f32[2,2]={1,1,0,0} f32[2]={0,-1}" },
    { "f32[2,2]={1,1,1,1} f32[2,2]={1,3,18,-18} f32[2]={2,2}", "axis=1 lowest=-8.0 highest=7.0",
      "f32[2,2]={1,1,0,0} f32[2]={6.5,-7.5}" },
    { "f32[3,2]={1,2,3,4,5,6} f32[3,2]={1,2,3,4,5,66} f32[2,2]={2,4,4,4} f32[2,2]={0,0,0,0}",
      "axis=0 block_size=2 lowest=-8.0 highest=7.0", "f32[3,2]={1,2,3,4,5,0} f32[2,2]={1,-1,-1.25,42}" },
    { "f32[3]={1,2,3} f32[3]={1,3,500} f32={2}", "lowest=-8.0 highest=7.0", "f32[3]={1,2,0}" },
    { "f32[2,3,4,5] f32[2,3,4,5] f32={0.03125} f32={2}", "lowest=-8.0 highest=7.0 gain=1", .n_out = 2, .rtol = 1e-4,
      .atol = 1e-4 },
    { "f32[7,40,9] f32[7,40,9]@-3:3 f32[40]@0.01:0.2 f32[40]@-3:3", "lowest=-128.0 highest=127.0 gain=1", .n_out = 2,
      .rtol = 1e-4, .atol = 1e-4 },
    { "f32[50,33] f32[50,33]@-3:3 f32[33]@0.01:0.2", "lowest=-8.0 highest=7.0", .n_out = 2, .rtol = 1e-4,
      .atol = 1e-3 },
    { "f32[300,33] f32[300,33]@-3:3 f32[33]@0.01:0.2", "lowest=-8.0 highest=7.0 gain=1", .n_out = 2, .rtol = 1e-4,
      .atol = 1e-4 },
    { "f32[96,70] f32[96,70]@-3:3 f32[3,70]@0.01:0.2", "axis=0 block_size=32 lowest=-8.0 highest=7.0", .n_out = 2,
      .rtol = 1e-4, .atol = 1e-3 },
    { "f32[70,100] f32[70,100]@-3:3 f32[70,4]@0.01:0.2", "axis=1 block_size=32 lowest=-8.0 highest=7.0", .n_out = 2,
      .rtol = 1e-4, .atol = 1e-3 },
    { "f32[70000] f32[70000]@-3:3 f32={0.02} f32={7}", "lowest=0.0 highest=255.0 gain=1", .n_out = 2, .rtol = 1e-4,
      .atol = 1e-3 },
    { "f32[70000] f32[70000]@-3:3 f32={0.02}", "lowest=0.0 highest=255.0" },
    { "f32[4] f32[3] f32={1}", "lowest=0.0 highest=15.0", .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(fakequantizegrad, "FakeQuantizeGrad", fakequantizegrad);
