/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TEARDOWN_H_INCLUDED
#define ZC_TEARDOWN_H_INCLUDED

/* The end of the netmod in MPI_Finalize, or of one that could not begin. */

#include "zc_impl.h"

/* Frees all that was made, however far that went. Where no other thread is in MPI. */
void MPIDI_ZC_free_all(void);

/* UCP's callback: a rank has come to the barrier of finalize. */
ucs_status_t MPIDI_ZC_teardown_handler(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const ucp_am_recv_param_t * param);

#endif /* ZC_TEARDOWN_H_INCLUDED */
