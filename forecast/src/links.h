/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_LINKS_H_INCLUDED
#define ZCF_LINKS_H_INCLUDED

#include <map>

#include "message.h"

namespace zc::forecast {

/**
 * The links of the hosts, in a replay: one out, one in.
 *
 * Each carries its messages one after the other, in the order in which they begin, and rests while
 * there are none. A message needs both of its links for as long, and is there when the later of the
 * two has carried it. Messages of one host are on no link.
 */
class links {
  public:
    /** When @m, which can begin at @now and needs @taken_ns on its links, is there. To be called in
     * the order of time. */
    double carry(const message &m, double now, double taken_ns);

  private:
    std::map<std::size_t, double> out_free_; /* by host: when it has carried all */
    std::map<std::size_t, double> in_free_;
};

} // namespace zc::forecast

#endif
