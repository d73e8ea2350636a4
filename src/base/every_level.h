/*
 * Includes a file of loops once for each level of base/level.h:
 *
 *     #define HN_LOOPS "cpu/reduce/loss_loops.h"
 *     #include "base/every_level.h"
 */
#ifdef HN_LOOPS /* else it is read by itself */

#undef HN_LEVEL
#define HN_LEVEL plain
#include HN_LOOPS
#undef HN_LEVEL
#define HN_LEVEL avx2
#include HN_LOOPS
#undef HN_LEVEL
#define HN_LEVEL avx512
#include HN_LOOPS
#undef HN_LEVEL
#undef HN_LOOPS

#endif
