#include "run/constants.h"

#include <string.h>

#include "base/half.h"

#define CHUNK 1024
#define INPUTS HN_CONSTANT_INPUTS

typedef enum { ALIGNED, WIDE, OF_NODE } Form;

/* Elements, made or not, and what they are made of. */
typedef struct {
    Form form;
    const HnNode *node; /* OF_NODE */
    HnTensor *in[INPUTS];
    HnTensor *standin; /* OF_NODE */
    HnTensor *made;    /* NULL: not at present, OF_NODE only */
} Derived;

struct HnConstants {
    HnBudget *budget;
    GHashTable *by_source; /* Derived.in[0] -> GPtrArray * of Derived *, owned */
    GHashTable *by_made;   /* Derived.made or Derived.standin -> Derived * */
};

static void derived_free(gpointer data)
{
    Derived *d = data;
    for (int i = 0; i < INPUTS; i++)
        hn_tensor_unref(d->in[i]);
    hn_tensor_unref(d->standin);
    hn_tensor_unref(d->made);
    g_free(d);
}

HnConstants *hn_constants_new(HnBudget *budget)
{
    HnConstants *c = g_new0(HnConstants, 1);
    c->budget = budget != NULL ? hn_budget_ref(budget) : NULL;
    c->by_source = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref);
    c->by_made = g_hash_table_new(NULL, NULL);
    return c;
}

void hn_constants_free(HnConstants *c)
{
    if (c == NULL)
        return;
    g_hash_table_unref(c->by_made);
    g_hash_table_unref(c->by_source);
    if (c->budget != NULL)
        hn_budget_unref(c->budget);
    g_free(c);
}

/* Small tensors are often made anew for each plan, and stand for the same. */
static gboolean same_input(const HnTensor *a, const HnTensor *b)
{
    return a == b || (a != NULL && b != NULL && a->data != NULL && b->data != NULL && a->bytes <= HN_TENSOR_SMALL &&
                      hn_tensor_equal(a, b));
}

/* NULL: there is none. */
static Derived *find(const HnConstants *c, Form form, const HnNode *node, HnTensor *const *in, int n_in)
{
    const GPtrArray *list = g_hash_table_lookup(c->by_source, in[0]);
    for (guint i = 0; list != NULL && i < list->len; i++) {
        Derived *d = list->pdata[i];
        gboolean same = d->form == form && d->node == node;
        for (int k = 1; k < n_in && same; k++)
            same = same_input(d->in[k], in[k]);
        if (same)
            return d;
    }
    return NULL;
}

static Derived *add(HnConstants *c, Form form, HnTensor *const *in, int n_in)
{
    GPtrArray *list = g_hash_table_lookup(c->by_source, in[0]);
    Derived *d = g_new0(Derived, 1);
    d->form = form;
    for (int i = 0; i < n_in; i++)
        d->in[i] = in[i] != NULL ? hn_tensor_ref(in[i]) : NULL;
    if (list == NULL)
        g_hash_table_insert(c->by_source, in[0], list = g_ptr_array_new_with_free_func(derived_free));
    g_ptr_array_add(list, d);
    return d;
}

/* Takes t, which may be NULL: an error. A new reference for the caller. */
static HnTensor *keep(HnConstants *c, Form form, HnTensor *from, HnTensor *t)
{
    if (t == NULL)
        return NULL;
    Derived *d = add(c, form, &from, 1);
    d->made = t;
    g_hash_table_insert(c->by_made, t, d);
    return hn_tensor_ref(t);
}

HnTensor *hn_constants_aligned(HnConstants *c, HnTensor *t, GError **error)
{
    if (!t->misaligned)
        return hn_tensor_ref(t);
    const Derived *d = find(c, ALIGNED, NULL, &t, 1);
    return d != NULL ? hn_tensor_ref(d->made) : keep(c, ALIGNED, t, hn_tensor_copy(t, c->budget, error));
}

HnTensor *hn_constants_source(const HnConstants *c, HnTensor *t)
{
    const Derived *d = g_hash_table_lookup(c->by_made, t);
    return d != NULL && d->form == ALIGNED ? d->in[0] : t;
}

static HnTensor *widened(const HnTensor *from, HnBudget *budget, GError **error)
{
    HnTensor *t = hn_tensor_new_uninit(HN_F32, from->ndim, from->dims, budget, error);
    for (int64_t i = 0; t != NULL && i < from->n; i += CHUNK) {
        uint16_t part[CHUNK]; /* the file's elements may lie at any address */
        const int64_t n = MIN(from->n - i, CHUNK);
        memcpy(part, (const char *)from->data + i * (int64_t)sizeof *part, (size_t)n * sizeof *part);
        (from->dtype == HN_F16 ? hn_f16_to_f32_n : hn_bf16_to_f32_n)((float *)t->data + i, part, (size_t)n);
    }
    return t;
}

HnTensor *hn_constants_wide(HnConstants *c, HnTensor *half, GError **error)
{
    const Derived *d = find(c, WIDE, NULL, &half, 1);
    return d != NULL ? hn_tensor_ref(d->made) : keep(c, WIDE, half, widened(half, c->budget, error));
}

HnTensor *hn_constants_standin(HnConstants *c, const HnNode *n, HnTensor *const *in)
{
    const int n_in = (int)n->in->len;
    Derived *d = find(c, OF_NODE, n, in, n_in);
    if (d == NULL) {
        d = add(c, OF_NODE, in, n_in);
        d->node = n;
        d->standin = hn_tensor_new_borrowed(HN_U8, 0, NULL, NULL);
        g_hash_table_insert(c->by_made, d->standin, d);
    }
    return hn_tensor_ref(d->standin);
}

HnTensor *hn_constants_made(const HnConstants *c, const HnTensor *standin)
{
    const Derived *d = g_hash_table_lookup(c->by_made, standin);
    return d->made != NULL ? hn_tensor_ref(d->made) : NULL;
}

void hn_constants_note_made(HnConstants *c, const HnTensor *standin, HnTensor *t)
{
    Derived *d = g_hash_table_lookup(c->by_made, standin);
    d->made = hn_tensor_ref(t);
    g_hash_table_insert(c->by_made, t, d);
}

static gboolean held_elsewhere(const HnTensor *t)
{
    return t != NULL && g_atomic_int_get(&t->ref) > 1;
}

/* Forgets what nobody else holds of d; TRUE: all of it. */
static gboolean trim(HnConstants *c, Derived *d)
{
    if (d->made != NULL && !held_elsewhere(d->made)) {
        g_hash_table_remove(c->by_made, d->made);
        g_clear_pointer(&d->made, hn_tensor_unref);
    }
    if (d->made != NULL || held_elsewhere(d->standin))
        return FALSE;
    if (d->standin != NULL)
        g_hash_table_remove(c->by_made, d->standin);
    return TRUE;
}

static void remove_derived(HnConstants *c, Derived *d)
{
    GPtrArray *list = g_hash_table_lookup(c->by_source, d->in[0]);
    if (list->len == 1)
        g_hash_table_remove(c->by_source, d->in[0]);
    else
        g_ptr_array_remove_fast(list, d);
}

void hn_constants_unref(HnConstants *c, HnTensor *t)
{
    Derived *d = g_hash_table_lookup(c->by_made, t);
    hn_tensor_unref(t);
    if (d != NULL && trim(c, d))
        remove_derived(c, d);
}

void hn_constants_sweep(HnConstants *c)
{
    g_autoptr(GList) lists = g_hash_table_get_values(c->by_source); /* each goes with the last that it has */
    for (GList *l = lists; l != NULL; l = l->next) {
        GPtrArray *list = l->data;
        for (guint i = list->len; i-- > 0;) {
            const gboolean last = list->len == 1;
            if (trim(c, list->pdata[i]))
                remove_derived(c, list->pdata[i]);
            if (last)
                break;
        }
    }
}
