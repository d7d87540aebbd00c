/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_set.h"

namespace zc {

void page_set::insert(range r)
{
    if (r.empty())
        return;
    std::vector<range> out;
    out.reserve(ranges_.size() + 1);
    for (const range &have : ranges_) {
        if (have.end < r.begin || have.begin > r.end) {
            out.push_back(have);
        } else {
            r.begin = std::min(r.begin, have.begin);
            r.end = std::max(r.end, have.end);
        }
    }
    auto after = [&](const range &have) { return have.begin > r.begin; };
    out.insert(std::find_if(out.begin(), out.end(), after), r);
    ranges_ = std::move(out);
}

void page_set::erase(range r)
{
    if (r.empty())
        return;
    std::vector<range> out;
    out.reserve(ranges_.size() + 1);
    for (const range &have : ranges_) {
        range before{have.begin, std::min(have.end, r.begin)};
        range after{std::max(have.begin, r.end), have.end};
        if (!before.empty())
            out.push_back(before);
        if (!after.empty())
            out.push_back(after);
    }
    ranges_ = std::move(out);
}

std::size_t page_set::bytes() const
{
    std::size_t sum = 0;
    for (const range &have : ranges_)
        sum += have.size();
    return sum;
}

std::size_t page_set::bytes_in(range r) const
{
    std::size_t sum = 0;
    for (const range &have : ranges_)
        sum += intersection(have, r).size();
    return sum;
}

std::vector<range> page_set::missing_from(range r) const
{
    std::vector<range> out;
    for (const range &have : ranges_) {
        if (have.end <= r.begin || have.begin >= r.end)
            continue;
        if (r.begin < have.begin)
            out.push_back({r.begin, have.begin});
        r.begin = have.end;
        if (r.empty())
            return out;
    }
    if (!r.empty())
        out.push_back(r);
    return out;
}

std::vector<range> page_set::common_with(range r) const
{
    std::vector<range> out;
    for (const range &have : ranges_) {
        range both = intersection(have, r);
        if (!both.empty())
            out.push_back(both);
    }
    return out;
}

} // namespace zc
