#include "data/npz.h"

#include <inttypes.h>
#include <string.h>
#include <zip.h>

#include "base/checked.h"
#include "base/error.h"

#define DOS_EPOCH_DATE ((0 << 9) | (1 << 5) | 1) /* 1 January 1980, where zip's calendar begins */
#define DEFLATE_RATIO 1032                       /* the most bytes that deflate makes of one */
#define PIECE ((gsize)1 << 16)                   /* bytes that are read at once where nobody wants them */
#define LONGEST_NAME 200                         /* of a member, in bytes without ".npy" */

typedef struct {
    HnNpzArray shown;
    zip_uint64_t index;
    zip_uint64_t size; /* of the member, unpacked */
    gboolean stored;
    gboolean checked; /* read to its end once: its bytes are those that its CRC was made of */
    GBytes *whole;    /* of a compressed one, unpacked at its first use; the elements start at 0 */
    HnTensor *rows;   /* of one in Fortran order, once rows of it were asked for */
} Member;

struct HnNpz {
    GBytes *bytes;
    char *name;
    HnBudget *budget;
    zip_t *zip;
    GArray *members; /* Member */
    GHashTable *ids; /* HnNpzArray.name -> index in members + 1 */
    GMutex mutex;    /* of zip, Member.checked, .whole and .rows */
};

static void member_clear(gpointer data)
{
    Member *m = data;
    g_free(m->shown.name);
    if (m->whole)
        g_bytes_unref(m->whole);
    g_clear_pointer(&m->rows, hn_tensor_unref);
}

gboolean hn_npz_is(gconstpointer data, gsize size)
{
    const char *p = data;
    return size >= 4 && p[0] == 'P' && p[1] == 'K' && (p[2] == 3 || p[2] == 5);
}

void hn_npz_free(HnNpz *z)
{
    if (!z)
        return;
    if (z->zip)
        zip_discard(z->zip);
    g_hash_table_unref(z->ids);
    g_array_unref(z->members);
    g_bytes_unref(z->bytes);
    hn_budget_unref(z->budget);
    g_mutex_clear(&z->mutex);
    g_free(z->name);
    g_free(z);
}

static zip_t *open_zip(GBytes *bytes, const char *name, GError **error)
{
    gsize size;
    gconstpointer data = g_bytes_get_data(bytes, &size);
    zip_error_t cause;
    zip_error_init(&cause);
    zip_source_t *source = zip_source_buffer_create(data, size, 0, &cause);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_RDONLY, &cause) : NULL;
    if (!zip) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "cannot read '%s' as an .npz archive: %s", name,
                    zip_error_strerror(&cause));
        if (source)
            zip_source_free(source);
    }
    zip_error_fini(&cause);
    return zip;
}

/* n bytes, to nowhere where data is NULL. */
static gboolean take(zip_file_t *f, guint8 *data, zip_uint64_t n)
{
    g_autofree guint8 *scratch = data == NULL ? g_malloc(PIECE) : NULL;
    while (n > 0) {
        const zip_int64_t got = zip_fread(f, data ? data : scratch, data ? n : MIN(n, PIECE));
        if (got <= 0)
            return FALSE;
        if (data)
            data += got;
        n -= (zip_uint64_t)got;
    }
    return TRUE;
}

/* The first n bytes of a member. Nothing is known of their CRC. The caller holds the mutex. */
static gboolean read_start(HnNpz *z, const Member *m, void *data, gsize n, GError **error)
{
    zip_file_t *f = zip_fopen_index(z->zip, m->index, 0);
    const gboolean ok = f && take(f, data, n);
    if (!ok)
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "cannot read array '%s' of '%s': %s", m->shown.name, z->name,
                    f ? zip_file_strerror(f) : zip_strerror(z->zip));
    if (f)
        zip_fclose(f);
    return ok;
}

/*
 * n bytes of a member from offset on, none of which is damaged: the first time all of it is read, in order, and its end
 * asked for, which is where libzip compares the CRC. The caller holds the mutex.
 */
static gboolean read_member(HnNpz *z, Member *m, zip_uint64_t offset, void *data, gsize n, GError **error)
{
    guint8 end;
    zip_file_t *f = zip_fopen_index(z->zip, m->index, 0);
    gboolean ok = f != NULL;
    if (ok && m->checked)
        ok = (offset == 0 || zip_fseek(f, (zip_int64_t)offset, SEEK_SET) == 0) && (n == 0 || take(f, data, n));
    else if (ok)
        ok = m->checked = take(f, NULL, offset) && (n == 0 || take(f, data, n)) &&
                          take(f, NULL, m->size - offset - n) && zip_fread(f, &end, 1) == 0;
    if (!ok) {
        const int cause = f ? zip_error_code_zip(zip_file_get_error(f)) : zip_error_code_zip(zip_get_error(z->zip));
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "cannot read array '%s' of '%s': %s", m->shown.name, z->name,
                    cause == ZIP_ER_CRC  ? "it is damaged, its bytes are not those of its checksum"
                    : cause == ZIP_ER_OK ? "its size is not that of the archive's directory"
                    : f                  ? zip_file_strerror(f)
                                         : zip_strerror(z->zip));
    }
    if (f)
        zip_fclose(f);
    return ok;
}

static gboolean read_head(HnNpz *z, Member *m, GError **error)
{
    guint8 first[12];
    if (m->size < sizeof first) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "array '%s' of '%s' is cut off", m->shown.name, z->name);
        return FALSE;
    }
    if (!read_start(z, m, first, sizeof first, error))
        return FALSE;
    gsize length = 12 + (first[8] | (gsize)first[9] << 8); /* of version 1.0; longer ones are refused below */
    if (first[6] > 1)
        length = HN_NPY_HEAD;
    length = MIN(MIN(length, HN_NPY_HEAD), m->size);
    g_autofree guint8 *head = g_malloc(length);
    g_autofree char *name = g_strdup_printf("%s:%s", z->name, m->shown.name);
    if (!read_start(z, m, head, length, error) || !hn_npy_parse(head, length, name, &m->shown.head, error))
        return FALSE;
    const zip_uint64_t rest = m->size - m->shown.head.offset;
    if (m->shown.head.bytes > rest) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "array '%s' of '%s' is cut off", m->shown.name, z->name);
        return FALSE;
    }
    if (m->shown.head.bytes < rest) { /* reading to the end has to cost what the array does */
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "array '%s' of '%s' has %" PRIu64 " bytes behind its elements",
                    m->shown.name, z->name, rest - m->shown.head.bytes);
        return FALSE;
    }
    return TRUE;
}

/* A method and a size that can be: what is stored has as many bytes in the file, deflate makes so many of one at most.
 */
static gboolean check_sizes(const HnNpz *z, const zip_stat_t *st, GError **error)
{
    if (st->comp_method != ZIP_CM_STORE && st->comp_method != ZIP_CM_DEFLATE) {
        g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                    "'%s' is compressed by method %d, and hone reads stored and deflated arrays", z->name,
                    st->comp_method);
        return FALSE;
    }
    const zip_uint64_t most = g_bytes_get_size(z->bytes), ratio = st->comp_method == ZIP_CM_STORE ? 1 : DEFLATE_RATIO;
    if (st->size > G_MAXINT64 || st->comp_size > most || st->size / ratio > st->comp_size) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is cut off", z->name);
        return FALSE;
    }
    return TRUE;
}

static gboolean add_member(HnNpz *z, zip_uint64_t index, GError **error)
{
    const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    zip_stat_t st;
    if (zip_stat_index(z->zip, index, 0, &st) != 0 || (st.valid & needed) != needed) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "cannot read '%s' as an .npz archive: %s", z->name,
                    zip_strerror(z->zip));
        return FALSE;
    }
    if (!g_str_has_suffix(st.name, ".npy"))
        return TRUE;
    Member m = { .index = index, .size = st.size, .stored = st.comp_method == ZIP_CM_STORE };
    if (!check_sizes(z, &st, error))
        return FALSE;
    g_autofree char *valid = g_utf8_make_valid(st.name, -1);
    m.shown.name = g_strndup(valid, strlen(valid) - strlen(".npy"));
    if (g_hash_table_contains(z->ids, m.shown.name)) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds two arrays '%s'", z->name, m.shown.name);
        g_free(m.shown.name);
        return FALSE;
    }
    if (!read_head(z, &m, error)) {
        g_free(m.shown.name);
        return FALSE;
    }
    g_array_append_val(z->members, m);
    g_hash_table_insert(z->ids, m.shown.name, GUINT_TO_POINTER(z->members->len));
    return TRUE;
}

HnNpz *hn_npz_open(GBytes *bytes, const char *name, HnBudget *budget, GError **error)
{
    zip_t *zip = open_zip(bytes, name, error);
    if (!zip)
        return NULL;
    g_autoptr(HnNpz) z = g_new0(HnNpz, 1);
    z->zip = zip;
    z->bytes = g_bytes_ref(bytes);
    z->name = g_strdup(name);
    z->budget = hn_budget_ref(budget);
    z->members = g_array_new(FALSE, TRUE, sizeof(Member));
    g_array_set_clear_func(z->members, member_clear);
    z->ids = g_hash_table_new(g_str_hash, g_str_equal);
    g_mutex_init(&z->mutex);
    zip_int64_t n = zip_get_num_entries(zip, 0);
    for (zip_int64_t i = 0; i < n; i++)
        if (!add_member(z, (zip_uint64_t)i, error))
            return NULL;
    if (z->members->len == 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' holds no arrays", name);
        return NULL;
    }
    return g_steal_pointer(&z);
}

int hn_npz_count(const HnNpz *z)
{
    return (int)z->members->len;
}

const HnNpzArray *hn_npz_array(const HnNpz *z, int i)
{
    return &g_array_index(z->members, Member, i).shown;
}

/* What an array of this name is called as a member: no path, whoever unpacks the archive; see the header. */
static char *member_name(const char *name)
{
    GString *s = g_string_new(NULL);
    const char *valid;
    g_utf8_validate(name, -1, &valid);
    for (const char *p = name; *p != '\0'; p++) {
        if (p > valid) /* behind the byte that was wrong */
            g_utf8_validate(p, -1, &valid);
        if (p == valid || g_ascii_iscntrl(*p) || strchr("/\\%", *p) != NULL || (p == name && *p == '.'))
            g_string_append_printf(s, "%%%02X", (guint8)*p);
        else
            g_string_append_c(s, *p);
    }
    if (s->len > LONGEST_NAME) {
        g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, name, -1);
        const char *cut = g_utf8_find_prev_char(s->str, s->str + LONGEST_NAME - 17); /* no half of a character */
        g_string_truncate(s, (gsize)(cut - s->str));
        g_string_append_printf(s, "%%~%.16s", hash);
    }
    return g_string_free(s, FALSE);
}

int hn_npz_find(const HnNpz *z, const char *name)
{
    g_autofree char *written = member_name(name);
    gconstpointer id = g_hash_table_lookup(z->ids, name);
    if (id == NULL)
        id = g_hash_table_lookup(z->ids, written);
    return (int)GPOINTER_TO_UINT(id) - 1;
}

/* The elements of a compressed member. The caller holds the mutex. */
static GBytes *unpack(HnNpz *z, Member *m, GError **error)
{
    if (m->whole)
        return m->whole;
    gsize size = m->shown.head.offset + m->shown.head.bytes; /* at most m->size */
    guint8 *block = hn_budget_alloc(z->budget, size, error);
    if (!block) {
        g_prefix_error(error, "cannot unpack array '%s' of '%s': ", m->shown.name, z->name);
        return NULL;
    }
    if (!read_member(z, m, 0, block, size, error)) {
        hn_budget_free(z->budget, block);
        return NULL;
    }
    g_autoptr(GBytes) all = hn_budget_bytes(z->budget, block, size);
    m->whole = g_bytes_new_from_bytes(all, m->shown.head.offset, m->shown.head.bytes);
    return m->whole;
}

HnTensor *hn_npz_read(HnNpz *z, int i, GError **error)
{
    Member *m = &g_array_index(z->members, Member, i);
    const HnNpyHead *head = &m->shown.head;
    g_autofree char *name = g_strdup_printf("%s:%s", z->name, m->shown.name);
    if (!m->stored) {
        g_mutex_lock(&z->mutex);
        GBytes *whole = unpack(z, m, error);
        g_mutex_unlock(&z->mutex);
        return whole ? hn_npy_tensor(head, whole, 0, name, z->budget, error) : NULL;
    }
    guint8 *block = hn_budget_alloc(z->budget, head->bytes, error);
    if (!block) {
        g_prefix_error(error, "cannot read array '%s' of '%s': ", m->shown.name, z->name);
        return NULL;
    }
    g_autoptr(GBytes) bytes = hn_budget_bytes(z->budget, block, head->bytes);
    g_mutex_lock(&z->mutex);
    gboolean ok = read_member(z, m, head->offset, block, head->bytes, error);
    g_mutex_unlock(&z->mutex);
    return ok ? hn_npy_tensor(head, bytes, 0, name, z->budget, error) : NULL;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

/* Stretches of rows, of an array whose elements begin at byte `start` of its member. */
typedef struct {
    const int64_t *first; /* row at which each begins */
    int64_t n, rows;      /* pieces, rows of each */
    gsize row, size;      /* bytes of a row and of a piece */
    gsize start;
} Pieces;

/* How many pieces from the k-th on lie one behind the other. */
static int64_t run_of_pieces(const Pieces *p, int64_t k)
{
    int64_t end = k + 1;
    while (end < p->n && p->first[end] - p->first[end - 1] == p->rows)
        end++;
    return end - k;
}

static void copy_pieces(const Pieces *p, const guint8 *elements, guint8 *to)
{
    for (int64_t k = 0; p->size > 0 && k < p->n; k++)
        memcpy(to + (gsize)k * p->size, elements + (gsize)p->first[k] * p->row, p->size);
}

/* Of a stored member that was checked. The caller holds the mutex. */
static gboolean read_pieces(HnNpz *z, const Member *m, const Pieces *p, guint8 *to, GError **error)
{
    zip_file_t *f = zip_fopen_index(z->zip, m->index, 0);
    gboolean ok = f != NULL;
    for (int64_t k = 0, run; ok && p->size > 0 && k < p->n; k += run) {
        run = run_of_pieces(p, k);
        const gsize at = p->start + (gsize)p->first[k] * p->row;
        ok = zip_fseek(f, (zip_int64_t)at, SEEK_SET) == 0 &&
             take(f, to + (gsize)k * p->size, (zip_uint64_t)run * p->size);
    }
    if (!ok)
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "cannot read array '%s' of '%s': %s", m->shown.name, z->name,
                    f ? zip_file_strerror(f) : zip_strerror(z->zip));
    if (f)
        zip_fclose(f);
    return ok;
}

/* The elements of an array in Fortran order, whose rows lie apart, in C order: made at the first use. */
static HnTensor *in_c_order(HnNpz *z, int i, GError **error)
{
    Member *m = &g_array_index(z->members, Member, i);
    g_mutex_lock(&z->mutex);
    HnTensor *rows = m->rows ? hn_tensor_ref(m->rows) : NULL;
    g_mutex_unlock(&z->mutex);
    if (rows || !(rows = hn_npz_read(z, i, error)))
        return rows;
    g_mutex_lock(&z->mutex);
    if (!m->rows)
        m->rows = hn_tensor_ref(rows);
    g_mutex_unlock(&z->mutex);
    return rows;
}

static HnTensor *fortran_pieces(HnNpz *z, int i, const HnNpyHead *part, const Pieces *p, GError **error)
{
    g_autoptr(HnTensor) all = in_c_order(z, i, error);
    HnTensor *t = all ? hn_tensor_new_uninit(part->dtype, part->ndim, part->dims, z->budget, error) : NULL;
    const int64_t row = all && all->dims[0] > 0 ? all->n / all->dims[0] : 0; /* in elements */
    for (int64_t k = 0; t && k < p->n; k++)
        hn_tensor_copy_elements(t, k * p->rows * row, all, p->first[k] * row, p->rows * row);
    return t;
}

/* Elements of the file, not converted yet. */
static gboolean fetch_pieces(HnNpz *z, Member *m, const Pieces *p, guint8 *to, GError **error)
{
    GBytes *whole = NULL;
    g_mutex_lock(&z->mutex);
    gboolean ok = TRUE;
    if (m->stored)
        ok = (m->checked || read_member(z, m, 0, NULL, 0, error)) && read_pieces(z, m, p, to, error);
    else
        ok = (whole = unpack(z, m, error)) != NULL;
    g_mutex_unlock(&z->mutex);
    if (whole)
        copy_pieces(p, g_bytes_get_data(whole, NULL), to);
    return ok;
}

static HnTensor *string_pieces(HnNpz *z, Member *m, const HnNpyHead *part, const Pieces *p, GError **error)
{
    g_autofree char *name = g_strdup_printf("%s:%s", z->name, m->shown.name);
    guint8 *raw = hn_budget_alloc(z->budget, part->bytes, error);
    HnTensor *t = raw && fetch_pieces(z, m, p, raw, error) ? hn_npy_strings(part, raw, name, z->budget, error) : NULL;
    hn_budget_free(z->budget, raw);
    return t;
}

HnTensor *hn_npz_pieces(HnNpz *z, int i, const int64_t *first, int64_t n, int64_t rows, GError **error)
{
    Member *m = &g_array_index(z->members, Member, i);
    HnNpyHead part = m->shown.head;
    g_assert(part.ndim > 0 && n >= 0 && rows >= 0);
    for (int64_t k = 0; k < n; k++)
        g_assert(first[k] >= 0 && first[k] <= part.dims[0] - rows);
    const gsize row = part.dims[0] ? part.bytes / (gsize)part.dims[0] : 0;
    const Pieces p = { first, n, rows, row, row * (gsize)rows, part.offset };
    part.n = part.dims[0] ? part.n / part.dims[0] * n * rows : 0;
    part.dims[0] = n * rows;
    part.bytes = p.size * (gsize)n;
    if (part.fortran && part.ndim > 1)
        return fortran_pieces(z, i, &part, &p, error);
    if (part.dtype == HN_STRING)
        return string_pieces(z, m, &part, &p, error);
    g_autoptr(HnTensor) t = hn_tensor_new_uninit(part.dtype, part.ndim, part.dims, z->budget, error);
    if (!t) {
        g_prefix_error(error, "cannot read array '%s' of '%s': ", m->shown.name, z->name);
        return NULL;
    }
    g_autofree char *name = g_strdup_printf("%s:%s", z->name, m->shown.name);
    if (!fetch_pieces(z, m, &p, t->data, error) || !hn_npy_convert(&part, t->data, name, error))
        return NULL;
    return g_steal_pointer(&t);
}

HnTensor *hn_npz_rows(HnNpz *z, int i, int64_t first, int64_t n, GError **error)
{
    return hn_npz_pieces(z, i, &first, 1, n, error);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

static gboolean zip_failed(const char *path, const char *why, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_IO, "cannot write '%s': %s", path, why);
    return FALSE;
}

/* Header and elements, of numbers. */
static GBytes *file_of(const HnTensor *t, HnBudget *budget, GError **error)
{
    g_autoptr(GBytes) header = hn_npy_header(t->dtype, t->ndim, t->dims, error);
    if (!header)
        return NULL;
    gsize size = g_bytes_get_size(header), total = size;
    if (!hn_add_size(size, t->bytes, &total)) {
        g_set_error_literal(error, HN_ERROR, HN_ERROR_BUDGET, "it is too large for an archive");
        return NULL;
    }
    guint8 *block = hn_budget_alloc(budget, total, error);
    if (!block)
        return NULL;
    memcpy(block, g_bytes_get_data(header, NULL), size);
    if (t->bytes)
        memcpy(block + size, t->data, t->bytes);
    return hn_budget_bytes(budget, block, total);
}

/* blocks keeps the bytes until the archive is closed */
static gboolean add_array(zip_t *zip, const char *name, const HnTensor *t, GPtrArray *blocks, HnBudget *budget,
                          GError **error)
{
    GBytes *bytes = t->dtype == HN_STRING ? hn_npy_text_file(t, budget, error) : file_of(t, budget, error);
    if (!bytes) {
        g_prefix_error(error, "output '%s': ", name);
        return FALSE;
    }
    g_ptr_array_add(blocks, bytes);
    gsize total;
    const void *block = g_bytes_get_data(bytes, &total);
    g_autofree char *member = member_name(name), *file = g_strconcat(member, ".npy", NULL);
    zip_source_t *source = zip_source_buffer(zip, block, total, 0);
    zip_int64_t at = source ? zip_file_add(zip, file, source, ZIP_FL_ENC_UTF_8) : -1;
    if (at < 0) {
        zip_source_free(source);
        return zip_failed(file, zip_strerror(zip), error);
    }
    if (zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(zip, (zip_uint64_t)at, 0, DOS_EPOCH_DATE, 0) != 0)
        return zip_failed(file, zip_strerror(zip), error);
    return TRUE;
}

static gboolean copy_out(zip_source_t *archive, const char *path, GError **error)
{
    g_autoptr(HnOutFile) out = hn_out_open(path, error);
    if (!out)
        return FALSE;
    if (zip_source_open(archive) != 0)
        return zip_failed(path, zip_error_strerror(zip_source_error(archive)), error);
    g_autofree guint8 *piece = g_malloc(PIECE);
    zip_int64_t n;
    gboolean ok = TRUE;
    while (ok && (n = zip_source_read(archive, piece, PIECE)) != 0)
        ok = n > 0 ? hn_out_write(out, piece, (gsize)n, error)
                   : zip_failed(path, zip_error_strerror(zip_source_error(archive)), error);
    zip_source_close(archive);
    return ok && hn_out_commit(out, error);
}

gboolean hn_npz_write(const char *path, const char *const *names, HnTensor *const *tensors, int n, HnBudget *budget,
                      GError **error)
{
    g_autoptr(GPtrArray) blocks = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    zip_error_t cause;
    zip_error_init(&cause);
    zip_source_t *archive = zip_source_buffer_create(NULL, 0, 0, &cause);
    zip_t *zip = NULL;
    if (archive) {
        zip_source_keep(archive);
        zip = zip_open_from_source(archive, ZIP_TRUNCATE, &cause);
    }
    gboolean ok = zip || zip_failed(path, zip_error_strerror(&cause), error);
    for (int i = 0; ok && i < n; i++)
        ok = add_array(zip, names[i], tensors[i], blocks, budget, error);
    if (ok && zip_close(zip) != 0)
        ok = zip_failed(path, zip_strerror(zip), error);
    else if (ok)
        zip = NULL;
    if (zip)
        zip_discard(zip);
    else if (archive && !ok)
        zip_source_free(archive); /* the reference that an archive would have taken */
    ok = ok && copy_out(archive, path, error);
    if (archive)
        zip_source_free(archive);
    zip_error_fini(&cause);
    return ok;
}
