#include "train/checkpoint.h"

#include <string.h>

#include "base/error.h"
#include "base/jsonread.h"

#define ABOUT "about"
#define SCHEMA "hone.checkpoint/1"
#define MOST_ABOUT ((gsize)64 << 20)

HnCheckpoint *hn_checkpoint_new(void)
{
    HnCheckpoint *c = g_new0(HnCheckpoint, 1);
    c->about = json_object_new();
    c->names = g_ptr_array_new_with_free_func(g_free);
    c->tensors = g_ptr_array_new_with_free_func((GDestroyNotify)hn_tensor_unref);
    return c;
}

void hn_checkpoint_free(HnCheckpoint *c)
{
    if (c == NULL)
        return;
    json_object_unref(c->about);
    g_ptr_array_unref(c->names);
    g_ptr_array_unref(c->tensors);
    hn_npz_free(c->file);
    g_free(c);
}

/* Several elements share a byte, which no .npy file can say: the bytes are what is kept. */
static gboolean as_bytes(const HnTensor *t)
{
    return hn_dtype_bits(t->dtype) < 8;
}

void hn_checkpoint_add(HnCheckpoint *c, const char *kind, const char *name, HnTensor *t)
{
    const int64_t bytes = (int64_t)t->bytes;
    HnTensor *kept = as_bytes(t) ? hn_tensor_new(HN_U8, 1, &bytes, NULL, NULL) : hn_tensor_ref(t);
    if (kept != t)
        memcpy(kept->data, t->data, t->bytes);
    g_ptr_array_add(c->names, g_strconcat(kind, ":", name, NULL));
    g_ptr_array_add(c->tensors, kept);
}

static HnTensor *from_bytes(const HnCheckpoint *c, int at, const HnTensor *like, GError **error)
{
    g_autoptr(HnTensor) bytes = hn_npz_read(c->file, at, error);
    HnTensor *t = bytes != NULL ? hn_tensor_new(like->dtype, like->ndim, like->dims, NULL, error) : NULL;
    if (t != NULL)
        memcpy(t->data, bytes->data, t->bytes);
    return t;
}

HnTensor *hn_checkpoint_find(const HnCheckpoint *c, const char *kind, const char *name, const HnTensor *like,
                             GError **error)
{
    g_autofree char *full = g_strconcat(kind, ":", name, NULL);
    const int at = hn_npz_find(c->file, full);
    const HnNpyHead *head = at >= 0 ? &hn_npz_array(c->file, at)->head : NULL;
    if (head != NULL && as_bytes(like) && head->dtype == HN_U8 && head->n == (int64_t)like->bytes)
        return from_bytes(c, at, like, error);
    if (head != NULL && head->dtype == like->dtype && head->ndim == like->ndim && head->n == like->n &&
        memcmp(head->dims, like->dims, (gsize)like->ndim * sizeof *head->dims) == 0)
        return hn_npz_read(c->file, at, error);
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "the checkpoint does not have '%s' as this model has it", name);
    return NULL;
}

HnTensor *hn_checkpoint_get(const HnCheckpoint *c, const char *kind, const char *name)
{
    g_autofree char *full = g_strconcat(kind, ":", name, NULL);
    const int at = hn_npz_find(c->file, full);
    return at >= 0 ? hn_npz_read(c->file, at, NULL) : NULL;
}

gboolean hn_checkpoint_write(const HnCheckpoint *c, const char *path, HnBudget *budget, GError **error)
{
    json_object_set_string_member(c->about, "schema", SCHEMA);
    g_autofree char *text = hn_json_line(c->about);
    const int64_t n = (int64_t)strlen(text);
    g_autoptr(HnTensor) about = hn_tensor_new_borrowed(HN_U8, 1, &n, text);
    g_autoptr(GPtrArray) names = g_ptr_array_new(), tensors = g_ptr_array_new();
    g_ptr_array_add(names, (gpointer)ABOUT);
    g_ptr_array_add(tensors, about);
    for (guint i = 0; i < c->names->len; i++) {
        g_ptr_array_add(names, c->names->pdata[i]);
        g_ptr_array_add(tensors, c->tensors->pdata[i]);
    }
    return hn_npz_write(path, (const char *const *)names->pdata, (HnTensor *const *)tensors->pdata, (int)names->len,
                        budget, error);
}

static gboolean read_about(HnCheckpoint *c, HnNpz *z, const char *path, HnBudget *budget, GError **error)
{
    const int at = hn_npz_find(z, ABOUT);
    g_autoptr(HnTensor) t = at >= 0 ? hn_npz_read(z, at, NULL) : NULL;
    g_autoptr(JsonNode) root =
        t != NULL && t->dtype == HN_U8 ? hn_json_read(t->data, t->bytes, MOST_ABOUT, budget, NULL) : NULL;
    JsonObject *o = root != NULL ? hn_json_object(root) : NULL;
    if (o != NULL && g_strcmp0(hn_json_string_at(o, "schema"), SCHEMA) == 0) {
        json_object_unref(c->about);
        c->about = json_object_ref(o);
        return TRUE;
    }
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no checkpoint of training", path);
    return FALSE;
}

HnCheckpoint *hn_checkpoint_read(const char *path, HnBudget *budget, GError **error)
{
    g_autoptr(HnCheckpoint) c = hn_checkpoint_new();
    g_autoptr(GBytes) bytes = hn_file_bytes(path, budget, error);
    g_autoptr(HnNpz) z = bytes != NULL ? hn_npz_open(bytes, path, budget, error) : NULL;
    if (z == NULL || !read_about(c, z, path, budget, error))
        return NULL;
    c->file = g_steal_pointer(&z);
    return g_steal_pointer(&c);
}
