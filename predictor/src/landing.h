/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_LANDING_H_INCLUDED
#define ZCP_LANDING_H_INCLUDED

#include <memory>

#include "cache.h"
#include "engine.h"
#include "key.h"
#include "predictor.h"
#include "trust.h"
#include "zeroed.h"

namespace zc::predict {

/** Messages of one envelope. */
struct flow {
    uint32_t unsettled;
    score answers; /* given and withheld ones */
};

/**
 * Landing queries over any predictor of the stream: how the reference
 * predictors and the baselines become engines.
 *
 * A claim does not name a position in the predicted stream: positions shift
 * with every receive, and the prediction itself may change. What is certain is
 * MPI's order: messages of one envelope are received in the order they came. So
 * a flow only counts its unsettled messages, and the next one to come gets the
 * receive after theirs, counted anew on the stream as it is predicted then:
 *
 *   predicted   A  x  A  y  A  A      two messages of envelope A unsettled:
 *               1.    2.    3.        a third gets the third A, 5 ahead
 *
 * That claims each predicted receive once, costs the same for one message and
 * for a flood, and needs nothing to be repaired when messages settle out of
 * order or are cancelled.
 */
class landing final : public zcp {
  public:
    landing(std::unique_ptr<predictor> predictor, size_t max_bytes, uint32_t horizon,
            float min_confidence);

    uint32_t next(std::span<zcp_receive_t> out) const noexcept override;
    void explain(const zcp_envelope_t &envelope, zcp_explanation_t &out) const noexcept override;

  protected:
    void learn(const zcp_receive_t &receive) noexcept override { predictor_->learn(receive); }
    bool open(const zcp_envelope_t &envelope, message &claim) noexcept override;
    void answer(const zcp_envelope_t &envelope, message &claim,
                zcp_landing_t &out) noexcept override;
    void close(const message &claim) noexcept override;
    void settle(const message &claim, uint64_t addr) noexcept override;
    size_t bytes() const noexcept override;

  private:
    std::unique_ptr<predictor> predictor_;
    cache<key, flow> flows_;
    mutable zeroed<zcp_receive_t> scratch_;
};

} // namespace zc::predict

#endif
