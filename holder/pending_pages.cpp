/* SPDX-License-Identifier: BSD-3-Clause */
#include "pending_pages.h"

#include <algorithm>
#include <iterator>

namespace zc::holder {

void pending_pages::add(const stored_pages &run)
{
    pieces_[run.address] = {run.address + run.bytes, run.from};
}

std::optional<std::uint64_t> pending_pages::find(std::uint64_t address) const
{
    auto found = pieces_.upper_bound(address);
    if (found == pieces_.begin() || address >= (--found)->second.end)
        return {};
    return found->second.from + (address - found->first);
}

bool pending_pages::has_any(std::uint64_t address, std::uint64_t bytes) const
{
    const auto next = pieces_.lower_bound(address);
    return find(address) || (next != pieces_.end() && next->first < address + bytes);
}

stored_pages pending_pages::first(std::uint64_t most) const
{
    const auto &[address, found] = *pieces_.begin();
    return {address, std::min(most, found.end - address), found.from};
}

/** So that a piece begins at @at, if one has it. */
void pending_pages::split(std::uint64_t at)
{
    auto found = pieces_.lower_bound(at);
    if (found == pieces_.begin() || at >= (--found)->second.end)
        return;
    pieces_[at] = {found->second.end, found->second.from + (at - found->first)};
    found->second.end = at;
}

void pending_pages::drop(std::uint64_t address, std::uint64_t bytes)
{
    split(address);
    split(address + bytes);
    pieces_.erase(pieces_.lower_bound(address), pieces_.lower_bound(address + bytes));
}

void pending_pages::move(std::uint64_t address, std::uint64_t to, std::uint64_t bytes)
{
    split(address);
    split(address + bytes);
    const auto begin = pieces_.lower_bound(address), end = pieces_.lower_bound(address + bytes);
    const std::map<std::uint64_t, piece> moved(begin, end);
    pieces_.erase(begin, end);
    drop(to, bytes); /* what was there is unmapped */
    for (const auto &[at, one] : moved)
        pieces_[at - address + to] = {one.end - address + to, one.from};
}

} // namespace zc::holder
