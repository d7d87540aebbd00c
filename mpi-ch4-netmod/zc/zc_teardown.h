/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TEARDOWN_H_INCLUDED
#define ZC_TEARDOWN_H_INCLUDED

/* The netmod ends in MPI_Finalize, or after an initialisation that has failed. */

#include "zc_impl.h"

/* Frees everything that has been made, however far the initialisation went. No other thread is in
 * MPI. */
void MPIDI_ZC_free_all(void);

/* UCP's callback for TEARDOWN. */
ucs_status_t MPIDI_ZC_teardown_handler(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const ucp_am_recv_param_t * param);

#endif /* ZC_TEARDOWN_H_INCLUDED */
