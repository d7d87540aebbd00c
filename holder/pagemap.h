/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGEMAP_H_INCLUDED
#define ZC_HOLDER_PAGEMAP_H_INCLUDED

#include <string>
#include <vector>

#include <sys/types.h>

#include "pending_pages.h"
#include "rank_memory.h"

namespace zc::holder {

/** What CRIU has left out of the image of @pid in @directory, as it does with --lazy-pages, in the
 * order of the addresses. Throws error. */
std::vector<page_range> left_out(const std::string &directory, pid_t pid);

/** Throws error if @memory, in that order, is not what CRIU has left out of that image. */
void check_left_out(const std::string &directory, pid_t pid,
                    const std::vector<stored_pages> &memory);

} // namespace zc::holder

#endif
