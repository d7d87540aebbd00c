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
 * slot name each other; a slot whose owner names another one is as good as free.
 * Where all are lent, the longest unused of the next few gives way; but to an owner
 * who has lost one before only if it has been unused for a while. So where more keys
 * need one than there are, some keep theirs and get on, rather than all losing theirs
 * before they use it again.
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

    /**
     * An empty history for @owner, which had one @before: its slot, from 1; 0: none
     * can be spared.
     */
    uint32_t take(uint32_t owner, bool before)
    {
        now_++;
        uint32_t oldest = next_;
        for (uint32_t i = 0; i < kLookedAt && slots_[oldest].owner != 0; i++) {
            const lent &seen = slots_[next_];
            if (seen.owner == 0 || now_ - seen.used > now_ - slots_[oldest].used)
                oldest = next_;
            next_ = next_ + 1 == slots_.size() ? 0 : next_ + 1;
        }
        const lent &found = slots_[oldest];
        if (before && found.owner != 0 && now_ - found.used < kStay * slots_.size())
            return 0;
        slots_[oldest] = {{}, owner + 1, now_};
        return oldest + 1;
    }

    void release(uint32_t slot) { slots_[slot - 1].owner = 0; }

    size_t bytes() const { return slots_.bytes(); }

  private:
    static constexpr uint32_t kLookedAt = 8;
    static constexpr uint32_t kStay = 4; /* rounds of all slots */

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
