/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TEST_FREITAG_REFERENCE_H_INCLUDED
#define ZCP_TEST_FREITAG_REFERENCE_H_INCLUDED

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "zcp/predictor.h"

namespace zcp_test {

/* The predictors of Freitag et al. (ICCS 2004) as the text has them: slow, without bounds, and
 * written apart from the library's. Samples are numbers. */

/** Numbers for samples (sender, size, address). */
class sample_numbers {
  public:
    int of(const zcp_receive_t &r)
    {
        const std::array<uint64_t, 3> sample = {static_cast<uint32_t>(r.envelope.source),
                                                r.envelope.bytes, r.addr};
        return numbers_.try_emplace(sample, static_cast<int>(numbers_.size())).first->second;
    }

  private:
    std::map<std::array<uint64_t, 3>, int> numbers_;
};

/**
 * Section 3.2. A state is three observations; the likeliest successor is predicted, and more by
 * repeating this on what is predicted. Of successors equally likely: the one seen last.
 */
class reference_graph {
  public:
    void learn(int sample)
    {
        if (seen_.size() == 3) {
            successor &s = states_[seen_][sample];
            s.count++;
            s.time = ++time_;
            seen_.pop_front();
        }
        seen_.push_back(sample);
    }

    std::vector<int> next(size_t k) const
    {
        std::vector<int> out;
        std::deque<int> state = seen_;
        while (out.size() < k) {
            const auto found = states_.find(state);
            if (found == states_.end())
                break;
            std::pair<int, int> most{0, 0};
            int likeliest = -1;
            for (const auto &[sample, s] : found->second) {
                if (std::pair{s.count, s.time} > most) {
                    most = {s.count, s.time};
                    likeliest = sample;
                }
            }
            out.push_back(likeliest);
            state.pop_front();
            state.push_back(likeliest);
        }
        return out;
    }

  private:
    struct successor {
        int count = 0;
        int time = 0;
    };
    std::map<std::deque<int>, std::map<int, successor>> states_;
    std::deque<int> seen_;
    int time_ = 0;
};

/**
 * Section 3.3: the smallest m <= N for which equation (1), over the last N samples, gives 0. N is
 * the largest of @window down to @least for which there is one; else the last period stays.
 */
class reference_dpd {
  public:
    reference_dpd(size_t window, size_t least) : window_(window), least_(least) {}

    void learn(int sample)
    {
        stream_.push_back(sample);
        for (size_t n = window_; n >= least_; n--) {
            if (const auto m = smallest(n)) {
                period_ = *m;
                break;
            }
        }
    }
    std::vector<int> next(size_t k) const
    {
        std::vector<int> out;
        for (size_t h = 0; period_ != 0 && h < k; h++)
            out.push_back(h < period_ ? stream_[stream_.size() - period_ + h] : out[h - period_]);
        return out;
    }
    size_t period() const { return period_; }

  private:
    std::optional<size_t> smallest(size_t n) const
    {
        for (size_t m = 1; m <= n; m++) {
            if (differs(m, n) == 0)
                return m;
        }
        return {};
    }
    /* d(m); samples before the first are equal to none */
    int differs(size_t m, size_t n) const
    {
        if (stream_.size() < n + m)
            return 1;
        for (size_t i = stream_.size() - n; i < stream_.size(); i++) {
            if (stream_[i] != stream_[i - m])
                return 1;
        }
        return 0;
    }

    size_t window_;
    size_t least_;
    size_t period_ = 0;
    std::vector<int> stream_;
};

} // namespace zcp_test

#endif
