#include "common.h"

#include <glib/gstdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/nearest.h"
#include "check/outputs.h"
#include "check/recipe.h"
#include "data/given.h"
#include "data/interface.h"
#include "backends.h"

gboolean hn_tool_usage(GError **error, const char *text)
{
    g_set_error_literal(error, HN_ERROR, HN_ERROR_USAGE, text);
    return FALSE;
}

gboolean hn_tool_no_data(HnContext *ctx, const char *text, GError **error)
{
    const HnOnnxOptions o = { .budget = ctx->budget, .keep_external = TRUE };
    const char *path = ctx->n_args == 1 ? ctx->args[0] : NULL;
    g_autoptr(HnModel) m = path != NULL && strcmp(path, "-") != 0 ? hn_onnx_read_file(path, &o, NULL) : NULL;
    g_autofree char *words = m != NULL ? hn_model_inputs_words(m) : g_strdup("");
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s%s", text, words);
    return FALSE;
}

gboolean hn_tool_can_write(const char *path, GError **error)
{
    return path == NULL || hn_out_possible(path, error);
}

char *hn_tool_journal_path(const char *journal, const char *output)
{
    if (journal != NULL)
        return strcmp(journal, "none") ? g_strdup(journal) : NULL;
    return output != NULL && !hn_out_is_stdout(output) ? g_strconcat(output, ".journal", NULL) : NULL;
}

char *hn_tool_cache_path(const char *timing_cache)
{
    if (timing_cache != NULL)
        return strcmp(timing_cache, "none") ? g_strdup(timing_cache) : NULL;
    return g_build_filename(g_get_user_cache_dir(), "hone", "timings.jsonl", NULL);
}

HnJournal *hn_tool_open_journal(HnContext *ctx, const HnToolJournal *o, const HnJournalOf *of, GError **error)
{
    g_autofree char *path = hn_tool_journal_path(o->journal, o->output), *cache = hn_tool_cache_path(o->timing_cache);
    g_autoptr(JsonObject) header = hn_journal_header(of);
    if (o->resume && path == NULL) {
        hn_tool_usage(error, "'--resume' needs a journal: '-o FILE' or '--journal FILE'");
        return NULL;
    }
    g_autoptr(HnJournal) j = hn_journal_new();
    if (cache != NULL) {
        g_autofree char *key = hn_journal_key(header);
        hn_journal_use_cache(j, cache, key);
    }
    const gboolean resume = o->resume && g_file_test(path, G_FILE_TEST_EXISTS); /* killed before it began */
    if (path != NULL && !o->repeats && !hn_journal_open(j, path, resume, header, error))
        return NULL;
    if (resume)
        hn_context_note(ctx, 1, "goes on with %u trials of '%s'", hn_journal_resumed(j), path);
    return g_steal_pointer(&j);
}

void hn_tool_close_journal(HnJournal *j, const HnToolJournal *o, const GError *why)
{
    if (j == NULL)
        return;
    g_autoptr(JsonObject) line = json_object_new();
    json_object_set_string_member(line, "end", why == NULL ? "done" : why->message);
    hn_journal_note(j, line, NULL);
    hn_journal_free(j);
    g_autofree char *path = o->journal == NULL ? hn_tool_journal_path(NULL, o->output) : NULL;
    if (path != NULL && why == NULL && !o->repeats)
        (void)g_remove(path);
}

gboolean hn_tool_parse_external(const char *text, HnExternal *external, GError **error)
{
    if (text == NULL || !strcmp(text, "auto"))
        *external = HN_EXTERNAL_AUTO;
    else if (!strcmp(text, "inline"))
        *external = HN_EXTERNAL_INLINE;
    else if (!strcmp(text, "one-file"))
        *external = HN_EXTERNAL_ONE_FILE;
    else
        return hn_tool_usage(error, "option '--external' is one of auto, inline, one-file");
    return TRUE;
}

const char *hn_tool_one_model(HnContext *ctx, GError **error)
{
    if (ctx->n_args == 1)
        return ctx->args[0];
    if (ctx->n_args == 0)
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "no model is named; '%s --help' tells how", ctx->tool->name);
    else
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "one model is enough: what is '%s'?", ctx->args[1]);
    return NULL;
}

HnModel *hn_tool_read_model(HnContext *ctx, const char *path, GError **error)
{
    if (!strcmp(path, "-") && !hn_context_take_stdin(ctx, "the model", error))
        return NULL;
    HnModel *m = hn_onnx_read_file(
        path, &(HnOnnxOptions){ .budget = ctx->budget, .verify_data = ctx->common.verify_data }, error);
    if (m != NULL)
        hn_tool_warn_speed_only(ctx, path, m);
    return m;
}

gboolean hn_tool_has_outputs(const HnModel *m, const char *path, GError **error)
{
    if (m->graph->outputs->len > 0)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_GRAPH, "'%s': the model has no outputs, so there is nothing to compute",
                !strcmp(path, "-") ? "stdin" : path);
    return FALSE;
}

void hn_tool_warn_speed_only(HnContext *ctx, const char *path, const HnModel *m)
{
    if (hn_model_is_speed_only(m))
        hn_context_warn(ctx, "'%s' was made without data, to measure speed with: its results mean nothing",
                        !strcmp(path, "-") ? "stdin" : path);
}

void hn_tool_warn_version(HnContext *ctx, const char *path, const char *version)
{
    if (g_strcmp0(version, hn_version()) != 0)
        hn_context_warn(ctx, "'%s' was made by version %s, this is %s: the bytes may differ", path,
                        version != NULL ? version : "unknown", hn_version());
}

const HnBackend *hn_tool_backend(HnContext *ctx, GError **error)
{
    const HnCommon *c = &ctx->common;
    g_autofree char *numbered = c->device_index ? g_strdup_printf("%s:%d", c->device, c->device_index) : NULL;
    return hn_backend_find(numbered ? numbered : c->device, error);
}

const char *hn_tool_onednn(const HnBackend *backend)
{
    const char *text = backend->describe ? backend->describe() : NULL, *name = "oneDNN ";
    return text && g_str_has_prefix(text, name) ? text + strlen(name) : NULL;
}

gboolean hn_tool_precision(const HnContext *ctx, const char *precision, GError **error)
{
    static const char *const names[] = { "model", "f32", "bf16", "f16", "int8", NULL };
    const gboolean bf16 = !strcmp(ctx->common.device, "cpu") && hn_cpu_isa() >= HN_ISA_BF16;
    if (!precision || !strcmp(precision, "model") || !strcmp(precision, "f32") || (bf16 && !strcmp(precision, "bf16")))
        return TRUE;
    if (g_strv_contains(names, precision)) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "option '--precision': device '%s' computes in the types that a model says%s, not in %s",
                    ctx->common.device, bf16 ? " or in bf16" : "", precision);
        return FALSE;
    }
    g_autofree char *known = g_strjoinv(", ", (char **)names);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--precision': '%s' is none of %s", precision, known);
    return FALSE;
}

gboolean hn_tool_train_precision(const HnContext *ctx, const char *precision, HnDtype *half, GError **error)
{
    *half = !g_strcmp0(precision, "f16") ? HN_F16 : !g_strcmp0(precision, "bf16") ? HN_BF16 : HN_UNDEFINED;
    if (*half == HN_F16 || (*half == HN_BF16 && strcmp(ctx->common.device, "cpu") != 0))
        return TRUE;
    return hn_tool_precision(ctx, precision, error);
}

HnShapes *hn_tool_shapes(char **dims, char **shapes, GError **error)
{
    g_autoptr(HnShapes) s = hn_shapes_new();
    for (char **p = dims; p && *p; p++)
        if (!hn_shapes_parse_dim(s, *p, error))
            return NULL;
    for (char **p = shapes; p && *p; p++)
        if (!hn_shapes_parse(s, *p, error))
            return NULL;
    return g_steal_pointer(&s);
}

/* --- pictures and sound ------------------------------------------------------------------------------------------- */

/* The key file beside a model; NULL: there is none. */
static char *file_beside(const char *path)
{
    if (path == NULL || strcmp(path, "-") == 0)
        return NULL;
    g_autofree char *folder = g_file_test(path, G_FILE_TEST_IS_DIR) ? g_strdup(path) : g_path_get_dirname(path);
    g_autofree char *file = g_build_filename(folder, HN_PREPROCESS_FILE, NULL);
    return g_file_test(file, G_FILE_TEST_IS_REGULAR) ? g_steal_pointer(&file) : NULL;
}

static gboolean read_keys(HnContext *ctx, HnPreprocess *p, const char *how, const char *path, GError **error)
{
    if (how != NULL && hn_preprocess_is_preset(how))
        return hn_preprocess_set(p, NULL, "preset", how, error);
    g_autofree char *file = how != NULL ? g_strdup(how) : file_beside(path);
    if (how != NULL && !g_file_test(how, G_FILE_TEST_EXISTS)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "option '--preprocess': '%s' is none of imagenet, 0-1, -1-1, none, and no file", how);
        return FALSE;
    }
    if (file != NULL)
        hn_context_note(ctx, 1, "pictures and sound become inputs as '%s' says", file);
    return file == NULL || hn_preprocess_read(p, file, ctx->budget, error);
}

HnPreprocess *hn_tool_preprocess(HnContext *ctx, const HnToolDataParams *from, const char *path, GError **error)
{
    const struct {
        const char *key, *value;
    } said[] = { { "mean", from->mean },
                 { "scale", from->scale },
                 { "u8", from->u8 ? "true" : NULL },
                 { "layout", from->layout },
                 { "resize", from->resize },
                 { "crop", from->crop },
                 { "channels", from->channels },
                 { "exif", from->exif ? "true" : NULL },
                 { "rate", from->rate } };
    g_autoptr(HnPreprocess) p = hn_preprocess_new();
    if (from->u8 && (from->mean != NULL || from->scale != NULL)) {
        hn_tool_usage(error, "options '--u8' and '--mean' or '--scale' exclude each other");
        return NULL;
    }
    if (!read_keys(ctx, p, from->preprocess, path, error))
        return NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(said); i++)
        if (said[i].value != NULL && !hn_preprocess_set(p, NULL, said[i].key, said[i].value, error)) {
            g_prefix_error(error, "option '--%s': ", said[i].key);
            return NULL;
        }
    return g_steal_pointer(&p);
}

void hn_tool_note_media(HnContext *ctx, const HnMediaTarget *t)
{
    if (t == NULL || t->kind == HN_MEDIA_NONE)
        return;
    g_autofree char *what = hn_media_describe(t);
    hn_context_note(ctx, 1, "%s", what);
    if (t->unscaled)
        hn_context_warn(ctx,
                        "input '%s' gets pixels from 0 to 255, since nothing says otherwise: see '--preprocess', "
                        "'--mean' and '--scale'; '--u8' says that it is right",
                        t->input->name);
}

HnData *hn_tool_open_data(HnContext *ctx, const HnToolDataParams *from, const char *path, const char *source,
                          HnValue *const *inputs, int n, const HnDataOptions *options, GError **error)
{
    HnDataOptions o = *options;
    g_autoptr(HnPreprocess) p = hn_tool_preprocess(ctx, from, path, error);
    if (p == NULL)
        return NULL;
    o.preprocess = p;
    o.cache = from->cache;
    o.keep = from->keep;
    HnData *d = hn_data_open(source, inputs, n, &o, error);
    if (d != NULL)
        hn_tool_note_media(ctx, hn_data_media(d));
    return d;
}

/* --- --input ----------------------------------------------------------------------------------------------------- */

static const HnValue *find_input(const HnModel *m, const char *name, gsize n)
{
    const GPtrArray *inputs = m->graph->inputs;
    for (guint i = 0; i < inputs->len; i++) {
        const HnValue *v = inputs->pdata[i];
        if (strlen(v->name) == n && !strncmp(v->name, name, n))
            return v;
    }
    return NULL;
}

/* The input that text names before one of its '='; *file is what follows. */
static const HnValue *split(const HnModel *m, const char *text, const char **file, GError **error)
{
    for (const char *eq = strchr(text, '='); eq; eq = strchr(eq + 1, '=')) {
        const HnValue *v = find_input(m, text, (gsize)(eq - text));
        *file = eq + 1;
        if (v)
            return v;
    }
    const char *eq = strchr(text, '=');
    if (!eq || eq == text || !eq[1]) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--input': '%s' is not of the form NAME=VALUE", text);
        return NULL;
    }
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < m->graph->inputs->len; i++)
        g_ptr_array_add(names, ((HnValue *)m->graph->inputs->pdata[i])->name);
    g_ptr_array_add(names, NULL);
    g_autofree char *name = g_strndup(text, (gsize)(eq - text));
    g_autofree char *words = hn_nearest_words(name, (const char *const *)names->pdata);
    g_autofree char *inputs = hn_model_inputs_words(m);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--input': the model has no input '%s'%s%s", name, words,
                inputs);
    return NULL;
}

static gboolean add_input(HnContext *ctx, const HnModel *m, const char *text, const HnGivenOptions *o,
                          HnToolInputs *out, GError **error)
{
    const char *value;
    HnGiven how = { 0 };
    const HnValue *v = split(m, text, &value, error);
    if (!v)
        return FALSE;
    if (hn_tool_input(out, v->name)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--input' names '%s' twice", v->name);
        return FALSE;
    }
    if ((!strcmp(value, "-") || !strcmp(value, "raw:-")) && !hn_context_take_stdin(ctx, "an input", error))
        return FALSE;
    HnTensor *t = hn_given_read(v, value, o, &how, error);
    if (!t)
        return FALSE;
    hn_tool_note_media(ctx, &how.target);
    out->made |= how.made;
    g_ptr_array_add(out->names, g_strdup(v->name));
    g_ptr_array_add(out->tensors, t);
    if (hn_value_is_weight(v))
        g_ptr_array_add(out->feeds, v->name);
    return TRUE;
}

gboolean hn_tool_inputs(HnContext *ctx, const HnModel *m, const HnToolDataParams *from, const char *path,
                        const HnShapes *shapes, char **inputs, HnToolInputs *out, GError **error)
{
    *out = (HnToolInputs){ .names = g_ptr_array_new_with_free_func(g_free),
                           .tensors = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref),
                           .feeds = g_ptr_array_new() };
    g_autoptr(HnPreprocess) pre = inputs ? hn_tool_preprocess(ctx, from, path, error) : NULL;
    const HnGivenOptions o = { .budget = ctx->budget, .seed = ctx->common.seed, .shapes = shapes, .preprocess = pre };
    gboolean ok = !inputs || pre;
    for (char **p = inputs; ok && p && *p; p++)
        ok = add_input(ctx, m, *p, &o, out, error);
    if (!ok)
        hn_tool_inputs_clear(out);
    else
        g_ptr_array_add(out->feeds, NULL);
    return ok;
}

void hn_tool_inputs_clear(HnToolInputs *inputs)
{
    g_clear_pointer(&inputs->names, g_ptr_array_unref);
    g_clear_pointer(&inputs->tensors, g_ptr_array_unref);
    g_clear_pointer(&inputs->feeds, g_ptr_array_unref);
}

HnTensor *hn_tool_input(const HnToolInputs *inputs, const char *name)
{
    for (guint i = 0; i < inputs->names->len; i++)
        if (!strcmp(inputs->names->pdata[i], name))
            return inputs->tensors->pdata[i];
    return NULL;
}

gboolean hn_tool_gives_all(const HnToolInputs *given, HnValue *const *inputs, int n)
{
    gboolean all = TRUE;
    for (int i = 0; i < n && all; i++)
        all = hn_tool_input(given, inputs[i]->name) != NULL;
    return all;
}

HnValue **hn_tool_session_inputs(const HnSession *s, int *n)
{
    *n = hn_session_n_inputs(s);
    HnValue **inputs = g_new0(HnValue *, (gsize)*n + 1);
    for (int i = 0; i < *n; i++)
        inputs[i] = (HnValue *)hn_session_input(s, i);
    return inputs;
}

HnData *hn_tool_open_feed(HnContext *ctx, const HnToolFeed *f, HnValue *const *inputs, int n, GError **error)
{
    g_autofree HnTensor **given = g_new0(HnTensor *, (gsize)n + 1);
    for (int i = 0; i < n; i++)
        given[i] = hn_tool_input(f->given, inputs[i]->name);
    if (!hn_shapes_check(f->shapes, inputs, n, error))
        return NULL;
    const char *source = f->source == NULL && !hn_tool_gives_all(f->given, inputs, n) ? "random" : f->source;
    const HnDataOptions o = { .budget = ctx->budget, .seed = ctx->common.seed, .shapes = f->shapes, .given = given };
    g_autoptr(HnData) d = hn_tool_open_data(ctx, f->from, f->path, source, inputs, n, &o, error);
    if (d == NULL || f->sizes == NULL || f->given->made || hn_data_synthetic(d))
        return g_steal_pointer(&d);
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "%s are for random data: other data has shapes of its own", f->sizes);
    return NULL;
}

HnData *hn_tool_open_fed_data(HnContext *ctx, const HnModel *m, char **given, const HnToolDataParams *from,
                              const char *path, const char *source, HnValue *const *inputs, int n,
                              const HnDataOptions *options, GError **error)
{
    HnDataOptions o = *options;
    HnToolInputs values;
    HnData *d = NULL;
    if (given == NULL)
        return hn_tool_open_data(ctx, from, path, source, inputs, n, options, error);
    if (!hn_tool_inputs(ctx, m, from, path, options->shapes, given, &values, error))
        return NULL;
    g_autofree HnTensor **tensors = g_new0(HnTensor *, (gsize)n + 1);
    for (int i = 0; i < n; i++)
        tensors[i] = hn_tool_input(&values, inputs[i]->name);
    o.given = tensors;
    if (values.feeds->pdata[0] != NULL)
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "option '--input': '%s' is an initializer, which stays as it is", (char *)values.feeds->pdata[0]);
    else
        d = hn_tool_open_data(ctx, from, path, source, inputs, n, &o, error);
    hn_tool_inputs_clear(&values);
    return d;
}

HnData *hn_tool_open_samples(HnContext *ctx, HnModel *m, char **given, const HnToolDataParams *from, const char *path,
                             const char *source, HnShapes *shapes, GError **error)
{
    g_autoptr(HnSession) s = hn_session_new(m, &hn_backend_null, &(HnSessionOptions){ .budget = ctx->budget }, error);
    if (s == NULL || (!strcmp(source, "-") && !hn_context_take_stdin(ctx, "the samples", error)))
        return NULL;
    int n;
    g_autofree HnValue **inputs = hn_tool_session_inputs(s, &n);
    const HnDataOptions o = { .budget = ctx->budget, .seed = ctx->common.seed, .shapes = shapes, .rows = TRUE };
    return hn_tool_open_fed_data(ctx, m, given, from, path, source, inputs, n, &o, error);
}

void hn_tool_warn_copies(HnContext *ctx, const char *source, int64_t copies)
{
    if (copies == 1)
        hn_context_warn(ctx, "a sample of '%s' is the copy of another, and is left out", source);
    else if (copies > 1)
        hn_context_warn(ctx, "%" PRId64 " samples of '%s' are copies of others, and are left out", copies, source);
}

/* --- -v ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    HnContext *ctx;
    GHashTable *seen;    /* HnNode * */
    const char *lacking; /* a reason that ends in LACKING, of those on ref; NULL: none does */
    guint lacking_nodes;
    const char *without; /* the same of those that another kernel takes */
    guint without_nodes;
    guint nodes;         /* on ref */
    const HnNode *first; /* of them */
} Notes;

#define LACKING " is not installed" /* how kernels refuse for want of a library */

/* Why the step does not run by a library's kernel: it is not there; NULL: for another reason, or it does. */
static const char *lacking_of(const HnStep *s)
{
    const char *lacking = NULL;
    for (guint i = 0; s->refusals && i + 1 < s->refusals->len; i += 2)
        if (g_str_has_suffix(s->refusals->pdata[i + 1], LACKING))
            lacking = s->refusals->pdata[i + 1];
    return lacking;
}

static void note_step(const HnStep *s, G_GNUC_UNUSED int depth, gpointer data)
{
    Notes *notes = data;
    if (!s->node || !g_hash_table_add(notes->seen, (gpointer)s->node))
        return;
    const char *lacking = lacking_of(s);
    if (s->kernel != NULL) {
        notes->without = lacking != NULL ? lacking : notes->without;
        notes->without_nodes += lacking != NULL;
        return;
    }
    notes->first = notes->nodes++ == 0 ? s->node : notes->first;
    hn_context_note(notes->ctx, 1, "node '%s' (%s) runs on ref", hn_node_label(s->node), s->node->op_type);
    for (guint i = 0; s->refusals && i + 1 < s->refusals->len; i += 2)
        hn_context_note(notes->ctx, 2, "node '%s': not %s: %s", hn_node_label(s->node),
                        (const char *)s->refusals->pdata[i], (const char *)s->refusals->pdata[i + 1]);
    if (lacking != NULL) {
        notes->lacking = lacking;
        notes->lacking_nodes++;
    }
}

static void note_unrecorded(const HnStep *s, const char *why, gpointer data)
{
    if (s->node != NULL && s->kernel != NULL) /* of those without a kernel it is said that they run on ref */
        hn_context_note(data, 1, "node '%s' (%s) is not recorded: %s", hn_node_label(s->node), s->node->op_type, why);
}

void hn_tool_note_refs(HnContext *ctx, const HnSession *s, const HnBackend *on)
{
    if (ctx->common.quiet)
        return;
    Notes notes = { .ctx = ctx, .seen = g_hash_table_new(NULL, NULL) };
    hn_session_foreach_step(s, note_step, &notes);
    hn_session_foreach_unrecorded(s, note_unrecorded, ctx);
    if (on->memory != NULL && ctx->common.verbose == 0 && notes.nodes == 1)
        hn_context_warn(ctx, "node '%s' (%s) has no kernel on device '%s' and runs on the host",
                        hn_node_label(notes.first), notes.first->op_type, on->name);
    else if (on->memory != NULL && ctx->common.verbose == 0 && notes.nodes > 1)
        hn_context_warn(ctx, "%u nodes have no kernel on device '%s' and run on the host, the first one is '%s' (%s)",
                        notes.nodes, on->name, hn_node_label(notes.first), notes.first->op_type);
    if (notes.lacking != NULL)
        hn_context_warn(ctx, "%s: %u node%s run%s on slow reference kernels", notes.lacking, notes.lacking_nodes,
                        notes.lacking_nodes == 1 ? "" : "s", notes.lacking_nodes == 1 ? "s" : "");
    if (notes.without != NULL)
        hn_context_note(ctx, 1, "%s: %u node%s run%s on other kernels", notes.without, notes.without_nodes,
                        notes.without_nodes == 1 ? "" : "s", notes.without_nodes == 1 ? "s" : "");
    g_hash_table_unref(notes.seen);
}

gboolean hn_tool_same_shapes(const HnSample *a, const HnSample *b)
{
    for (int i = 0; i < a->n; i++) {
        const HnTensor *x = a->in[i], *y = b->in[i];
        if (!x != !y || (x && (x->ndim != y->ndim || memcmp(x->dims, y->dims, (gsize)x->ndim * sizeof x->dims[0]))))
            return FALSE;
    }
    return TRUE;
}

void hn_tool_note_device(HnContext *ctx, HnModel *m, const HnBackend *on, HnTensor *const *in)
{
    if (on->memory == NULL || ctx->common.quiet)
        return;
    const HnSessionOptions o = { .threads = ctx->common.threads, .budget = ctx->budget, .plan_cache = 1 };
    g_autoptr(HnSession) s = hn_session_new(m, on, &o, NULL);
    if (s != NULL && hn_outputs_plan(s, in, NULL))
        hn_tool_note_refs(ctx, s, on);
}
