/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_HISTORIES_H_INCLUDED
#define ZCP_HISTORIES_H_INCLUDED

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "history.h"
#include "zeroed.h"

namespace zc::predict {

/**
 * A fixed number of histories, lent to the keys that need one. An owner and its
 * slot name each other; a slot whose owner names another one is free. Where all
 * are in use, the longest unused of the next few gives way.
 */
class histories {
  public:
    explicit histories(size_t max_bytes)
        : slots_(std::clamp<size_t>(max_bytes / sizeof(lent), 1, UINT32_MAX))
    {
    }

    /** The history in @slot, from 1, if it is @owner's; else NULL. */
    const history *find(uint32_t slot, uint32_t owner) const
    {
        return slot != 0 && slots_[slot - 1].owner == owner + 1 ? &slots_[slot - 1].kept : nullptr;
    }
    history *touch(uint32_t slot, uint32_t owner)
    {
        if (!find(slot, owner))
            return nullptr;
        slots_[slot - 1].used = ++now_;
        return &slots_[slot - 1].kept;
    }

    /** An empty history for @owner; its slot, from 1. */
    uint32_t take(uint32_t owner)
    {
        uint32_t oldest = next_;
        for (uint32_t i = 0; i < kLookedAt; i++) {
            const lent &seen = slots_[next_];
            if (seen.owner == 0 || now_ - seen.used > now_ - slots_[oldest].used)
                oldest = next_;
            next_ = next_ + 1 == slots_.size() ? 0 : next_ + 1;
            if (seen.owner == 0)
                break;
        }
        slots_[oldest] = {{}, owner + 1, ++now_};
        return oldest + 1;
    }

    void release(uint32_t slot) { slots_[slot - 1].owner = 0; }

    size_t bytes() const { return slots_.bytes(); }

  private:
    static constexpr uint32_t kLookedAt = 8;

    struct lent {
        history kept;
        uint32_t owner; /* + 1; 0: free */
        uint32_t used;
    };

    uint32_t next_ = 0; /* where the search for one to replace goes on */
    uint32_t now_ = 0;
    zeroed<lent> slots_;
};

} // namespace zc::predict

#endif
