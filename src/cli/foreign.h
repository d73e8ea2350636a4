/*
 * Options as other tools spell them (trtexec, benchmark_app, onnxruntime_perf_test, Polygraphy, onnxsim, OnnxSlim,
 * hyperfine, llama-bench), and what hone says.
 */
#pragma once

#include "cli/options.h"

G_BEGIN_DECLS

/* What an error about an option says behind its name: "hone says '--runs'", "'hone-inspect' shows that"; NULL: nothing
 * known. name is without dashes and value; case and "-" or "_" between words do not count. An option that this tool has
 * not is not named. g_free. */
char *hn_foreign_words(const HnTool *tool, const char *name);

G_END_DECLS
