/* SPDX-License-Identifier: BSD-3-Clause */
#include "teiresias.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace zc::groups {

constexpr uint64_t kPollEvery = 1u << 16;

teiresias::teiresias(std::span<const uint32_t> text, const zcp_patterns_params_t &params,
                     std::pmr::memory_resource *memory)
    : params_(params), memory_(memory), text_(memory), names_(memory), counts_(memory),
      slots_(memory), touched_(memory), pattern_(memory), places_(memory), pending_(memory)
{
    number_symbols(text);
    counts_.resize(nr_symbols_);
    slots_.resize(nr_symbols_);
    touched_.reserve(nr_symbols_);
    next_poll_ = kPollEvery;
}

/* Dense numbers make counting an array access, whatever the alphabet. */
void teiresias::number_symbols(std::span<const uint32_t> text)
{
    const uint32_t largest = text.empty() ? 0 : *std::max_element(text.begin(), text.end());
    const bool small = largest < 4 * text.size();
    std::pmr::vector<uint32_t> numbers(memory_); /* by symbol, if that is a small table */
    if (small) {
        numbers.resize(size_t{largest} + 1);
        for (const uint32_t symbol : text)
            numbers[symbol] = 1;
        names_.reserve(std::accumulate(numbers.begin(), numbers.end(), size_t{0}));
        for (uint32_t symbol = 0; symbol < numbers.size(); symbol++) {
            if (numbers[symbol] != 0) {
                numbers[symbol] = static_cast<uint32_t>(names_.size());
                names_.push_back(symbol);
            }
        }
    } else {
        names_.assign(text.begin(), text.end());
        std::sort(names_.begin(), names_.end());
        names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
    }
    nr_symbols_ = static_cast<uint32_t>(names_.size());
    text_.reserve(text.size());
    for (const uint32_t symbol : text) {
        const auto found =
            small ? numbers[symbol]
                  : std::lower_bound(names_.begin(), names_.end(), symbol) - names_.begin();
        text_.push_back(static_cast<uint32_t>(found));
    }
}

void teiresias::spend(uint64_t steps) const
{
    steps_ += steps;
    if (params_.max_steps != 0 && steps_ > params_.max_steps)
        throw stop{ZCP_PATTERNS_STEPS};
    if (steps_ >= next_poll_) {
        next_poll_ = steps_ + kPollEvery;
        if (params_.expired && params_.expired(params_.context))
            throw stop{ZCP_PATTERNS_TIME};
    }
}

zcp_patterns_end_t teiresias::find(std::pmr::vector<pattern> &out)
{
    try {
        seed();
        while (!pending_.empty()) {
            const candidate next = std::move(pending_.back());
            pending_.pop_back();
            visit(next, out);
        }
    } catch (const stop &stopped) {
        return stopped.why;
    } catch (const std::bad_alloc &) {
        return ZCP_PATTERNS_MEMORY;
    }
    return ZCP_PATTERNS_COMPLETE;
}

/* Patterns of one literal, the rarest first: the last one pending is next. */
void teiresias::seed()
{
    spend(text_.size());
    for (const uint32_t symbol : text_)
        counts_[symbol]++;
    std::pmr::vector<uint32_t> order(nr_symbols_, memory_);
    std::iota(order.begin(), order.end(), 0u);
    std::erase_if(order, [this](uint32_t s) { return counts_[s] < params_.support; });
    std::stable_sort(order.begin(), order.end(),
                     [this](uint32_t a, uint32_t b) { return counts_[a] < counts_[b]; });
    std::fill(slots_.begin(), slots_.end(), UINT32_MAX);
    pending_.reserve(order.size() + 1);
    for (const uint32_t symbol : order) {
        slots_[symbol] = static_cast<uint32_t>(pending_.size());
        pending_.push_back({0, 0, 1, symbol, reserved<uint32_t>(counts_[symbol], memory_)});
    }
    for (uint32_t at = 0; at < text_.size(); at++) {
        if (slots_[text_[at]] != UINT32_MAX)
            pending_[slots_[text_[at]]].offsets.push_back(at);
    }
    std::fill(counts_.begin(), counts_.end(), 0u);
}

void teiresias::append(uint32_t gap, uint32_t symbol)
{
    pattern_.resize(pattern_.size() + gap - 1, ZCP_DONT_CARE);
    places_.push_back(static_cast<uint32_t>(pattern_.size()));
    pattern_.push_back(symbol);
}

/** Do all occurrences have one symbol at @place, and all lie within the text there? */
bool teiresias::same_everywhere(const std::pmr::vector<uint32_t> &offsets, int64_t place) const
{
    if (int64_t{offsets.front()} + place < 0 ||
        int64_t{offsets.back()} + place >= static_cast<int64_t>(text_.size()))
        return false;
    const uint32_t *at = text_.data() + place;
    const uint32_t symbol = at[offsets.front()];
    size_t i = 1;
    while (i < offsets.size() && at[offsets[i]] == symbol)
        i++;
    spend(i);
    return i == offsets.size();
}

bool teiresias::redundant_inside(const std::pmr::vector<uint32_t> &offsets) const
{
    for (size_t place = 0; place < pattern_.size(); place++) {
        if (pattern_[place] == ZCP_DONT_CARE &&
            same_everywhere(offsets, static_cast<int64_t>(place)))
            return true;
    }
    return false;
}

bool teiresias::redundant_left(const std::pmr::vector<uint32_t> &offsets) const
{
    const uint32_t span = places_[params_.literals - 2] + 1; /* of the first L-1 literals */
    for (uint32_t gap = 1; gap + span <= params_.window; gap++) {
        if (same_everywhere(offsets, -int64_t{gap}))
            return true;
    }
    return false;
}

/* Most offsets of repetitive texts go on alike for long. Where the next place
 * holds one symbol for all, every pattern that leaves it open is redundant, and
 * so is this one: take the whole common run in one comparison of text. */
void teiresias::run_on(const std::pmr::vector<uint32_t> &offsets)
{
    const size_t end = pattern_.size();
    size_t run = std::min<size_t>(text_.size() - offsets.back() - end, params_.max_length - end);
    const uint32_t *first = text_.data() + offsets.front() + end;
    for (size_t i = 1; i < offsets.size() && run > 0; i++) {
        const uint32_t *other = text_.data() + offsets[i] + end;
        size_t same = 0;
        while (same + 64 <= run && std::memcmp(first + same, other + same, 256) == 0)
            same += 64;
        while (same < run && first[same] == other[same])
            same++;
        run = same;
        spend(1 + run / 64);
    }
    for (size_t i = 0; i < run; i++)
        append(1, first[i]);
}

/** Farthest place a further literal may take, counted from the end. */
uint32_t teiresias::widest_gap() const
{
    const uint32_t length = static_cast<uint32_t>(pattern_.size());
    const uint32_t literals = static_cast<uint32_t>(places_.size());
    if (literals < params_.literals) {
        const uint32_t missing = params_.literals - literals; /* this one included */
        return params_.window - length - (missing - 1);
    }
    return params_.window - (length - places_[literals - (params_.literals - 1)]);
}

void teiresias::convolve(const std::pmr::vector<uint32_t> &offsets, uint32_t gap)
{
    const uint32_t length = static_cast<uint32_t>(pattern_.size());
    const uint32_t place = length + gap - 1;
    size_t nr = offsets.size();
    while (nr > 0 && size_t{offsets[nr - 1]} + place >= text_.size())
        nr--;
    if (nr < params_.support)
        return;
    spend(2 * nr);

    const uint32_t *at = text_.data() + place;
    touched_.clear();
    for (size_t i = 0; i < nr; i++) {
        const uint32_t symbol = at[offsets[i]];
        if (counts_[symbol]++ == 0)
            touched_.push_back(symbol);
    }
    /* Whatever happens below, counts_ must be zero again. */
    bool any = false;
    for (const uint32_t symbol : touched_) {
        slots_[symbol] = UINT32_MAX;
        any = any || counts_[symbol] >= params_.support;
    }
    if (any) {
        for (size_t t = touched_.size(); t-- > 0;) { /* the first seen is taken up first */
            const uint32_t symbol = touched_[t];
            if (counts_[symbol] < params_.support)
                continue;
            slots_[symbol] = static_cast<uint32_t>(pending_.size());
            pending_.push_back({length, static_cast<uint32_t>(places_.size()), gap, symbol,
                                reserved<uint32_t>(counts_[symbol], memory_)});
        }
        for (size_t i = 0; i < nr; i++) {
            const uint32_t slot = slots_[at[offsets[i]]];
            if (slot != UINT32_MAX)
                pending_[slot].offsets.push_back(offsets[i]);
        }
    }
    for (const uint32_t symbol : touched_)
        counts_[symbol] = 0;
}

void teiresias::visit(const candidate &next, std::pmr::vector<pattern> &out)
{
    pattern_.resize(next.parent_length);
    places_.resize(next.parent_literals);
    append(next.gap, next.symbol);
    const std::pmr::vector<uint32_t> &offsets = next.offsets;

    if (redundant_inside(offsets))
        return;
    run_on(offsets);
    if (places_.size() >= params_.literals && redundant_left(offsets))
        return;

    const uint32_t allowed = widest_gap();
    const uint32_t length = static_cast<uint32_t>(pattern_.size());
    const uint32_t widest = std::min(allowed, params_.max_length - length);
    if (places_.size() >= params_.literals) {
        bool maximal = true;
        for (uint32_t gap = 1; gap <= widest && maximal; gap++)
            maximal = !same_everywhere(offsets, int64_t{length} + gap - 1);
        if (maximal)
            report(offsets, widest < allowed, out);
    }
    for (uint32_t gap = widest; gap >= 1; gap--)
        convolve(offsets, gap);
}

void teiresias::report(const std::pmr::vector<uint32_t> &offsets, bool cut,
                       std::pmr::vector<pattern> &out) const
{
    if (params_.max_patterns != 0 && out.size() >= params_.max_patterns)
        throw stop{ZCP_PATTERNS_COUNT};
    pattern found{std::pmr::vector<uint32_t>(memory_),
                  std::pmr::vector<uint32_t>(offsets.begin(), offsets.end(), memory_),
                  static_cast<uint32_t>(places_.size()), cut};
    found.symbols.reserve(pattern_.size());
    for (const uint32_t number : pattern_)
        found.symbols.push_back(number == ZCP_DONT_CARE ? number : names_[number]);
    out.push_back(std::move(found));
}

} // namespace zc::groups
