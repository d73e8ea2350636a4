/*
 * Plots of reports that several tools draw: bars for rows, and names for what is marked in a picture.
 */
#pragma once

#include "cli/report.h"

typedef struct {
    const char *caption;   /* below the plot */
    const char *title;     /* above it: the model and the machine; any text */
    const char *axis;      /* of the values, with their unit; any text without "'" */
    const char *name;      /* member of a row: text */
    const char *value;     /* member: a number; rows in which it is null are left out */
    const char *second;    /* another one, drawn below it; NULL: none */
    const char *legend[2]; /* of value and second; NULL: none */
    double factor;         /* of the values */
    guint most;            /* rows, from the first one on */
} HnBars;

/* Nothing where no row has a value. */
void hn_plot_bars(HnReport *report, JsonArray *rows, const HnBars *bars);
/* "model.onnx on CPU (isa)"; g_free(). */
char *hn_plot_about(const char *model);
/* A text that is cut to what fits beside a plot, "..." in front, as gnuplot can quote it; g_free(). */
char *hn_plot_label(const char *text, guint most);
