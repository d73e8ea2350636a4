#include "data/batches.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"

#define ORDER_STREAM 1   /* of the seed: epochs' orders */
#define AUGMENT_STREAM 2 /* and augmentation */

/* Place for a batch that is being loaded, or was. */
typedef struct {
    int64_t epoch;
    int64_t *index; /* of its samples */
    int n;
    gboolean done;
    HnSample *sample; /* NULL with done: error */
    GError *error;
} Slot;

struct HnBatches {
    const HnData *data;
    HnValue *const *inputs;
    HnBatchesOptions o;
    int64_t samples, per_epoch;
    uint64_t augment_seed;
    uint32_t *order;   /* of samples, in the epoch `ordered` */
    int64_t ordered;   /* -1: none yet */
    int64_t next;      /* batch to hand out, counted from the start of epoch 0 */
    int64_t scheduled; /* batches handed to the pool, counted the same way */
    GThreadPool *pool; /* NULL: none yet */
    Slot *slots;       /* batch k is in slot k % n_slots; without threads there is one */
    int n_slots;
    GMutex mutex; /* of done, sample and error of slots in the pool */
    GCond cond;
};

static gboolean check_set(const HnBatches *b, GError **error)
{
    if (b->per_epoch == 0) {
        const char *source = hn_data_source(b->data);
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                    "'%s' has %" PRId64 " sample%s, which do not fill a batch of %d: a smaller batch is needed",
                    source ? source : "input", b->samples, b->samples == 1 ? "" : "s", b->o.batch);
        return FALSE;
    }
    int n;
    HnValue *const *inputs = hn_data_inputs(b->data, &n);
    return !b->o.augment || hn_augment_check(b->o.augment, inputs, n, error);
}

static uint64_t seed_of(uint64_t seed, uint64_t stream)
{
    const HnRng all = hn_rng(seed);
    HnRng one = hn_rng_split(&all, stream);
    return hn_rng_u64(&one);
}

HnBatches *hn_batches_new(const HnData *d, const HnBatchesOptions *options, GError **error)
{
    g_autoptr(HnBatches) b = g_new0(HnBatches, 1);
    int n;
    b->data = d;
    b->inputs = hn_data_inputs(d, &n);
    b->o = *options;
    b->o.batch = MAX(options->batch, 1);
    b->o.budget = hn_budget_ref(options->budget);
    b->samples = hn_data_count(d);
    b->per_epoch = (b->samples + (options->keep_rest ? b->o.batch - 1 : 0)) / b->o.batch;
    b->augment_seed = seed_of(options->seed, AUGMENT_STREAM);
    b->ordered = -1;
    b->n_slots = options->threads <= 0 ? 1 : options->ahead > 0 ? options->ahead : 2 * options->threads;
    b->slots = g_new0(Slot, (gsize)b->n_slots);
    g_mutex_init(&b->mutex);
    g_cond_init(&b->cond);
    return check_set(b, error) ? g_steal_pointer(&b) : NULL;
}

int64_t hn_batches_per_epoch(const HnBatches *b)
{
    return b->per_epoch;
}

/* --- order ------------------------------------------------------------------------------------------------------- */

static void order_epoch(HnBatches *b, int64_t epoch)
{
    if (!b->o.shuffle || b->ordered == epoch)
        return;
    if (!b->order)
        b->order = g_new(uint32_t, (gsize)b->samples);
    for (int64_t i = 0; i < b->samples; i++)
        b->order[i] = (uint32_t)i;
    const HnRng all = hn_rng(seed_of(b->o.seed, ORDER_STREAM));
    HnRng rng = hn_rng_split(&all, (uint64_t)epoch);
    hn_rng_shuffle(&rng, b->order, (uint32_t)b->samples);
    b->ordered = epoch;
}

/* Batch k, counted from the start of epoch 0, is what s has to load. */
static void slot_begin(HnBatches *b, Slot *s, int64_t k)
{
    s->epoch = k / b->per_epoch;
    order_epoch(b, s->epoch);
    const int64_t first = k % b->per_epoch * b->o.batch;
    s->n = (int)MIN(b->samples - first, b->o.batch);
    if (!s->index)
        s->index = g_new(int64_t, (gsize)MIN(b->o.batch, b->samples));
    for (int i = 0; i < s->n; i++)
        s->index[i] = b->o.shuffle ? b->order[first + i] : first + i;
}

/* --- loading ----------------------------------------------------------------------------------------------------- */

static HnSample *load(const HnBatches *b, const Slot *slot, GError **error)
{
    g_autoptr(HnSample) s = hn_data_load_batch(b->data, slot->index, slot->n, error);
    if (s && b->o.augment &&
        !hn_augment_apply(b->o.augment, b->inputs, s, b->augment_seed, slot->epoch, b->o.budget, error))
        return NULL;
    return g_steal_pointer(&s);
}

static void work(gpointer task, gpointer data)
{
    HnBatches *b = data;
    Slot *slot = task;
    GError *error = NULL;
    HnSample *sample = load(b, slot, &error);
    g_mutex_lock(&b->mutex);
    slot->sample = sample;
    slot->error = error;
    slot->done = TRUE;
    g_cond_signal(&b->cond);
    g_mutex_unlock(&b->mutex);
}

/* Lets all slots be loaded that are free. */
static gboolean schedule(HnBatches *b, GError **error)
{
    if (!b->pool)
        b->pool = g_thread_pool_new(work, b, b->o.threads, FALSE, NULL);
    while (b->scheduled < b->next + b->n_slots) {
        Slot *slot = &b->slots[b->scheduled % b->n_slots];
        slot_begin(b, slot, b->scheduled++);
        gboolean more = g_thread_pool_push(b->pool, slot, NULL);
        if (!more && g_thread_pool_get_num_threads(b->pool) == 0) { /* else the others do the task that is queued */
            g_set_error_literal(error, HN_ERROR, HN_ERROR_BUDGET, "no thread can be had to read samples with");
            return FALSE;
        }
    }
    return TRUE;
}

static HnSample *next_ahead(HnBatches *b, GError **error)
{
    if (!schedule(b, error))
        return NULL;
    Slot *slot = &b->slots[b->next % b->n_slots];
    g_mutex_lock(&b->mutex);
    while (!slot->done)
        g_cond_wait(&b->cond, &b->mutex);
    slot->done = FALSE;
    g_mutex_unlock(&b->mutex);
    if (slot->error)
        g_propagate_error(error, g_steal_pointer(&slot->error));
    return g_steal_pointer(&slot->sample);
}

/* Waits for what is being loaded, and leaves nothing of it. */
static void forget_ahead(HnBatches *b)
{
    if (b->pool)
        g_thread_pool_free(b->pool, TRUE, TRUE);
    b->pool = NULL;
    for (int i = 0; i < b->n_slots; i++) {
        g_clear_pointer(&b->slots[i].sample, hn_sample_free);
        g_clear_error(&b->slots[i].error);
        b->slots[i].done = FALSE;
    }
    b->scheduled = b->next;
}

HnSample *hn_batches_next(HnBatches *b, HnBatchPlace *at, GError **error)
{
    HnSample *s;
    if (at)
        *at = hn_batches_place(b);
    if (b->o.threads > 0) {
        s = next_ahead(b, error);
    } else {
        slot_begin(b, b->slots, b->next);
        s = load(b, b->slots, error);
    }
    if (s)
        b->next++;
    else
        forget_ahead(b);
    return s;
}

HnBatchPlace hn_batches_place(const HnBatches *b)
{
    return (HnBatchPlace){ b->next / b->per_epoch, b->next % b->per_epoch };
}

gboolean hn_batches_go(HnBatches *b, HnBatchPlace place, GError **error)
{
    int64_t next;
    if (place.epoch < 0 || place.batch < 0 || place.batch > b->per_epoch ||
        __builtin_mul_overflow(place.epoch, b->per_epoch, &next) || next > G_MAXINT64 / 2) {
        g_set_error(error, HN_ERROR, HN_ERROR_VALUE,
                    "there is no batch %" PRId64 " of epoch %" PRId64 ": an epoch has %" PRId64, place.batch,
                    place.epoch, b->per_epoch);
        return FALSE;
    }
    b->next = next + place.batch;
    forget_ahead(b);
    return TRUE;
}

void hn_batches_free(HnBatches *b)
{
    if (!b)
        return;
    forget_ahead(b);
    for (int i = 0; i < b->n_slots; i++)
        g_free(b->slots[i].index);
    g_mutex_clear(&b->mutex);
    g_cond_clear(&b->cond);
    hn_budget_unref(b->o.budget);
    g_free(b->slots);
    g_free(b->order);
    g_free(b);
}

/* --- what may be wrong with a batch ------------------------------------------------------------------------------ */

/* Of the sample that element i of n, all of a tensor of the batch, belongs to. */
static char *name_at(const HnData *d, const HnSample *s, int64_t i, int64_t n)
{
    const int64_t each = MAX(n / s->count, 1);
    return hn_data_name(d, s->which[MIN(i / each, s->count - 1)]);
}

static gboolean check_labels(const HnSample *s, const HnLabels *labels, GError **error)
{
    const HnTensor *t = s->label;
    if (!t) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' has no label", s->name);
    } else if (!hn_dtype_in(t->dtype, HN_T_INTS)) {
        g_set_error(error, HN_ERROR, HN_ERROR_TYPE, "the label of '%s' is %s, and numbers of classes are integers",
                    s->name, hn_dtype_name(t->dtype));
    } else if (t->n != labels->count) {
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE,
                    "%" PRId64 " sample%s from '%s' on have %" PRId64 " label%s, and %" PRId64 " are needed", s->count,
                    s->count == 1 ? "" : "s", s->name, t->n, t->n == 1 ? "" : "s", labels->count);
    } else {
        return TRUE;
    }
    return FALSE;
}

static gboolean check_range(const HnData *d, const HnSample *s, const HnTensor *t, const HnLabels *labels,
                            GError **error)
{
    const int64_t *x = t->data;
    for (int64_t i = 0; i < t->n; i++) {
        if ((x[i] >= 0 && x[i] < labels->classes) || (labels->ignores && x[i] == labels->ignored))
            continue;
        g_autofree char *name = name_at(d, s, i, t->n);
        g_set_error(error, HN_ERROR, HN_ERROR_VALUE,
                    "'%s' has label %" PRId64 ", and the model has %" PRId64 " classes, 0 to %" PRId64, name, x[i],
                    labels->classes, labels->classes - 1);
        return FALSE;
    }
    return TRUE;
}

HnTensor *hn_batch_labels(const HnData *d, const HnSample *s, const HnLabels *labels, HnBudget *budget, GError **error)
{
    if (!check_labels(s, labels, error))
        return NULL;
    g_autoptr(HnTensor) t = NULL;
    if (s->label->dtype == HN_I64 && !s->label->misaligned) {
        t = hn_tensor_ref(s->label);
    } else {
        t = hn_tensor_new_uninit(HN_I64, s->label->ndim, s->label->dims, budget, error);
        for (int64_t i = 0; t && i < t->n; i++)
            ((int64_t *)t->data)[i] = hn_tensor_get_i64(s->label, i);
    }
    return t && check_range(d, s, t, labels, error) ? g_steal_pointer(&t) : NULL;
}

/* Exponents of ones: infinite or no number. Any at all, without a look at which. */
static gboolean any_not_finite(const float *x, int64_t n)
{
    guint32 bad = 0;
    for (int64_t i = 0; i < n; i++) {
        guint32 bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & 0x7f800000) == 0x7f800000;
    }
    return bad != 0;
}

/* The first element that is not finite, -1: none. */
static int64_t find_not_finite(const HnTensor *t)
{
    if (!t || !hn_dtype_in(t->dtype, HN_T_FLOATS))
        return -1;
    if (t->dtype == HN_F32 && !t->misaligned && !any_not_finite(t->data, t->n))
        return -1;
    for (int64_t i = 0; i < t->n; i++)
        if (!isfinite(hn_tensor_get_f64(t, i)))
            return i;
    return -1;
}

gboolean hn_batch_finite(const HnData *d, const HnSample *s, GError **error)
{
    int n;
    HnValue *const *inputs = hn_data_inputs(d, &n);
    for (int k = 0; k <= s->n; k++) {
        const HnTensor *t = k < s->n ? s->in[k] : s->label;
        const int64_t i = find_not_finite(t);
        if (i < 0)
            continue;
        const double x = hn_tensor_get_f64(t, i);
        const int64_t each = MAX(t->n / s->count, 1);
        g_autofree char *name = name_at(d, s, i, t->n);
        g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "element %" PRId64 " of %s%s%s of '%s' is %s", i % each,
                    k < s->n ? "input '" : "the label", k < s->n ? inputs[k]->name : "", k < s->n ? "'" : "", name,
                    isnan(x) ? "no number"
                    : x > 0  ? "infinite"
                             : "-infinite");
        return FALSE;
    }
    return TRUE;
}
