#pragma once

/* Types of elements that a kernel is told of in its arguments. */
enum { HN_ELEMENT_F32, HN_ELEMENT_F16, HN_ELEMENT_BF16, HN_ELEMENT_F64 };
