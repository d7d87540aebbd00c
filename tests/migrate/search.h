/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meeting_world.h"

namespace zc::migrate::sim {

/**
 * Runs through all that can happen in a scenario: depth first, each run from the start, and left
 * where it comes to a state that was seen before.
 */
class search final : public chooser {
  public:
    explicit search(const scenario &what) : what_(what) {}

    /** "" if nothing that must not happen can happen, and from each state all ranks can end. */
    std::string look_for_trouble(std::size_t at_most_states);

    std::size_t states() const noexcept { return known_.size(); }
    bool is_complete() const noexcept { return complete_; }
    /** Ends of the job in which so many requests were met, or refused. */
    bool some_met() const noexcept { return some_met_; }
    bool some_refused() const noexcept { return some_refused_; }

    std::size_t choose(world &of, std::size_t count) override;

  private:
    using number = std::uint32_t;
    static constexpr number kEnd = 0, kStart = 1;
    struct fork {
        std::size_t chosen, count;
        number state;
    };

    bool next_path();
    number before() const { return at_ == 0 ? kStart : path_[at_ - 1].state; }
    std::vector<number> traps() const;
    std::string story(const std::vector<std::size_t> &choices) const;

    const scenario what_;
    std::vector<fork> path_;
    std::size_t at_ = 0;
    std::unordered_map<std::uint64_t, number> known_;
    std::vector<std::pair<number, std::size_t>> reached_; /* from which state, by which choice */
    std::vector<std::pair<number, number>> edges_;
    std::size_t limit_ = 0;
    bool complete_ = true, some_met_ = false, some_refused_ = false;
};

/** What happens is drawn, with a rank that is slow for a while; the same from the same seed. */
class lottery final : public chooser {
  public:
    explicit lottery(std::uint64_t seed) : random_(seed) {}
    std::size_t choose(world &of, std::size_t count) override;
    const std::vector<std::string> &story() const noexcept { return story_; }

  private:
    std::size_t below(std::size_t end) { return random_() % end; }
    bool is_unlikely(const world &of, std::size_t possibility);

    std::mt19937_64 random_;
    int slow_ = -1;
    std::vector<std::string> story_; /* the last of it */
};

} // namespace zc::migrate::sim
