/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_LEAVES_TOGETHER_H_INCLUDED
#define ZC_CONTROL_LEAVES_TOGETHER_H_INCLUDED

#include <chrono>
#include <utility>
#include <vector>

#include "moves_together.h"
#include "zch/held_ranks.h"

namespace zc::control {

/** With what a rank leaves, as its zc-hold is told. @ranks: the others of its job, by number. */
class leaves_together final : public holder::leaves_with {
  public:
    leaves_together(departure &leaving, std::vector<int> ranks, double longest_s)
        : leaving_(leaving), ranks_(std::move(ranks)), longest_(longest_s)
    {
    }
    std::vector<int> ranks() const override { return ranks_; }
    void ready(bool last) override { leaving_.ready(last); }
    bool may_go_on() override { return leaving_.may_go_on(); }
    int wake_fd() const override { return leaving_.wake_fd(); }
    std::chrono::milliseconds longest() const override
    {
        return std::chrono::ceil<std::chrono::milliseconds>(longest_);
    }

  private:
    departure &leaving_;
    std::vector<int> ranks_;
    std::chrono::duration<double> longest_;
};

} // namespace zc::control

#endif
