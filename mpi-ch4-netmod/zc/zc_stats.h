/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_STATS_H_INCLUDED
#define ZC_STATS_H_INCLUDED

#include "zc_impl.h"

/* What one rank tells of itself. */
typedef struct {
    int rank;
    MPIDI_ZC_stats_t netmod;
    zc_stats_t landing;
    zcp_stats_t prediction;
} MPIDI_ZC_report_t;

/* Between begin and end a report is of now, later of the end. Each counter is
 * whole, though they need not all be of one instant. From any thread. */
void MPIDI_ZC_report_begin(void);
void MPIDI_ZC_report_read(MPIDI_ZC_report_t * report);
void MPIDI_ZC_report_end(void);

/* Writes MPIR_CVAR_CH4_ZC_STATS_FILE.<rank>.json; complains on stderr. */
void MPIDI_ZC_report_write_file(const MPIDI_ZC_report_t * report);

/* Sends this rank's report to rank 0 if MPIR_CVAR_CH4_ZC_STATS is set. Before
 * the teardown barrier; all ranks must have the same setting. */
int MPIDI_ZC_report_send(const MPIDI_ZC_report_t * report);

/* Rank 0: prints the table of all reports on stderr. After the barrier. */
void MPIDI_ZC_report_print_all(void);

/* UCP handler of reports, at rank 0. */
ucs_status_t MPIDI_ZC_report_handler(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length,
                                     const ucp_am_recv_param_t * param);

#endif /* ZC_STATS_H_INCLUDED */
