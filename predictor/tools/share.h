/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_SHARE_H_INCLUDED
#define ZCP_TOOLS_SHARE_H_INCLUDED

#include <array>
#include <cstdint>

namespace zc::report {

/** So many of so many. */
struct share {
    uint64_t right = 0;
    uint64_t n = 0;

    void count(bool is_right)
    {
        n++;
        right += is_right;
    }
    void add(const share &other)
    {
        right += other.right;
        n += other.n;
    }
    double percent() const
    {
        return n ? 100.0 * static_cast<double>(right) / static_cast<double>(n) : 0;
    }
};

/** Every figure is given for all messages and for those above 8 KiB. */
enum size_class { every_size, over_8k, nr_size_classes };
constexpr std::array<const char *, nr_size_classes> kClassNames = {"all", "over8k"};

} // namespace zc::report

#endif
