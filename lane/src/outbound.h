/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCL_OUTBOUND_H_INCLUDED
#define ZCL_OUTBOUND_H_INCLUDED

#include "wire.h"
#include "zcl/lane.h"

#include <algorithm>
#include <array>
#include <list>
#include <sys/uio.h>
#include <utility>

namespace zcl {

/** The outgoing half of a lane: what is to be sent, in order. Does no I/O. */
class outbound {
  public:
    static constexpr int kMostPieces = 48;
    /* What a call sends at most by itself: a reader that keeps up would keep it for ever. */
    static constexpr std::size_t kMostAtOnce = std::size_t{4} << 20;

    struct item {
        header head;
        const char *data;
        void *token;
        std::list<zcl_event_t> told; /* one: what is told when it has gone, or cannot go */
    };

    /** @at_once: says hello before the other has. */
    outbound(const hello &first, bool at_once)
        : hello_(first), hello_left_(at_once ? sizeof(hello) : 0)
    {
    }
    /** The other has said hello. */
    void greet() { hello_left_ = sizeof(hello); }

    void push(const zcl_frame_t &frame, const void *data, void *token)
    {
        const std::uint32_t pad = padding(pos_, frame.page_class);
        queue_.push_back({{kHeaderMagic, frame.page_class, frame.id, frame.len, pad, frame.tag},
                          static_cast<const char *>(data),
                          token,
                          std::list<zcl_event_t>(1)});
        pos_ += sizeof(header) + pad + frame.len;
    }

    /** What it begins with. */
    const hello &greeting() const { return hello_; }

    bool empty() const { return queue_.empty() && hello_left_ == 0; }

    /** The next bytes, in up to kMostPieces pieces. */
    int plan(iovec *pieces)
    {
        int nr = 0;
        std::size_t skip = done_;
        auto add = [&](const void *at, std::size_t len) {
            const std::size_t gone = std::min(skip, len);
            skip -= gone;
            if (len > gone)
                pieces[nr++] = {const_cast<char *>(static_cast<const char *>(at)) + gone,
                                len - gone};
        };
        if (hello_left_ > 0)
            pieces[nr++] = {reinterpret_cast<char *>(&hello_) + sizeof hello_ - hello_left_,
                            hello_left_};
        for (const item &i : queue_) {
            if (nr + 3 > kMostPieces)
                break;
            add(&i.head, sizeof i.head);
            add(kZeros.data(), i.head.pad);
            add(i.data, i.head.len);
        }
        return nr;
    }

    /** The first @n bytes of it are gone; @sent is called for each frame of which all are. */
    template <typename F>
    void consumed(std::size_t n, F sent)
    {
        const std::size_t k = std::min(n, hello_left_);
        hello_left_ -= k;
        done_ += n - k;
        while (!queue_.empty() && done_ >= length(queue_.front())) {
            item first = std::move(queue_.front());
            done_ -= length(first);
            queue_.pop_front();
            sent(first);
        }
    }

    /** Nothing more will go. */
    template <typename F>
    void drop(F dropped)
    {
        while (!queue_.empty()) {
            dropped(queue_.front());
            queue_.pop_front();
        }
        hello_left_ = done_ = 0;
    }

  private:
    static std::size_t length(const item &i) { return sizeof i.head + i.head.pad + i.head.len; }
    static constexpr std::array<char, ZCL_PAGE> kZeros{};

    hello hello_;
    std::size_t hello_left_;
    std::list<item> queue_; /* never moved while in it: the kernel reads the headers */
    std::size_t done_ = 0;  /* bytes of the first */
    std::uint64_t pos_ = 0;
};

} // namespace zcl

#endif /* ZCL_OUTBOUND_H_INCLUDED */
