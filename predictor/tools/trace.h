/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_TRACE_H_INCLUDED
#define ZCP_TOOLS_TRACE_H_INCLUDED

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "zcp/predictor.h"

namespace zc::report {

/** One message as a rank received it. */
struct traced_receive {
    zcp_receive_t receive;
    int64_t posted_us; /* when the receive was posted */
    int64_t sent_us;   /* when the sender entered its call; the same clock */
    uint64_t arrival;  /* its place in order of sent_us */

    /** It was on its way before its receive was there. */
    bool unexpected() const { return sent_us < posted_us; }
    bool large() const { return receive.envelope.bytes > 8192; }
};

/** The receives of one rank of one run, in order of posting. */
struct trace {
    std::string run;
    int rank;
    std::vector<traced_receive> receives;

    /** Positions in receives, in order of arrival. */
    std::vector<size_t> arrival_order() const;
};

/** A trace that cannot be read; what() says where: "file:line: reason". */
class trace_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/**
 * All traces under @path: a trace file, a folder of r<rank>.csv.gz files (one
 * run), or a folder of such folders. Sorted by run and rank. Throws trace_error.
 */
std::vector<trace> load_traces(const std::string &path);

} // namespace zc::report

#endif
