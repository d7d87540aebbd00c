/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ADDRESS_LIST_H_INCLUDED
#define ZC_ADDRESS_LIST_H_INCLUDED

/* The addresses of all workers of a process, as PATH messages have them (zc_path.h): for each VCI, from
 * 0 on,
 *
 *   | length (4) | UCP's address |
 *
 * Such a list has no alignment. */

#include "zc_impl.h"

/* Makes the list of this process, *@length bytes long, which the caller frees (MPL_free()). NULL: there
 * is no memory. It is called inside the locks of all VCIs. */
char *MPIDI_ZC_address_list_own(size_t * length);

/* Returns the address of @vci in @list, and its length, if @length is not NULL. */
const char *MPIDI_ZC_address_list_find(const char *list, int vci, size_t * length);

#endif /* ZC_ADDRESS_LIST_H_INCLUDED */
