/*
 * What a report consists of, for the files that render it; cli/report.h is for tools.
 */
#pragma once

#include "cli/report.h"

G_BEGIN_DECLS

typedef enum {
    HN_PART_LINE,    /* text */
    HN_PART_FACT,    /* name and text */
    HN_PART_SECTION, /* name */
    HN_PART_TABLE,   /* name: path of the rows */
    HN_PART_PLOT,    /* name: caption; text: gnuplot's commands */
} HnPartKind;

typedef struct {
    HnPartKind kind;
    char *name, *text;
    const HnColumn *columns;
    gboolean csv; /* a table for CSV alone */
    guint top;    /* rows shown of a table; 0: all */
} HnPart;

struct HnReport {
    HnContext *ctx;
    JsonNode *root;
    GArray *parts; /* HnPart */
};

/* The rows of a table; NULL: there are none. */
JsonArray *hn_part_rows(const HnReport *report, const HnPart *part);
/* How many of them are shown. */
guint hn_part_shown(const HnReport *report, const HnPart *part);
/* What a cell shows, clean of what a terminal acts upon: "-" for null and for what is missing; g_free. */
char *hn_part_cell(JsonNode *row, const HnColumn *column);
gboolean hn_column_is_text(const HnColumn *column);

G_END_DECLS
