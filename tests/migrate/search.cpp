/* SPDX-License-Identifier: BSD-3-Clause */
#include "search.h"

#include <algorithm>

namespace zc::migrate::sim {

namespace {

constexpr std::size_t kLongest =
    200'000;                        /* choices of a drawn run; the longest needed some 1,000 */
constexpr std::size_t kWhile = 100; /* so many a rank is slow */

/** Follows a path and writes down what happens on it. */
class narrator final : public chooser {
  public:
    explicit narrator(const std::vector<std::size_t> &choices) : choices_(choices) {}
    std::size_t choose(world &of, std::size_t) override
    {
        if (at_ == choices_.size()) {
            of.stop();
            return 0;
        }
        text_ += "\n  " + of.describe(choices_[at_]);
        return choices_[at_++];
    }
    const std::string &text() const { return text_; }

  private:
    const std::vector<std::size_t> &choices_;
    std::size_t at_ = 0;
    std::string text_;
};

} // namespace

std::size_t search::choose(world &of, std::size_t count)
{
    if (at_ < path_.size())
        return path_[at_++].chosen;
    const auto [found, is_new] =
        known_.try_emplace(of.fingerprint(), static_cast<number>(reached_.size()));
    const number state = found->second;
    if (is_new)
        reached_.emplace_back(before(), at_ == 0 ? 0 : path_[at_ - 1].chosen);
    edges_.emplace_back(before(), state);
    if (!is_new || reached_.size() > limit_) {
        complete_ = complete_ && reached_.size() <= limit_;
        of.stop();
        return 0;
    }
    path_.push_back({0, count, state});
    at_++;
    return 0;
}

bool search::next_path()
{
    while (!path_.empty() && path_.back().chosen + 1 == path_.back().count)
        path_.pop_back();
    if (path_.empty())
        return false;
    path_.back().chosen++;
    return true;
}

std::string search::look_for_trouble(std::size_t at_most_states)
{
    limit_ = at_most_states;
    reached_.assign(1, {kEnd, 0}); /* the end has no state; the start has the next number */
    do {
        at_ = 0;
        world run(what_, *this);
        try {
            run.run();
        } catch (const violation &found) {
            std::vector<std::size_t> choices;
            for (const fork &one : path_)
                choices.push_back(one.chosen);
            return found.what() + story(choices);
        }
        if (!run.is_stopped()) {
            edges_.emplace_back(before(), kEnd);
            some_met_ = some_met_ || run.met() > 0;
            some_refused_ = some_refused_ || run.refused() > 0;
        }
    } while (next_path());
    if (!complete_)
        return "";
    const std::vector<number> stuck = traps();
    if (stuck.empty())
        return "";
    std::vector<std::size_t> choices;
    for (number state = stuck.front(); state != kStart; state = reached_[state].first)
        choices.push_back(reached_[state].second);
    std::ranges::reverse(choices);
    return "from " + std::to_string(stuck.size()) + " states not all ranks can end; one of them" +
           story(choices);
}

/** States from which no way leads to the end. */
std::vector<search::number> search::traps() const
{
    std::vector<std::vector<number>> sources(reached_.size());
    for (const auto &[from, to] : edges_)
        sources[to].push_back(from);
    std::vector<bool> ends(reached_.size());
    std::vector<number> work = {kEnd};
    ends[kEnd] = true;
    while (!work.empty()) {
        const number state = work.back();
        work.pop_back();
        for (number from : sources[state])
            if (!ends[from]) {
                ends[from] = true;
                work.push_back(from);
            }
    }
    std::vector<number> stuck;
    for (number state = kStart; state < reached_.size(); state++)
        if (!ends[state])
            stuck.push_back(state);
    return stuck;
}

std::string search::story(const std::vector<std::size_t> &choices) const
{
    narrator tells(choices);
    try {
        world run(what_, tells);
        run.run();
    } catch (const violation &) {
        /* That is what is told. */
    }
    return ", after:" + tells.text();
}

bool lottery::is_unlikely(const world &of, std::size_t possibility)
{
    const bool rests = slow_ >= 0 && of.steps(possibility) == slow_;
    return (of.is_time(possibility) && below(200) != 0) || (rests && below(50) != 0);
}

std::size_t lottery::choose(world &of, std::size_t count)
{
    if (story_.size() == kLongest)
        throw violation("a rank still waits after " + std::to_string(kLongest) + " choices");
    if (story_.size() % kWhile == 0)
        slow_ = static_cast<int>(below(8)) - 1;
    std::size_t chosen;
    do
        chosen = below(count);
    while (count > 1 && is_unlikely(of, chosen));
    story_.push_back(of.describe(chosen));
    return chosen;
}

} // namespace zc::migrate::sim
