/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_SITE_NAMES_H_INCLUDED
#define ZCF_SITE_NAMES_H_INCLUDED

#include <map>
#include <string>
#include <vector>

#include "zct/trace.h"

namespace zc::forecast {

/**
 * Names of call sites, for people: "exchange (halo.c:120)", from the debugging
 * information of the program (addr2line(1)); "exchange+0x1b" or
 * "program+0x11d9" if there is none.
 */
class site_names {
  public:
    explicit site_names(const zct::run &run);

    /** @rank: its place in the run; "?" if its sites were not recorded. */
    const std::string &operator()(std::size_t rank, std::uint32_t site) const;

  private:
    std::vector<std::vector<std::string>> names_;
};

} // namespace zc::forecast

#endif
