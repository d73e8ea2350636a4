#include "ptx_each.h"

/*
 * Instructions of whole warps on small matrices. In mma, lane l holds rows (l / 4) and (l / 4 + 8) of A, column l / 4
 * of B, and columns 2 (l % 4) and the next one of C: see "Matrix Fragments for mma" in the PTX manual.
 */

enum { M = 16, N = 8, MOST_K = 32, CHUNK = 8 };

/* --- products --- */

/* An element of a register of a fragment, as a number. */
static double element(PtxType t, uint32_t bits, int i)
{
    float f;
    switch (t) {
    case T_F16:
        return (double)ptx_half_to_float((uint16_t)(bits >> 16 * i));
    case T_BF16:
        return (double)ptx_bf16_to_float((uint16_t)(bits >> 16 * i));
    case T_S8:
        return (int8_t)(bits >> 8 * i);
    case T_U8:
        return (uint8_t)(bits >> 8 * i);
    default: /* TF32: what is behind 10 bits of mantissa is not read */
        bits &= 0xffffe000u;
        memcpy(&f, &bits, 4);
        return (double)f;
    }
}

/* Towards zero: what hardware does with a sum at its worst. */
static double cut(double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if (f - f == 0 && (x < 0 ? (double)f < x : (double)f > x))
        bits--;
    memcpy(&f, &bits, 4);
    return (double)f;
}

static double c_of(PtxWarp *w, const int32_t *o, PtxType t, int l, int i)
{
    const uint32_t *row = ptx_row(w, o[t == T_F16 ? i / 2 : i]);
    float f;
    if (t == T_F16)
        return element(T_F16, row[l], i & 1);
    if (t == T_S32)
        return (int32_t)row[l];
    memcpy(&f, &row[l], 4);
    return (double)f;
}

static void keep(PtxWarp *w, const int32_t *o, const PtxInst *in, int l, int i, double v)
{
    PtxType t = (PtxType)in->type;
    uint32_t *row = ptx_row(w, o[t == T_F16 ? i / 2 : i]);
    float f = (float)v;
    if (t == T_F16) {
        uint32_t h = ptx_to_half(v, ROUND_NEAREST);
        row[l] = i & 1 ? (row[l] & 0xffffu) | h << 16 : (row[l] & 0xffff0000u) | h;
    } else if (t == T_S32) {
        row[l] = in->flags & PTX_SAT ? (uint32_t)(int32_t)CLAMP(v, INT32_MIN, INT32_MAX) : (uint32_t)(int64_t)v;
    } else {
        memcpy(&row[l], &f, 4);
    }
}

/* in->vec: K; in->from and in->sub: types of A and B; in->space: type of C. */
void ptx_run_mma(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)mask;
    PtxType a_type = (PtxType)in->from, b_type = (PtxType)in->sub, c_type = (PtxType)in->space;
    int per = a_type == T_TF32 ? 1 : a_type == T_F16 || a_type == T_BF16 ? 2 : 4, k = in->vec;
    int a_n = k / (2 * per), b_n = k / (4 * per), d_n = in->type == T_F16 ? 2 : 4;
    const int32_t *d = ptx_more(w, in), *a = d + d_n, *b = a + a_n, *c = b + b_n;
    double A[M][MOST_K], B[N][MOST_K], D[LANES][4];
    for (int l = 0; l < LANES; l++) {
        int g = l / 4, t = l % 4;
        for (int r = 0; r < a_n; r++)
            for (int i = 0; i < per; i++)
                A[g + 8 * (r & 1)][(r >> 1) * 4 * per + t * per + i] =
                    element(a_type, ((const uint32_t *)ptx_row(w, a[r]))[l], i);
        for (int r = 0; r < b_n; r++)
            for (int i = 0; i < per; i++)
                B[g][r * 4 * per + t * per + i] = element(b_type, ((const uint32_t *)ptx_row(w, b[r]))[l], i);
    }
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 4; i++) {
            const double *x = A[l / 4 + 8 * (i >> 1)], *y = B[l % 4 * 2 + (i & 1)];
            double s = c_of(w, c, c_type, l, i);
            for (int from = 0; from < k; from += CHUNK) {
                for (int j = from; j < MIN(from + CHUNK, k); j++)
                    s += x[j] * y[j];
                s = c_type == T_S32 ? s : cut(s);
            }
            D[l][i] = s;
        }
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 4; i++)
            keep(w, d, in, l, i, D[l][i]);
}

/* mma.sync.aligned.m16n8kK.row.col.D.A.B.C: what there is of it. */
const char *ptx_decode_mma(const PtxOpcode *o, PtxInst *in)
{
    PtxType t[4] = { T_NONE };
    int n = 0, k = 0;
    for (int i = 1; i < o->parts; i++) {
        PtxType found = ptx_type_of(o->part[i]);
        if (found && n < 4)
            t[n++] = found;
        static const char *const shapes[] = { ".m16n8k4", ".m16n8k8", ".m16n8k16", ".m16n8k32" };
        for (int s = 0; s < 4; s++)
            if (ptx_is(o->part[i], shapes[s]))
                k = 4 << s;
    }
    bool tf32 = t[1] == T_TF32 && t[2] == T_TF32 && k <= 8,
         half = (t[1] == T_F16 || t[1] == T_BF16) && t[1] == t[2] && (k == 8 || k == 16);
    bool bytes =
        (t[1] == T_S8 || t[1] == T_U8) && (t[2] == T_S8 || t[2] == T_U8) && k >= 16 && t[0] == T_S32 && t[3] == T_S32;
    bool sums = (t[0] == T_F32 && t[3] == T_F32) || (t[1] == T_F16 && t[0] == T_F16 && t[3] == T_F16);
    int per = tf32 ? 1 : half ? 2 : 4, d_n = t[0] == T_F16 ? 2 : 4;
    if (!k || !ptx_has(o, ".row") || !ptx_has(o, ".col") || !(bytes || (sums && (tf32 || half))) ||
        in->n != 2 * d_n + k / (2 * per) + k / (4 * per))
        return NULL;
    in->fn = ptx_run_mma;
    in->control = CTL_SYNC;
    in->vec = (uint8_t)k;
    in->type = (uint8_t)t[0];
    in->from = (uint8_t)t[1];
    in->sub = (uint8_t)t[2];
    in->space = (uint8_t)t[3];
    return "*";
}

/* --- matrices of 8 x 8 halves --- */

static int matrices(const PtxInst *in)
{
    return in->n - 1;
}

/* Rows are where lanes 0 to 7 say for the first matrix, 8 to 15 for the second one, and so on. */
static void row_places(PtxWarp *w, const PtxInst *in, int operand, PtxUse use, uint8_t **place)
{
    uint64_t address[LANES];
    int n = matrices(in);
    uint32_t mask = n == 4 ? UINT32_MAX : (1u << 8 * n) - 1;
    ptx_addresses(w, in, operand, in->imm, mask, address);
    ptx_places(w, in, mask, SPACE_SHARED, address, 16, use, place);
}

static void ldmatrix(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)mask;
    uint8_t *place[LANES];
    row_places(w, in, matrices(in), USE_READ, place);
    const int32_t *o = ptx_more(w, in);
    for (int m = 0; m < matrices(in); m++) {
        uint16_t h[8][8];
        for (int r = 0; r < 8; r++)
            memcpy(h[r], place[8 * m + r], 16);
        uint32_t *d = ptx_row(w, o[m]);
        for (int l = 0; l < LANES; l++) {
            int r = l / 4, c = l % 4 * 2;
            d[l] =
                in->flags & PTX_TRANS ? h[c][r] | (uint32_t)h[c + 1][r] << 16 : h[r][c] | (uint32_t)h[r][c + 1] << 16;
        }
    }
}

static void stmatrix(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)mask;
    uint8_t *place[LANES];
    row_places(w, in, 0, USE_WRITE, place);
    const int32_t *o = ptx_more(w, in) + 1;
    for (int m = 0; m < matrices(in); m++) {
        uint16_t h[8][8];
        const uint32_t *a = ptx_row(w, o[m]);
        for (int l = 0; l < LANES; l++)
            for (int i = 0; i < 2; i++) {
                int r = l / 4, c = l % 4 * 2 + i;
                *(in->flags & PTX_TRANS ? &h[c][r] : &h[r][c]) = (uint16_t)(a[l] >> 16 * i);
            }
        for (int r = 0; r < 8; r++)
            memcpy(place[8 * m + r], h[r], 16);
    }
}

static void movmatrix(PtxWarp *w, const PtxInst *in, uint32_t mask)
{
    (void)mask;
    uint16_t h[8][8];
    uint32_t *d = ptx_row(w, in->o[0]);
    const uint32_t *a = ptx_row(w, in->o[1]);
    for (int l = 0; l < LANES; l++) {
        h[l / 4][l % 4 * 2] = (uint16_t)a[l];
        h[l / 4][l % 4 * 2 + 1] = (uint16_t)(a[l] >> 16);
    }
    for (int l = 0; l < LANES; l++)
        d[l] = h[l % 4 * 2][l / 4] | (uint32_t)h[l % 4 * 2 + 1][l / 4] << 16;
}

#define S(key, fn)           \
    {                        \
        key, fn, "all", NULL \
    }
#define X3(key, fn)                                                                                           \
    S(key ".x1" MEMORY, fn), S(key ".x2" MEMORY, fn), S(key ".x4" MEMORY, fn), S(key ".x1.trans" MEMORY, fn), \
        S(key ".x2.trans" MEMORY, fn), S(key ".x4.trans" MEMORY, fn)
#define MEMORY ".shared.b16"
const PtxEntry ptx_tensor_entries[] = {
    X3("ldmatrix.m8n8", ldmatrix),
    X3("stmatrix.m8n8", stmatrix),
    S("movmatrix.m8n8.trans.b16", movmatrix),
    { NULL, NULL, NULL, NULL },
};
