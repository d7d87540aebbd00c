/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_ZCT_TRACE_H_INCLUDED
#define ZCP_TOOLS_ZCT_TRACE_H_INCLUDED

#include <filesystem>

#include "receive_trace.h"

namespace zc::report {

/** A file that zc-trace wrote, or a folder of them? */
bool is_zct_trace(const std::filesystem::path &path);

/** The traces of its ranks. Throws trace_error. */
std::vector<trace> load_zct_traces(const std::filesystem::path &path);

} // namespace zc::report

#endif
