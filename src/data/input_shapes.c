#include "data/input_shapes.h"

#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"
#include "data/arrays.h"

struct HnShapes {
    GHashTable *dims;   /* name -> int64_t * */
    GHashTable *shapes; /* name -> GArray * of int64_t */
};

HnShapes *hn_shapes_new(void)
{
    HnShapes *s = g_new0(HnShapes, 1);
    s->dims = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    s->shapes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
    return s;
}

HnShapes *hn_shapes_copy(const HnShapes *s)
{
    HnShapes *c = hn_shapes_new();
    GHashTableIter iter;
    gpointer name, value;
    if (!s)
        return c;
    g_hash_table_iter_init(&iter, s->dims);
    while (g_hash_table_iter_next(&iter, &name, &value))
        hn_shapes_set_dim(c, name, *(const int64_t *)value);
    g_hash_table_iter_init(&iter, s->shapes);
    while (g_hash_table_iter_next(&iter, &name, &value))
        g_hash_table_insert(c->shapes, g_strdup(name), g_array_ref(value)); /* never changed once parsed */
    return c;
}

void hn_shapes_set(HnShapes *s, const char *input, const int64_t *dims, int rank)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_array_append_vals(list, dims, (guint)rank);
    g_hash_table_replace(s->shapes, g_strdup(input), list);
}

void hn_shapes_free(HnShapes *s)
{
    if (!s)
        return;
    g_hash_table_unref(s->dims);
    g_hash_table_unref(s->shapes);
    g_free(s);
}

void hn_shapes_set_dim(HnShapes *s, const char *name, int64_t n)
{
    int64_t *value = g_new(int64_t, 1);
    *value = n;
    g_hash_table_replace(s->dims, g_strdup(name), value);
}

/* The first one would be dropped. */
static gboolean twice(const char *option, const char *name, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '%s' names '%s' twice", option, name);
    return FALSE;
}

gboolean hn_shapes_parse_dim(HnShapes *s, const char *text, GError **error)
{
    const char *eq = strrchr(text, '=');
    gint64 n;
    if (!eq || eq == text) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--dim': '%s' is not of the form NAME=N", text);
        return FALSE;
    }
    if (!hn_parse_int(eq + 1, 0, G_MAXINT64, &n, error)) {
        g_prefix_error(error, "option '--dim': ");
        return FALSE;
    }
    g_autofree char *name = g_strndup(text, (gsize)(eq - text));
    if (g_hash_table_contains(s->dims, name))
        return twice("--dim", name, error);
    hn_shapes_set_dim(s, name, n);
    return TRUE;
}

/* "1x3x224" onto dims; empty text adds nothing */
static gboolean add_dims(const char *text, GArray *dims, GError **error)
{
    if (!*text)
        return TRUE;
    g_auto(GStrv) parts = g_strsplit(text, "x", -1);
    for (char **p = parts; *p; p++) {
        gint64 n;
        if (!hn_parse_int(*p, 0, G_MAXINT64, &n, error)) {
            g_prefix_error(error, "option '--shapes': ");
            return FALSE;
        }
        int64_t d = n;
        g_array_append_val(dims, d);
    }
    return TRUE;
}

static gboolean bad_shapes(const char *text, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                "option '--shapes': '%s' is not of the form NAME:1x3x224x224[,NAME:...]", text);
    return FALSE;
}

gboolean hn_shapes_parse(HnShapes *s, const char *text, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    GArray *dims = NULL; /* of the input named last */
    if (!*parts)
        return bad_shapes(text, error);
    for (char **p = parts; *p; p++) {
        const char *colon = strrchr(*p, ':'); /* names may hold colons: "x:0:1x3" */
        if (colon && colon > *p) {
            g_autofree char *name = g_strndup(*p, (gsize)(colon - *p));
            if (g_hash_table_contains(s->shapes, name))
                return twice("--shapes", name, error);
            dims = g_array_new(FALSE, FALSE, sizeof(int64_t));
            g_hash_table_insert(s->shapes, g_steal_pointer(&name), dims);
        } else if (!dims || colon || !**p) {
            return bad_shapes(text, error);
        }
        if (!add_dims(colon ? colon + 1 : *p, dims, error))
            return FALSE;
        if (dims->len > HN_MAX_RANK) {
            g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--shapes': '%s' has more than %d dimensions", text,
                        HN_MAX_RANK);
            return FALSE;
        }
    }
    return TRUE;
}

/* --- against a model --------------------------------------------------------------------------------------------- */

/* Whether sym speaks of name: it is the name, or an expression that has no value without it. */
static gboolean sym_uses(const char *sym, const char *name)
{
    gsize n = strlen(name);
    for (const char *p = strstr(sym, name); p; p = strstr(p + 1, name)) {
        gboolean starts = p == sym || !(g_ascii_isalnum(p[-1]) || p[-1] == '_');
        if (starts && !(g_ascii_isalnum(p[n]) || p[n] == '_'))
            return TRUE;
    }
    return FALSE;
}

/* Names of dimensions: some input's shape uses it, else FALSE with all of them in known (borrowed). */
static gboolean is_dim(const char *name, HnValue *const *inputs, int n, GPtrArray *known)
{
    for (int i = 0; i < n; i++) {
        const HnType *t = hn_input_tensor_type(inputs[i], NULL);
        for (int d = 0; t && d < t->rank; d++) {
            const char *sym = t->dims[d].sym;
            if (sym && sym_uses(sym, name))
                return TRUE;
            if (sym)
                g_ptr_array_add(known, (gpointer)sym);
        }
    }
    return FALSE;
}

static gboolean is_input(const char *name, HnValue *const *inputs, int n, GPtrArray *known)
{
    for (int i = 0; i < n; i++) {
        if (!strcmp(inputs[i]->name, name))
            return TRUE;
        g_ptr_array_add(known, inputs[i]->name);
    }
    return FALSE;
}

/* known gets a NULL at its end. */
static char *nearest(const char *name, GPtrArray *known)
{
    g_ptr_array_add(known, NULL);
    return hn_nearest_words(name, (const char *const *)known->pdata);
}

gboolean hn_shapes_check(const HnShapes *s, HnValue *const *inputs, int n, GError **error)
{
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, s->dims);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        g_autoptr(GPtrArray) known = g_ptr_array_new();
        if (is_dim(name, inputs, n, known))
            continue;
        g_autofree char *words = nearest(name, known);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--dim': no input has a dimension '%s'%s%s", (char *)name,
                    words, known->len > 1 ? "" : " with a name");
        return FALSE;
    }
    g_hash_table_iter_init(&iter, s->shapes);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        g_autoptr(GPtrArray) known = g_ptr_array_new();
        if (is_input(name, inputs, n, known))
            continue;
        g_autofree char *words = nearest(name, known);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, "option '--shapes': the model has no input '%s'%s", (char *)name,
                    words);
        return FALSE;
    }
    return TRUE;
}

static int64_t dim_value(const HnShapes *s, HnDim d)
{
    int64_t n;
    if (d.known)
        return MAX(d.n, 0);
    const int64_t *given = s && d.sym ? g_hash_table_lookup(s->dims, d.sym) : NULL;
    if (given)
        return *given;
    return s && d.sym && hn_dim_eval(d, s->dims, &n) && n >= 0 ? n : 1;
}

int hn_shapes_dims(const HnShapes *s, const HnValue *input, int64_t *dims, GError **error)
{
    const HnType *t = hn_input_tensor_type(input, NULL);
    const GArray *given = s ? g_hash_table_lookup(s->shapes, input->name) : NULL;
    if (!t) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED, "input '%s' is not a tensor", input->name);
        return -1;
    }
    if (given) {
        for (guint d = 0; d < given->len; d++)
            dims[d] = g_array_index(given, int64_t, d);
        return (int)given->len;
    }
    if (t->rank < 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "the model does not say how many dimensions input '%s' has: name them with '--shapes'",
                    input->name);
        return -1;
    }
    if (t->rank > HN_MAX_RANK) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "input '%s' has more than %d dimensions", input->name,
                    HN_MAX_RANK);
        return -1;
    }
    for (int d = 0; d < t->rank; d++)
        dims[d] = dim_value(s, t->dims[d]);
    return t->rank;
}

gboolean hn_shapes_chosen(const HnShapes *s, const HnValue *input)
{
    const HnType *t = hn_input_tensor_type(input, NULL);
    int64_t n;
    if (!s || !t)
        return FALSE;
    for (int d = 0; d < MAX(t->rank, 1); d++)
        if (hn_shapes_says(s, input, d, &n))
            return TRUE;
    return FALSE;
}

gboolean hn_shapes_says(const HnShapes *s, const HnValue *input, int axis, int64_t *n)
{
    const HnType *t = hn_input_tensor_type(input, NULL);
    const GArray *given = g_hash_table_lookup(s->shapes, input->name);
    if (given) {
        *n = (guint)axis < given->len ? g_array_index(given, int64_t, axis) : 0;
        return (guint)axis < given->len;
    }
    if (!t || axis >= t->rank || t->dims[axis].known || !t->dims[axis].sym)
        return FALSE;
    const int64_t *dim = g_hash_table_lookup(s->dims, t->dims[axis].sym);
    if (dim)
        *n = *dim;
    return dim || (hn_dim_eval(t->dims[axis], s->dims, n) && *n >= 0);
}
