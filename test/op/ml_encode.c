#include "case.h"

static const HnCase onehotencoder[] = {
    { "string[3]={'b','x','a'}", "cats_strings=['a','b']", "f32[3,2]={0,1,0,0,1,0}" },
    { "i64[3]={2,7,5}", "cats_int64s=[2,5]", "f32[3,2]={1,0,0,0,0,1}" },
    { "f32[1,2]={2.9,5}", "cats_int64s=[2,5]", "f32[1,2,2]={1,0,0,1}" },
    { "i64[1]={7}", "cats_int64s=[2,5] zeros=0", .refused = TRUE, .code = HN_ERROR_VALUE },
    { "i64[1]={7}", NULL, .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[1]={7}", "cats_strings=['a']", .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(onehotencoder, "OneHotEncoder", onehotencoder);

static const HnCase labelencoder[] = {
    { "string[3]={'b','x','a'}", "classes_strings=['a','b'] default_int64=-7", "i64[3]={1,-7,0}", .opset = 1 },
    { "i64[3]={1,5,0}", "classes_strings=['a','b'] default_string='?'", "string[3]={'b','?','a'}", .opset = 1 },
    { "string[2]={'b','x'}", "keys_strings=['a','b'] values_floats=[0.5,1.5]", "f32[2]={1.5,0}", .opset = 2 },
    { "i64[2]={2,3}", "keys_int64s=[1,2] values_strings=['a','b']", "string[2]={'b','_Unused'}" },
    { "string[2]={'b','x'}", "keys_tensor=string[2]={'a','b'} values_tensor=i16[2]={5,6} default_tensor=i16[1]={9}",
      "i16[2]={6,9}" },
    { "i64[4]={1,2,3,1}", "keys_int64s=[1,2,2] values_int64s=[10,20,30] default_int64=-5", "i64[4]={10,20,-5,10}",
      .opset = 2 },
    { "i64[2]={1,9}", "keys_int64s=[1,2] values_floats=[0.5,1.5]", "f32[2]={0.5,0}" },
    { "f32[3]={1,nan,-0.0}", "keys_floats=[1.0,nan,0.0] values_int64s=[1,2,3]", "i64[3]={1,2,3}" },
    { "f32[3]={1,nan,-0.0}", "keys_floats=[1.0,nan,0.0] values_int64s=[1,2,3]", "i64[3]={1,-1,3}", .opset = 2 },
    { "f64[2]={1,3}", "keys_tensor=f64[2]={1,2} values_tensor=f64[2]={0.1,0.2} default_tensor=f64[1]={9}",
      "f64[2]={0.1,9}" },
    { "i64[2]", "keys_int64s=[1,2] values_floats=[0.5]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[2]", "values_floats=[0.5]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "i64[2]", "keys_int64s=[1] keys_floats=[1.0] values_floats=[0.5]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
    { "f32[2]", "keys_int64s=[1] values_floats=[0.5]", .refused = TRUE, .code = HN_ERROR_TYPE },
};
HN_CASES(labelencoder, "LabelEncoder", labelencoder);

static const HnCase categorymapper[] = {
    { "string[3]={'b','x','a'}", "cats_strings=['a','b'] cats_int64s=[3,4]", "i64[3]={4,-1,3}" },
    { "i64[2]={4,9}", "cats_strings=['a','b'] cats_int64s=[3,4] default_string='none'", "string[2]={'b','none'}" },
    { "i64[2]", "cats_strings=['a','b'] cats_int64s=[3]", .refused = TRUE, .code = HN_ERROR_ATTRIBUTE },
};
HN_CASES(categorymapper, "CategoryMapper", categorymapper);
