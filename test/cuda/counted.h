/*
 * The driver's functions, counted, for tests of what a session asks of them.
 */
#pragma once

#include <string.h>

#include "cuda/core/cuda_backend.h"
#include "run/device.h"

/* Of the one context of this process. */
static struct {
    const HnCudaDriver *real;
    int uploads, downloads, launches, waits, recordings, replays, allocs;
    int fail_alloc; /* the so-many-th from now on fails; 0: none */
} calls;

static int count_upload(HnCuAddress to, const void *from, size_t bytes, HnCuStream s)
{
    calls.uploads++;
    return calls.real->upload(to, from, bytes, s);
}
static int count_download(void *to, HnCuAddress from, size_t bytes, HnCuStream s)
{
    calls.downloads++;
    return calls.real->download(to, from, bytes, s);
}
static int count_launch(HnCuFunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, HnCuStream s, void **params, void **extra)
{
    calls.launches++;
    return calls.real->launch(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
}
static int count_wait(HnCuStream s)
{
    calls.waits++;
    return calls.real->stream_wait(s);
}
static int count_recording(HnCuStream s, HnCuGraph *graph)
{
    calls.recordings++;
    return calls.real->capture_end(s, graph);
}
static int count_replay(HnCuGraphExec recorded, HnCuStream s)
{
    calls.replays++;
    return calls.real->graph_launch(recorded, s);
}
static int count_alloc(HnCuAddress *address, size_t bytes)
{
    calls.allocs++;
    if (calls.fail_alloc > 0 && --calls.fail_alloc == 0)
        return HN_CU_OUT_OF_MEMORY;
    return calls.real->alloc(address, bytes);
}

static int count_host_alloc(void **data, size_t bytes, unsigned flags)
{
    calls.allocs++;
    if (calls.fail_alloc > 0 && --calls.fail_alloc == 0)
        return HN_CU_OUT_OF_MEMORY;
    return calls.real->host_alloc(data, bytes, flags);
}

/* Of this device, from now on; `table` stays as long as it does. */
static inline void count_calls(HnDevice *device, HnCudaDriver *table)
{
    HnCuda *c = device->handle;
    calls.real = c->driver;
    *table = *c->driver;
    table->upload = count_upload;
    table->download = count_download;
    table->launch = count_launch;
    table->stream_wait = count_wait;
    table->capture_end = count_recording;
    table->graph_launch = count_replay;
    table->alloc = count_alloc;
    table->host_alloc = count_host_alloc;
    c->driver = table;
}

static inline void start_counting(void)
{
    const HnCudaDriver *real = calls.real;
    memset(&calls, 0, sizeof calls);
    calls.real = real;
}

static inline void assert_calls(int uploads, int downloads, int waits, int recordings, int replays)
{
    g_assert_cmpint(calls.uploads, ==, uploads);
    g_assert_cmpint(calls.downloads, ==, downloads);
    g_assert_cmpint(calls.waits, ==, waits);
    g_assert_cmpint(calls.recordings, ==, recordings);
    g_assert_cmpint(calls.replays, ==, replays);
}
