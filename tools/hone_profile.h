/*
 * hone-profile: what its files share. hone_profile.c opens and measures, profile_report.c tells.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "cli/report.h"
#include "cli/tool.h"
#include "common.h"
#include "device_report.h"
#include "perf/device_roofline.h"
#include "perf/measure.h"
#include "perf/memory_timeline.h"
#include "perf/noise.h"
#include "perf/profile.h"
#include "train_setup.h"

#define PROFILE_SETS 32   /* samples that take turns, at most */
#define PROFILE_SECONDS 2 /* of measuring, unless said otherwise */
#define PROFILE_LIMIT 10  /* and at most, where the medians are not known within ... */
#define PROFILE_PRECISION 0.01
#define PROFILE_TOP 15 /* nodes in the table, unless said otherwise */
#define BOTTLENECK 0.2 /* part of the time that makes one */

typedef struct {
    char *warmup, *time, *data, *trace, *folded, *compare;
    char **input, **dim, **shapes;
    gint64 runs;
    int top;
    gboolean strict, weights, remeasure, lowered, advise, no_advise;
    HnToolTrainParams training;
    HnToolDataParams from;
} ProfileParams;

typedef struct {
    HnContext *ctx;
    const ProfileParams *p;
    const char *path;
    char *label;  /* the file's name, for people */
    char *quoted; /* the path as on a command line */
    const HnBackend *backend;
    HnWarmup warmup;
    double seconds;

    HnShapes *shapes;
    HnModel *model;
    HnToolInputs given;
    HnSession *session;
    HnData *data;
    HnSample *sets[PROFILE_SETS];
    guint kinds[PROFILE_SETS]; /* of sets: the first one of the same shapes */
    gboolean shapes_vary;
    guint n_sets;
    HnTensor **out;
    int n_out;
    HnToolTraining *training; /* of --train; else NULL, as trainer, whose session is measured */
    HnTrainer *trainer;
    const char **names;

    HnRoofline roofline;
    HnRoofline there;            /* this and the next three: of a device with memory of its own */
    HnDeviceState device_before; /* before it was opened */
    HnDeviceNoise device_noise;
    HnDeviceBytes device_bytes;
    HnProfile profile;
    HnNoise noise; /* while it was measured */
    gboolean tried;
    guint untried;   /* trials, for want of time */
    GArray *trials;  /* ProfileTrial (profile_advice.h): the most gain first */
    JsonObject *old; /* of --compare; NULL: none */
} Profiling;

/* --- profile_report.c -------------------------------------------------------------------------------------- */

gboolean profile_report(Profiling *f, GError **error);

/* --- profile_plot.c: pictures of a page ---------------------------------------------------------------------- */

/* Of root's rows. */
void profile_plot_types(const Profiling *f, JsonObject *root, HnReport *report);
void profile_plot_nodes(const Profiling *f, JsonObject *root, HnReport *report);

/* --- profile_train.c ---------------------------------------------------------------------------------------- */

void profile_add_training(const Profiling *f, JsonObject *root);

/* --- profile_advice.c: what other commands would gain ------------------------------------------------------- */

void profile_try(Profiling *f); /* f->trials; what fails says why there */
gboolean profile_helped(const Profiling *f);
void profile_add_advice(const Profiling *f, JsonObject *root);
void profile_tell_advice(const Profiling *f, HnReport *report);

/* --- profile_memory.c ---------------------------------------------------------------------------------------- */

void profile_add_memory(const Profiling *f, const HnMemoryTimeline *t, JsonObject *root);
void profile_add_weights(const Profiling *f, JsonObject *root);
const char *profile_point_name(const HnMemoryPoint *p); /* of the node, or "reorder" */

/* --- profile_device.c: a device with memory of its own --------------------------------------------------------- */

gboolean profile_on_device(const Profiling *f);
void profile_add_device(const Profiling *f, JsonObject *root);
void profile_tell_device(const Profiling *f, HnReport *report);
void profile_tell_kernels(const Profiling *f, HnReport *report); /* a table */
/* Why such a row takes so long; NULL: the others' reasons go for it (constant). */
const char *profile_diagnose_device(const HnProfileRow *row);

/* --- profile_compare.c: an earlier report of hone-profile ------------------------------------------------------ */

gboolean profile_read_old(Profiling *f, GError **error); /* f->old, checked */
void profile_add_compare(const Profiling *f, JsonObject *root);
void profile_tell_compare(const Profiling *f, JsonObject *root, HnReport *report);
