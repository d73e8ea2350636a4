#include "case.h"

#define NEAREST "mode='nearest' coordinate_transformation_mode='asymmetric' nearest_mode='floor'"

static const HnCase resizegrad[] = {
    { "f32[1,1,2,2] - !f32[4]={1,1,2,3} - f32[1,1,4,6]={1,2,3,4,5,6,1,2,3,4,5,6,0,0,0,0,0,0,1,1,1,1,1,1}", NULL,
      "f32[1,1,2,2]={12,30,3,3}" },
    { "f32[1,2] - !f32[2]={1,2} - f32[1,4]={1,10,100,1000}", "mode='linear'", "f32[1,2]={33.5,1077.5}" },
    { "f32[1,2] - - !i64[2]={1,1} f32[1,1]={4}", "mode='linear' coordinate_transformation_mode='pytorch_half_pixel'",
      "f32[1,2]={4,0}" },
    { "f32[4] f32[2]={0.5,1.5} - !i64[1]={3} f32[3]={1,10,100}",
      "mode='linear' coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=10.0",
      "f32[4]={0,0.5,0.5,10}" },
    { "f32[2] - !f32[1]={2} - f32[4]={1,1,1,1}", "mode='cubic' exclude_outside=1" },
    { "f32[2,4] - - !i64[1]={2} f32[2,2]={1,2,3,4}", "axes=[-1] nearest_mode='floor'", "f32[2,4]={1,0,2,0,3,0,4,0}" },
    { "f32[0,3] - !f32[2]={2,2} - f32[0,6]", NULL, "f32[0,3]={}" },
    { "f32={3} - !f32[0]={} - f32={5}", NULL, "f32={5}" },
    { "f32[4] - !f32[1]={1} - f32[4]={1,2,3,4}",
      "coordinate_transformation_mode='tf_half_pixel_for_nn' nearest_mode='ceil'", "f32[4]={0,1,2,7}" },
    { "f32[2,3,9,7] - !f32[4]={1,1,2,2} - f32[2,3,18,14]", NEAREST, .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,3,9,7] - !f32[4]={1,1,0.5,3} - f32[2,3,4,21]", "mode='nearest'", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[1,5,4,3] - - !i64[4]={1,5,9,3} f32[1,5,9,3]", "mode='nearest'", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,3,9,7] - !f32[4]={1,1,2,2} - f32[2,3,18,14]", "mode='linear'", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,3,9,7] - !f32[4]={1,1,0.6,0.5} - f32[2,3,5,3]", "mode='linear'", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2,9,7,5] - !f32[4]={1,2,1.5,1} - f32[2,18,10,5]",
      "mode='linear' coordinate_transformation_mode='align_corners'", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[1,2,9,7,6] - !f32[5]={1,1,2,0.5,3} - f32[1,2,18,3,18]", "mode='linear'", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[1,3,9,7] - !f32[4]={1,1,2,3} - f32[1,3,18,21]", "mode='cubic'", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[1,3,19,17] - !f32[4]={1,1,0.3,0.4} - f32[1,3,5,6]", "mode='cubic' antialias=1", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[1,3,9] - !f32[3]={1,1,2.5} - f32[1,3,22]", "mode='linear'", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[64,60,80] - !f32[3]={1,2,2} - f32[64,120,160]", "mode='linear'", .rtol = 1e-4, .atol = 1e-5 },
    { "f32[2] - !f32[1]={2} - f32[3]", NULL, .refused = TRUE, .code = HN_ERROR_SHAPE },
    { "f32[2] - !f32[1]={2}", NULL, .refused = TRUE, .code = HN_ERROR_GRAPH },
};
HN_CASES(resizegrad, "ResizeGrad", resizegrad);
