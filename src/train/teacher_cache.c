#include "train/teacher_cache.h"

#include <string.h>

#include "base/jsonread.h"
#include "data/batches.h"
#include "train/checkpoint.h"

#define KIND "teacher" /* in the file */
#define NO_ROW (-1)

struct HnTeacherCache {
    HnTeacherCacheOptions o;
    HnTensor **rows; /* [n]: one row for each sample of the data */
    int64_t *place;  /* of the source -> row */
    int64_t n_places;
    gboolean was_read;
};

void hn_teacher_cache_free(HnTeacherCache *c)
{
    if (c == NULL)
        return;
    for (guint i = 0; i < c->o.n; i++)
        g_clear_pointer(&c->rows[i], hn_tensor_unref);
    g_free(c->rows);
    g_free(c->place);
    g_free(c);
}

gboolean hn_teacher_cache_is_of(const HnTeacherCache *c, const HnData *d)
{
    return c != NULL && c->o.data == d;
}

gsize hn_teacher_cache_bytes(const HnTeacherCache *c)
{
    gsize bytes = 0;
    for (guint i = 0; i < c->o.n; i++)
        bytes += c->rows[i]->bytes;
    return bytes;
}

gboolean hn_teacher_cache_was_read(const HnTeacherCache *c)
{
    return c->was_read;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static void note_places(HnTeacherCache *c, const HnSample *s, int64_t first)
{
    for (int64_t k = 0; k < s->count; k++) {
        if (s->which[k] >= c->n_places) {
            const int64_t n = MAX(2 * c->n_places, s->which[k] + 1);
            c->place = g_renew(int64_t, c->place, (gsize)n);
            for (int64_t i = c->n_places; i < n; i++)
                c->place[i] = NO_ROW;
            c->n_places = n;
        }
        c->place[s->which[k]] = first + k;
    }
}

/* Memory for all rows, by those of the first batch; *fits FALSE: there is to be none. */
static gboolean open_rows(HnTeacherCache *c, HnTensor *const *out, int64_t count, gboolean *fits, GError **error)
{
    const int64_t all = hn_data_count(c->o.data);
    double bytes = 0;
    for (guint i = 0; i < c->o.n; i++) {
        *fits = *fits && out[i]->ndim > 0 && out[i]->dims[0] == count;
        bytes += (double)out[i]->bytes / (double)count * (double)all;
    }
    *fits = *fits && bytes <= (double)c->o.most;
    for (guint i = 0; *fits && i < c->o.n; i++) {
        int64_t dims[HN_MAX_RANK];
        memcpy(dims, out[i]->dims, (gsize)out[i]->ndim * sizeof *dims);
        dims[0] = all;
        if ((c->rows[i] = hn_tensor_new_uninit(out[i]->dtype, out[i]->ndim, dims, c->o.budget, error)) == NULL)
            return FALSE;
    }
    return TRUE;
}

/* FALSE: another shape than the first batch has. */
static gboolean put(HnTeacherCache *c, HnTensor *const *out, int64_t first, int64_t count)
{
    for (guint i = 0; i < c->o.n; i++) {
        const gsize row = c->rows[i]->bytes / (gsize)hn_data_count(c->o.data);
        if (out[i]->dtype != c->rows[i]->dtype || out[i]->bytes != row * (gsize)count)
            return FALSE;
        memcpy((char *)c->rows[i]->data + (gsize)first * row, out[i]->data, out[i]->bytes);
    }
    return TRUE;
}

static gboolean ask(HnTeacherCache *c, const HnSample *s, int64_t first, gboolean *fits, GError **error)
{
    g_autofree HnTensor **out = g_new0(HnTensor *, c->o.n + 1);
    gboolean ok = hn_forward_run(c->o.teacher, s->in, out, error);
    if (ok && c->rows[0] == NULL)
        ok = open_rows(c, out, s->count, fits, error);
    if (ok && *fits)
        *fits = put(c, out, first, s->count);
    for (guint i = 0; i < c->o.n; i++)
        g_clear_pointer(&out[i], hn_tensor_unref);
    return ok;
}

/* Where the batch begins that has sample `at`: the last one is as long as the others, since kernels may round otherwise
 * for another number of rows. */
static int64_t begin(const HnTeacherCache *c, int64_t at)
{
    return MAX(MIN(at, hn_data_count(c->o.data) - c->o.batch), 0);
}

static HnSample *load(const HnTeacherCache *c, int64_t first, GError **error)
{
    const int n = (int)MIN(hn_data_count(c->o.data) - first, c->o.batch);
    g_autofree int64_t *index = g_new(int64_t, (gsize)n);
    for (int k = 0; k < n; k++)
        index[k] = first + k;
    return hn_data_load_batch(c->o.data, index, n, error);
}

static gboolean make(HnTeacherCache *c, gboolean *fits, GError **error)
{
    const int64_t all = hn_data_count(c->o.data);
    for (int64_t at = 0; *fits && at < all; at += c->o.batch) {
        const int64_t first = begin(c, at);
        g_autoptr(HnSample) s = load(c, first, error);
        if (s == NULL || !hn_batch_finite(c->o.data, s, error) || !ask(c, s, first, fits, error))
            return FALSE;
        note_places(c, s, first);
        hn_progress_tell(c->o.progress, "the teacher's results", (guint64)at, (guint64)all);
        if (hn_progress_stop(c->o.progress, error))
            return FALSE;
    }
    return TRUE;
}

/* --- a file ------------------------------------------------------------------------------------------------------- */

static gboolean take(HnTeacherCache *c, const HnCheckpoint *file, guint i)
{
    g_autofree char *name = g_strdup_printf("%u", i);
    c->rows[i] = hn_checkpoint_get(file, KIND, name);
    return c->rows[i] != NULL && c->rows[i]->ndim > 0 && c->rows[i]->dims[0] == hn_data_count(c->o.data);
}

/* Places without running anything. */
static gboolean find_places(HnTeacherCache *c, GError **error)
{
    for (int64_t at = 0; at < hn_data_count(c->o.data); at++) {
        g_autoptr(HnSample) s = hn_data_load(c->o.data, at, error);
        if (s == NULL)
            return FALSE;
        note_places(c, s, at);
    }
    return TRUE;
}

/* A file that is not there, or of something else, is none. */
static gboolean read_file(HnTeacherCache *c, GError **error)
{
    if (c->o.path == NULL || !g_file_test(c->o.path, G_FILE_TEST_EXISTS))
        return TRUE;
    g_autoptr(HnCheckpoint) file = hn_checkpoint_read(c->o.path, c->o.budget, NULL);
    if (file == NULL || g_strcmp0(hn_json_string_at(file->about, "key"), c->o.key) != 0)
        return TRUE;
    gboolean all = TRUE;
    for (guint i = 0; i < c->o.n && all; i++)
        all = take(c, file, i);
    for (guint i = 0; i < c->o.n && !all; i++)
        g_clear_pointer(&c->rows[i], hn_tensor_unref);
    c->was_read = all;
    return !all || find_places(c, error);
}

static gboolean save(const HnTeacherCache *c, GError **error)
{
    if (c->o.path == NULL)
        return TRUE;
    g_autoptr(HnCheckpoint) file = hn_checkpoint_new();
    json_object_set_string_member(file->about, "key", c->o.key);
    for (guint i = 0; i < c->o.n; i++) {
        g_autofree char *name = g_strdup_printf("%u", i);
        hn_checkpoint_add(file, KIND, name, c->rows[i]);
    }
    return hn_checkpoint_write(file, c->o.path, c->o.budget, error);
}

gboolean hn_teacher_cache_new(const HnTeacherCacheOptions *o, HnTeacherCache **made, GError **error)
{
    g_autoptr(HnTeacherCache) c = g_new0(HnTeacherCache, 1);
    gboolean fits = TRUE;
    *made = NULL;
    *c = (HnTeacherCache){ .o = *o, .rows = g_new0(HnTensor *, o->n + 1) };
    if (!read_file(c, error) || (!c->was_read && (!make(c, &fits, error) || (fits && !save(c, error)))))
        return FALSE;
    if (fits)
        *made = g_steal_pointer(&c);
    return TRUE;
}

HnTensor *hn_teacher_cache_rows(const HnTeacherCache *c, const HnSample *s, guint i, GError **error)
{
    int64_t dims[HN_MAX_RANK];
    const HnTensor *all = c->rows[i];
    const gsize row = all->bytes / (gsize)hn_data_count(c->o.data);
    memcpy(dims, all->dims, (gsize)all->ndim * sizeof *dims);
    dims[0] = s->count;
    HnTensor *y = hn_tensor_new_uninit(all->dtype, all->ndim, dims, c->o.budget, error);
    for (int64_t k = 0; y != NULL && k < s->count; k++) {
        const int64_t place = s->which[k] < c->n_places ? c->place[s->which[k]] : NO_ROW;
        g_assert(place != NO_ROW); /* whoever asks passes samples of the cache's data */
        memcpy((char *)y->data + (gsize)k * row, (const char *)all->data + (gsize)place * row, row);
    }
    return y;
}
