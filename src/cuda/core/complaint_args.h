#pragma once

#include <stdint.h>

/* For a kernel that looks at elements which may be wrong: where it says so. */
typedef struct {
    uint64_t place; /* of the stream's one number: the least key | position that anybody complained of */
    uint64_t key;   /* of the step, above all positions */
} HnCudaComplaint;

#define HN_COMPLAINT_BITS 40 /* of positions */
