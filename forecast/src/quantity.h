/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_QUANTITY_H_INCLUDED
#define ZCF_QUANTITY_H_INCLUDED

#include <cstdint>
#include <string>

#include "predictability.h"

namespace zc::forecast {

/* Quantities as people read them. */

/** "1.50 s", "50.0 ms", "145 us" */
std::string time_text(double seconds);
std::string time_text(std::int64_t ns);

/** "42 MiB", "12 KiB", "100 B" */
std::string bytes_text(std::uint64_t bytes);

/** "92 %"; "-" if nothing was asked */
std::string hit_rate_text(const predictability &p);

} // namespace zc::forecast

#endif
