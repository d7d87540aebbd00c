/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_ENGINE_H_INCLUDED
#define ZCP_ENGINE_H_INCLUDED

#include <span>

#include "claims.h"
#include "zcp/predictor.h"

/**
 * What stands behind the opaque handle: the life of a message, the same for
 * every kind of engine. What an engine knows and answers is its own.
 */
struct zcp {
  public:
    virtual ~zcp() = default;
    zcp(const zcp &) = delete;
    zcp &operator=(const zcp &) = delete;

    void receive(const zcp_receive_t &receive) noexcept;
    bool arrive(const zcp_envelope_t &envelope, zcp_landing_t &out) noexcept;
    void settle(zcp_claim_t claim, uint64_t addr) noexcept;
    void cancel(zcp_claim_t claim) noexcept;
    void read_stats(zcp_stats_t &stats) const noexcept;

    /** Fills @out with the receives expected next, nearest first. Returns how many. */
    virtual uint32_t next(std::span<zcp_receive_t> out) const noexcept = 0;
    /** Fills all but size and text. */
    virtual void explain(const zcp_envelope_t &envelope, zcp_explanation_t &out) const noexcept = 0;

    uint32_t horizon() const { return horizon_; }

  protected:
    using message = zc::predict::claim; /* an unsettled one */

    zcp(size_t max_claim_bytes, uint32_t horizon, float min_confidence)
        : horizon_(horizon), min_confidence_(min_confidence), claims_(max_claim_bytes)
    {
    }

    virtual void learn(const zcp_receive_t &receive) noexcept = 0;
    /** Counts one more unsettled message; false, and nothing counted, if there is no room. */
    virtual bool open(const zcp_envelope_t &envelope, message &claim) noexcept = 0;
    /** Fills @out and what @claim keeps of the answer, if there is one. */
    virtual void answer(const zcp_envelope_t &envelope, message &claim,
                        zcp_landing_t &out) noexcept = 0;
    /** Undoes open(). */
    virtual void close(const message &claim) noexcept = 0;
    /** As close(), and scores and learns that the message went to @addr. */
    virtual void settle(const message &claim, uint64_t addr) noexcept = 0;
    /** Memory, but for that of claims and statistics. */
    virtual size_t bytes() const noexcept = 0;

    const uint32_t horizon_;
    const float min_confidence_;

  private:
    void count(const message &claim, uint64_t addr);

    uint64_t untracked_ = 0;
    zcp_stats_t stats_{};
    zc::predict::claims claims_;
};

#endif
