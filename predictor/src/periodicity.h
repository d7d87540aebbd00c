/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_PERIODICITY_H_INCLUDED
#define ZCP_PERIODICITY_H_INCLUDED

#include "predictor.h"
#include "zeroed.h"

namespace zc::predict {

/**
 * Periodicity predictor: Freitag et al., ICCS 2004, with the dynamic
 * periodicity detector (DPD) of Freitag, Corbalan, Labarta, "A Dynamic
 * Periodicity Detector: Application to Speedup Computation", IPDPS 2001.
 *
 * From the papers: over the last N samples x, for every lag m,
 *
 *     d(m) = sign( sum over i of |x[i] - x[i-m]| )
 *
 * d(m) = 0 says that the stream repeats after m samples; the period is the
 * smallest such m, and the sample expected k ahead is the one a whole number of
 * periods before it.
 *
 * Ours: d(m) is 0 exactly when the last N comparisons at lag m were equal, so a
 * run length per lag replaces the sum: one comparison per lag and event. Lags
 * reach up to N. A period, once found, is held until another one is: a stream
 * that breaks its pattern for a moment usually takes it up again.
 *
 * The paper has a history of 256 samples, but also patterns found in streams of
 * 70. So N may be fitted to what has come: the largest N, from @least to
 * @window, for which d(m) is 0 for some m <= N.
 */
class periodicity final : public predictor {
  public:
    /** @least == @window: N is that, and fixed. */
    periodicity(uint32_t window, uint32_t least);

    static size_t bytes_needed(uint32_t window);

    void learn(const zcp_receive_t &receive) noexcept override;
    uint32_t next(std::span<zcp_receive_t> out) const noexcept override;
    size_t bytes() const noexcept override;

    /** Samples in a period; 0: none was found yet. */
    uint32_t period() const noexcept { return period_; }

  private:
    void compare(uint32_t print);
    uint32_t fitted() const;

    uint32_t window_;
    uint32_t least_;
    uint32_t head_ = 0;   /* lag m is at head_ + m - 1, modulo window */
    uint32_t period_ = 0; /* 0: none found yet */
    zeroed<zcp_receive_t> samples_;
    zeroed<uint32_t> prints_; /* hash of each sample, what is compared */
    zeroed<uint32_t> runs_;   /* [m-1]: equal comparisons at lag m in a row, up to window */
};

} // namespace zc::predict

#endif
