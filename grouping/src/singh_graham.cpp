/* SPDX-License-Identifier: BSD-3-Clause */
#include "singh_graham.h"

#include <algorithm>

#include "fundamental.h"
#include "levenshtein.h"

namespace zc::groups {

constexpr uint64_t kStepsPerEvent = 2000; /* search budget of a sample: a millisecond or so */
constexpr uint64_t kCells = 1u << 24;     /* of edit distances, per request */
constexpr uint32_t kRoundsPerSample = 4;  /* what an adaptive sample aims at */
constexpr uint32_t kLeastSample = 16;
constexpr double kExplained = 0.5; /* coverage below which a pattern says nothing of the period */
constexpr size_t kShare = 8;       /* of the archive's memory, for one sample */

singh_graham::singh_graham(const setting &s, predictor how, std::pmr::memory_resource *memory)
    : setting_(s), how_(how), memory_(memory), traffic_(s, memory), said_(s.period_flows, memory),
      agreement_(s.ranks, memory), sample_(reserved<uint32_t>(s.longest_sample, memory)),
      sampling_(s.sample), past_(s.archive_bytes, memory), desk_(s.archive_bytes / kShare, memory)
{
}

/* Beside the search, two rows or borders of the longest pattern are in hand. */
size_t singh_graham::bytes_needed(const setting &s)
{
    return sizeof(singh_graham) + traffic::bytes_needed(s) +
           flow_table::bytes_needed(s.period_flows) + agreement::bytes_needed(s.ranks) +
           size_t{s.longest_sample} * sizeof(uint32_t) +
           2 * (size_t{s.longest_sample} + 1) * sizeof(size_t) +
           archive::bytes_needed(s.archive_bytes) + s.archive_bytes / kShare + s.search_bytes;
}

void singh_graham::learn(const zcp_event_t &event, tick)
{
    traffic_.learn(event);
    events_++;
    sample_.push_back(event.src * setting_.ranks + event.dst);
    current_.reset();
    if (sample_.size() >= sampling_)
        sample_over();
}

void singh_graham::sample_over()
{
    const catalogue now = search();
    past_.add(now);
    adapt(now);
    sample_.clear();
}

/** The patterns of the current sample as far as it has come. */
catalogue singh_graham::search() const
{
    zcp_patterns_params_t params{};
    params.size = sizeof(params);
    params.literals = setting_.literals;
    params.window = setting_.window;
    params.support = setting_.support;
    params.max_length = std::max(setting_.longest_sample, setting_.window);
    params.max_steps = kStepsPerEvent * sample_.size();

    /* A search that takes all it may must leave something to work on its result with. */
    bounded_memory found_in(setting_.search_bytes / 2, memory_);
    bounded_memory scratch(setting_.search_bytes / 2, memory_);
    try {
        std::pmr::vector<teiresias::pattern> found(&found_in);
        teiresias teiresias(sample_, params, &found_in);
        const bool whole = teiresias.find(found) == ZCP_PATTERNS_COMPLETE;
        std::pmr::vector<teiresias::pattern> used(&scratch);
        if (setting_.kmp == ZCP_GROUPS_KMP_ZC)
            replace_by_fundamental(sample_, found, used, &scratch);
        else if (setting_.kmp == ZCP_GROUPS_KMP_STRICT)
            replace_by_fundamental_found(found, used, &scratch);
        catalogue out(sample_, setting_.kmp == ZCP_GROUPS_KMP_OFF ? found : used,
                      desk_.limit() / sizeof(uint32_t), &desk_);
        partial_ += !whole || out.partial() ? 1 : 0;
        return out;
    } catch (const std::bad_alloc &) {
        partial_++;
        return {sample_.size(), &desk_};
    }
}

/** Is the sample that has just begun the most recent one? Without an event it has not begun. */
bool singh_graham::uses_current() const
{
    return past_.size() == 0 || (setting_.recent == ZCP_GROUPS_RECENT_CURRENT && !sample_.empty());
}

std::optional<singh_graham::base> singh_graham::basic() const
{
    const bool current = uses_current();
    if (current) {
        if (!current_)
            current_.emplace(search());
        if (const auto found = current_->longest_before(sample_.size()))
            return base{(*current_)[found->pattern], sample_.size() - current_->end(*found),
                        past_.size()};
    }
    size_t since = sample_.size();
    for (size_t i = past_.size(); i-- > 0;) {
        const catalogue &sample = past_[i];
        const bool latest = !current && i + 1 == past_.size();
        if (const auto found = latest ? sample.longest_before(sample.length()) : sample.last()) {
            const size_t end = std::min(sample.end(*found), sample.length());
            return base{sample[found->pattern], since + sample.length() - end, i};
        }
        since += sample.length(); /* nothing was found in that one */
    }
    return std::nullopt;
}

std::optional<archive::successor> singh_graham::specific(const base &now) const
{
    const auto pattern = now.pattern.symbols;
    for (size_t i = now.sample; i-- > 0;) {
        /* The shortest first: of those that begin with the pattern, that is the one equal to it. */
        for (size_t p = past_[i].size(); p-- > 0;) {
            const auto known = past_[i][p].symbols;
            if (known.size() < pattern.size() ||
                (known.size() > pattern.size() && setting_.match == ZCP_GROUPS_MATCH_WHOLE) ||
                !std::equal(pattern.begin(), pattern.end(), known.begin()))
                continue;
            if (auto next = past_.after(i, p)) {
                next->gap += known.size() - pattern.size(); /* that has yet to come */
                return next;
            }
        }
    }
    return std::nullopt;
}

std::optional<archive::successor> singh_graham::nearest(const base &now) const
{
    const auto pattern = now.pattern.symbols;
    std::optional<archive::successor> best;
    size_t least = SIZE_MAX;
    uint64_t cells = 0;
    for (size_t i = now.sample; i-- > 0 && least > 0;) {
        for (size_t p = 0; p < past_[i].size(); p++) {
            const auto known = past_[i][p].symbols;
            size_t allowed = std::max(pattern.size(), known.size()) / 4;
            if (least != SIZE_MAX)
                allowed = std::min(allowed, least - 1); /* the latest of equals */
            const size_t apart =
                std::max(pattern.size(), known.size()) - std::min(pattern.size(), known.size());
            if (apart > allowed)
                continue;
            cells += known.size() * (2 * allowed + 1);
            if (cells > kCells) {
                partial_++;
                return best;
            }
            const size_t distance = levenshtein(pattern, known, allowed, memory_);
            if (distance > allowed)
                continue;
            if (auto next = past_.after(i, p)) {
                least = distance;
                best = next;
                if (least == 0)
                    break;
            }
        }
    }
    return best;
}

/** Where in its rounds of @length a pattern is that began @gap places after what ended @since. */
static size_t phase_of(size_t since, size_t gap, size_t length)
{
    return (since % length + length - gap % length) % length;
}

std::optional<singh_graham::prediction> singh_graham::predict() const
{
    const auto now = basic();
    if (!now)
        return std::nullopt;
    std::optional<archive::successor> next;
    if (how_ == predictor::specific)
        next = specific(*now);
    else if (how_ == predictor::levenshtein)
        next = nearest(*now);
    if (!next)
        return prediction{now->pattern.symbols, now->since % now->pattern.symbols.size()};
    const auto symbols = next->pattern.symbols;
    return prediction{symbols, phase_of(now->since, next->gap, symbols.size())};
}

/* The paper leaves it at the wish to adapt the period (section 7). */
void singh_graham::adapt(const catalogue &sample)
{
    if (!setting_.adaptive)
        return;
    const auto length = static_cast<uint32_t>(sample.length());
    size_t period = SIZE_MAX;
    size_t covered = 0;
    if (const auto found = sample.longest_before(length)) {
        const catalogue::pattern p = sample[found->pattern];
        size_t free = 0; /* first place not yet covered */
        for (const size_t offset : p.offsets) {
            const size_t end = offset + p.symbols.size();
            covered += end - std::max(offset, free);
            free = end;
        }
        period = setting_.kmp == ZCP_GROUPS_KMP_ZC ? p.symbols.size()
                                                   : fundamental_period(p.symbols, memory_);
    }
    if (static_cast<double>(covered) >= kExplained * length && period <= length / 2) {
        const auto round = static_cast<uint32_t>(period);
        const uint32_t rounds = std::max(kRoundsPerSample, (kLeastSample + round - 1) / round);
        sampling_ = std::min(round * rounds, setting_.longest_sample);
    } else {
        sampling_ = std::min(2 * length, setting_.longest_sample);
    }
}

/** The period's traffic, if it is the sequence expected. */
void singh_graham::lay_out(flow_table &out) const
{
    const auto expected = predict();
    if (!expected)
        return;
    for (size_t i = 0; i < length_; i++) {
        const uint32_t symbol = expected->pattern[(expected->phase + i) % expected->pattern.size()];
        if (symbol == ZCP_DONT_CARE)
            continue;
        const uint32_t src = symbol / setting_.ranks;
        const uint32_t dst = symbol % setting_.ranks;
        flow *f = out.at(src, dst);
        if (!f)
            continue;
        /* Symbols say nothing of sizes: each message is as big as those of late. */
        const flow *known = traffic_.matrix().find(src, dst);
        if (known)
            f->bytes += known->bytes / static_cast<double>(known->messages);
        f->messages += 1;
    }
}

void singh_graham::period_over(tick)
{
    if (traffic_.begun())
        agreement_.score(said_, 1, traffic_.current());
    traffic_.period_over();
    length_ = events_;
    events_ = 0;
    said_.clear();
    lay_out(said_);
}

void singh_graham::forecast(view, tick, std::pmr::vector<flow> &out,
                            std::pmr::memory_resource *scratch) const
{
    flow_table table(setting_.period_flows, scratch);
    lay_out(table);
    for (flow f : table.flows()) {
        f.confidence = agreement_.of(f.src);
        out.push_back(f);
    }
}

} // namespace zc::groups
