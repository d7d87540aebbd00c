/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_CLAIMS_H_INCLUDED
#define ZCP_CLAIMS_H_INCLUDED

#include <algorithm>
#include <array>
#include <cstdint>

#include "zcp/predictor.h"
#include "zeroed.h"

namespace zc::predict {

/** What became of the answer for an unsettled message. */
enum class claim_state : uint64_t {
    free,
    unknown,  /* there was nothing to say */
    withheld, /* there was, but not sure enough */
    answered,
    answered_class, /* only the congruence class was */
};

/** What a message is counted in, by index; an engine need not use all of them. */
struct entries {
    static constexpr uint32_t kNone = UINT32_MAX;

    uint32_t exact = kNone; /* the rough one, where sizes are new every time */
    uint32_t rough = kNone;
    uint32_t any = kNone;
    uint32_t sender = kNone; /* these two in a table of wide keys */
    uint32_t any_source = kNone;
};

/** An unsettled message. */
struct claim {
    static constexpr uint64_t kMostBytes = (uint64_t{1} << 48) - 1; /* longer counts as that */

    uint64_t expected;
    uint64_t bytes : 48;
    claim_state state : 8;
    uint64_t print : 8; /* of another guess, put to the test; 0: none */
    entries flows;      /* what it is counted in; free: exact is the next free + 1 */
    uint32_t serial;    /* of this use, so that a stale id is noticed */
};
static_assert(sizeof(claim) == 40, "what is said of their number depends on it");

/** The unsettled messages, bounded. */
class claims {
  public:
    /* Beyond the bound messages are not told apart: all get this id. */
    static constexpr zcp_claim_t kUntracked = UINT64_MAX;

    explicit claims(size_t max_bytes)
        : claims_(std::clamp<size_t>(max_bytes / sizeof(claim), 1, kMost))
    {
    }

    bool full() const { return free_ == 0 && fresh_ == claims_.size(); }

    /** Must not be full. */
    claim &take()
    {
        uint32_t index = fresh_;
        if (free_ != 0) {
            index = free_ - 1;
            free_ = claims_[index].flows.exact;
        } else {
            fresh_++;
        }
        claim &taken = claims_[index];
        const uint32_t serial = taken.serial + 1;
        taken = {};
        taken.serial = serial;
        taken.state = claim_state::unknown;
        return taken;
    }

    /** The serial above the index + 1: neither 0 nor kUntracked. */
    zcp_claim_t id_of(const claim &claim) const
    {
        return (uint64_t{claim.serial} << 32) | (index_of(claim) + 1);
    }

    /** NULL if that claim is not open. */
    claim *find(zcp_claim_t id)
    {
        const uint64_t index = (id & UINT32_MAX) - 1; /* 0 wraps and is out of range */
        if (index >= fresh_)
            return nullptr;
        claim &found = claims_[index];
        return found.state != claim_state::free && found.serial == id >> 32 ? &found : nullptr;
    }

    void release(claim &claim)
    {
        claim.state = claim_state::free;
        claim.flows.exact = free_;
        free_ = index_of(claim) + 1;
    }

    size_t bytes() const { return claims_.bytes(); }

  private:
    static constexpr size_t kMost = size_t{1} << 16;

    uint32_t index_of(const claim &claim) const
    {
        return static_cast<uint32_t>(&claim - claims_.data());
    }

    uint32_t free_ = 0;  /* first released claim + 1; 0: none */
    uint32_t fresh_ = 0; /* claims from here on were never used */
    zeroed<claim> claims_;
};

} // namespace zc::predict

#endif
