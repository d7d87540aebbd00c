/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGEMAP_H_INCLUDED
#define ZC_HOLDER_PAGEMAP_H_INCLUDED

#include <string>
#include <vector>

#include <sys/types.h>

#include "page_range.h"

namespace zc::holder {

/** What CRIU has left out of the image of @pid in @directory, as it does with --lazy-pages, in the
 * order of the addresses. Throws error. */
std::vector<page_range> left_out(const std::string &directory, pid_t pid);

} // namespace zc::holder

#endif
