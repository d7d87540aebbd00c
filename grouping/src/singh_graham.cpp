/* SPDX-License-Identifier: BSD-3-Clause */
#include "singh_graham.h"

#include <algorithm>

#include "fundamental.h"
#include "levenshtein.h"

namespace zc::groups {

constexpr size_t kEpisodes = 32;
constexpr uint64_t kStepsPerEvent = 2000; /* search budget of a sample: a millisecond or so */
constexpr uint32_t kRoundsPerSample = 4;  /* what an adaptive sample aims at */
constexpr uint32_t kLeastSample = 16;
constexpr double kExplained = 0.5; /* coverage below which a pattern says nothing of the period */

singh_graham::singh_graham(const setting &s, memory_of past, std::pmr::memory_resource *memory)
    : setting_(s), past_(past), memory_(memory), traffic_(s, memory), said_(s.period_flows, memory),
      agreement_(s.ranks, memory), sample_(reserved<uint32_t>(s.longest_sample, memory)),
      sampling_(s.sample), last_pattern_(reserved<uint32_t>(s.longest_sample, memory)),
      episodes_(reserved<episode>(kEpisodes, memory)),
      expected_(reserved<uint32_t>(s.longest_sample, memory))
{
}

/* Sample, last pattern, expectation, and two sequences per episode, twice over
 * while one is being replaced; the finding in hand, its borders and its marks. */
size_t singh_graham::bytes_needed(const setting &s)
{
    const size_t sequences = 3 + 2 * (kEpisodes + 1) + 4;
    return sizeof(singh_graham) + traffic::bytes_needed(s) +
           flow_table::bytes_needed(s.period_flows) + agreement::bytes_needed(s.ranks) +
           (kEpisodes + 1) * sizeof(episode) + sequences * s.longest_sample * sizeof(uint32_t) +
           (size_t{s.longest_sample} + 1) * sizeof(size_t) + s.search_bytes;
}

void singh_graham::learn(const zcp_event_t &event, tick)
{
    traffic_.learn(event);
    events_++;
    sample_.push_back(event.src * setting_.ranks + event.dst);
    if (sample_.size() >= sampling_)
        sample_over();
}

void singh_graham::sample_over()
{
    const std::optional<finding> now = examine(sample_);
    if (now) {
        remember(*now);
        decide(*now);
    }
    adapt(now);
    sample_.clear();
}

/** Number of places of a sample that the occurrences of a pattern explain. */
static size_t covered(const teiresias::pattern &p, std::pmr::vector<char> &marks)
{
    std::fill(marks.begin(), marks.end(), 0);
    for (const uint32_t offset : p.offsets) {
        for (size_t i = 0; i < p.symbols.size(); i++) {
            if (p.symbols[i] != ZCP_DONT_CARE)
                marks[offset + i] = 1;
        }
    }
    return static_cast<size_t>(std::count(marks.begin(), marks.end(), 1));
}

/** The pattern that covers most of the sample; the longest of equals, then the first found. */
std::optional<singh_graham::finding> singh_graham::examine(std::span<const uint32_t> sample)
{
    zcp_patterns_params_t params{};
    params.size = sizeof(params);
    params.literals = setting_.literals;
    params.window = setting_.window;
    params.support = setting_.support;
    params.max_length = std::max(setting_.longest_sample, setting_.window);
    params.max_steps = kStepsPerEvent * sample.size();

    bounded_memory budget(setting_.search_bytes, memory_);
    try {
        std::pmr::vector<teiresias::pattern> found(&budget);
        teiresias search(sample, params, &budget);
        if (search.find(found) != ZCP_PATTERNS_COMPLETE)
            partial_++;
        std::pmr::vector<char> marks(sample.size(), 0, memory_);
        const teiresias::pattern *best = nullptr;
        size_t most = 0;
        for (const teiresias::pattern &p : found) {
            /* Cheap bound first: there may be thousands. */
            if (size_t{p.literals} * p.offsets.size() < most)
                continue;
            const size_t places = covered(p, marks);
            if (places > most ||
                (places == most && best && p.symbols.size() > best->symbols.size())) {
                best = &p;
                most = places;
            }
        }
        if (!best)
            return std::nullopt;
        return describe(*best, static_cast<double>(most) / static_cast<double>(sample.size()));
    } catch (const std::bad_alloc &) {
        partial_++;
        return std::nullopt;
    }
}

singh_graham::finding singh_graham::describe(const teiresias::pattern &found, double coverage) const
{
    const size_t period = fundamental_period(found.symbols, memory_);
    const size_t length = setting_.kmp ? period : found.symbols.size();
    const size_t since = sample_.size() - found.offsets.back();
    finding out{symbols(found.symbols.begin(),
                        found.symbols.begin() + static_cast<ptrdiff_t>(length), memory_),
                since % length, coverage, period};
    return out;
}

/** Whatever was there before has been followed by this. */
void singh_graham::remember(const finding &now)
{
    if (past_ == memory_of::nothing)
        return;
    if (!last_pattern_.empty()) {
        std::erase_if(episodes_, [this](const episode &e) { return e.pattern == last_pattern_; });
        if (episodes_.size() == kEpisodes)
            episodes_.erase(episodes_.begin());
        /* Where the sample began: it ended at phase, that many symbols later. */
        const size_t length = now.pattern.size();
        const size_t begun = (now.phase + length - sample_.size() % length) % length;
        episodes_.push_back(
            {symbols(last_pattern_, memory_), symbols(now.pattern, memory_), begun});
    }
    last_pattern_.assign(now.pattern.begin(), now.pattern.end());
}

const singh_graham::episode *singh_graham::recall(const symbols &pattern) const
{
    const episode *best = nullptr;
    size_t least = SIZE_MAX;
    for (const episode &e : episodes_) {
        const size_t allowed =
            past_ == memory_of::same ? 0 : std::max(pattern.size(), e.pattern.size()) / 4;
        if (past_ == memory_of::same && e.pattern != pattern)
            continue;
        const size_t distance = levenshtein(pattern, e.pattern, allowed, memory_);
        if (distance <= allowed && distance <= least) { /* the latest of equals */
            least = distance;
            best = &e;
        }
    }
    return best;
}

void singh_graham::decide(const finding &now)
{
    const episode *known = past_ == memory_of::nothing ? nullptr : recall(now.pattern);
    const symbols &pattern = known ? known->successor : now.pattern;
    /* One that goes on is where it is now, not where it was when it was recorded. */
    const bool goes_on = !known || known->successor == now.pattern;
    expected_phase_ = goes_on ? now.phase : known->phase;
    expected_.assign(pattern.begin(), pattern.end());
}

void singh_graham::adapt(const std::optional<finding> &now)
{
    if (!setting_.adaptive)
        return;
    const uint32_t length = static_cast<uint32_t>(sample_.size());
    if (now && now->coverage >= kExplained && now->period <= length / 2) {
        const uint32_t period = static_cast<uint32_t>(now->period);
        const uint32_t rounds = std::max(kRoundsPerSample, (kLeastSample + period - 1) / period);
        sampling_ = std::min(period * rounds, setting_.longest_sample);
    } else {
        sampling_ = std::min(2 * length, setting_.longest_sample);
    }
}

void singh_graham::expect(size_t length, std::pmr::vector<uint32_t> &out) const
{
    if (expected_.empty())
        return;
    /* The expectation was made when this sample began. */
    const size_t first = expected_phase_ + sample_.size();
    for (size_t i = 0; i < length; i++)
        out.push_back(expected_[(first + i) % expected_.size()]);
}

/** The period's traffic, if it is the sequence expected. */
void singh_graham::lay_out(flow_table &out) const
{
    if (expected_.empty())
        return;
    const size_t first = expected_phase_ + sample_.size();
    for (size_t i = 0; i < length_; i++) {
        const uint32_t symbol = expected_[(first + i) % expected_.size()];
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
