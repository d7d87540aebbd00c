/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_DUMP_H_INCLUDED
#define ZCT_DUMP_H_INCLUDED

#include <string>
#include <vector>

namespace zc::zct {

/** zc-trace dump: @arguments after the word. Returns the exit code; throws error. */
int dump(const std::vector<std::string> &arguments);

} // namespace zc::zct

#endif
