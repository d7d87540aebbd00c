/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TRUST_H_INCLUDED
#define ZCP_TRUST_H_INCLUDED

#include <compare>
#include <cstdint>

namespace zc::predict {

/**
 * Decayed share of right answers, 0 … 1 in two bytes. Moves by a quarter towards
 * each outcome: three wrong answers in a row bring full trust below one half,
 * seven right ones bring it from one half above nine tenths.
 */
class trust {
  public:
    static constexpr trust half() { return trust(kFull / 2); }
    static constexpr trust of(float share) { return trust(static_cast<int32_t>(share * kFull)); }

    void count(bool right)
    {
        const int32_t target = right ? kFull : 0;
        share_ = static_cast<uint16_t>(share_ + (target - share_) / 4);
    }
    float value() const { return static_cast<float>(share_) / kFull; }
    /** Cheaper than comparing values. */
    auto operator<=>(const trust &) const = default;

    trust() = default; /* none */

  private:
    static constexpr int32_t kFull = UINT16_MAX;
    constexpr explicit trust(int32_t share) : share_(static_cast<uint16_t>(share)) {}
    uint16_t share_ = 0;
};

/** Trust in answers that were put to the test, and how much of a test it was. */
class score {
  public:
    bool begun() const { return n_ != 0; }
    /** As if @n answers had been counted already, and as many right as @prior says. */
    void begin(trust prior, uint32_t n)
    {
        share_ = prior;
        n_ = static_cast<uint8_t>(n < UINT8_MAX ? n + 1 : UINT8_MAX);
    }
    void count(bool right)
    {
        share_.count(right);
        n_ = static_cast<uint8_t>(n_ == UINT8_MAX ? n_ : n_ + 1);
    }
    float value() const { return share_.value(); }

    /**
     * What may be claimed of an answer with that trust behind it. A few lucky
     * answers prove little: a claim above kUnproven must be earned by their
     * number too. Nine tenths take ten right ones in a row.
     */
    float confidence(float trust) const
    {
        if (trust <= kUnproven)
            return trust;
        return kUnproven + (trust - kUnproven) * (1.0f - 1.0f / static_cast<float>(n_ + 2));
    }
    float confidence() const { return confidence(share_.value()); }

  private:
    static constexpr float kUnproven = 0.25f;
    trust share_;
    uint8_t n_ = 0; /* answers counted + 1, saturating; 0: not begun */
};

} // namespace zc::predict

#endif
