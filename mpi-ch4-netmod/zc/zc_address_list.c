/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_address_list.h"

typedef uint32_t length_t;

char *MPIDI_ZC_address_list_own(size_t * length)
{
    *length = 0;
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        *length += sizeof(length_t) + MPIDI_ZC_VCI(v).address_length;
    }
    char *list = MPL_malloc(*length, MPL_MEM_ADDRESS), *at = list;
    for (int v = 0; list && v < MPIDI_global.n_vcis; v++) {
        const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        const length_t bytes = (length_t) vci->address_length;
        memcpy(at, &bytes, sizeof(bytes));
        memcpy(at + sizeof(bytes), vci->address, bytes);
        at += sizeof(bytes) + bytes;
    }
    return list;
}

const char *MPIDI_ZC_address_list_find(const char *list, int vci, size_t * length)
{
    length_t bytes;

    memcpy(&bytes, list, sizeof(bytes));
    for (int v = 0; v < vci; v++) {
        list += sizeof(bytes) + bytes;
        memcpy(&bytes, list, sizeof(bytes));
    }
    if (length) {
        *length = bytes;
    }
    return list + sizeof(bytes);
}
