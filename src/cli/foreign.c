#include "cli/foreign.h"

#include <string.h>

/* The first entry of a name that the tool can follow counts. */
static const struct {
    const char *foreign; /* in lower case, without "-" and "_" */
    const char *ours;    /* an option, if the tool has it; NULL: for every tool */
    const char *text;    /* said instead; NULL: "hone says '--OURS'" */
} entries[] = {
    /* how long */
    { "iterations", "runs", NULL },
    { "iters", "runs", NULL },
    { "niter", "runs", NULL },
    { "numberiterations", "runs", NULL },
    { "numruns", "runs", NULL },
    { "repeat", "runs", NULL },
    { "repetitions", "runs", NULL },
    { "loops", "runs", NULL },
    { "minruns", "runs", NULL },
    { "maxruns", "runs", NULL },
    { "avgruns", "runs", NULL },
    { "duration", "time", NULL },
    { "seconds", "time", NULL },
    { "warmup", "warmup", NULL },
    { "warmupruns", "warmup", NULL },
    { "timeout", "time-limit", NULL },
    /* sizes */
    { "shape", "shapes", NULL },
    { "inputshape", "shapes", NULL },
    { "inputshapes", "shapes", NULL },
    { "overwriteinputshape", "shapes", NULL },
    { "testinputshape", "shapes", NULL },
    { "datashape", "shapes", NULL },
    { "minshapes", "shapes", NULL },
    { "optshapes", "shapes", NULL },
    { "maxshapes", "shapes", NULL },
    { "batch", "dim", "'--dim NAME=8' sets a free dimension; hone-inspect shows their names" },
    { "batchsize", "dim", "'--dim NAME=8' sets a free dimension; hone-inspect shows their names" },
    { "batchsize", "batch", NULL },
    { "seqlen", "dim", "'--dim NAME=128' sets a free dimension; hone-inspect shows their names" },
    /* data */
    { "loadinputs", "input", "hone says '--input NAME=FILE', or '--data FOLDER'" },
    { "inputs", "input", "hone says '--input NAME=FILE', or '--data FOLDER'" },
    { "pathtoinput", "data", NULL },
    { "inputdata", "data", NULL },
    { "dataset", "calib", NULL },
    { "dataset", "data", NULL },
    { "calibrationdata", "calib", NULL },
    { "calibrationdataset", "calib", NULL },
    { "calibdata", "calib", NULL },
    { "imatrix", "calib", NULL },
    { "data", "calib", NULL },
    { "calib", "data", NULL },
    /* results */
    { "saveoutputs", "out", NULL },
    { "outputdir", "out", NULL },
    { "output", "out", NULL },
    { "out", "output", NULL },
    { "outputmodel", "output", NULL },
    { "saveengine", "output", NULL },
    { "exporttimes", "json", "hone says '--json=FILE'" },
    { "exportjson", "json", "hone says '--json=FILE'" },
    { "exportcsv", "csv", "hone says '--csv=FILE'" },
    { "report", "json", "hone says '--json=FILE', or '--csv=FILE'" },
    { "reporttype", "json", "hone says '--json=FILE', or '--csv=FILE'" },
    { "exportprofile", "trace", NULL },
    /* machine */
    { "numthreads", "threads", NULL },
    { "nthreads", "threads", NULL },
    { "numberthreads", "threads", NULL },
    { "intraopnumthreads", "threads", NULL },
    { "nstreams", "streams", NULL },
    { "numberstreams", "streams", NULL },
    { "nireq", "streams", NULL },
    { "perfhint", "hint", NULL },
    { "hint", "hint", NULL },
    { "inferprecision", "precision", NULL },
    { "provider", "device", NULL },
    { "executionprovider", "device", NULL },
    { "backend", "device", NULL },
    { "gpu", "device", "hone says '--device cuda'" },
    { "memory", "mem-limit", NULL },
    { "workspace", "mem-limit", NULL },
    { "loglevel", "verbose", NULL },
    /* rewriting */
    { "skipoptimization", "skip", NULL },
    { "skipoptimizations", "skip", NULL },
    { "skipfusebn", "skip", "'--skip PASS' leaves a pass out, '--list-passes' names them" },
    { "nocheck", "no-check", NULL },
    { "checkn", "check", NULL },
    { "modelcheck", "check", NULL },
    { "dtype", "to", NULL },
    { "saveasexternaldata", "external", "hone says '--external one-file'" },
    { "outputs", "extract", NULL },
    { "opsetversion", "opset", NULL },
    { "targetopset", "opset", NULL },
    /* other tools of hone */
    { "fp16", "to", "hone says '--to f16'" },
    { "half", "to", "hone says '--to f16'" },
    { "fp16", NULL, "'hone-export --to f16' makes such a model" },
    { "half", NULL, "'hone-export --to f16' makes such a model" },
    { "int8", NULL, "hone-quantize makes such a model" },
    { "best", NULL, "hone-quantize and 'hone-export --to f16' make faster models" },
    { "quantize", NULL, "hone-quantize does that" },
    { "simplify", NULL, "hone-export does that" },
    { "optimize", NULL, "hone-export does that" },
    { "dumpprofile", NULL, "hone-profile shows that" },
    { "pc", NULL, "hone-profile shows that" },
    { "perfcounters", NULL, "hone-profile shows that" },
    { "profile", NULL, "hone-profile shows that" },
    { "dumplayerinfo", NULL, "'hone-inspect --nodes' shows that" },
    { "inspect", NULL, "hone-inspect shows that" },
    { "summary", NULL, "hone-inspect shows that" },
    { "onnx", NULL, "a model is named without an option" },
    { "model", NULL, "a model is named without an option" },
    { "modelpath", NULL, "a model is named without an option" },
    { "pathtomodel", NULL, "a model is named without an option" },
    { "inputmodel", NULL, "a model is named without an option" },
    { "loadengine", NULL, "a model is named without an option" },
};

static gboolean has_option(const GOptionEntry *e, const char *name)
{
    for (; e != NULL && e->long_name != NULL; e++)
        if (strcmp(e->long_name, name) == 0)
            return TRUE;
    return FALSE;
}

char *hn_foreign_words(const HnTool *tool, const char *name)
{
    g_autoptr(GString) plain = g_string_new(NULL);
    for (; *name != '\0'; name++)
        if (*name != '-' && *name != '_')
            g_string_append_c(plain, g_ascii_tolower(*name));
    for (gsize i = 0; i < G_N_ELEMENTS(entries); i++) {
        const char *ours = entries[i].ours;
        if (strcmp(entries[i].foreign, plain->str) != 0)
            continue;
        if (ours != NULL && !has_option(tool->options, ours) && !has_option(hn_options_common(), ours))
            continue;
        return entries[i].text != NULL ? g_strdup(entries[i].text) : g_strdup_printf("hone says '--%s'", ours);
    }
    return NULL;
}
