/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_FORECAST_H_INCLUDED
#define ZCF_FORECAST_H_INCLUDED

#include <iosfwd>
#include <optional>

#include "finding.h"
#include "network.h"
#include "predictability.h"
#include "site_names.h"
#include "unrecorded.h"

namespace zc::forecast {

/** How long something took, and would have taken with ch4:zc. Seconds. */
struct gain {
    double recorded_s = 0;
    double saved_s = 0;       /* likely */
    double least_saved_s = 0; /* the interval: see zc_model */
    double most_saved_s = 0;
    double percent() const { return recorded_s > 0 ? 100 * saved_s / recorded_s : 0; }
};

/** A gain, and what each of its two reasons gives alone. */
struct explained_gain : gain {
    double freed_senders_s = 0; /* held senders go on */
    double landed_s = 0;        /* data is there when its receive is posted */
};

struct rank_gain {
    std::int32_t rank;
    std::string host;
    gain time;
};

/** What a recorded run is forecast to gain. */
struct forecast {
    std::string program;
    std::string mpi;
    std::int32_t processes = 0;
    std::size_t recorded_ranks = 0;
    std::uint64_t unmatched = 0; /* receives whose send was not found: not looked at */
    double clock_error_us = 0;   /* how far times of two hosts may be off */
    std::string no_forecast;     /* why there is none; then gains are empty */
    explained_gain job;          /* by the replay: the end of the last rank */
    std::vector<rank_gain> ranks;
    findings found;
    /* By place among found.sites: what the job gains if ch4:zc changes the messages of this pair
     * alone. Nothing if that was not replayed: no rank waited for them, or others cost more. */
    std::vector<std::optional<explained_gain>> site_gains;
    network links;
    predictability foreseen; /* of point-to-point and collective messages */
    unrecorded_by_place unrecorded;
};

/** @run as recorded with calls; @foreseen: of its receives (predict). Of so many pairs of call
 * sites the gain is looked for, those that cost most: each takes nearly as long as that of the job.
 */
forecast make_forecast(const zct::run &run, const std::vector<message> &messages,
                       const site_names &names, const predictability &foreseen,
                       std::size_t nr_sites);

/** At most @nr_sites call sites, those that cost most. */
void write_text(std::ostream &out, const forecast &f, std::size_t nr_sites);
void write_json(std::ostream &out, const forecast &f);

/** The run for Perfetto and Chrome's trace viewer (JSON trace events): the calls of each rank, held
 * senders, and late messages as arrows. */
void write_trace_events(std::ostream &out, const zct::run &run,
                        const std::vector<message> &messages, const site_names &names);

/** The same as a page for a browser that needs nothing else: ranks as rows, late receivers in
 * colour, and the forecast. It is well-formed XML. */
void write_html(std::ostream &out, const zct::run &run, const std::vector<message> &messages,
                const site_names &names, const forecast &f);

} // namespace zc::forecast

#endif
