/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_NODES_H_INCLUDED
#define ZC_NODES_H_INCLUDED

#include "page.h"

namespace zc {

inline constexpr int kAnyNode = -1;

/**
 * nodes - which memory of the machine (NUMA node) pages are in
 *
 * An exchange gives the user the landing buffer's pages for good. Where a program's
 * threads have placed a buffer by touching it first, pages from elsewhere would make
 * every later look at it slower; so landing memory is taken from where the buffer is
 * expected, and exchanged only if it is there. A range is judged by pages spread
 * evenly over it. Machines with one node are never asked.
 *
 * Any thread.
 */
class nodes {
  public:
    nodes();

    bool several() const { return several_; }
    /** The node that the pages of @r are on; kAnyNode if there are several, or no pages,
     *  or the kernel does not tell. */
    int node_of(range r) const;
    /** May the pages of @user be exchanged with those at @landing? Those that the user
     *  has never touched are nowhere yet. */
    bool match(range user, addr_t landing) const;

  private:
    const bool several_;
};

} // namespace zc

#endif /* ZC_NODES_H_INCLUDED */
