/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCL_INBOUND_H_INCLUDED
#define ZCL_INBOUND_H_INCLUDED

#include "frame_arena.h"
#include "wire.h"

#include <array>
#include <functional>
#include <list>
#include <vector>

namespace zcl {

/** What a lane's incoming half tells, and asks. */
struct inbound_user {
    std::function<bool(const hello &)> greeted;                     /* is it the right one? */
    std::function<void *(const zcl_frame_t &)> place;               /* null: landing memory */
    std::function<void(const zcl_frame_t &, void *, bool)> arrived; /* landed? */
    char *trash = nullptr;                                          /* ZCL_PAGE bytes */
};

struct inbound_counts {
    std::uint64_t direct = 0, landed = 0, moved = 0;
};

/**
 * The incoming half of a lane: where the next bytes of the stream belong, and what
 * has become of those that came. Does no I/O: the caller asks plan(), has the bytes put
 * there, all or some, in that order, and reports by consumed() how many.
 *
 *   hello ──▶ header ──▶ payload ──▶ header ...
 */
class inbound {
  public:
    struct span {
        char *at;
        std::size_t len;
        bool tail; /* landing memory, which may take many frames */
    };
    using spans = std::vector<span>;

    inbound(const inbound_user &user, std::size_t landing_bytes)
        : user_(user), arena_(landing_bytes)
    {
    }

    /**
     * Where the next bytes belong. With @tail the last span is landing memory of up to so many
     * bytes, for whatever may come; without, the next header ends the plan, if nothing is
     * expected. Empty: no memory for the frame that comes (held()).
     */
    const spans &plan(std::size_t tail);
    /** The first @n bytes of the plan are there. The plan is void. False: not our protocol. */
    [[nodiscard]] bool consumed(std::size_t n);

    void expect(const zcl_frame_t &frame, void *buf) { expected_.push_back({frame, buf}); }
    bool release(void *data);

    /** In the middle of a hello, a header or a frame. */
    bool within() const { return phase_ != phase::header || got_ > 0; }
    /** A header has been read, and the place for its payload is not known yet. */
    bool undecided() const { return phase_ == phase::payload && !to_ && frame_.len > 0; }
    /** More is to come for sure. */
    bool awaited() const { return within() || !expected_.empty(); }
    bool greeting() const { return phase_ == phase::hello; }
    bool idle() const { return !within() && arena_.idle() && expected_.empty(); }
    void trim() { arena_.trim(); }

    const inbound_counts &counts() const { return counts_; }

  private:
    enum class phase { hello, header, payload };
    struct expectation {
        zcl_frame_t frame;
        void *buf;
    };

    bool process(char *at, std::size_t n, bool in_tail);
    bool take_header();
    void take_payload(char *at, std::size_t n, bool in_tail);
    void choose_in_tail(char *at, std::size_t n);
    bool decide();
    void finish();
    void drop_tail();

    const inbound_user &user_;
    arena arena_;
    spans plan_;
    arena::range tail_{};
    std::list<expectation> expected_;

    phase phase_ = phase::hello;
    std::size_t got_ = 0; /* bytes of the hello, header or payload */
    hello hello_{};
    header header_{};
    std::array<header, ZCL_EXPECT_MAX + 1> ahead_{}; /* headers that the plan gives places to */

    zcl_frame_t frame_{};
    std::size_t pad_left_ = 0;
    char *to_ = nullptr;
    bool landed_ = false;
    std::vector<char> stash_; /* came in landing memory that has no room for the rest */
    std::uint64_t pos_ = 0;   /* stream offset */
    inbound_counts counts_;
};

} // namespace zcl

#endif /* ZCL_INBOUND_H_INCLUDED */
