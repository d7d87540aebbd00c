/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>

namespace zc::migrate {

/** How many ranks a launcher has, in memory that it shares with the process that waits for its end:
 * that has to know it when the launcher has been killed. */
class rank_count {
  public:
    /** @whole: what it is a part of, and is counted in, too. Throws error. */
    explicit rank_count(rank_count *whole = nullptr);
    ~rank_count();
    rank_count(const rank_count &) = delete;
    rank_count &operator=(const rank_count &) = delete;

    int get() const noexcept { return shared_->load(); }
    /** How many there are of this launcher, apart from its parts. */
    void set_own(int ranks) noexcept;

  private:
    void add(int ranks) noexcept;

    std::atomic<int> *shared_;
    rank_count *const whole_;
    int own_ = 0;
};

} // namespace zc::migrate
