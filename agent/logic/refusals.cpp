/* SPDX-License-Identifier: BSD-3-Clause */
#include "refusals.h"

#include <algorithm>

#include <fmt/format.h>

namespace zc::agent::party {
namespace {

constexpr std::uint32_t kMostDoubled = 6;
constexpr nanos kForgotten = 3600 * kSecond; /* after the time in which it is not asked */

std::string told(nanos now, const refusals::entry &one)
{
    if (one.is_put_off)
        return fmt::format("may be on its way ({}), and is asked again in {:.0f} s", one.why,
                           to_seconds(one.until - now));
    return fmt::format("has refused {} ({}), and is asked again in {:.0f} s",
                       one.times == 1 ? "once" : fmt::format("{} times", one.times), one.why,
                       to_seconds(one.until - now));
}

} // namespace

template <class Key>
const refusals::entry &refusals::add(nanos now, std::map<Key, entry> &to, const Key &key,
                                     const std::string &why)
{
    std::erase_if(to, [&](const auto &one) { return now - one.second.until > kForgotten; });
    entry &one = to[key];
    one.until = now + (std::max(s_.residence, s_.settle) << std::min(one.times, kMostDoubled));
    one.times++;
    one.is_put_off = false;
    one.why = why;
    counted_++;
    return one;
}

const refusals::entry &refusals::add(nanos now, const rank_key &rank, const std::string &why)
{
    return add(now, ranks_, rank, why);
}

const refusals::entry &refusals::add(nanos now, node_id target, const std::string &why)
{
    return add(now, targets_, target, why);
}

const refusals::entry &refusals::put_off(nanos now, const rank_key &rank, const std::string &why)
{
    entry &one = ranks_[rank];
    one.until = std::max(one.until, now + std::max(s_.residence, s_.settle));
    one.is_put_off = true;
    one.why = why;
    return one;
}

void refusals::forget(const rank_key &rank, node_id target)
{
    ranks_.erase(rank);
    targets_.erase(target);
}

bool refusals::hold_back(nanos now, const rank_key &rank, node_id target, std::string &why) const
{
    if (const auto at = ranks_.find(rank); at != ranks_.end() && now < at->second.until) {
        why = told(now, at->second);
        return true;
    }
    if (const auto at = targets_.find(target); at != targets_.end() && now < at->second.until) {
        why = "cannot go there: that node " + told(now, at->second);
        return true;
    }
    return false;
}

const refusals::entry *refusals::of(const rank_key &rank) const
{
    const auto at = ranks_.find(rank);
    return at == ranks_.end() ? nullptr : &at->second;
}

const refusals::entry *refusals::of(node_id target) const
{
    const auto at = targets_.find(target);
    return at == targets_.end() ? nullptr : &at->second;
}

} // namespace zc::agent::party
