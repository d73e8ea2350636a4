/*
 * Optionals: a tensor or a sequence, or nothing.
 */
#include "op/move.h"
#include "op/sequence.h"
#include "op/unbind.h"

/* Types of elements that optionals hold since opset 28. */
#define NARROW (HN_BIT(HN_BF16) | HN_T_F8 | HN_T_SUBBYTE | HN_BIT(HN_F6E2M3) | HN_BIT(HN_F6E3M2))

/* --- Optional ---------------------------------------------------------------------------------------------------- */

static void optional_infer(HnInfer *x)
{
    const HnAttr *a = hn_node_attr(x->node, "type");
    HnType *elem = hn_infer_has(x, 0) ? x->in[0] : a != NULL && a->kind == HN_ATTR_TYPE ? a->type : NULL;
    if (elem != NULL && elem->kind == HN_TYPE_OPTIONAL)
        hn_infer_fail(x, HN_ERROR_TYPE, "an optional cannot hold an optional");
    hn_infer_out_type(x, 0, hn_type_list(HN_TYPE_OPTIONAL, HN_UNDEFINED, elem != NULL ? hn_type_ref(elem) : NULL));
}

static void optional_ref(HnEval *e)
{
    const HnTensor *t = hn_eval_in(e, 0);
    g_autoptr(HnTensor) element = t != NULL ? hn_list_element(e, t) : NULL;
    HnTensor *y = e->error == NULL ? hn_eval_out_list(e, 0, HN_OPTIONAL, t != NULL ? 1 : 0) : NULL;
    if (y != NULL && t != NULL)
        hn_tensor_set_item(y, 0, element);
}

const HnOp hn_op_optional = {
    .name = "Optional",
    .since = { 15, 28 },
    .lacks = HN_LACKS({ '.', 28, 0, NARROW }),
    .in = ".",
    .out = ".",
    .min_in = HN_MIN_IN_NONE,
    .infer = optional_infer,
    .cost = hn_cost_nothing,
    .ref = optional_ref,
};

/* --- OptionalHasElement, OptionalGetElement ---------------------------------------------------------------------- */

/* Others than optionals came with opset 18, and so did an input that is absent. */
static void element_unbind(HnUnbind *u)
{
    const HnType *t = hn_types_get(u->types, hn_unbind_in(u, 0));
    if (hn_unbind_below(u, 18) && (t == NULL || t->kind != HN_TYPE_OPTIONAL))
        hn_unbind_refuse(u, "its input is not known to be an optional, and had to be before opset 18");
}

static void has_infer(HnInfer *x)
{
    hn_infer_out(x, 0, HN_BOOL, 0, NULL);
}

static void has_ref(HnEval *e)
{
    const HnTensor *t = hn_eval_in(e, 0);
    uint8_t *y = hn_eval_out(e, 0, HN_BOOL, 0, NULL);
    if (y != NULL)
        *y = t != NULL && (t->dtype != HN_OPTIONAL || t->n > 0);
}

const HnOp hn_op_optionalhaselement = {
    .name = "OptionalHasElement",
    .since = { 15, 18, 28 },
    .lacks = HN_LACKS({ '.', 28, 0, NARROW }),
    .in = ".",
    .out = "b",
    .min_in = HN_MIN_IN_NONE,
    .unbind = element_unbind,
    .infer = has_infer,
    .cost = hn_cost_nothing,
    .ref = has_ref,
};

static void get_infer(HnInfer *x)
{
    HnType *t = x->in[0];
    HnType *held = t != NULL && t->kind == HN_TYPE_OPTIONAL ? t->elem : t;
    hn_infer_out_type(x, 0, held != NULL ? hn_type_ref(held) : NULL);
}

static void get_ref(HnEval *e)
{
    const HnTensor *t = hn_eval_in(e, 0);
    if (t->dtype == HN_OPTIONAL && t->n == 0) {
        hn_eval_fail(e, HN_ERROR_VALUE, "the optional holds nothing");
        return;
    }
    const HnTensor *held = t->dtype == HN_OPTIONAL ? hn_tensor_get_item(t, 0) : t;
    hn_eval_view(e, 0, held, held->ndim, held->dims);
}

const HnOp hn_op_optionalgetelement = {
    .name = "OptionalGetElement",
    .since = { 15, 18, 28 },
    .lacks = HN_LACKS({ '.', 28, 0, NARROW }),
    .in = ".",
    .out = ".",
    .unbind = element_unbind,
    .infer = get_infer,
    .cost = hn_cost_nothing,
    .ref = get_ref,
};
