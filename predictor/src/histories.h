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
 * A fixed number of histories of one kind, lent to the keys that need one. An owner and
 * its slot name each other; a slot is free if its owner names another slot.
 * Where all are lent, the longest unused of the next few gives way; but to an owner
 * that has lost one before only if it has been unused for a while. So where more keys
 * need one than there are, some keep theirs and get on, rather than all losing theirs
 * before they use it again.
 */
template <typename History>
class history_pool {
  public:
    explicit history_pool(size_t max_bytes)
        : slots_(std::clamp<size_t>(max_bytes / sizeof(lent), 1, kMost))
    {
    }

    History &at(uint32_t slot) { return slots_[slot].kept; }
    const History &at(uint32_t slot) const { return slots_[slot].kept; }
    bool is_of(uint32_t slot, uint32_t owner) const { return slots_[slot].owner == owner + 1; }
    void use(uint32_t slot) { slots_[slot].used = ++now_; }

    /** An empty one for @owner, which had one @before; false if none can be spared. */
    bool take(uint32_t owner, bool before, uint32_t &slot)
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
            return false;
        slots_[oldest] = {{}, owner + 1, now_};
        slot = oldest;
        return true;
    }

    void release(uint32_t slot) { slots_[slot].owner = 0; }

    uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }
    size_t bytes() const { return slots_.bytes(); }

  private:
    static constexpr size_t kMost = size_t{1} << 30;
    static constexpr uint32_t kLookedAt = 8;
    static constexpr uint32_t kStay = 4; /* rounds of all slots */

    struct lent {
        History kept;
        uint32_t owner; /* + 1; 0: free */
        uint32_t used;
    };

    static_assert(History::kDepth != short_history::kDepth || sizeof(lent) == 64,
                  "a short one is a cache line");

    uint32_t next_ = 0; /* where the search for one to replace goes on */
    uint32_t now_ = 0;
    zeroed<lent> slots_;
};

/**
 * Short histories, and long ones for the keys a short one does not do for. Slots are
 * numbered from 1 through both.
 */
class histories {
  public:
    histories(size_t max_bytes_short, size_t max_bytes_long)
        : short_(max_bytes_short), long_(max_bytes_long)
    {
    }

    /** Is @slot a history, and @owner's? */
    bool is_of(uint32_t slot, uint32_t owner) const
    {
        return slot != 0 && (is_short(slot) ? short_.is_of(slot - 1, owner)
                                            : long_.is_of(slot - 1 - short_.size(), owner));
    }

    /** What @ask makes of the history in @slot, of either kind. */
    template <typename Ask>
    auto ask(uint32_t slot, Ask ask) const
    {
        return is_short(slot) ? ask(short_.at(slot - 1)) : ask(long_.at(slot - 1 - short_.size()));
    }

    /**
     * A history for @owner, which had one @before, as if @addr had been added @times times:
     * its slot; 0: none can be spared.
     */
    uint32_t take(uint32_t owner, bool before, uint64_t addr, uint32_t times)
    {
        uint32_t slot;
        if (times >= short_history::kDepth && long_.take(owner, true, slot)) {
            long_.at(slot).fill(addr, times);
            return slot + 1 + short_.size();
        }
        if (!short_.take(owner, before, slot))
            return 0;
        short_.at(slot).fill(addr, times);
        return slot + 1;
    }

    /** Adds to @owner's history in @slot. Returns where it is from now on. */
    uint32_t add(uint32_t slot, uint32_t owner, uint64_t addr)
    {
        if (!is_short(slot)) {
            long_.use(slot - 1 - short_.size());
            long_.at(slot - 1 - short_.size()).add(addr);
            return slot;
        }
        short_history &kept = short_.at(slot - 1);
        uint32_t longer;
        if (kept.full() && kept.next(1) != addr && long_.take(owner, true, longer)) {
            long_.at(longer) = history(kept);
            long_.at(longer).add(addr);
            short_.release(slot - 1);
            return longer + 1 + short_.size();
        }
        short_.use(slot - 1);
        kept.add(addr);
        return slot;
    }

    void release(uint32_t slot)
    {
        if (is_short(slot))
            short_.release(slot - 1);
        else
            long_.release(slot - 1 - short_.size());
    }

    size_t bytes() const { return short_.bytes() + long_.bytes(); }

  private:
    bool is_short(uint32_t slot) const { return slot <= short_.size(); }

    history_pool<short_history> short_;
    history_pool<history> long_;
};

} // namespace zc::predict

#endif
