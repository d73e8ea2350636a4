#include "case.h"

static const HnCase roialign[] = {
    /* one bin over all of it, one sample at the centre (1,1) */
    { "f32[1,1,3,3]={1,2,3,4,5,6,7,8,9} f32[1,4]={0,0,2,2} i64[1]={0}", "sampling_ratio=1", "f32[1,1,1,1]={5}",
      .opset = 10 },
    { "f32[1,1,3,3]={1,2,3,4,5,6,7,8,9} f32[1,4]={0,0,2,2} i64[1]={0}", "sampling_ratio=1", "f32[1,1,1,1]={3}" },
    { "f64[1,1,3,3]={1,2,3,4,5,6,7,8,9} f64[1,4]={0,0,4,4} i64[1]={0}",
      "output_height=2 output_width=2 spatial_scale=0.5 coordinate_transformation_mode='output_half_pixel'",
      "f64[1,1,2,2]={3,4,6,7}", .opset = 16 },
    { "f32[1,1,2,2]={0,0,0,8} f32[1,4]={0,0,1,1} i64[1]={0}",
      "mode='max' coordinate_transformation_mode='output_half_pixel'", "f32[1,1,1,1]={2}" },
    { "f32[1,1,2,2]={1,1,1,1} f32[1,4]={9,9,10,10} i64[1]={0}", NULL, "f32[1,1,1,1]={0}" }, /* outside */
    { "f32[2,3,9,7] f32[3,4]@0:8 i64[3]={0,1,1}", "output_height=3 output_width=2 sampling_ratio=2" },
    { "f64[2,3,9,7] f64[3,4]@0:8 i64[3]={0,1,1}", "output_height=3 output_width=2 mode='max'" },
    { "f32[1,1,2,2] f32[0,4] i64[0]={}", NULL, "f32[0,1,1,1]={}" },
    { "f32[1,1,2,2] f32[1,4] i64[1]={1}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,1,2,2] f32[1,4]={0,0,inf,1} i64[1]={0}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,1,2,2] f32[1,4]={0,0,1e30,1} i64[1]={0}", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,1,2,2] f32[1,5] i64[1]={0}", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[1,1,2,2] f32[1,4] i64[1]={0}", "output_height=0", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(roialign, "RoiAlign", roialign);

#define PLAIN "coordinate_transformation_mode='output_half_pixel'"

static const HnCase roialigngrad[] = {
    /* one sample in the middle of four elements, then on one; four samples of which two lie outside */
    { "f32[1,1,2,2] f32[1,4]={0,0,1,1} i64[1]={0} f32[1,1,1,1]={4}", "sampling_ratio=1 " PLAIN,
      "f32[1,1,2,2]={1,1,1,1}" },
    { "f32[1,1,3,3] f32[1,4]={0,0,2,2} i64[1]={0} f32[1,1,1,1]={4}", "sampling_ratio=1 " PLAIN,
      "f32[1,1,3,3]={0,0,0,0,4,0,0,0,0}" },
    { "f32[1,1,1,1] f32[1,4]={0,0,8,1} i64[1]={0} f32[1,1,1,1]={4}", "sampling_ratio=2 " PLAIN, "f32[1,1,1,1]={0}" },
    { "f32[1,1,2,2]={0,0,0,8} f32[1,4]={0,0,1,1} i64[1]={0} f32[1,1,1,1]={4}", "mode='max' sampling_ratio=1 " PLAIN,
      "f32[1,1,2,2]={0,0,0,1}" },
    /* negative ones below a sample outside, which is 0 */
    { "f32[1,1,1,2]={-1,-1} f32[1,4]={0,0,8,1} i64[1]={0} f32[1,1,1,1]={4}", "mode='max' sampling_ratio=2 " PLAIN,
      "f32[1,1,1,2]={0,0}" },
    { "f32[2,3,9,7] f32[3,4]@0:8 i64[3]={0,1,1} f32[3,3,3,2]", "output_height=3 output_width=2 sampling_ratio=2" },
    { "f32[1,1,2,2] f32[0,4] i64[0]={} f32[0,1,1,1]", NULL, "f32[1,1,2,2]={0,0,0,0}" },
    { "f32[1,1,2,2] f32[1,4] i64[1]={1} f32[1,1,1,1]", NULL, .refused = TRUE, .code = HN_ERROR_VALUE },
    { "f32[1,1,2,2] f32[1,4] i64[1]={0} f32[1,1,2,1]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
};
HN_CASES(roialigngrad, "RoiAlignGrad", roialigngrad);
