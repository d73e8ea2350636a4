#include <dlfcn.h>
#include <string.h>

#include "api/hone.h"
#include "base/error.h"
#include "config.h"
#include "backends.h"
#include "onnx/onnx.h"

/* Ports of one side of a model, and what their fields point to. */
typedef struct {
    guint n;
    HonePort *port;
} Ports;

struct HoneModel {
    gint ref;
    HnModel *graph;
    HnEngine *engine;
    HnBudget *budget; /* NULL: unlimited */
    HnSessionOptions session;
    Ports in, out;
};

struct HoneSession {
    HoneModel *model;
    HnSession *session;
    HnTensor **in, **out; /* of the last run */
    GPtrArray *texts;     /* char *, and arrays of them: outputs that are strings */
};

/* --- errors ------------------------------------------------------------------------------------------------------ */

static GPrivate last_error = G_PRIVATE_INIT(g_free);

const char *hone_error(void)
{
    const char *text = g_private_get(&last_error);
    return text != NULL ? text : "";
}

const char *hone_version(void)
{
    return HN_VERSION;
}

/* Takes the error. */
static HoneStatus fail(GError *error)
{
    const int status = hn_error_exit_status(error);
    g_private_replace(&last_error, g_strdup(error->message));
    g_error_free(error);
    switch (status) {
    case HONE_USAGE:
    case HONE_UNSUPPORTED:
    case HONE_BUDGET:
        return (HoneStatus)status;
    default:
        return HONE_INVALID;
    }
}

static HoneStatus misused(const char *text)
{
    return fail(g_error_new_literal(HN_ERROR, HN_ERROR_USAGE, text));
}

/* --- the program's own OpenMP ------------------------------------------------------------------------------------ */

/* oneDNN's threads are set through OpenMP, which may be the calling program's, too: its setting stays as it was. */
typedef struct {
    int (*get)(void);
    void (*set)(int n);
    int threads;
} Kept;

static Kept keep_threads(void)
{
    Kept k = { 0 };
    *(void **)&k.get = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    *(void **)&k.set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (k.get != NULL && k.set != NULL)
        k.threads = k.get();
    return k;
}

static void restore_threads(const Kept *k)
{
    if (k->threads > 0)
        k->set(k->threads);
}

/* --- models ------------------------------------------------------------------------------------------------------ */

static void fill_port(HonePort *p, const HnValue *v)
{
    const HnType *t = v->type;
    const gboolean tensor = t != NULL && t->kind == HN_TYPE_TENSOR;
    const int rank = tensor ? t->rank : -1;
    int64_t *dims = g_new0(int64_t, (gsize)MAX(rank, 1));
    const char **symbols = g_new0(const char *, (gsize)MAX(rank, 1));
    for (int i = 0; i < rank; i++) {
        dims[i] = t->dims[i].known ? t->dims[i].n : -1;
        symbols[i] = t->dims[i].sym;
    }
    *p = (HonePort){
        .name = v->name,
        .type = tensor ? (HoneType)t->dtype : HONE_NONE,
        .rank = rank,
        .dims = dims,
        .symbols = symbols,
    };
}

static void clear_ports(Ports *p)
{
    for (guint i = 0; i < p->n; i++) {
        g_free((gpointer)p->port[i].dims);
        g_free((gpointer)p->port[i].symbols);
    }
    g_free(p->port);
}

static void fill_ports(HoneModel *m, const HnSession *s)
{
    m->in.n = (guint)hn_session_n_inputs(s);
    m->out.n = (guint)hn_session_n_outputs(s);
    m->in.port = g_new0(HonePort, m->in.n + 1);
    m->out.port = g_new0(HonePort, m->out.n + 1);
    for (guint i = 0; i < m->in.n; i++)
        fill_port(&m->in.port[i], hn_session_input(s, (int)i));
    for (guint k = 0; k < m->out.n; k++)
        fill_port(&m->out.port[k], hn_session_output(s, (int)k));
}

static HoneModel *model_ref(HoneModel *m)
{
    g_atomic_int_inc(&m->ref);
    return m;
}

void hone_close(HoneModel *m)
{
    if (m == NULL || !g_atomic_int_dec_and_test(&m->ref))
        return;
    clear_ports(&m->in);
    clear_ports(&m->out);
    hn_engine_unref(m->engine);
    if (m->graph != NULL)
        hn_model_free(m->graph);
    hn_budget_unref(m->budget);
    g_free(m);
}

/* The fields that the caller's version of the structure has. */
static HoneOptions options_of(const HoneOptions *given)
{
    HoneOptions o = { .size = sizeof o };
    if (given != NULL)
        memcpy(&o, given, MIN(given->size, sizeof o));
    return o;
}

static HoneModel *model_new(const HoneOptions *o)
{
    HoneModel *m = g_new0(HoneModel, 1);
    m->ref = 1;
    m->budget = o->memory_limit > 0 ? hn_budget_new(o->memory_limit) : NULL;
    m->session = (HnSessionOptions){
        .threads = MAX(o->threads, 0),
        .strict = o->strict != 0,
        .strict_math = o->strict_math != 0,
        .budget = m->budget,
    };
    return m;
}

/* The graph is there: all that runs of it share. */
static gboolean model_ready(HoneModel *m, const char *device, GError **error)
{
    const HnBackend *backend = hn_backend_find(device, error);
    g_autoptr(HnDevice) d = backend != NULL ? hn_device_new(backend, error) : NULL;
    if (d == NULL)
        return FALSE;
    m->engine = hn_engine_new(m->graph, d, &(HnEngineOptions){ .budget = m->budget }, error);
    g_autoptr(HnSession) s = m->engine != NULL ? hn_session_new_on(m->engine, &m->session, error) : NULL;
    if (s != NULL)
        fill_ports(m, s);
    return s != NULL;
}

/* bytes: the model, or NULL: it is in the file at path; folder is where external data of the bytes lies. */
static HoneStatus open_model(const char *path, GBytes *bytes, const char *folder, const HoneOptions *options,
                             HoneModel **model)
{
    const HoneOptions o = options_of(options);
    HoneModel *m = model_new(&o);
    const HnOnnxOptions read = { .budget = m->budget };
    GError *error = NULL;
    const Kept kept = keep_threads();
    m->graph =
        bytes != NULL ? hn_onnx_read_bytes(bytes, folder, &read, &error) : hn_onnx_read_file(path, &read, &error);
    const gboolean ok = m->graph != NULL && model_ready(m, o.device, &error);
    restore_threads(&kept);
    if (ok) {
        *model = m;
        return HONE_OK;
    }
    hone_close(m);
    return fail(error);
}

HoneStatus hone_open(const char *path, const HoneOptions *options, HoneModel **model)
{
    if (model == NULL)
        return misused("a model needs a place to be put in");
    *model = NULL;
    if (path == NULL)
        return misused("a model needs a path");
    return open_model(path, NULL, NULL, options, model);
}

HoneStatus hone_open_bytes(const void *bytes, size_t n, const char *folder, const HoneOptions *options,
                           HoneModel **model)
{
    if (model == NULL)
        return misused("a model needs a place to be put in");
    *model = NULL;
    if (bytes == NULL)
        return misused("a model needs bytes");
    g_autoptr(GBytes) copy = g_bytes_new(bytes, n);
    return open_model(NULL, copy, folder, options, model);
}

size_t hone_n_inputs(const HoneModel *m)
{
    return m->in.n;
}

size_t hone_n_outputs(const HoneModel *m)
{
    return m->out.n;
}

const HonePort *hone_input(const HoneModel *m, size_t k)
{
    return k < m->in.n ? &m->in.port[k] : NULL;
}

const HonePort *hone_output(const HoneModel *m, size_t k)
{
    return k < m->out.n ? &m->out.port[k] : NULL;
}

/* --- sessions ---------------------------------------------------------------------------------------------------- */

HoneStatus hone_session_new(HoneModel *m, HoneSession **session)
{
    GError *error = NULL;
    if (session == NULL)
        return misused("a session needs a place to be put in");
    *session = NULL;
    if (m == NULL)
        return misused("a session needs a model");
    HnSession *s = hn_session_new_on(m->engine, &m->session, &error);
    if (s == NULL)
        return fail(error);
    *session = g_new0(HoneSession, 1);
    **session = (HoneSession){
        .model = model_ref(m),
        .session = s,
        .in = g_new0(HnTensor *, m->in.n + 1),
        .out = g_new0(HnTensor *, m->out.n + 1),
        .texts = g_ptr_array_new_with_free_func(g_free),
    };
    return HONE_OK;
}

/* What the last run left. */
static void clear_run(HoneSession *s)
{
    for (guint i = 0; i < s->model->in.n; i++)
        g_clear_pointer(&s->in[i], hn_tensor_unref);
    for (guint k = 0; k < s->model->out.n; k++)
        g_clear_pointer(&s->out[k], hn_tensor_unref);
    g_ptr_array_set_size(s->texts, 0);
}

void hone_session_free(HoneSession *s)
{
    if (s == NULL)
        return;
    clear_run(s);
    hn_session_free(s->session);
    g_ptr_array_unref(s->texts);
    g_free(s->in);
    g_free(s->out);
    hone_close(s->model);
    g_free(s);
}

/* --- runs -------------------------------------------------------------------------------------------------------- */

static gboolean bad_tensor(const char *name, GError **error, const char *what)
{
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "input '%s': %s", name, what);
    return FALSE;
}

static HnTensor *texts_in(const HoneTensor *t, HnBudget *budget, GError **error)
{
    HnTensor *x = hn_tensor_new(HN_STRING, t->rank, t->dims, budget, error);
    const char *const *texts = t->data;
    for (int64_t i = 0; x != NULL && i < x->n; i++) {
        const char *text = texts[i] != NULL ? texts[i] : "";
        g_autoptr(GBytes) bytes = g_bytes_new(text, strlen(text));
        hn_tensor_set_string(x, i, bytes);
    }
    return x;
}

/* The caller's elements as a tensor, copied only where they lie at an odd address. */
static gboolean tensor_in(const char *name, const HoneTensor *t, HnBudget *budget, HnTensor **x, GError **error)
{
    const HnDtype dtype = (HnDtype)t->type;
    int64_t n = 0;
    size_t bytes = 0;
    if (dtype == HN_UNDEFINED) /* not given: the session says whether it has to be */
        return TRUE;
    if (t->rank < 0 || t->rank > HN_MAX_RANK || (t->rank > 0 && t->dims == NULL))
        return bad_tensor(name, error, "a rank is from 0 to 32, and needs as many dimensions");
    if (!hn_dims_count(t->rank, t->dims, &n))
        return bad_tensor(name, error, "its dimensions are negative, or too large");
    if (dtype == HN_STRING ? __builtin_mul_overflow((size_t)n, sizeof(char *), &bytes)
                           : !hn_dtype_bytes(dtype, n, &bytes))
        return bad_tensor(name, error, "there is no such type of elements, or too many of them");
    if (t->bytes != bytes || (t->data == NULL && bytes > 0)) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "input '%s': %zu bytes were given, its shape needs %zu", name,
                    t->data != NULL ? t->bytes : 0, bytes);
        return FALSE;
    }
    if (dtype == HN_STRING)
        return (*x = texts_in(t, budget, error)) != NULL;
    static const max_align_t nothing;
    HnTensor *given = hn_tensor_new_borrowed(dtype, t->rank, t->dims, t->data ? (void *)t->data : (void *)&nothing);
    const gsize align = MAX(hn_dtype_size(dtype), 1);
    if ((guintptr)given->data % align == 0) {
        *x = given;
        return TRUE;
    }
    *x = hn_tensor_copy(given, budget, error);
    hn_tensor_unref(given);
    return *x != NULL;
}

static void text_out(HoneSession *s, const HnTensor *t, HoneTensor *out)
{
    char **texts = g_new0(char *, (gsize)t->n + 1);
    g_ptr_array_add(s->texts, texts);
    for (int64_t i = 0; i < t->n; i++) {
        GBytes *bytes = hn_tensor_get_string(t, i);
        texts[i] = g_strndup(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
        g_ptr_array_add(s->texts, texts[i]);
    }
    out->data = texts;
    out->bytes = (size_t)t->n * sizeof *texts;
}

static gboolean tensor_out(HoneSession *s, guint k, HoneTensor *out, GError **error)
{
    const HnTensor *t = s->out[k];
    *out = (HoneTensor){ HONE_NONE, 0, NULL, NULL, 0 };
    if (t == NULL)
        return TRUE;
    if (hn_tensor_is_list(t)) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "output '%s' is no tensor", s->model->out.port[k].name);
        return FALSE;
    }
    *out = (HoneTensor){ (HoneType)t->dtype, t->ndim, t->dims, t->data, t->bytes };
    if (t->dtype == HN_STRING)
        text_out(s, t, out);
    return TRUE;
}

static gboolean run(HoneSession *s, const HoneTensor *inputs, HoneTensor *outputs, GError **error)
{
    const HoneModel *m = s->model;
    clear_run(s);
    for (guint i = 0; i < m->in.n; i++)
        if (!tensor_in(m->in.port[i].name, &inputs[i], m->budget, &s->in[i], error))
            return FALSE;
    const Kept kept = keep_threads();
    const gboolean ok = hn_session_run(s->session, s->in, s->out, error);
    restore_threads(&kept);
    for (guint k = 0; ok && k < m->out.n; k++)
        if (!tensor_out(s, k, &outputs[k], error))
            return FALSE;
    return ok;
}

HoneStatus hone_run(HoneSession *s, const HoneTensor *inputs, HoneTensor *outputs)
{
    GError *error = NULL;
    if (s == NULL || (inputs == NULL && s->model->in.n > 0) || outputs == NULL)
        return misused("a run needs a session, its inputs and room for its outputs");
    return run(s, inputs, outputs, &error) ? HONE_OK : fail(error);
}
