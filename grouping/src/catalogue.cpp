/* SPDX-License-Identifier: BSD-3-Clause */
#include "catalogue.h"

#include <algorithm>
#include <set>

#include "fundamental.h"

namespace zc::groups {

using text = std::span<const uint32_t>;

static bool less(text a, text b)
{
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

struct by_symbols {
    bool operator()(text a, text b) const { return less(a, b); }
};
using texts = std::pmr::set<text, by_symbols>;

/* ---- the catalogue ----------------------------------------------------------- */

/** Does @sample go on with rounds of @p from its last occurrence to the end? */
static bool goes_on_to_the_end(text sample, const teiresias::pattern &p)
{
    const size_t begin = p.offsets.back();
    for (size_t i = begin + p.symbols.size(); i < sample.size(); i++) {
        const uint32_t expected = p.symbols[(i - begin) % p.symbols.size()];
        if (expected != ZCP_DONT_CARE && expected != sample[i])
            return false;
    }
    return true;
}

catalogue::catalogue(std::span<const uint32_t> sample,
                     std::pmr::vector<teiresias::pattern> &patterns, size_t words,
                     std::pmr::memory_resource *memory)
    : length_(sample.size()), words_(memory), entries_(memory)
{
    std::sort(patterns.begin(), patterns.end(),
              [](const teiresias::pattern &a, const teiresias::pattern &b) {
                  if (a.symbols.size() != b.symbols.size())
                      return a.symbols.size() > b.symbols.size();
                  if (a.offsets.front() != b.offsets.front())
                      return a.offsets.front() < b.offsets.front();
                  return less(a.symbols, b.symbols);
              });
    const size_t per_entry = sizeof(entry) / sizeof(uint32_t);
    size_t taken = 0;
    size_t kept = 0;
    size_t held = 0;
    for (; kept < patterns.size(); kept++) {
        const size_t more = patterns[kept].symbols.size() + patterns[kept].offsets.size();
        if (taken + more + per_entry > words)
            break;
        taken += more + per_entry;
        held += more;
    }
    partial_ = kept < patterns.size();
    words_.reserve(held);
    entries_.reserve(kept);
    for (size_t i = 0; i < kept; i++) {
        const teiresias::pattern &p = patterns[i];
        const auto at = static_cast<uint32_t>(words_.size());
        const auto long_ = static_cast<uint32_t>(p.symbols.size());
        entries_.push_back({at, long_, at + long_, static_cast<uint32_t>(p.offsets.size()),
                            goes_on_to_the_end(sample, p) ? 1u : 0u});
        words_.insert(words_.end(), p.symbols.begin(), p.symbols.end());
        words_.insert(words_.end(), p.offsets.begin(), p.offsets.end());
    }
}

catalogue::catalogue(size_t length, std::pmr::memory_resource *memory)
    : length_(length), words_(memory), entries_(memory)
{
}

catalogue::catalogue(const catalogue &from, std::pmr::memory_resource *memory)
    : length_(from.length_), partial_(from.partial_), words_(from.words_, memory),
      entries_(from.entries_, memory)
{
}

catalogue::pattern catalogue::operator[](size_t i) const
{
    const entry &e = entries_[i];
    const text all(words_);
    return {all.subspan(e.symbols, e.length), all.subspan(e.offsets, e.occurrences)};
}

size_t catalogue::bytes() const
{
    return words_.size() * sizeof(uint32_t) + entries_.size() * sizeof(entry);
}

std::optional<catalogue::occurrence> catalogue::longest_before(size_t request) const
{
    std::optional<occurrence> best;
    for (size_t i = 0; i < size(); i++) {
        const pattern p = (*this)[i];
        if (best && p.symbols.size() < (*this)[best->pattern].symbols.size())
            break; /* longest first */
        if (p.symbols.size() > request)
            continue;
        const auto over =
            std::upper_bound(p.offsets.begin(), p.offsets.end(), request - p.symbols.size());
        if (over - p.offsets.begin() < 2)
            continue;
        if (!best || *(over - 1) > best->offset)
            best = {i, *(over - 1)};
    }
    return best;
}

std::optional<catalogue::occurrence> catalogue::last() const
{
    std::optional<occurrence> best;
    for (size_t i = 0; i < size(); i++) {
        const occurrence o{i, (*this)[i].offsets.back()};
        if (!best || end(o) > end(*best))
            best = o;
    }
    return best;
}

std::optional<catalogue::occurrence> catalogue::next(size_t place) const
{
    std::optional<occurrence> best;
    for (size_t i = 0; i < size(); i++) {
        const text offsets = (*this)[i].offsets;
        const auto at = std::lower_bound(offsets.begin(), offsets.end(), place);
        if (at != offsets.end() && (!best || *at < best->offset))
            best = {i, *at};
    }
    return best;
}

/* ---- fundamental patterns ---------------------------------------------------- */

static bool occurs_at(text sample, text pattern, size_t place)
{
    for (size_t i = 0; i < pattern.size(); i++) {
        if (pattern[i] != ZCP_DONT_CARE && pattern[i] != sample[place + i])
            return false;
    }
    return true;
}

static teiresias::pattern with_all_places(text sample, text symbols,
                                          std::pmr::memory_resource *memory)
{
    teiresias::pattern out{
        std::pmr::vector<uint32_t>(symbols.begin(), symbols.end(), memory),
        std::pmr::vector<uint32_t>(memory),
        static_cast<uint32_t>(symbols.size() - static_cast<size_t>(std::count(
                                                   symbols.begin(), symbols.end(), ZCP_DONT_CARE))),
        false};
    for (size_t place = 0; place + symbols.size() <= sample.size(); place++) {
        if (occurs_at(sample, symbols, place))
            out.offsets.push_back(static_cast<uint32_t>(place));
    }
    return out;
}

/** Do two whole rounds of @period follow each other, in @p or where it occurs? */
static bool is_repetition(const teiresias::pattern &p, size_t period)
{
    if (2 * period <= p.symbols.size())
        return true;
    return period < p.symbols.size() &&
           std::any_of(p.offsets.begin(), p.offsets.end(), [&](uint32_t place) {
               return std::binary_search(p.offsets.begin(), p.offsets.end(), place + period);
           });
}

/** Is @p never more than a beginning of @round, at one of its places or right after one? */
static bool is_cut_short(const teiresias::pattern &p, const teiresias::pattern &round)
{
    if (p.symbols.size() >= round.symbols.size() ||
        !std::equal(p.symbols.begin(), p.symbols.end(), round.symbols.begin()))
        return false;
    const auto is_place = [&round](uint32_t place) {
        return std::binary_search(round.offsets.begin(), round.offsets.end(), place);
    };
    const auto length = static_cast<uint32_t>(round.symbols.size());
    return std::all_of(p.offsets.begin(), p.offsets.end(), [&](uint32_t place) {
        return is_place(place) || (place >= length && is_place(place - length));
    });
}

void replace_by_fundamental(std::span<const uint32_t> sample,
                            std::pmr::vector<teiresias::pattern> &patterns,
                            std::pmr::vector<teiresias::pattern> &out,
                            std::pmr::memory_resource *memory)
{
    std::pmr::vector<size_t> periods(memory);
    periods.reserve(patterns.size());
    texts rounds(memory);
    for (const teiresias::pattern &p : patterns) {
        periods.push_back(fundamental_period(p.symbols, memory));
        if (is_repetition(p, periods.back()))
            rounds.insert(text(p.symbols).first(periods.back()));
    }
    for (const text round : rounds)
        out.push_back(with_all_places(sample, round, memory));
    const auto fundamental = static_cast<ptrdiff_t>(out.size());
    for (size_t i = 0; i < patterns.size(); i++) {
        if (is_repetition(patterns[i], periods[i]) || rounds.contains(patterns[i].symbols))
            continue; /* replaced, or fundamental itself */
        const bool beginning = std::any_of(
            out.begin(), out.begin() + fundamental,
            [&](const teiresias::pattern &round) { return is_cut_short(patterns[i], round); });
        if (!beginning)
            out.push_back(std::move(patterns[i]));
    }
}

/** The shortest of @found that @pattern repeats, whole and at least twice; empty if none does. */
static text round_found(text pattern, const texts &found, std::pmr::memory_resource *memory)
{
    /* What repeats a round of any length repeats the smallest period, which divides it. */
    const size_t period = fundamental_period(pattern, memory);
    for (size_t length = period; 2 * length <= pattern.size(); length += period) {
        const text round = pattern.first(length);
        if (pattern.size() % length == 0 && found.contains(round))
            return round;
    }
    return {};
}

void replace_by_fundamental_found(std::pmr::vector<teiresias::pattern> &patterns,
                                  std::pmr::vector<teiresias::pattern> &out,
                                  std::pmr::memory_resource *memory)
{
    texts found(memory);
    for (const teiresias::pattern &p : patterns)
        found.insert(text(p.symbols));
    texts rounds(memory);
    for (const teiresias::pattern &p : patterns) {
        const text round = round_found(p.symbols, found, memory);
        if (!round.empty())
            rounds.insert(round);
    }
    for (teiresias::pattern &p : patterns) {
        if (rounds.empty() || rounds.contains(p.symbols))
            out.push_back(std::move(p));
    }
}

} // namespace zc::groups
