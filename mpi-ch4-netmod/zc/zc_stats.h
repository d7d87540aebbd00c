/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_STATS_H_INCLUDED
#define ZC_STATS_H_INCLUDED

#include "zc_impl.h"

/* The statistics of one rank, which are also the payload of a REPORT: zc_wire.h. */
typedef struct {
    int rank;
    MPIDI_ZC_stats_t netmod;
    zc_stats_t landing;
    zcp_stats_t prediction;
    uint64_t foreign_known;     /* processes of other worlds that CH4 knows now */
} MPIDI_ZC_report_t;

/* Between begin and end a report has the counters of that time, later those of the end. Each
 * counter is consistent, though they need not all be of one instant. Any thread may call these
 * functions. */
void MPIDI_ZC_report_begin(void);
void MPIDI_ZC_report_read(MPIDI_ZC_report_t * report);
void MPIDI_ZC_report_end(void);

/* Writes MPIR_CVAR_CH4_ZC_STATS_FILE.<rank>.json. It reports errors on stderr. */
void MPIDI_ZC_report_write_file(const MPIDI_ZC_report_t * report);

/* Sends this rank's report to rank 0 if MPIR_CVAR_CH4_ZC_STATS is set, which must be the same for
 * all ranks. It is called before the teardown barrier. */
int MPIDI_ZC_report_send(const MPIDI_ZC_report_t * report);

/* Prints the table of all reports on stderr, at rank 0. It is called after the barrier. */
void MPIDI_ZC_report_print_all(void);

/* UCP's callback for REPORT, at rank 0. */
ucs_status_t MPIDI_ZC_report_handler(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length,
                                     const ucp_am_recv_param_t * param);

#endif /* ZC_STATS_H_INCLUDED */
