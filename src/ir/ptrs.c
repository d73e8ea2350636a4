#include <string.h>

#include "ir/graph.h"

static gboolean is_allocated(const HnPtrs *list)
{
    return list->pdata && list->pdata != &list->first;
}

/* The places in front are taken. */
static void close_front(HnPtrs *list)
{
    gpointer *start = list->pdata - list->front;
    memmove(start, list->pdata, list->len * sizeof *start);
    list->pdata = start;
    list->room += (guint)list->front;
    list->front = 0;
}

/* Room for len entries: twice as much each time, so that adding one by one is linear. */
static void reserve(HnPtrs *list, guint len)
{
    if (is_allocated(list) && len > list->room && list->front > list->len) /* half of what is there at least */
        close_front(list);
    if (len <= list->room)
        return;
    if (len == 1 && !list->pdata) {
        list->pdata = &list->first;
        list->room = 1;
        return;
    }
    if (!is_allocated(list)) {
        const gpointer only = list->first;
        list->room = MAX(len, 2);
        list->pdata = g_new(gpointer, list->room);
        list->pdata[0] = only;
        list->front = 0;
        return;
    }
    close_front(list);
    list->room = MAX(len, list->room < G_MAXUINT / 2 ? 2 * list->room : G_MAXUINT);
    list->pdata = g_renew(gpointer, list->pdata, list->room);
}

void hn_ptrs_add(HnPtrs *list, gpointer p)
{
    reserve(list, list->len + 1);
    list->pdata[list->len++] = p;
}

void hn_ptrs_insert(HnPtrs *list, guint i, gpointer p)
{
    reserve(list, list->len + 1);
    memmove(list->pdata + i + 1, list->pdata + i, (list->len - i) * sizeof p);
    list->pdata[i] = p;
    list->len++;
}

void hn_ptrs_remove(HnPtrs *list, guint i)
{
    list->len--;
    if (is_allocated(list) && i < list->len / 2) {
        memmove(list->pdata + 1, list->pdata, i * sizeof *list->pdata);
        list->pdata++;
        list->front++;
        list->room--;
    } else {
        memmove(list->pdata + i, list->pdata + i + 1, (list->len - i) * sizeof *list->pdata);
    }
}

void hn_ptrs_set_len(HnPtrs *list, guint len)
{
    reserve(list, len);
    for (guint i = list->len; i < len; i++)
        list->pdata[i] = NULL;
    list->len = len;
}

gboolean hn_ptrs_drop(HnPtrs *list, gconstpointer p)
{
    for (guint i = 0, j = list->len; i < j; i++) {
        if (list->pdata[i] == p) {
            hn_ptrs_remove(list, i);
            return TRUE;
        }
        if (list->pdata[--j] == p) {
            hn_ptrs_remove(list, j);
            return TRUE;
        }
    }
    return FALSE;
}

void hn_ptrs_clear(HnPtrs *list)
{
    if (is_allocated(list))
        g_free(list->pdata - list->front);
    *list = (HnPtrs){ 0 };
}

GPtrArray *hn_ptrs_copy(const HnPtrs *list)
{
    GPtrArray *copy = g_ptr_array_sized_new(list->len);
    for (guint i = 0; i < list->len; i++)
        g_ptr_array_add(copy, list->pdata[i]);
    return copy;
}
