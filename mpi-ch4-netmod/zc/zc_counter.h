/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_COUNTER_H_INCLUDED
#define ZC_COUNTER_H_INCLUDED

/* The counters of one rank: a row of MPIR_CVAR_CH4_ZC_STATS_FILE and an MPI_T
 * performance variable each. */

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

/* Makes performance variables of them, and of the reasons for copying. Harmless
 * when they exist already, as in a second session. */
void MPIDI_ZC_counters_register(void);

#endif /* ZC_COUNTER_H_INCLUDED */
