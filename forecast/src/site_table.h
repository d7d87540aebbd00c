/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_SITE_TABLE_H_INCLUDED
#define ZCF_SITE_TABLE_H_INCLUDED

#include <iosfwd>

#include "forecast.h"

namespace zc::forecast {

/** The findings in all, and of each pair of call sites, as a table of a page; those that cost most
 * first, and at most @most of them. */
void write_site_table(std::ostream &out, const forecast &f, std::size_t most);

} // namespace zc::forecast

#endif
