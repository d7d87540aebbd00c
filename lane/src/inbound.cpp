/* SPDX-License-Identifier: BSD-3-Clause */
#include "inbound.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace zcl {

const inbound::spans &inbound::plan(std::size_t tail)
{
    plan_.clear();
    drop_tail();
    std::uint64_t pos = pos_;
    auto add = [&](void *at, std::size_t len) {
        if (len > 0)
            plan_.push_back({static_cast<char *>(at), len, false});
        pos += len;
    };

    if (phase_ == phase::hello) {
        add(reinterpret_cast<char *>(&hello_) + got_, sizeof hello_ - got_);
        return plan_;
    }
    if (phase_ == phase::payload) {
        if (frame_.len > 0 && !to_ && !decide())
            return plan_;
        add(user_.trash, pad_left_);
        add(to_ + got_, frame_.len - got_);
        add(&ahead_[0], sizeof(header));
    } else {
        add(reinterpret_cast<char *>(&header_) + got_, sizeof header_ - got_);
    }
    std::size_t nr = 0;
    for (auto e = expected_.begin(); e != expected_.end() && nr < ZCL_EXPECT_MAX; ++e) {
        add(e->buf, e->frame.len);
        add(&ahead_[++nr], sizeof(header));
    }
    if (tail > 0 && nr == expected_.size()) {
        tail_ = arena_.hold(pos, std::min<std::size_t>(tail, ZCL_PAGE), tail);
        if (tail_.len > 0)
            plan_.push_back({tail_.at, tail_.len, true});
    }
    return plan_;
}

void inbound::drop_tail()
{
    if (tail_.len > 0)
        arena_.release_but_kept(tail_.at);
    tail_ = {};
}

bool inbound::consumed(std::size_t n)
{
    const auto over = [this] {
        plan_.clear();
        drop_tail();
    };
    bool good = true;
    try {
        for (const span &s : plan_) {
            const std::size_t here = std::min(n, s.len);
            if (here == 0)
                break;
            good = good && process(s.at, here, s.tail);
            n -= here;
        }
    } catch (const std::bad_alloc &) {
        over(); /* frames in the tail that were told of are the caller's */
        throw;
    }
    over();
    return good;
}

bool inbound::process(char *at, std::size_t n, bool in_tail)
{
    while (n > 0) {
        if (phase_ == phase::payload) {
            const std::size_t pad = std::min(n, pad_left_);
            const std::size_t payload = std::min<std::uint64_t>(n - pad, frame_.len - got_);
            pad_left_ -= pad;
            pos_ += pad + payload;
            if (payload > 0)
                take_payload(at + pad, payload, in_tail);
            at += pad + payload;
            n -= pad + payload;
            if (pad_left_ == 0 && got_ == frame_.len)
                finish();
            continue;
        }
        const bool greeting = phase_ == phase::hello;
        char *to =
            greeting ? reinterpret_cast<char *>(&hello_) : reinterpret_cast<char *>(&header_);
        const std::size_t whole = greeting ? sizeof hello_ : sizeof header_;
        const std::size_t k = std::min(n, whole - got_);
        if (at != to + got_)
            std::memcpy(to + got_, at, k);
        got_ += k;
        at += k;
        n -= k;
        if (!greeting)
            pos_ += k;
        if (got_ < whole)
            continue;
        got_ = 0;
        if (greeting) {
            if (!user_.greeted(hello_))
                return false;
            phase_ = phase::header;
        } else if (!take_header()) {
            return false;
        }
    }
    return true;
}

bool inbound::take_header()
{
    if (header_.magic != kHeaderMagic || header_.pad >= ZCL_PAGE || header_.len > kLongest ||
        (header_.page_class >= ZCL_PAGE && header_.page_class != ZCL_CLASS_NONE) ||
        header_.pad != padding(pos_ - sizeof header_, header_.page_class))
        return false;
    frame_ = {header_.id, header_.len, header_.page_class, header_.tag};
    pad_left_ = header_.pad;
    to_ = nullptr;
    landed_ = false;
    phase_ = phase::payload;
    if (!expected_.empty()) {
        const expectation e = expected_.front();
        if (e.frame.id != frame_.id || e.frame.len != frame_.len || pad_left_ > 0)
            return false;
        expected_.pop_front();
        to_ = static_cast<char *>(e.buf);
    }
    if (pad_left_ == 0 && frame_.len == 0)
        finish();
    return true;
}

void inbound::take_payload(char *at, std::size_t n, bool in_tail)
{
    if (!to_ && in_tail)
        choose_in_tail(at, n);
    if (!to_) {
        stash_.insert(stash_.end(), at, at + n);
        got_ += n;
        return;
    }
    if (at != to_ + got_) {
        std::memcpy(to_ + got_, at, n);
        counts_.moved += n;
    }
    (landed_ ? counts_.landed : counts_.direct) += n;
    got_ += n;
}

/* The payload begins at @at in the tail, and @n bytes of it are there. */
void inbound::choose_in_tail(char *at, std::size_t n)
{
    if (n < frame_.len) {
        to_ = static_cast<char *>(user_.place(frame_));
        if (to_)
            return;
    }
    if (frame_.len <= static_cast<std::size_t>(tail_.at + tail_.len - at)) {
        arena_.keep(at, frame_.len);
        to_ = at;
    } else {
        to_ = arena_.hold(reinterpret_cast<std::uintptr_t>(at), frame_.len, frame_.len).at;
    }
    landed_ = to_ != nullptr;
}

/* Where the payload goes, of which nothing is where it belongs. */
bool inbound::decide()
{
    to_ = static_cast<char *>(user_.place(frame_));
    if (!to_) {
        to_ = arena_.hold(pos_ + pad_left_ - got_, frame_.len, frame_.len).at;
        landed_ = to_ != nullptr;
    }
    if (!to_)
        return false;
    std::copy(stash_.begin(), stash_.end(), to_);
    counts_.moved += stash_.size();
    (landed_ ? counts_.landed : counts_.direct) += stash_.size();
    stash_ = {};
    return true;
}

void inbound::finish()
{
    phase_ = phase::header;
    got_ = 0;
    user_.arrived(frame_, to_, landed_);
    to_ = nullptr;
}

bool inbound::release(void *data)
{
    return arena_.release(static_cast<char *>(data));
}

} // namespace zcl
