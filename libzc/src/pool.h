/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_POOL_H_INCLUDED
#define ZC_POOL_H_INCLUDED

#include "arena.h"
#include "slot.h"
#include "splits.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

namespace zc {

/**
 * pool - landing slots, populated once and recycled by exchange
 *
 * A free slot may be full of pages (the next message lands in it without a
 * fault), or empty (an exchange parks the user's pages in it, after which the
 * two have swapped roles). Both are on one list per kind; of a list the slot that
 * fits best is taken.
 *
 *     populated bytes of all slots <= budget       at every instant
 *
 * Pages on their way through an exchange count once: what the spare gains,
 * the landing slot loses.
 *
 * Any thread. Slots outside the free lists belong to the callers that took them, which
 * access them without the lock; system calls on them are made without it, too.
 */
class pool {
  public:
    pool(std::size_t budget_bytes, splits &boundaries);

    /** Are there addresses enough for exchanges, which take spare slots? If not, there are
     *  perhaps some for landing buffers. */
    bool has_room() const;
    /** Have slots been told to have no huge pages? */
    bool has_declined_huge() const { return has_declined_huge_; }
    range addresses() const { return arena_.whole(); }

    /**
     * acquire - a populated slot
     * @expected: address whose offset the data is to have
     * @node:     that its memory is to be on
     * Return: 0, -EMSGSIZE, -ENOBUFS, -ENOMEM.
     */
    int acquire(std::size_t len, addr_t expected, placement place, slot **out, int node = kAnyNode);
    void release(slot *s);

    /** An empty place for the pages of @body, at the same distances as in
     *  @landing; nullptr if there is no address space left. */
    slot *take_spare(const slot &landing, range body);
    void give_spare(slot *spare);
    /** Books that @body of @landing (perhaps empty) went to the user, whose
     *  pages are now in @spare, in VMAs that meet at @parked_cuts. The landing
     *  buffer's content is not needed any more. Both stay with their taker. */
    void exchanged(slot &landing, range body, slot &spare, std::span<const addr_t> parked_cuts);

    /** Gives free slots back that have been idle since before @older_than_ns. */
    std::size_t trim(std::uint64_t older_than_ns);

    struct usage {
        std::uint64_t acquired, refused_budget, refused_addresses, forced_trims;
        std::uint64_t populated_now, populated_max, in_use_now, in_use_max, pages_populated;
    };
    usage report() const;

  private:
    using free_list = std::vector<slot *>; /* oldest first */

    slot *take_best_locked(slot_kind kind, range wanted, range units);
    slot *create_locked(slot_kind kind);
    void destroy_locked(slot *s);
    void free_locked(slot *s);
    bool renew_locked(slot &s);
    void drop_locked(slot &s, range r);
    void keep_a_spare_locked(const slot &s, range body);
    bool evict_oldest_locked(bool populated_only);
    bool charge_locked(slot &s, range wanted);
    static int prepare(slot &s, range wanted, std::vector<range> missing);
    void discourage_huge(range r);
    static void set_huge_units(slot &s, range units);
    static bool roomy(const slot &s, range body);

    const std::size_t budget_;
    splits &boundaries_;
    mutable std::mutex mutex_;
    arena arena_;
    std::unordered_map<slot *, std::unique_ptr<slot>> all_;
    std::map<slot_kind, free_list> free_;
    usage usage_{};
    std::atomic<bool> has_declined_huge_{false};
};

} // namespace zc

#endif /* ZC_POOL_H_INCLUDED */
