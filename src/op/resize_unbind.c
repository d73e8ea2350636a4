/*
 * Resize and Upsample in other opsets. Upsample became Resize with 10; 11 added the choice of coordinates and rounding,
 * 13 made inputs optional, 18 added axes, antialiasing and ratios that are kept.
 */
#include <math.h>
#include <string.h>

#include "op/resize.h"

/* Scales of all axes where known, from an input, an attribute or, for sizes, the input's dims; FALSE: not known. */
static gboolean known_scales(const HnUnbind *u, float *scale, gboolean *exact)
{
    const HnResize *p = u->params;
    const HnTensor *t = p->scales >= 0 ? hn_unbind_value(u, p->scales) : NULL;
    int rank = hn_unbind_rank(u, 0);
    int64_t sizes[HN_MAX_RANK];
    *exact = TRUE;
    if (p->axes != NULL || rank < 0 || p->policy != HN_RESIZE_STRETCH || (p->list != NULL && p->n_list != rank))
        return FALSE;
    if (p->list != NULL || (t != NULL && t->n == rank && t->dtype == HN_F32)) {
        for (int i = 0; i < rank; i++)
            scale[i] = p->list != NULL ? p->list[i] : ((const float *)t->data)[i];
        return TRUE;
    }
    if (p->sizes < 0 || hn_unbind_ints(u, p->sizes, sizes) != rank)
        return FALSE;
    for (int i = 0; i < rank; i++) {
        int64_t in = hn_unbind_dim(u, 0, i);
        if (in <= 0 || sizes[i] <= 0)
            return FALSE;
        scale[i] = (float)((double)sizes[i] / (double)in);
        *exact = *exact && floor((double)scale[i] * (double)in) == (double)sizes[i];
    }
    return TRUE;
}

/* What the rounding of nearest elements before opset 11 is called since: -1 where axes need both of it. */
static int old_rounding(const float *scale, int rank)
{
    gboolean up = FALSE, down = FALSE;
    for (int i = 0; i < rank; i++) {
        up = up || scale[i] > 1;
        down = down || scale[i] < 1;
    }
    return up && down ? -1 : down ? HN_RESIZE_UP : HN_RESIZE_DOWN;
}

/* Does the node do what opset 10 does? Enlarged by whole numbers, the nearest is the same from the middle of a pixel.
 */
static gboolean is_old(const HnResize *p, const float *scale, int rank)
{
    gboolean whole = TRUE;
    for (int i = 0; i < rank; i++)
        whole = whole && scale[i] >= 1 && scale[i] == floorf(scale[i]);
    if (p->mode == HN_RESIZE_CUBIC || p->antialias || p->exclude_outside)
        return FALSE;
    if (p->place == HN_RESIZE_ASYMMETRIC)
        return p->mode == HN_RESIZE_LINEAR || (int)p->round == old_rounding(scale, rank) || p->round == HN_RESIZE_OLD;
    return p->mode == HN_RESIZE_NEAREST && whole && p->round <= HN_RESIZE_PREFER_CEIL &&
           (p->place == HN_RESIZE_HALF_PIXEL || p->place == HN_RESIZE_HALF_SYMMETRIC);
}

/* Opset 10, or 9 and below as Upsample. */
static void resize_to_old(HnUnbind *u)
{
    const HnResize *p = u->params;
    float scale[HN_MAX_RANK];
    gboolean exact, grows = TRUE;
    int64_t rank = hn_unbind_rank(u, 0);
    HnValue *scales = p->scales >= 0 && p->axes == NULL ? hn_unbind_in(u, p->scales) : NULL;
    const HnTensor *empty = p->scales >= 0 ? hn_unbind_value(u, p->scales) : NULL;
    gboolean known = known_scales(u, scale, &exact);
    if (rank == 0) {
        hn_unbind_take(u, 0, hn_unbind_in(u, 0));
        return;
    }
    const gboolean open = !known && scales != NULL && !(empty != NULL && empty->n == 0);
    const gboolean as_old =
        p->round == HN_RESIZE_OLD || (p->mode == HN_RESIZE_LINEAR && p->place == HN_RESIZE_ASYMMETRIC);
    if (open && as_old && u->to >= 9) {
        rank = 0; /* whatever they are */
    } else if (!known || !exact) {
        hn_unbind_refuse(u, "before opset 11 the sizes of the output follow from scales, which are not known");
        return;
    }
    for (int64_t i = 0; i < rank; i++)
        grows = grows && scale[i] >= 1;
    if (!is_old(p, scale, (int)rank) || (u->to < 10 && !grows)) {
        hn_unbind_refuse(u, "coordinates, rounding or mode came with opset %d", u->to < 10 && !grows ? 10 : 11);
        return;
    }
    if (known) {
        HnTensor *t = hn_tensor_new(HN_F32, 1, &rank, NULL, NULL);
        memcpy(t->data, scale, t->bytes);
        scales = hn_unbind_const(u, t);
    }
    HnValue *in[] = { hn_unbind_in(u, 0), scales };
    HnNode *n = hn_unbind_node(u, u->to < 10 ? "Upsample" : "Resize", u->to < 9 ? 1 : 2, in, 1);
    n->version = u->to;
    hn_node_set_string(n, "mode", p->mode == HN_RESIZE_NEAREST ? "nearest" : "linear");
    if (u->to < 9) {
        HnAttr *a = hn_attr_new("scales", HN_ATTR_FLOATS);
        a->n = rank;
        a->floats = g_memdup2(scale, (gsize)rank * sizeof *scale);
        hn_node_set_attr(n, a);
    }
    hn_unbind_take(u, 0, hn_node_out(n, 0));
}

/* From opset 10, or from Upsample, to 11 and later. */
static void resize_from_old(HnUnbind *u)
{
    const HnResize *p = u->params;
    float scale[HN_MAX_RANK];
    gboolean exact, known = known_scales(u, scale, &exact);
    int round = known ? old_rounding(scale, hn_unbind_rank(u, 0)) : -1;
    int64_t none = 0, rank = hn_unbind_rank(u, 0);
    if (!known && strcmp(u->node->op_type, "Upsample") == 0)
        round = HN_RESIZE_DOWN; /* it only enlarges */
    if ((p->mode == HN_RESIZE_NEAREST && round < 0) || (p->list != NULL && !known)) {
        hn_unbind_refuse(u, "before opset 11 rounding depends on scales that are not known, or both ways");
        return;
    }
    HnValue *scales = p->scales >= 0 ? hn_unbind_in(u, p->scales) : NULL;
    if (p->list != NULL) {
        HnTensor *t = hn_tensor_new(HN_F32, 1, &rank, NULL, NULL);
        memcpy(t->data, scale, t->bytes);
        scales = hn_unbind_const(u, t);
    }
    HnValue *roi = u->to < 13 ? hn_unbind_fill(u, HN_F32, 1, &none, 0) : NULL;
    HnValue *in[] = { hn_unbind_in(u, 0), roi, scales };
    HnNode *n = hn_unbind_node(u, "Resize", 3, in, 1);
    n->version = u->to;
    hn_node_set_string(n, "mode", p->mode == HN_RESIZE_NEAREST ? "nearest" : "linear");
    hn_node_set_string(n, "coordinate_transformation_mode", "asymmetric");
    hn_node_set_string(n, "nearest_mode", round == HN_RESIZE_UP ? "ceil" : "floor");
    hn_unbind_take(u, 0, hn_node_out(n, 0));
}

/* A list for some axes as one for all: scales, with ones for the others, or sizes, with those of the input. */
static void list_for_all(HnUnbind *u, int i, gboolean sizes)
{
    const HnResize *p = u->params;
    int rank = hn_unbind_rank(u, 0);
    HnValue *list = hn_unbind_in(u, i), *parts[HN_MAX_RANK];
    if (list == NULL)
        return;
    for (int a = 0; a < rank; a++)
        parts[a] = NULL;
    for (int k = 0; k < (int)p->n_axes; k++)
        parts[p->axes[k] + (p->axes[k] < 0 ? rank : 0)] = hn_unbind_op2(u, "Gather", list, hn_unbind_int(u, k));
    for (int a = 0; a < rank; a++) {
        int64_t one = 1;
        if (parts[a] != NULL)
            continue;
        parts[a] = sizes ? hn_unbind_shape(u, hn_unbind_in(u, 0), a, a + 1) : hn_unbind_fill(u, HN_F32, 1, &one, 1);
    }
    hn_node_set_in(u->node, i, hn_unbind_concat(u, rank, parts, 0));
}

static void resize_below_18(HnUnbind *u)
{
    const HnResize *p = u->params;
    float scale[HN_MAX_RANK];
    gboolean exact, grows = p->antialias && known_scales(u, scale, &exact);
    for (int i = 0; i < hn_unbind_rank(u, 0) && grows; i++)
        grows = scale[i] >= 1;
    if (p->antialias && !grows) {
        hn_unbind_refuse(u, "attribute 'antialias' came with opset 18");
        return;
    }
    hn_node_remove_attr(u->node, "antialias");
    if (p->axes == NULL || p->place == HN_RESIZE_CROP || p->policy != HN_RESIZE_STRETCH)
        return;
    int rank = hn_unbind_rank(u, 0);
    gboolean fits = rank > 0 && p->n_axes <= rank;
    for (int64_t k = 0; k < p->n_axes && fits; k++)
        fits = p->axes[k] >= -rank && p->axes[k] < rank;
    if (!fits) {
        hn_unbind_refuse(u, "attribute 'axes' came with opset 18, and the number of dimensions is not known");
        return;
    }
    list_for_all(u, 2, FALSE);
    list_for_all(u, 3, TRUE);
    hn_node_remove_attr(u->node, "axes");
}

static gboolean is_empty(const HnUnbind *u, int i)
{
    const HnTensor *t = hn_unbind_value(u, i);
    return t != NULL && t->n == 0;
}

/* Since opset 13 either scales or sizes are given; before, the other was an empty list. */
static void drop_empty(HnUnbind *u)
{
    const HnTensor *scales = hn_unbind_value(u, 2);
    if (is_empty(u, 1))
        hn_unbind_drop(u, 1);
    if (is_empty(u, 3) || (hn_unbind_in(u, 3) != NULL && scales != NULL && scales->n > 0))
        hn_unbind_drop(u, 3);
    else if (hn_unbind_in(u, 3) != NULL)
        hn_unbind_drop(u, 2);
}

void hn_resize_unbind(HnUnbind *u)
{
    const HnResize *p = u->params;
    float scale[HN_MAX_RANK];
    gboolean exact;
    int64_t none = 0;
    if (u->to < 11) {
        if (u->to != 10 || u->from != 10)
            resize_to_old(u);
        return;
    }
    if (u->from < 11) {
        resize_from_old(u);
        return;
    }
    if (hn_unbind_below(u, 19) && p->place == HN_RESIZE_HALF_SYMMETRIC) {
        gboolean whole = known_scales(u, scale, &exact);
        for (int i = 0; i < hn_unbind_rank(u, 0) && whole && !hn_unbind_in(u, p->sizes); i++) {
            double length = (double)scale[i] * (double)hn_unbind_dim(u, 0, i);
            whole = length >= 0 && length == floor(length);
        }
        if (!whole) { /* of an output of a fraction of a pixel it cuts both ends */
            hn_unbind_refuse(u, "mode 'half_pixel_symmetric' came with opset 19");
            return;
        }
        hn_node_set_string(u->node, "coordinate_transformation_mode", "half_pixel");
    }
    if (hn_unbind_above(u, 13) && p->place == HN_RESIZE_HALF_NEAREST) {
        if (p->mode != HN_RESIZE_NEAREST || p->round != HN_RESIZE_DOWN) {
            hn_unbind_refuse(u, "mode 'tf_half_pixel_for_nn' ended with opset 12");
            return;
        }
        hn_node_set_string(u->node, "coordinate_transformation_mode", "half_pixel");
        hn_node_set_string(u->node, "nearest_mode", "round_prefer_ceil");
    }
    if (hn_unbind_below(u, 18))
        resize_below_18(u);
    for (int i = 1; i <= 2 && u->error == NULL && hn_unbind_below(u, 13); i++) /* empty lists instead of nothing */
        if (hn_unbind_in(u, i) == NULL)
            hn_node_set_in(u->node, i, hn_unbind_fill(u, HN_F32, 1, &none, 0));
    if (u->error == NULL && hn_unbind_above(u, 13))
        drop_empty(u);
}

void hn_upsample_unbind(HnUnbind *u)
{
    if (u->to < 10)
        return;
    if (u->to == 10)
        resize_to_old(u);
    else
        resize_from_old(u);
}
