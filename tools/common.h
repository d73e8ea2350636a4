/*
 * What the tools share beyond options and reports: models, devices and inputs as their command lines name them.
 */
#pragma once

#include "cli/tool.h"
#include "data/data.h"
#include "onnx/onnx.h"
#include "run/session.h"
#include "tune/journal.h"

/* Sets a USAGE error; FALSE. */
gboolean hn_tool_usage(GError **error, const char *text);

/* The same, with the inputs of the one model that the arguments name behind the text, where it can be read and is not
 * stdin: what somebody who has named no data needs to know. */
gboolean hn_tool_no_data(HnContext *ctx, const char *text, GError **error);

/* Will a file of that name be possible, so that nobody works for hours in vain? NULL and stdout are. Errors: IO. */
gboolean hn_tool_can_write(const char *path, GError **error);

/* Where a job notes what it tried: as --journal says ("none": NULL), or beside the file that it makes; NULL: nowhere.
 */
char *hn_tool_journal_path(const char *journal, const char *output);
/* Where times are kept: as --timing-cache says ("none": NULL), or in the user's cache. */
char *hn_tool_cache_path(const char *timing_cache);

/* What options say of a job's journal. */
typedef struct {
    const char *journal, *output; /* as hn_tool_journal_path() takes them */
    const char *timing_cache;
    gboolean resume;
    gboolean repeats; /* what a recipe says is done once more: nothing is noted in a file */
} HnToolJournal;

/* Errors: USAGE, and those of hn_journal_open(). */
HnJournal *hn_tool_open_journal(HnContext *ctx, const HnToolJournal *o, const HnJournalOf *of, GError **error);
/* Takes j, which may be NULL, and notes why the job has ended. NULL: it has succeeded, and nobody goes on with the
 * journal beside its file; one that --journal named stays. */
void hn_tool_close_journal(HnJournal *j, const HnToolJournal *o, const GError *why);

/* The value of --external; NULL: auto. */
gboolean hn_tool_parse_external(const char *text, HnExternal *external, GError **error);

/* The one model that the arguments name. Errors: USAGE where there is none or more. */
const char *hn_tool_one_model(HnContext *ctx, GError **error);

/* Reads a model within the memory limit; "-" takes stdin. Warns as below. */
HnModel *hn_tool_read_model(HnContext *ctx, const char *path, GError **error);

/* FALSE for a model that computes nothing. */
gboolean hn_tool_has_outputs(const HnModel *m, const char *path, GError **error);

/* Says so where a model is for measuring speed only (check/recipe.h). */
void hn_tool_warn_speed_only(HnContext *ctx, const char *path, const HnModel *m);

/* Says so where a recipe is of another version of hone than this; NULL: unknown. */
void hn_tool_warn_version(HnContext *ctx, const char *path, const char *version);

/* The backend of --device. */
const HnBackend *hn_tool_backend(HnContext *ctx, GError **error);

/* The version of oneDNN that a backend computes with, NULL: none; for HnReportEnv. */
const char *hn_tool_onednn(const HnBackend *backend);

/* Can the device compute as --precision says? NULL: as the model says. */
gboolean hn_tool_precision(const HnContext *ctx, const char *precision, GError **error);
/* The same of training: f16 anywhere, bf16 beside the CPU, too; HnTrainerOptions.half. */
gboolean hn_tool_train_precision(const HnContext *ctx, const char *precision, HnDtype *half, GError **error);

/* The values of --dim and --shapes; lists may be NULL. */
HnShapes *hn_tool_shapes(char **dims, char **shapes, GError **error);

/* How pictures and sound become inputs, as the options of all tools that take data say; also those of their tables. */
typedef struct {
    char *preprocess, *mean, *scale, *layout, *resize, *crop, *channels, *rate, *cache;
    gboolean u8, exif;
    gsize keep; /* no option: bytes of samples that stay in memory (data/data.h) */
} HnToolDataParams;

#define HN_TOOL_DATA_ENTRY(name, kind, Params, field, words, arg) \
    {                                                             \
        name, 0, 0, kind, HN_FIELD(Params, field), words, arg     \
    }

/* clang-format off */
#define HN_TOOL_DATA_ENTRIES(Params, from)                                                                             \
    HN_TOOL_DATA_ENTRY("preprocess", G_OPTION_ARG_FILENAME, Params, from.preprocess,                                   \
        "pictures and sound: imagenet, 0-1, -1-1, none or a key file (default: preprocess.conf beside the model)",     \
        "HOW"),                                                                                                        \
    HN_TOOL_DATA_ENTRY("mean", G_OPTION_ARG_STRING, Params, from.mean,                                                 \
        "is subtracted from what is 0 to 255: one number, or one for each channel", "A[,B,C]"),                        \
    HN_TOOL_DATA_ENTRY("scale", G_OPTION_ARG_STRING, Params, from.scale, "and then divides it", "A[,B,C]"),            \
    HN_TOOL_DATA_ENTRY("u8", G_OPTION_ARG_NONE, Params, from.u8, "values from 0 to 255 as they are", NULL),            \
    HN_TOOL_DATA_ENTRY("layout", G_OPTION_ARG_STRING, Params, from.layout,                                             \
        "of pictures: nchw, nhwc; of sound: nct, ntc (default: as the input's shape says)", "ORDER"),                  \
    HN_TOOL_DATA_ENTRY("resize", G_OPTION_ARG_STRING, Params, from.resize,                                             \
        "pictures to WxH, or their shorter side to N, by bilinear, bicubic or nearest (default: to the input's size)", \
        "WxH[:BY]"),                                                                                                   \
    HN_TOOL_DATA_ENTRY("crop", G_OPTION_ARG_STRING, Params, from.crop,                                                 \
        "take the middle, WxH or a part such as 87.5%", "WxH"),                                                        \
    HN_TOOL_DATA_ENTRY("channels", G_OPTION_ARG_STRING, Params, from.channels,                                         \
        "1, 3, 4, grey, rgb, bgr, rgba (default: as many as the input has)", "N"),                                     \
    HN_TOOL_DATA_ENTRY("exif", G_OPTION_ARG_NONE, Params, from.exif, "turn pictures as their Exif data say", NULL),    \
    HN_TOOL_DATA_ENTRY("rate", G_OPTION_ARG_STRING, Params, from.rate,                                                 \
        "resample sound to N samples a second (default: as it is)", "N"),                                              \
    HN_TOOL_DATA_ENTRY("data-cache", G_OPTION_ARG_FILENAME, Params, from.cache,                                        \
        "keep what pictures and sound become in DIR", "DIR")
/* clang-format on */

/* Their names, for HnRecorded.left_out: who repeats a work names them as he names the data. */
#define HN_TOOL_DATA_NAMES \
    "preprocess", "mean", "scale", "u8", "layout", "resize", "crop", "channels", "exif", "rate", "data-cache"

/* What they say, or the key file beside the model at path ("-", NULL: none is looked for). Errors: USAGE, IO, FORMAT.
 */
HnPreprocess *hn_tool_preprocess(HnContext *ctx, const HnToolDataParams *from, const char *path, GError **error);

/* hn_data_open() with it. Warns where pixels are taken as they are without anybody having said so. */
HnData *hn_tool_open_data(HnContext *ctx, const HnToolDataParams *from, const char *path, const char *source,
                          HnValue *const *inputs, int n, const HnDataOptions *options, GError **error);
/* The same where `given`, values of --input, feed some of the inputs, which no source has to name then. UNSUPPORTED: an
 * initializer is named. */
HnData *hn_tool_open_fed_data(HnContext *ctx, const HnModel *m, char **given, const HnToolDataParams *from,
                              const char *path, const char *source, HnValue *const *inputs, int n,
                              const HnDataOptions *options, GError **error);
/* Samples for a job: of the inputs of m, whose session is opened and closed for that. "-": stdin. */
HnData *hn_tool_open_samples(HnContext *ctx, HnModel *m, char **given, const HnToolDataParams *from, const char *path,
                             const char *source, HnShapes *shapes, GError **error);
/* That warning, and what -v says. */
void hn_tool_note_media(HnContext *ctx, const HnMediaTarget *t);
/* Warns of samples of `source` that are left out since they are copies of others; none: nothing is said. */
void hn_tool_warn_copies(HnContext *ctx, const char *source, int64_t copies);

/* The values of --input: tensors for some graph inputs, initializers among them. */
typedef struct {
    GPtrArray *names;   /* char * */
    GPtrArray *tensors; /* HnTensor * */
    GPtrArray *feeds;   /* char *, borrowed, NULL at the end: those that are initializers, for HnSessionOptions.feeds */
    gboolean made;      /* some are of the size that --dim and --shapes say */
} HnToolInputs;

/* inputs: list of "NAME=VALUE" (data/given.h), may be NULL; `from` and path as below. Errors: USAGE where the model has
 * no such input, and those of reading. */
gboolean hn_tool_inputs(HnContext *ctx, const HnModel *m, const HnToolDataParams *from, const char *path,
                        const HnShapes *shapes, char **inputs, HnToolInputs *out, GError **error);
void hn_tool_inputs_clear(HnToolInputs *inputs);

/* Two samples whose inputs are of the same shapes, the same ones absent. */
gboolean hn_tool_same_shapes(const HnSample *a, const HnSample *b);

/* The tensor given for an input, NULL: none. */
HnTensor *hn_tool_input(const HnToolInputs *inputs, const char *name);
gboolean hn_tool_gives_all(const HnToolInputs *given, HnValue *const *inputs, int n);

/* What the inputs of a model get, of which some may be given. */
typedef struct {
    const HnToolDataParams *from;
    const char *path;   /* of the model */
    const char *source; /* NULL: none was named; where values are missing, they are made up */
    HnShapes *shapes;
    const char *sizes; /* options that say `shapes`, in words; NULL: the user used none */
    const HnToolInputs *given;
} HnToolFeed;

/* Errors: USAGE where sizes are said of data that have their own, and those of hn_tool_open_data(). */
HnData *hn_tool_open_feed(HnContext *ctx, const HnToolFeed *f, HnValue *const *inputs, int n, GError **error);
/* Those of a session, as [*n]; to be freed. */
HnValue **hn_tool_session_inputs(const HnSession *s, int *n);

/* Warns where nodes run on reference kernels because a library is not installed, or because the device has memory of
 * its own and no kernel for them. With -v: a line for each node that runs on its reference kernel; with -vv what other
 * kernels have against it. */
void hn_tool_note_refs(HnContext *ctx, const HnSession *s, const HnBackend *on);
/* The same for a model whose sessions are out of reach, where the device has memory of its own: m is planned for a
 * sample. What fails then is no error, since it will fail again. */
void hn_tool_note_device(HnContext *ctx, HnModel *m, const HnBackend *on, HnTensor *const *in);
