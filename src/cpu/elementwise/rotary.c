/*
 * RotaryEmbedding of f32.
 */
#include "op/rotary.h"

#include <string.h>

#include "cpu/core/cpu_kernel.h"

static const char *form_of(const HnStep *s, HnRotaryForm *f)
{
    return hn_rotary_form(s->params, hn_cpu_in(s, 0), hn_cpu_in(s, 1), hn_cpu_in(s, 2), hn_cpu_in(s, 3), f);
}

static const char *rotary_reject(const HnStep *s)
{
    HnRotaryForm f;
    for (int i = 0; i < 3; i++) {
        if (hn_cpu_in(s, i)->dtype != HN_F32)
            return "only f32";
        if (hn_cpu_in(s, i)->n == 0)
            return "nothing to compute";
    }
    return form_of(s, &f);
}

static gboolean rotary_prepare(HnStep *s, GError **error)
{
    (void)error;
    HnRotaryForm *f = g_new0(HnRotaryForm, 1);
    s->state = f;
    (void)form_of(s, f);
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
    const HnRotaryForm *f = s->state;
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
