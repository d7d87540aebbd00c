/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "mpitimpl.h"
#include "zc_counter.h"

#define NETMOD(field) offsetof(MPIDI_ZC_report_t, netmod.field)
#define LANDING(field) offsetof(MPIDI_ZC_report_t, landing.field)
#define PREDICTION(field) offsetof(MPIDI_ZC_report_t, prediction.field)

const MPIDI_ZC_counter_t MPIDI_ZC_counters[] = {
    {"messages_direct", "announced messages that the network wrote into the user buffer",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(messages_direct)},
    {"messages_rebound", "landed messages whose pages were exchanged with the user buffer's",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(messages_rebound)},
    {"messages_copied", "landed messages that were copied to the user buffer",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(messages_copied)},
    {"bytes_direct", "bytes that the network wrote into user buffers",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(bytes_direct)},
    {"bytes_rebound", "bytes that reached user buffers by exchange of pages",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(bytes_rebound)},
    {"bytes_copied", "bytes copied from landing memory, edges of rebound messages among them",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(bytes_copied)},
    {"prediction_hits", "landed messages whose user buffer was foreseen",
     MPI_T_PVAR_CLASS_COUNTER, PREDICTION(hits)},
    {"prediction_misses", "landed messages for which another user buffer was foreseen",
     MPI_T_PVAR_CLASS_COUNTER, PREDICTION(misses)},
    {"prediction_misses_congruent", "of the misses, those at the same offset within the page",
     MPI_T_PVAR_CLASS_COUNTER, PREDICTION(congruent)},
    {"prediction_unknown", "landed messages for which no user buffer was foreseen",
     MPI_T_PVAR_CLASS_COUNTER, PREDICTION(unknown)},
    {"landed", "messages taken off the wire before their receive was posted",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(landed)},
    {"landed_by_thread", "of the landed, those taken by the landing thread",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(landed_by_thread)},
    {"landing_memory", "bytes of landing memory backed by pages now",
     MPI_T_PVAR_CLASS_LEVEL, LANDING(populated_now)},
    {"landing_in_use", "bytes of landing buffers that hold or await a message now",
     MPI_T_PVAR_CLASS_LEVEL, LANDING(in_use_now)},
    {"landing_high_water", "most bytes of landing memory ever backed by pages",
     /* not of class HIGHWATERMARK: MPICH keeps those itself, per handle, from its start on */
     MPI_T_PVAR_CLASS_LEVEL, LANDING(populated_max)},
    {"landing_pages_populated", "pages of landing memory ever populated; few if recycling works",
     MPI_T_PVAR_CLASS_COUNTER, LANDING(pages_populated)},
    {"budget_refusals", "messages left with their sender for lack of landing memory",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(budget_refusals)},
    {"left_at_sender", "messages not landed because to fetch them later is faster",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(left_at_sender)},
    {"bounced", "matched messages that went through a buffer: not contiguous, or truncated",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(bounced)},
    {"streamed", "messages packed, or unpacked or truncated, bit by bit while they were under way",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(streamed)},
    {"reordered", "messages that overtook an earlier one of the same sender",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(reordered)},
    {"bundles", "packets in which several short messages left together",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(bundles)},
    {"bundled", "short messages that waited, until the application looked for progress, to "
     "leave in one packet", MPI_T_PVAR_CLASS_COUNTER, NETMOD(bundled)},
    {"thread_wakeups", "times the network woke the landing thread",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(thread_wakeups)},
    {"thread_looks", "times the landing thread looked whether the program computes",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(thread_looks)},
    {"calibrations", "times this process measured what deliveries cost: at most once",
     MPI_T_PVAR_CLASS_COUNTER, LANDING(calibrations)},
    {"unexpected", "messages, of any size, that came before their receive was posted",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(unexpected)},
    {"unexpected_high_water", "most unexpected messages that were ever queued at a time",
     MPI_T_PVAR_CLASS_LEVEL, NETMOD(unexpected_max)},
    {"unexpected_memory", "bytes of the budget that unexpected messages take now",
     MPI_T_PVAR_CLASS_LEVEL, NETMOD(unexpected_bytes)},
    {"unexpected_memory_high_water", "most bytes that unexpected messages ever took",
     MPI_T_PVAR_CLASS_LEVEL, NETMOD(unexpected_bytes_max)},
    {"senders_held", "unexpected messages that their sender only announced, for lack of credit",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(senders_held)},
    {"unexpected_refusals", "of those, the ones left with their sender until they were matched",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(unexpected_refusals)},
    {"credit_packets", "packets that returned credit to a sender, and carried nothing else",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(credit_packets)},
    {"window_growth", "bytes that the windows of senders have grown by now",
     MPI_T_PVAR_CLASS_LEVEL, NETMOD(window_growth)},
    {"atomics", "elements accumulated by UCX, without CH4's handlers",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(atomics)},
    {"endpoints", "connections made to processes of this world, for each VCI",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(endpoints)},
    {"foreign_endpoints", "connections made over the network to processes of other worlds",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(foreign_endpoints)},
    {"foreign_shared", "of those, the ones that went on over shared memory",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(foreign_shared)},
    {"foreign_known", "processes of other worlds that are in communicators of this one now",
     MPI_T_PVAR_CLASS_LEVEL, offsetof(MPIDI_ZC_report_t, foreign_known)},
    {"bulk_endpoints", "of those to processes of this world, the ones that carry announced messages only",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(bulk_endpoints)},
    {"bulk_refusals", "peers that such a connection could not be made to",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(bulk_refusals)},
    {"channels", "connections of libzclane that have been opened", MPI_T_PVAR_CLASS_COUNTER,
     NETMOD(channels)},
    {"channel_refusals", "peers to which none could be opened: UCX carries announced messages",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(channel_refusals)},
    {"offered", "messages announced on those", MPI_T_PVAR_CLASS_COUNTER, NETMOD(offered)},
    {"detachments", "times that this rank has left, having given up all of UCX",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(detachments)},
    {"detach_refusals", "times that it was told to leave, and has not",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(detach_refusals)},
    {"detached_us", "microseconds that it has been away, together",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(detached_us)},
    {"parked", "messages that have waited until a rank had come back",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(parked)},
    {"window_keys", "keys to the memory of windows received anew, of ranks that have been away",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(window_keys)},
    {"window_refusals", "such keys that were not to be had: active messages reach that memory",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(window_refusals)},
    {"unwatched", "times that a process of another world left, whose end would not be noticed",
     MPI_T_PVAR_CLASS_COUNTER, NETMOD(unwatched)},
    {"rebound_by_mremap", "deliveries rebound by page tables, mremap(2)",
     MPI_T_PVAR_CLASS_COUNTER, LANDING(rebound_by_means[ZC_MEANS_MREMAP])},
    {"rebound_by_kmod", "deliveries rebound by the kernel module, /dev/zc",
     MPI_T_PVAR_CLASS_COUNTER, LANDING(rebound_by_means[ZC_MEANS_KMOD])},
    {"splits", "mapping boundaries that rebinding has made",
     MPI_T_PVAR_CLASS_LEVEL, LANDING(splits_now)},
};

const int MPIDI_ZC_nr_counters = sizeof(MPIDI_ZC_counters) / sizeof(MPIDI_ZC_counters[0]);

uint64_t MPIDI_ZC_counter_value(const MPIDI_ZC_counter_t * counter,
                                const MPIDI_ZC_report_t * report)
{
    uint64_t value;
    memcpy(&value, (const char *) report + counter->offset, sizeof(value));
    return value;
}

/* ---- performance variables ---- */

/* The reasons are libzc's; MPI_T keeps a pointer to the name. */
static struct {
    char name[64];
    char description[96];
    MPIDI_ZC_counter_t counter;
} reasons[ZC_REASON_COUNT];

static void read_counter(void *counter, void *object, int count, void *out)
{
    MPIDI_ZC_report_t report;
    MPIDI_ZC_report_read(&report);
    *(unsigned long long *) out = MPIDI_ZC_counter_value(counter, &report);
}

static void register_one(const char *name, const MPIDI_ZC_counter_t * counter)
{
    int index;

    if (PMPI_T_pvar_get_index(name, counter->pvar_class, &index) != MPI_SUCCESS) {
        MPIR_T_PVAR_REGISTER_impl(counter->pvar_class, MPI_UNSIGNED_LONG_LONG, name,
                                  (void *) counter, 1, MPI_T_ENUM_NULL, MPI_T_VERBOSITY_USER_BASIC,
                                  MPI_T_BIND_NO_OBJECT,
                                  MPIR_T_PVAR_FLAG_READONLY | MPIR_T_PVAR_FLAG_CONTINUOUS,
                                  read_counter, NULL, "CH4_ZC", counter->description);
    }
}

void MPIDI_ZC_counters_register(void)
{
    static char names[sizeof(MPIDI_ZC_counters) / sizeof(MPIDI_ZC_counters[0])][64];

    for (int i = 0; i < MPIDI_ZC_nr_counters; i++) {
        snprintf(names[i], sizeof(names[i]), MPIDI_ZC_PVAR_PREFIX "%s", MPIDI_ZC_counters[i].name);
        register_one(names[i], &MPIDI_ZC_counters[i]);
    }
    for (int i = ZC_REASON_NONE + 1; i < ZC_REASON_COUNT; i++) {
        snprintf(reasons[i].name, sizeof(reasons[i].name), MPIDI_ZC_PVAR_PREFIX "copied_%s",
                 zc_reason_name(i));
        snprintf(reasons[i].description, sizeof(reasons[i].description),
                 "deliveries that copied pages for the reason '%s' of zc(7)", zc_reason_name(i));
        reasons[i].counter = (MPIDI_ZC_counter_t) {
            .name = reasons[i].name,
            .description = reasons[i].description,
            .pvar_class = MPI_T_PVAR_CLASS_COUNTER,
            .offset = LANDING(copied_by_reason[i]),
        };
        register_one(reasons[i].name, &reasons[i].counter);
    }
}
