/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PRE_COPY_H_INCLUDED
#define ZC_HOLDER_PRE_COPY_H_INCLUDED

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "image.h"
#include "known_pages.h"
#include "page_places.h"
#include "page_sample.h"
#include "rank_memory.h"
#include "stream.h"
#include "unchanged_pages.h"

namespace zc::holder {

/**
 * Memory of a rank, sent while the rank runs: pages, by their content, into a store of the other
 * host, and which page of the rank's each is (image.h). Each round reads all memory, and sends the
 * pages that are not there yet:
 *
 *   ROUND ── all has been read, ──▶ SETTLING ── all has been taken ──▶ ROUND, DONE, or RESTING
 *     ▲      or no more is worth it                                                   │
 *     ├─────────────── after a pause, or the last one, then DONE ─────────────────────┘
 *     └─────────────── DONE: catch_up(), then DONE
 *
 * Why it is DONE, after a round or in the middle of one, is ended. How much is left to be sent,
 * which the first three ask, is what has not been read, and what has been written since: a sample
 * of the pages tells (page_sample.h). If the rank is to wait then until others are as far, it is
 * RESTING instead, and what it writes meanwhile is sent by a round now and then, less and less
 * often, as long as the store has room for two more such; and by a last one when it is told to end,
 * neither of them if it is OUTRUN or there is NO_TIME. When the rank stands still its image tells
 * what is another page than was told, and sends what is not in the store. So no help of the kernel
 * is needed, which would tell what has changed: the price is reading, and the sum of each page, in
 * each round, and once more while the rank stands still. With that help (track()) pages are left
 * out that have not been written since they were read. Pre-copy with rounds is of Theimer, Lantz
 * and Cheriton (1985), its ends of Clark et al. (2005).
 */
class pre_copy {
  public:
    enum class state { ROUND, SETTLING, RESTING, DONE };
    enum class ended {
        NOT_YET,
        OUTRUN,      /* in the first round what is left becomes hardly less, by less than a
                        quarter of what is sent, and most of what has not been sent yet is
                        written as well */
        NO_TIME,     /* or the rank would not be there in time */
        NO_LESS,     /* the next round would not send, or this one has not sent, much less: less
                        than three quarters of the one before */
        LITTLE_LEFT, /* a round has sent less than kLittle */
        MOST_ROUNDS,
        NO_ROOM /* in the store */
    };
    static constexpr unsigned kMostRounds = 5;
    static constexpr std::uint64_t kLittle = 8 << 20; /* bytes of a round */

    static constexpr std::chrono::milliseconds kFirstRest{500}, kMostRest{8000};

    /** @most: bytes of the store. @waits: it goes on until it is told to end. @tells: which page of
     * the rank each is, which is of use if CRIU leaves it out of the image. */
    pre_copy(pid_t pid, std::uint64_t most, bool waits = false, bool tells = true);
    /** The kernel tells from now on what is written, by @userfault (unchanged_pages.h), which the
     * process has opened. The round begins anew. Throws error if it cannot. False: no round is
     * under way that could begin anew, and it is not tracked. */
    bool track(descriptor userfault);
    /** The rank is to run at the other host by @then, if it can. It may be later: nothing ends a
     * move for that, and the rest of it takes as long as it does. */
    void end_by(std::chrono::steady_clock::time_point then) { until_ = then; }
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
    bool is_ready() const noexcept { return ended_ != ended::NOT_YET; }
    ended why_ended() const noexcept { return ended_; }
    using seconds = std::chrono::duration<double>;
    /** Is there a time at which the rank is to run at the other host? */
    bool has_limit() const noexcept { return until_.has_value(); }
    /** How long it would take until the rank ran there, if it left now. It looks at a sample of the
     * rank's pages, which takes some milliseconds. */
    seconds rest();

    const known_pages &there() const noexcept { return there_; }
    /** What the image begins with. This is to outlive what sends that, and sends no more. */
    sent_ahead sent();
    /** Why some of what could be unchanged is not known to be; empty: all is. */
    const std::string &not_protected() const noexcept { return not_protected_; }
    std::uint64_t bytes() const noexcept { return stored_; }
    unsigned rounds() const noexcept { return rounds_; }

  private:
    using clock = std::chrono::steady_clock;
    void begin_round();
    void look();
    seconds time_for(std::uint64_t left) const;
    bool is_late(std::uint64_t left) const;
    bool is_given_up() const;
    ended end_of_round();
    struct outlook {
        std::uint64_t left;    /* to be sent, bytes */
        double unread_changed; /* the share that was written, of what has not been read yet */
    };
    outlook look_ahead();
    void send_pages(outgoing &to);
    void end_round();
    void next_round();
    bool has_room(std::uint64_t more) const;
    rank_memory memory_;
    std::uint64_t most_;
    bool waits_, tells_;
    ended ended_ = ended::NOT_YET;
    clock::time_point rest_until_;
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
    std::vector<page_sum> sums_; /* of its pages */

    std::uint64_t memory_bytes_; /* the rank's, the most so far */
    std::uint64_t read_ = 0;     /* of them, in the first round, which began and ended then: */
    clock::time_point began_, first_ended_;
    page_sample sample_;
    clock::time_point look_at_;
    struct {
        std::uint64_t sent, left;
    } mark_{}; /* as of the last look that judged what was sent */
    std::optional<clock::time_point> until_;
};

/** As a move's result has it. */
const char *name_of(pre_copy::ended why);

} // namespace zc::holder

#endif
