#include "run/attention_forms.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, Y = 3 };

static const char *misfit(const HnAttentionForm f[4])
{
    const HnAttentionForm *q = &f[Q], *k = &f[K], *v = &f[V];
    if (k->batch != q->batch || k->size != q->size || k->heads == 0 || q->heads % k->heads != 0)
        return "the shapes of queries and keys do not fit";
    return v->batch != k->batch || v->heads != k->heads || v->length != k->length
               ? "the shapes of keys and values do not fit"
               : NULL;
}

static gboolean is_cache(const HnTensor *t, const HnAttentionForm *f, int64_t past)
{
    const int64_t dims[] = { f->batch, f->heads, past, f->size };
    return t == NULL || hn_tensor_has_dims(t, 4, dims);
}

const char *hn_attention_forms(const HnStep *s, HnAttentionForm f[4], int64_t *past)
{
    const HnAttention *p = s->params;
    const HnTensor *cache = hn_step_in(s, PAST_K);
    if (hn_step_out(s, 0) == NULL)
        return "no results are wanted";
    if (!hn_attention_operand(hn_step_in(s, Q), p->q_heads, &f[Q]) ||
        !hn_attention_operand(hn_step_in(s, K), p->kv_heads, &f[K]) ||
        !hn_attention_operand(hn_step_in(s, V), p->kv_heads, &f[V]) ||
        !hn_attention_operand(hn_step_out(s, 0), p->q_heads, &f[Y]))
        return "the shapes do not fit";
    *past = cache != NULL && cache->ndim == 4 ? cache->dims[2] : 0;
    if (!is_cache(cache, &f[K], *past) || !is_cache(hn_step_in(s, PAST_V), &f[V], *past))
        return "the shape of a cache does not fit";
    return misfit(f);
}

/* Its rank is that of the results, at most: those of 3 have no heads. */
static const char *mask_steps(const HnTensor *m, int ndim, const HnAttentionForm f[4], int64_t mask[4])
{
    const int64_t want[] = { f[Q].batch, f[Q].heads, f[Q].length, f[K].length };
    int64_t step = 1;
    if (m->ndim > ndim)
        return "the mask does not fit";
    for (int i = 3, at = m->ndim - 1; i >= 0; i--) {
        const int64_t d = (ndim == 4 || i != 1) && at >= 0 ? m->dims[at--] : 1;
        if (d != 1 && d != want[i])
            return "the mask does not fit";
        mask[i] = d != 1 ? step : 0;
        step *= d;
    }
    return NULL;
}

const char *hn_fused_attention_forms(const HnStep *s, HnAttentionForm f[4], int64_t mask[4])
{
    const HnFusedAttention *p = s->params;
    const HnTensor *y = hn_step_out(s, 0), *m = hn_step_in(s, MASK);
    for (int i = Q; i <= V; i++) {
        const HnTensor *t = hn_step_in(s, i);
        if (t->ndim != y->ndim || (t->ndim != 3 && t->ndim != 4))
            return "the ranks differ";
        f[i] = hn_attention_form(t->ndim, t->dims, (p->by_token >> i & 1) != 0);
    }
    f[Y] = hn_attention_form(y->ndim, y->dims, (p->by_token & HN_BY_TOKEN_Y) != 0);
    for (int i = 0; i < 4; i++)
        mask[i] = 0;
    const char *reason = misfit(f);
    return reason != NULL || m == NULL ? reason : mask_steps(m, y->ndim, f, mask);
}

const char *hn_fused_attention_keep(const HnStep *s, const HnAttentionForm f[4], int64_t keep[4])
{
    const HnTensor *k = hn_step_in(s, HN_FUSED_KEEP);
    for (int i = 0; i < 4; i++)
        keep[i] = 0;
    return k == NULL ? NULL : mask_steps(k, hn_step_out(s, 0)->ndim, f, keep);
}
