#include "train/update_rule.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

#define WHAT "option '--optimizer'"

double hn_lr_factor(const HnLrSchedule *s, int64_t t)
{
    if (t <= s->warmup)
        return (double)t / (double)(s->warmup + 1);
    const int64_t left = s->steps - s->warmup;
    const double at = left > 1 ? CLAMP((double)(t - s->warmup - 1) / (double)(left - 1), 0, 1) : 0;
    switch (s->curve) {
    case HN_LR_STEP:
        return at < 1.0 / 3 ? 1 : at < 2.0 / 3 ? 0.1 : 0.01;
    case HN_LR_COSINE:
        return s->last + (1 - s->last) * (1 + cos(G_PI * at)) / 2;
    case HN_LR_LINEAR:
        return 1 - (1 - s->last) * at;
    case HN_LR_CONSTANT:
        break;
    }
    return 1;
}

gboolean hn_lr_curve_parse(const char *text, HnLrCurve *curve, GError **error)
{
    static const char *const words[] = { "constant", "step", "cosine", "linear" };
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(text, words[i]) == 0) {
            *curve = (HnLrCurve)i;
            return TRUE;
        }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE,
                "option '--schedule': '%s' is none of constant, step, cosine and linear", text);
    return FALSE;
}

void hn_update_rule_free(HnUpdateRule *o)
{
    if (o == NULL)
        return;
    hn_terms_free(o->terms);
    g_free(o);
}

static const HnOp *find_optimizer(const char *name, GError **error)
{
    g_autoptr(GString) all = g_string_new(NULL);
    for (const HnOp *const *op = hn_op_all(); *op != NULL; op++) {
        if ((*op)->optimizer.name == NULL)
            continue;
        if (strcmp((*op)->optimizer.name, name) == 0)
            return *op;
        g_string_append_printf(all, "%s%s", all->len > 0 ? ", " : "", (*op)->optimizer.name);
    }
    g_set_error(error, HN_ERROR, HN_ERROR_USAGE, WHAT ": there is no optimizer '%s'; there are %s", name, all->str);
    return NULL;
}

HnUpdateRule *hn_update_rule_parse(const char *text, GError **error)
{
    static const char *const own[] = { "lr", NULL };
    g_autoptr(HnUpdateRule) o = g_new0(HnUpdateRule, 1);
    if ((o->terms = hn_terms_parse(WHAT, text, strlen(text), error)) == NULL ||
        (o->op = find_optimizer(o->terms->name, error)) == NULL)
        return NULL;
    const char *const *lists[] = { own, o->op->optimizer.floats, o->op->optimizer.ints };
    if (!hn_terms_check(o->terms, WHAT, lists, 3, error))
        return NULL;
    const double lr = hn_terms_get(o->terms, "lr");
    o->lr = isnan(lr) ? (double)o->op->optimizer.lr : lr;
    if (o->lr <= 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_USAGE, WHAT ": a learning rate of %g is not above 0", o->lr);
        return NULL;
    }
    return g_steal_pointer(&o);
}

HnNode *hn_update_rule_build(const HnUpdateRule *o, const HnBuild *b, HnValue *const *in, gboolean flat)
{
    const int states = o->op->optimizer.states;
    HnNode *n = hn_build_node(b, o->op->name, o->op->domain, 3 + states, in, 1 + states);
    hn_terms_apply(o->terms, o->op->optimizer.floats, o->op->optimizer.ints, n);
    if (flat)
        hn_node_set_float(n, "weight_decay", 0);
    return n;
}

void hn_update_rule_numbers(const HnUpdateRule *o, double lr, int64_t t, float v[4])
{
    const double beta1 = hn_terms_get(o->terms, "beta1"), beta2 = hn_terms_get(o->terms, "beta2");
    v[0] = (float)lr;
    v[1] = (float)(1 / (1 - pow(isnan(beta1) ? 0.9 : beta1, (double)t)));
    v[2] = (float)(1 / (1 - pow(isnan(beta2) ? 0.999 : beta2, (double)t)));
    v[3] = 1;
}
