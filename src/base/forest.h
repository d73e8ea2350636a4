/*
 * Sets that become one: each element leads to another one of its set, the set's root to itself.
 */
#pragma once

static inline int hn_forest_root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]]; /* the next one has half the way */
    return i;
}
