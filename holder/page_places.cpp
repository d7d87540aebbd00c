/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_places.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "crc32c.h"

namespace zc::holder {
namespace {

constexpr std::uint64_t kEnd = std::uint64_t{1} << 63; /* of addresses */

} // namespace

bool page_places::set(std::uint64_t address, std::uint64_t place)
{
    chunk &of = chunks_[address / kChunk];
    std::uint64_t &now = of.places[address % kChunk / kPage];
    of.known += now == kNone;
    return std::exchange(now, place) != place;
}

void page_places::set(const stored_pages &run)
{
    for (std::uint64_t at = 0; at < run.bytes; at += kPage)
        set(run.address + at, run.from + at);
}

std::uint64_t page_places::bytes() const noexcept
{
    std::uint64_t pages = 0;
    for (const auto &[number, of] : chunks_)
        pages += of.known;
    return pages * kPage;
}

std::optional<std::uint64_t> page_places::find(std::uint64_t address) const
{
    const auto of = chunks_.find(address / kChunk);
    if (of == chunks_.end())
        return {};
    const std::uint64_t place = of->second.places[address % kChunk / kPage];
    return place == kNone ? std::nullopt : std::optional(place + address % kPage);
}

template <class function>
void page_places::for_each(std::uint64_t address, std::uint64_t bytes, const function &each) const
{
    const std::uint64_t end = address + bytes;
    for (auto of = chunks_.lower_bound(address / kChunk);
         of != chunks_.end() && of->first * kChunk < end; ++of) {
        const std::uint64_t begin = of->first * kChunk;
        for (std::uint64_t at = std::max(begin, address); at < std::min(begin + kChunk, end);
             at += kPage) {
            const std::uint64_t place = of->second.places[at % kChunk / kPage];
            if (place != kNone)
                each(at, place);
        }
    }
}

bool page_places::has_any(std::uint64_t address, std::uint64_t bytes) const
{
    bool found = false;
    for_each(address, bytes,
             [&](std::uint64_t /*unused*/, std::uint64_t /*unused*/) { found = true; });
    return found;
}

stored_pages page_places::first(std::uint64_t most) const
{
    const auto &[number, of] = *chunks_.begin();
    const auto begin = std::find_if(of.places.begin(), of.places.end(),
                                    [](std::uint64_t place) { return place != kNone; });
    const auto index = static_cast<std::uint64_t>(begin - of.places.begin());
    stored_pages run{number * kChunk + index * kPage, kPage, *begin};
    for (auto next = begin + 1;
         next != of.places.end() && run.bytes < most && *next == run.from + run.bytes; ++next)
        run.bytes += kPage;
    return run;
}

void page_places::drop(std::uint64_t address, std::uint64_t bytes)
{
    const std::uint64_t end = address + bytes;
    for (auto of = chunks_.lower_bound(address / kChunk);
         of != chunks_.end() && of->first * kChunk < end;) {
        const std::uint64_t begin = of->first * kChunk;
        for (std::uint64_t at = std::max(begin, address); at < std::min(begin + kChunk, end);
             at += kPage) {
            std::uint64_t &place = of->second.places[at % kChunk / kPage];
            of->second.known -= std::exchange(place, kNone) != kNone;
        }
        of = of->second.known == 0 ? chunks_.erase(of) : std::next(of);
    }
}

/** The rank waits for it: the chunk is looked for once for the pages that lie in it. */
void page_places::move(std::uint64_t address, std::uint64_t to, std::uint64_t bytes)
{
    std::vector<std::pair<std::uint64_t, std::uint64_t>> moved; /* to where, and places */
    for_each(address, bytes, [&](std::uint64_t at, std::uint64_t place) {
        moved.emplace_back(at - address + to, place);
    });
    drop(address, bytes);
    drop(to, bytes);
    auto into = chunks_.end();
    for (const auto &[at, place] : moved) {
        if (into == chunks_.end() || into->first != at / kChunk)
            into = chunks_.try_emplace(at / kChunk).first;
        into->second.places[at % kChunk / kPage] = place; /* it had none */
        into->second.known++;
    }
}

void page_places::keep(const std::vector<page_range> &those)
{
    std::uint64_t at = 0;
    for (const page_range &each : those) {
        drop(at, each.begin - at);
        at = each.end;
    }
    drop(at, kEnd - at);
}

bool page_places::lie_in(std::uint64_t bytes) const noexcept
{
    return std::all_of(chunks_.begin(), chunks_.end(), [&](const auto &of) {
        const auto &places = of.second.places;
        return std::all_of(places.begin(), places.end(), [&](std::uint64_t place) {
            return place == kNone || (place <= bytes && bytes - place >= kPage);
        });
    });
}

std::uint32_t page_places::sum() const noexcept
{
    std::uint32_t sum = 0;
    for (const auto &[number, of] : chunks_) {
        const std::uint64_t head = number;
        sum = zc_crc32c(sum, &head, sizeof head);
        sum = zc_crc32c(sum, of.places.data(), sizeof of.places);
    }
    return sum;
}

} // namespace zc::holder
