/*
 * HnType: what a value may hold: a tensor, a sequence, an optional, a map or a sparse tensor. Sparse and opaque values
 * are not computed with; they survive reading and writing and make an operator that needs them unsupported.
 */
#pragma once

#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/tensor.h"

G_BEGIN_DECLS

typedef enum {
    HN_TYPE_NONE, /* nothing said */
    HN_TYPE_TENSOR,
    HN_TYPE_SPARSE,
    HN_TYPE_SEQUENCE,
    HN_TYPE_OPTIONAL,
    HN_TYPE_MAP,
    HN_TYPE_OPAQUE,
} HnTypeKind;

typedef struct HnType HnType;
struct HnType {
    gint ref;
    HnTypeKind kind;
    HnDtype dtype;       /* tensor, sparse; key of a map */
    int rank;            /* -1: unknown rank (no shape in the file) */
    HnDim *dims;         /* rank of them */
    char **denotations;  /* rank of them or NULL: per dimension, each may be NULL */
    HnType *elem;        /* sequence, optional, map */
    char *denotation;    /* of the type, may be NULL */
    char *domain, *name; /* opaque */
    gboolean has_elem;   /* the file had an elem_type / elem field at all */
    GBytes *unknown;     /* the whole TypeProto as it was, where it has fields that hone does not know */
};

/* Types are shared and never changed once given to a value. */
HnType *hn_type_tensor(HnDtype dtype, int rank, const HnDim *dims); /* rank -1: dims ignored */
HnType *hn_type_fixed(HnDtype dtype, int rank, const int64_t *dims);
HnType *hn_type_ref(HnType *t);
void hn_type_unref(HnType *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HnType, hn_type_unref)

/* A sequence, an optional, or a map with keys of that type (HN_UNDEFINED for the others). Takes elem; NULL: unknown. */
HnType *hn_type_list(HnTypeKind kind, HnDtype key, HnType *elem);
/* What t is. Of a sequence: the elements' common type, NULL where it has none; of a map: a scalar. */
HnType *hn_type_of(const HnTensor *t);
/* What holds for both: NULL (unknown), or a type with the dimensions that agree. A new reference. */
HnType *hn_type_common(HnType *a, HnType *b);
/* A sequence, an optional or a map: values that hold values. */
gboolean hn_type_is_list(const HnType *t);
/* Just the same as hn_type_equal(t, hn_type_of(x)), without making anything where x is no list. */
gboolean hn_type_is_of(const HnType *t, const HnTensor *x);

/* A tensor with all dimensions known; writes them to dims (HN_MAX_RANK places) where that is not NULL. */
gboolean hn_type_is_fixed(const HnType *t, int64_t *dims);
/* Nothing known (NULL) is no tensor. Of what is none: HN_UNDEFINED, -1. */
gboolean hn_type_is_tensor(const HnType *t);
HnDtype hn_type_dtype(const HnType *t);
int hn_type_rank(const HnType *t);
/* Not known, or a tensor whose elements are not known, or of one of these types. */
gboolean hn_type_may_be(const HnType *t, HnTypeMask mask);
gboolean hn_type_equal(const HnType *a, const HnType *b);
/* Both are known to be of one shape; NULL: FALSE. */
gboolean hn_type_same_shape(const HnType *a, const HnType *b);
/* "f32[N,3,224,224]", "seq(f32[?])"; appends. */
void hn_type_print(const HnType *t, GString *out);
char *hn_type_describe(const HnType *t);

G_END_DECLS
