#include "cpu/core/even_block.h"

#define GAIN 0.98

int64_t hn_even_block(int64_t n, int64_t least, int64_t most, int64_t times, int parts)
{
    const int64_t whole = MIN(n, most), first = (n + whole - 1) / whole;
    int64_t best = whole;
    double lowest = 0;
    for (int64_t cut = first - 1; cut <= MIN(n, first + 4 * parts); cut++) {
        const int64_t block = cut < first ? whole : (n + cut - 1) / cut, down = (n + block - 1) / block;
        const int64_t run = (down * times + parts - 1) / parts;                /* blocks, at most */
        const int64_t largest = run * block - run / down * (down * block - n); /* last blocks are smaller */
        if (cut < first || (block >= least && (double)largest < GAIN * lowest)) {
            best = block;
            lowest = (double)largest;
        }
    }
    return best;
}
