/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_CSV_TRACE_H_INCLUDED
#define ZCP_TOOLS_CSV_TRACE_H_INCLUDED

#include <filesystem>

#include "receive_trace.h"

namespace zc::report {

/** r<rank>.csv or r<rank>.csv.gz? */
bool is_csv_trace(const std::filesystem::path &file);

/**
 * Reads such a file; the run is named after its folder. The first line names
 * the columns, of which comm, src, tag, bytes, addr, t_post and t_sent are
 * needed and arrival_order is used where it is; their order does not matter.
 * Throws trace_error.
 */
trace load_csv_trace(const std::filesystem::path &file);

} // namespace zc::report

#endif
