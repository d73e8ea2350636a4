/*
 * Errors of every hone library: one GError domain, codes that map onto the tools' exit status.
 *
 * A message is one sentence in lower case without a full stop and names the node, file or option in single quotes.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HN_ERROR (hn_error_quark())

typedef enum {
    HN_ERROR_IO,          /* a file could not be read or written */
    HN_ERROR_FORMAT,      /* bytes that are not what they should be: model, tensor, archive */
    HN_ERROR_GRAPH,       /* a model that breaks the rules of a graph: cycle, missing input, two producers */
    HN_ERROR_ATTRIBUTE,   /* an operator's attribute or number of inputs is invalid */
    HN_ERROR_SHAPE,       /* shapes or ranks that do not fit */
    HN_ERROR_TYPE,        /* data types that do not fit */
    HN_ERROR_VALUE,       /* values outside what the operator allows: index out of range, division by zero */
    HN_ERROR_USAGE,       /* options that make no sense */
    HN_ERROR_GUARD,       /* a guard or limit was missed: mismatch, slower, larger */
    HN_ERROR_UNSUPPORTED, /* valid, but hone cannot: operator, type, device, opset */
    HN_ERROR_NOISE,       /* too noisy to decide */
    HN_ERROR_BUDGET,      /* a time or memory budget was reached */
    HN_ERROR_INTERRUPTED, /* Ctrl-C */
} HnError;

GQuark hn_error_quark(void);

/* Exit status of a tool that ends with this error (hone-exit-status(7)); NULL is 0, a foreign domain is 1. */
int hn_error_exit_status(const GError *error);

G_END_DECLS
