/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_COUNTER_H_INCLUDED
#define ZC_COUNTER_H_INCLUDED

/* Each counter of a rank is a row of MPIR_CVAR_CH4_ZC_STATS_FILE and a performance variable of
 * MPI_T. */

#include "zc_stats.h"

typedef struct {
    const char *name;           /* the performance variable is MPIDI_ZC_PVAR_PREFIX and this */
    const char *description;
    int pvar_class;             /* MPI_T_PVAR_CLASS_COUNTER or _LEVEL */
    size_t offset;              /* of a uint64_t in MPIDI_ZC_report_t */
} MPIDI_ZC_counter_t;

#define MPIDI_ZC_PVAR_PREFIX "ch4_zc_"

extern const MPIDI_ZC_counter_t MPIDI_ZC_counters[];
extern const int MPIDI_ZC_nr_counters;

uint64_t MPIDI_ZC_counter_value(const MPIDI_ZC_counter_t * counter,
                                const MPIDI_ZC_report_t * report);

/* Makes performance variables of the counters and of the reasons for copying. It does nothing for
 * those that exist already, as in a second session. */
void MPIDI_ZC_counters_register(void);

#endif /* ZC_COUNTER_H_INCLUDED */
