/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_LANDING_H_INCLUDED
#define ZCP_LANDING_H_INCLUDED

#include <memory>

#include "cache.h"
#include "key.h"
#include "predictor.h"
#include "zeroed.h"

namespace zc::predict {

/**
 * Landing queries over any predictor.
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
class landing {
  public:
    landing(std::unique_ptr<predictor> predictor, size_t max_bytes, uint32_t horizon,
            float min_confidence);

    void receive(const zcp_receive_t &receive) noexcept;
    bool arrive(const zcp_envelope_t &envelope, zcp_landing_t &out) noexcept;
    void settle(zcp_claim_t claim, uint64_t addr) noexcept;
    void cancel(zcp_claim_t claim) noexcept;
    uint32_t next(std::span<zcp_receive_t> out) const noexcept;
    void read_stats(zcp_stats_t &stats) const noexcept;

  private:
    static constexpr uint32_t kMaxClaims = 1u << 16;
    /* Beyond the bound messages are not told apart: all get this claim, which
     * settles as unknown and teaches nothing. */
    static constexpr zcp_claim_t kUntracked = UINT64_MAX;

    struct flow_counts {
        uint32_t unsettled;
        uint32_t scored; /* 1: score is known */
        float score;     /* decayed share of right answers, of those not given as well */
        uint32_t unused;
    };

    enum class claim_state : uint32_t { free, unknown, withheld, answered };

    struct open_claim {
        uint64_t expected;
        uint32_t flow;          /* exact; free: next free claim + 1 */
        uint32_t flow_any_size; /* indices into flows_ */
        uint32_t serial;        /* of this use, so that a stale id is noticed */
        claim_state state;
    };

    bool open_flows(const zcp_envelope_t &envelope, uint32_t &exact, uint32_t &any_size);
    zcp_claim_t take_claim(uint32_t exact, uint32_t any_size);
    open_claim *find_claim(zcp_claim_t id);
    void release_claim(open_claim &claim);
    void answer(const zcp_envelope_t &envelope, open_claim &claim, zcp_landing_t &out);
    void score(const open_claim &claim, uint64_t addr);

    std::unique_ptr<predictor> predictor_;
    uint32_t horizon_;
    float min_confidence_;
    uint32_t free_ = 0;  /* first released claim + 1; 0: none */
    uint32_t fresh_ = 0; /* claims from here on were never used */
    uint64_t untracked_ = 0;
    zcp_stats_t stats_{};
    cache<key, flow_counts> flows_;
    zeroed<open_claim> claims_;
    zeroed<zcp_receive_t> scratch_;
};

} // namespace zc::predict

#endif
