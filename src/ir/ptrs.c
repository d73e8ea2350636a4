#include <string.h>

#include "ir/graph.h"

/* Room for len entries: twice as much each time, so that adding one by one is linear. */
static void reserve(HnPtrs *list, guint len)
{
    if (len <= list->room)
        return;
    if (len == 1) {
        list->pdata = &list->first;
        list->room = 1;
        return;
    }
    guint room = MAX(len, list->room < G_MAXUINT / 2 ? 2 * list->room : G_MAXUINT);
    gpointer *old = list->pdata == &list->first ? NULL : list->pdata;
    list->pdata = g_renew(gpointer, old, room);
    if (!old)
        list->pdata[0] = list->first;
    list->room = room;
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
    memmove(list->pdata + i, list->pdata + i + 1, (list->len - i) * sizeof *list->pdata);
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
    if (list->pdata != &list->first)
        g_free(list->pdata);
    *list = (HnPtrs){ 0 };
}

GPtrArray *hn_ptrs_copy(const HnPtrs *list)
{
    GPtrArray *copy = g_ptr_array_sized_new(list->len);
    for (guint i = 0; i < list->len; i++)
        g_ptr_array_add(copy, list->pdata[i]);
    return copy;
}
