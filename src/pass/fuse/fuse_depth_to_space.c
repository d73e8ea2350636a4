/*
 * DepthToSpace and SpaceToDepth where they are spelled out as Reshape, Transpose, Reshape.
 */
#include <string.h>

#include "op/transpose.h"
#include "pass/pattern.h"

/* perm, and what each of the six dimensions between the two Reshapes is: the block, or a size of the deep [N,D,H,W]
 * side divided by nothing (n, h, w) or its channels by the square of the block (c). */
typedef struct {
    int64_t perm[6];
    char dims[6];
    const char *op, *mode;
} Form;

static const Form forms[] = {
    { { 0, 3, 4, 1, 5, 2 }, { 'n', 'b', 'b', 'c', 'h', 'w' }, "DepthToSpace", "DCR" },
    { { 0, 1, 4, 2, 5, 3 }, { 'n', 'c', 'b', 'b', 'h', 'w' }, "DepthToSpace", "CRD" },
    { { 0, 3, 5, 1, 2, 4 }, { 'n', 'c', 'h', 'b', 'w', 'b' }, "SpaceToDepth", NULL },
};

/* Sizes of the deep side: n, h, w, and c, its channels divided by block^2. */
typedef struct {
    HnDim n, c, h, w;
    int64_t block;
} Sizes;

static HnDim size_of(const Sizes *s, char what)
{
    return what == 'n' ? s->n : what == 'c' ? s->c : what == 'h' ? s->h : what == 'w' ? s->w : hn_dim(s->block);
}

/* v is [n, c * channels, h * rows, w * rows]. */
static gboolean is_side(const HnRewrite *r, const HnValue *v, const Sizes *s, int64_t channels, int64_t rows)
{
    return hn_rw_rank(r, v) == 4 && hn_dim_equal(hn_rw_dim(r, v, 0), s->n) &&
           hn_dim_equal(hn_rw_dim(r, v, 1), hn_dim_mul(s->c, hn_dim(channels))) &&
           hn_dim_equal(hn_rw_dim(r, v, 2), hn_dim_mul(s->h, hn_dim(rows))) &&
           hn_dim_equal(hn_rw_dim(r, v, 3), hn_dim_mul(s->w, hn_dim(rows)));
}

static gboolean is_form(const HnRewrite *r, const Form *f, const HnNode *before, const HnNode *turn,
                        const HnNode *behind, int64_t *block)
{
    const HnTranspose *p = turn->params;
    const HnValue *in = hn_node_in(before, 0), *split = hn_node_out(before, 0), *out = hn_node_out(behind, 0);
    if (p->n != 6 || memcmp(p->perm, f->perm, sizeof f->perm) != 0 || hn_rw_rank(r, split) != 6)
        return FALSE;
    const gboolean down = strcmp(f->op, "SpaceToDepth") == 0;
    Sizes s = { 0 };
    for (int i = 0; i < 6; i++) {
        HnDim d = hn_rw_dim(r, split, i);
        if (f->dims[i] == 'b' && (!d.known || d.n < 2))
            return FALSE;
        s.block = f->dims[i] == 'b' ? d.n : s.block;
        *(f->dims[i] == 'n'   ? &s.n
          : f->dims[i] == 'c' ? &s.c
          : f->dims[i] == 'h' ? &s.h
          : f->dims[i] == 'w' ? &s.w
                              : &(HnDim){ 0 }) = d;
    }
    for (int i = 0; i < 6; i++)
        if (!hn_dim_equal(hn_rw_dim(r, split, i), size_of(&s, f->dims[i])))
            return FALSE;
    *block = s.block;
    const int64_t deep = s.block * s.block;
    return s.block < 65536 && is_side(r, in, &s, down ? 1 : deep, down ? s.block : 1) &&
           is_side(r, out, &s, down ? deep : 1, down ? 1 : s.block);
}

static gboolean fuse_depth_to_space(HnRewrite *r, HnNode *n)
{
    const HnNode *turn =
        n->op == &hn_op_reshape ? hn_pattern_maker(n->graph, hn_node_in(n, 0), &hn_op_transpose) : NULL;
    const HnNode *before = turn != NULL ? hn_pattern_maker(n->graph, hn_node_in(turn, 0), &hn_op_reshape) : NULL;
    int64_t block;
    if (before == NULL)
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(forms); i++) {
        const Form *f = &forms[i];
        if (!is_form(r, f, before, turn, n, &block))
            continue;
        if (f->mode != NULL && hn_rw_opset(n->graph) < 11 && strcmp(f->mode, "DCR") != 0)
            return hn_rw_miss(r, n, "mode %s needs opset 11", f->mode);
        if (!hn_rw_go(r, n))
            return FALSE;
        HnNode *d = hn_rw_add(r, n, f->op, HN_INS(hn_node_in(before, 0)));
        hn_node_set_int(d, "blocksize", block);
        if (f->mode != NULL && strcmp(f->mode, "DCR") != 0)
            hn_node_set_string(d, "mode", f->mode);
        return hn_rw_take(r, d, n);
    }
    return hn_rw_miss(r, n, "what is turned is neither depth nor space");
}

const HnPass hn_pass_fuse_depth_to_space = {
    .name = "fuse-depth-to-space",
    .summary = "DepthToSpace and SpaceToDepth where they are spelled out with Reshape and Transpose",
    .level = 2,
    .node = fuse_depth_to_space,
};
