/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_ZCT_TRACE_H_INCLUDED
#define ZCP_TOOLS_ZCT_TRACE_H_INCLUDED

#include <filesystem>
#include <functional>

#include "receive_trace.h"

namespace zc::report {

/** A file that zc-trace wrote, or a folder of them? */
bool is_zct_trace(const std::filesystem::path &path);

/** Calls @see with the trace of each of its ranks before it reads the next. Throws trace_error. */
void each_zct_trace(const std::filesystem::path &path, const std::function<void(trace)> &see);

} // namespace zc::report

#endif
