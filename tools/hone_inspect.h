/*
 * hone-inspect: what its files share. hone_inspect.c reads options and the model, inspect_report.c tells what it is,
 * inspect_lists.c its nodes and weights, inspect_tensor.c one of its tensors, inspect_graph.c draws it,
 * inspect_compare.c holds two against each other.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "check/overview.h"
#include "cli/report.h"
#include "common.h"
#include "op/infer.h"

typedef struct {
    char *tensor, *dot, *svg, *profile, *diff;
    char **dim, **shapes;
    int top;
    gboolean nodes, weights, compare;
} InspectParams;

/* A model that is looked at. */
typedef struct {
    const char *path;
    HnModel *model;
    HnOverview *overview;
    char *missing; /* why its files of weights could not be read; NULL: they could, or there are none */
} Subject;

typedef struct {
    HnContext *ctx;
    const InspectParams *p;
    const HnBackend *backend;
    HnShapes *shapes;
    Subject subject[2]; /* the second one with --compare */
    HnReport *report;
} Inspect;

/* "stdin" for "-". */
const char *inspect_name(const Subject *s);
/* Type, shape and what it seems to be of an input or output. */
JsonObject *inspect_value(const HnModel *m, const HnValue *v);
/* Rows of a table of so many. */
guint inspect_rows(const Inspect *x, guint n);

/* The file's nodes as an array of the report, before functions are inlined. */
void inspect_add_nodes(Inspect *x);
void inspect_add_weights(Inspect *x);
gboolean inspect_add_tensor(Inspect *x, GError **error);

gboolean inspect_report(Inspect *x, GError **error);
gboolean inspect_compare(Inspect *x, GError **error);

/* Looks at the options of drawing before anything is read. */
gboolean inspect_check_graph(const Inspect *x, GError **error);
gboolean inspect_draw(const Inspect *x, GError **error);
