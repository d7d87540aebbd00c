/* SPDX-License-Identifier: BSD-3-Clause */
#include "pre_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "page_runs.h"

namespace zc::holder {
namespace {

/* The owner has other things to do, to send what is pushed among them: meanwhile the connection has
 * what the socket holds, some ms of a fast link. */
constexpr std::chrono::milliseconds kTurn{2};

} // namespace

pre_copy::pre_copy(pid_t pid, std::uint64_t most, bool waits, bool tells)
    : memory_(pid), most_(most), waits_(waits), tells_(tells)
{
    there_.reserve(most / known_pages::kPage);
    begin_round();
}

void pre_copy::track(descriptor userfault)
{
    if (state_ != state::ROUND && state_ != state::RESTING)
        return;
    state_ = state::ROUND;
    unchanged_ = std::make_unique<unchanged_pages>(memory_.pid(), std::move(userfault));
    begin_round();
}

void pre_copy::begin_round()
{
    memory_.rewind();
    if (unchanged_)
        not_protected_ = unchanged_->protect(memory_.anonymous());
}

bool pre_copy::push(outgoing &to)
{
    const auto now = std::chrono::steady_clock::now(), until = now + kTurn;
    if (state_ == state::RESTING && now >= rest_until_ && has_room(2 * round_))
        next_round();
    while (can_push(to) && std::chrono::steady_clock::now() < until) {
        if (has_room(0) && memory_.read(next_, unchanged_.get()))
            send_pages(to);
        else
            state_ = state::SETTLING;
    }
    if (state_ == state::SETTLING && to.is_done())
        end_round();
    return state_ == state::DONE;
}

bool pre_copy::can_push(const outgoing &to) const
{
    return state_ == state::ROUND && to.room() >= 2 * rank_memory::kAtOnce;
}

void pre_copy::send_pages(outgoing &to)
{
    std::size_t at = 0, fresh = 0; /* in the pages: those that are new are moved to the front */
    page_runs runs;
    for (const page_range &each : next_.ranges) {
        for (std::uint64_t address = each.begin; address < each.end;
             address += known_pages::kPage, at += known_pages::kPage) {
            char *const page = next_.pages.data() + at;
            const auto [place, is_new] = there_.add({page, known_pages::kPage}, stored_ + fresh);
            if (is_new && fresh != at)
                std::memcpy(next_.pages.data() + fresh, page, known_pages::kPage);
            fresh += is_new ? known_pages::kPage : 0;
            if (tells_ ? told_.set(address, place) : is_new)
                runs.add(address, known_pages::kPage, is_new ? page_runs::kFollows : place);
            if (unchanged_)
                unchanged_->note(address);
        }
    }
    if (runs.is_empty())
        return;
    next_.pages.resize(fresh);
    crc_ = push_memory(to, runs, std::exchange(next_.pages, to.take_spare()), crc_);
    stored_ += fresh;
    round_ += fresh;
}

/** Of the store, for so many bytes and what is read at once. */
bool pre_copy::has_room(std::uint64_t more) const
{
    return stored_ + more + rank_memory::kAtOnce <= most_;
}

void pre_copy::end_round()
{
    const bool as_before = rounds_ > 1 && 4 * round_ > 3 * last_round_;
    ready_ = ready_ || round_ < kLittle || as_before || !has_room(0) || rounds_ == kMostRounds;
    if (!ready_)
        return next_round();
    state_ = waits_ ? state::RESTING : state::DONE;
    rest_until_ = std::chrono::steady_clock::now() + rest_;
    rest_ = std::min(2 * rest_, kMostRest);
}

void pre_copy::next_round()
{
    rounds_++;
    last_round_ = round_;
    round_ = 0;
    begin_round();
    state_ = state::ROUND;
}

void pre_copy::catch_up()
{
    if (state_ != state::DONE || !unchanged_)
        return;
    memory_.rewind();
    round_ = 0;
    state_ = state::ROUND;
}

sent_ahead pre_copy::sent()
{
    return {&there_, unchanged_.get(), std::exchange(told_, {}), stored_, crc_};
}

void pre_copy::finish()
{
    waits_ = false;
    if (state_ != state::RESTING)
        return;
    if (has_room(0))
        next_round();
    else
        state_ = state::DONE;
}

} // namespace zc::holder
