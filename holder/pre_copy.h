/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PRE_COPY_H_INCLUDED
#define ZC_HOLDER_PRE_COPY_H_INCLUDED

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "image.h"
#include "known_pages.h"
#include "page_places.h"
#include "rank_memory.h"
#include "stream.h"
#include "unchanged_pages.h"

namespace zc::holder {

/**
 * Memory of a rank, sent while the rank runs: pages, by their content, into a store of the other
 * host, and which page of the rank's each is (image.h). Each round reads all memory, and sends the
 * pages that are not there yet:
 *
 *   ROUND ── all has been read ──▶ SETTLING ── all has been taken ──▶ ROUND, DONE, or RESTING
 *     ▲                                                                               │
 *     ├─────────────── after a pause, or the last one, then DONE ─────────────────────┘
 *     └─────────────── DONE: catch_up(), then DONE
 *
 * DONE is after a round that sent little, or not much less than the one before (the rank changes
 * its memory as fast as it is sent), after kMostRounds, or when the store would be larger than it
 * may be. If the rank is to wait then until others are as far, it is RESTING instead, and what it
 * writes meanwhile is sent by a round now and then, less and less often, as long as the store has
 * room for two more such; and by a last one when it is told to end. When the rank stands still its
 * image tells what is another page than was told, and sends what is not in the store. So no help of
 * the kernel is needed, which would tell what has changed: the price is reading, and the sum of
 * each page, in each round, and once more while the rank stands still. With that help (track())
 * pages are left out that have not been written since they were read. Pre-copy with rounds is of
 * Theimer, Lantz and Cheriton (1985), its ends of Clark et al. (2005).
 */
class pre_copy {
  public:
    enum class state { ROUND, SETTLING, RESTING, DONE };
    static constexpr unsigned kMostRounds = 5;
    static constexpr std::uint64_t kLittle = 8 << 20; /* bytes of a round */

    static constexpr std::chrono::milliseconds kFirstRest{500}, kMostRest{8000};

    /** @most: bytes of the store. @waits: it goes on until it is told to end. @tells: which page of
     * the rank each is, which is of use if CRIU leaves it out of the image. */
    pre_copy(pid_t pid, std::uint64_t most, bool waits = false, bool tells = true);
    /** The kernel tells from now on what is written, by @userfault (unchanged_pages.h), which the
     * process has opened. The round begins anew. Throws error if it cannot. */
    void track(descriptor userfault);
    /** Pushes what has room, for a moment. Returns whether it is done, and all has been taken. */
    bool push(outgoing &to);
    /** push() would push more at once. */
    bool can_push(const outgoing &to) const;
    /** It waits no longer. If it is ready, it is done after one more round, or the one that it is
     * in. */
    void finish();
    /** One more round, the last, when it is DONE: while the rank is about to stand still, or does,
     * and something else may trace it. So nothing is protected any more. It need not come to its
     * end. Nothing, if the kernel does not tell what was written: it would take too long. */
    void catch_up();
    /** It would be done, if it did not wait. */
    bool is_ready() const noexcept { return ready_; }

    const known_pages &there() const noexcept { return there_; }
    /** What the image begins with. This is to outlive what sends that, and sends no more. */
    sent_ahead sent();
    /** Why some of what could be unchanged is not known to be; empty: all is. */
    const std::string &not_protected() const noexcept { return not_protected_; }
    std::uint64_t bytes() const noexcept { return stored_; }
    unsigned rounds() const noexcept { return rounds_; }

  private:
    void begin_round();
    void send_pages(outgoing &to);
    void end_round();
    void next_round();
    bool has_room(std::uint64_t more) const;
    rank_memory memory_;
    std::uint64_t most_;
    bool waits_, tells_, ready_ = false;
    std::chrono::steady_clock::time_point rest_until_;
    std::chrono::milliseconds rest_ = kFirstRest;
    known_pages there_;
    page_places told_;                           /* what the other host knows */
    std::unique_ptr<unchanged_pages> unchanged_; /* nullptr: the kernel does not tell */
    std::string not_protected_;
    state state_ = state::ROUND;
    std::uint64_t stored_ = 0, round_ = 0, last_round_ = 0; /* bytes */
    std::uint32_t crc_ = 0;
    unsigned rounds_ = 1;
    read_memory next_;
};

} // namespace zc::holder

#endif
