/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_SATURATED_H_INCLUDED
#define ZC_HOLDER_SATURATED_H_INCLUDED

#include <cstdint>

namespace zc::holder {

/* Amounts of memory that others have told: the sum is the largest number if it would be larger than
 * that, and a difference is never below zero. */

constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b)
{
    return a > ~std::uint64_t{0} - b ? ~std::uint64_t{0} : a + b;
}

constexpr std::uint64_t twice(std::uint64_t one)
{
    return plus(one, one);
}

constexpr std::uint64_t without(std::uint64_t all, std::uint64_t taken)
{
    return all > taken ? all - taken : 0;
}

} // namespace zc::holder

#endif
