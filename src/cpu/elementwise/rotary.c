/*
 * RotaryEmbedding of f32.
 */
#include "op/rotary.h"

#include <string.h>

#include "cpu/core/cpu_kernel.h"

/* Sizes, and strides of x in elements. */
typedef struct {
    int64_t batch, heads, length, head, half;
    int64_t s_batch, s_head, s_token;
} Form;

static gboolean form_of(const HnStep *s, Form *f)
{
    const HnRotary *p = s->params;
    const HnTensor *x = hn_cpu_in(s, 0), *ids = hn_cpu_in(s, 3);
    if (x->ndim == 4) {
        *f = (Form){ .batch = x->dims[0], .heads = x->dims[1], .length = x->dims[2], .head = x->dims[3] };
        f->s_token = f->head;
        f->s_head = f->length * f->head;
        f->s_batch = f->heads * f->s_head;
    } else if (x->ndim == 3 && p->heads > 0 && x->dims[2] % p->heads == 0) {
        *f = (Form){ .batch = x->dims[0], .heads = p->heads, .length = x->dims[1], .head = x->dims[2] / p->heads };
        f->s_token = x->dims[2];
        f->s_head = f->head;
        f->s_batch = f->length * f->s_token;
    } else {
        return FALSE;
    }
    const int64_t dim = p->dim > 0 ? p->dim : f->head;
    if (dim > f->head || dim % 2 != 0)
        return FALSE;
    f->half = dim / 2;
    for (int i = 1; i < 3; i++) {
        const HnTensor *t = hn_cpu_in(s, i);
        if (ids != NULL ? t->ndim != 2 || t->dims[1] != f->half || t->dims[0] != hn_cpu_in(s, 1)->dims[0]
                        : t->ndim != 3 || t->dims[0] != f->batch || t->dims[1] != f->length || t->dims[2] != f->half)
            return FALSE;
    }
    return ids == NULL || (ids->ndim == 2 && ids->dims[0] == f->batch && ids->dims[1] == f->length);
}

static const char *rotary_reject(const HnStep *s)
{
    Form f;
    for (int i = 0; i < 3; i++) {
        if (hn_cpu_in(s, i)->dtype != HN_F32)
            return "only f32";
        if (hn_cpu_in(s, i)->n == 0)
            return "nothing to compute";
    }
    return form_of(s, &f) ? NULL : "the shapes do not fit";
}

static gboolean rotary_prepare(HnStep *s, GError **error)
{
    (void)error;
    Form *f = g_new0(Form, 1);
    s->state = f;
    form_of(s, f);
    return TRUE;
}

static void rotary_release(HnStep *s)
{
    g_clear_pointer(&s->state, g_free);
}

/* Elements u and v of pairs become c * u - s * v and s * u + c * v. */
static void turn_halves(float *restrict y, const float *x, const float *c, const float *s, int64_t half)
{
    for (int64_t i = 0; i < half; i++) {
        const float u = x[i], v = x[i + half];
        y[i] = c[i] * u - s[i] * v;
        y[i + half] = s[i] * u + c[i] * v;
    }
}

static void turn_neighbours(float *restrict y, const float *x, const float *c, const float *s, int64_t half)
{
    for (int64_t i = 0; i < half; i++) {
        const float u = x[2 * i], v = x[2 * i + 1];
        y[2 * i] = c[i] * u - s[i] * v;
        y[2 * i + 1] = s[i] * u + c[i] * v;
    }
}

static gboolean check_ids(const HnStep *s, GError **error)
{
    const HnTensor *ids = hn_cpu_in(s, 3);
    const int64_t places = hn_cpu_in(s, 1)->dims[0];
    for (int64_t i = 0; ids != NULL && i < ids->n; i++) {
        const int64_t id = ((const int64_t *)ids->data)[i];
        if (id >= 0 && id < places)
            continue;
        g_set_error(error, HN_ERROR, HN_ERROR_VALUE, "node '%s': position %" PRId64 " is outside [0, %" PRId64 ")",
                    hn_node_label(s->node), id, places);
        return FALSE;
    }
    return TRUE;
}

static gboolean rotary_run(HnStep *s, GError **error)
{
    const HnRotary *p = s->params;
    const Form *f = s->state;
    const int64_t *ids = hn_cpu_in(s, 3) != NULL ? hn_cpu_data(&s->in[3]) : NULL;
    const float *x = hn_cpu_data(&s->in[0]), *cosine = hn_cpu_data(&s->in[1]), *sine = hn_cpu_data(&s->in[2]);
    float *y = hn_cpu_data(&s->out[0]);
    if (!check_ids(s, error))
        return FALSE;
    for (int64_t b = 0; b < f->batch; b++)
        for (int64_t h = 0; h < f->heads; h++)
            for (int64_t t = 0; t < f->length; t++) {
                const int64_t at = b * f->s_batch + h * f->s_head + t * f->s_token, place = b * f->length + t;
                const int64_t row = (ids != NULL ? ids[place] : place) * f->half;
                (p->interleaved ? turn_neighbours : turn_halves)(y + at, x + at, cosine + row, sine + row, f->half);
                memcpy(y + at + 2 * f->half, x + at + 2 * f->half, (gsize)(f->head - 2 * f->half) * sizeof(float));
            }
    return TRUE;
}

static const HnKernel rotary_kernel = {
    .name = "cpu.rotaryembedding",
    .reject = rotary_reject,
    .prepare = rotary_prepare,
    .run = rotary_run,
    .release = rotary_release,
};

const HnKernel *const hn_cpu_rotaryembedding[] = { &rotary_kernel, NULL };
