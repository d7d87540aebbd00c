/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_UNRECORDED_H_INCLUDED
#define ZCF_UNRECORDED_H_INCLUDED

#include <compare>
#include <map>
#include <string>

#include "site_names.h"

namespace zc::forecast {

/** Calls that no forecast is made for, of all ranks: they count as work. */
struct unrecorded_calls {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
    std::uint64_t ns = 0;
};

struct unrecorded_place {
    zct_unrecorded what;
    std::string site;
    auto operator<=>(const unrecorded_place &) const = default;
};

using unrecorded_by_place = std::map<unrecorded_place, unrecorded_calls>;

unrecorded_by_place find_unrecorded(const zct::run &run, const site_names &names);

/** The function, or what several have in common. */
const char *name_of(zct_unrecorded what);

} // namespace zc::forecast

#endif
