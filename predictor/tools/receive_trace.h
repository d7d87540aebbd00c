/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_RECEIVE_TRACE_H_INCLUDED
#define ZCP_TOOLS_RECEIVE_TRACE_H_INCLUDED

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "zcp/predictor.h"

namespace zc::report {

/** One message as a rank received it. */
struct traced_receive {
    zcp_receive_t receive;
    int64_t posted;   /* when the receive was posted, in units of the trace */
    int64_t sent;     /* when the sender entered its call, on the same clock */
    uint64_t arrival; /* its place in order of sent */

    /** It was on its way before its receive was there. */
    bool unexpected() const { return sent < posted; }
    bool large() const { return receive.envelope.bytes > 8192; }
};

/** The receives of one rank of one run, in order of posting. */
struct trace {
    std::string run;
    int rank;
    std::vector<traced_receive> receives;
    std::string note; /* what the reader of a report should know of it; mostly empty */

    /** Positions in receives, in order of arrival. */
    std::vector<size_t> arrival_order() const;
};

/** Numbers the arrivals where a trace does not: by time of sending, then as posted. */
void number_arrivals(std::vector<traced_receive> &receives);

/** A trace that cannot be read; what() says where: "file:line: reason". */
class trace_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/**
 * Calls @see with each trace under @path before it reads the next: a trace file, a folder of
 * r<rank>.csv.gz or r<rank>.zct files (one run), or a folder of such folders. Throws trace_error.
 */
void each_trace(const std::string &path, const std::function<void(trace)> &see);

/** All of them in memory, sorted by run and rank. */
std::vector<trace> load_traces(const std::string &path);

} // namespace zc::report

#endif
