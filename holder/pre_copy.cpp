/* SPDX-License-Identifier: BSD-3-Clause */
#include "pre_copy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "page_runs.h"

namespace zc::holder {
namespace {

/* The owner has other things to do, to send what is pushed among them: meanwhile the connection has
 * what the socket holds, some ms of a fast link. */
constexpr std::chrono::milliseconds kTurn{2};

/* A look takes some milliseconds. What is sent between two that are compared has to be more than
 * the error of a sample. */
constexpr std::chrono::milliseconds kLook{250};
constexpr std::uint64_t kLeastPart = 16 << 20, kParts = 8;

constexpr std::uint64_t kPartToKnow = 16; /* of the memory, before which no rate is known */
constexpr double kOutrun = 0.5;           /* of what has not been read */

/* From the last of it until the rank runs at the other host, beside what is left to be sent: as
 * measured with two processors (docs/holder.md), where CRIU's image has the memory, and where it
 * has not. The rate is that of the first round, less a tenth. */
constexpr std::chrono::duration<double> kForImage{0.5}, kPerGibWithMemory{2}, kPerGibWithout{0.5};
constexpr double kGib = 1 << 30, kOfRate = 0.9;

} // namespace

const char *name_of(pre_copy::ended why)
{
    switch (why) {
    case pre_copy::ended::OUTRUN:
        return "outrun";
    case pre_copy::ended::NO_TIME:
        return "no time";
    case pre_copy::ended::NO_LESS:
        return "no less";
    case pre_copy::ended::LITTLE_LEFT:
        return "little left";
    case pre_copy::ended::MOST_ROUNDS:
        return "most rounds";
    case pre_copy::ended::NO_ROOM:
        return "no room";
    case pre_copy::ended::NOT_YET:
        break;
    }
    return "not yet";
}

pre_copy::pre_copy(pid_t pid, std::uint64_t most, bool waits, bool tells)
    : memory_(pid), most_(most), waits_(waits), tells_(tells), memory_bytes_(anonymous_bytes(pid)),
      sample_(memory_bytes_)
{
    there_.reserve(most / known_pages::kPage);
    begin_round();
}

bool pre_copy::track(descriptor userfault)
{
    if ((state_ != state::ROUND && state_ != state::RESTING) || is_given_up())
        return false;
    state_ = state::ROUND;
    unchanged_ = std::make_unique<unchanged_pages>(memory_.pid(), std::move(userfault));
    begin_round();
    return true;
}

void pre_copy::begin_round()
{
    memory_.rewind();
    if (unchanged_)
        not_protected_ = unchanged_->protect(memory_.anonymous());
    if (rounds_ > 1)
        return;
    read_ = 0;
    if (began_ == clock::time_point{}) /* what is sent twice takes as long, too */
        began_ = clock::now();
    look_at_ = clock::now() + kLook;
    mark_ = {stored_, memory_bytes_};
    sample_.note_all(memory_.pid(), memory_.mappings());
}

bool pre_copy::push(outgoing &to)
{
    const auto now = clock::now(), until = now + kTurn;
    if (state_ == state::RESTING && now >= rest_until_ && has_room(2 * round_) && !is_given_up())
        next_round();
    if (state_ == state::ROUND && now >= look_at_)
        look();
    while (can_push(to) && clock::now() < until) {
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
    read_ += rounds_ == 1 ? next_.pages.size() : 0;
    std::size_t at = 0, fresh = 0; /* in the pages: those that are new are moved to the front */
    page_runs runs;
    sums_.clear();
    for (std::size_t page = 0; page < next_.pages.size(); page += known_pages::kPage)
        sums_.push_back(there_.sum_of({next_.pages.data() + page, known_pages::kPage}));
    for (const page_range &each : next_.ranges) {
        for (std::uint64_t address = each.begin; address < each.end;
             address += known_pages::kPage, at += known_pages::kPage) {
            char *const page = next_.pages.data() + at;
            sample_.note(address, {page, known_pages::kPage});
            const auto [place, is_new] =
                there_.add(sums_[at / known_pages::kPage], stored_ + fresh);
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

/** Of what is there and has been read, and of what has not. */
pre_copy::outlook pre_copy::look_ahead()
{
    const bool all = rounds_ > 1 || state_ == state::SETTLING;
    memory_bytes_ = std::max(memory_bytes_, anonymous_bytes(memory_.pid()));
    const auto changed = sample_.changed(
        memory_.pid(), all ? std::numeric_limits<std::uint64_t>::max() : memory_.position());
    const std::uint64_t unread = all ? 0 : memory_bytes_ - std::min(memory_bytes_, read_);
    return {unread + static_cast<std::uint64_t>(changed.below * static_cast<double>(read_)),
            changed.above};
}

pre_copy::seconds pre_copy::time_for(std::uint64_t left) const
{
    const bool in_first = rounds_ == 1 && state_ == state::ROUND;
    const seconds first = (in_first ? clock::now() : first_ended_) - began_;
    const double rate = kOfRate * static_cast<double>(read_) / first.count();
    const seconds to_send{read_ > 0 ? static_cast<double>(left) / rate : 0};
    const seconds per_gib = tells_ ? kPerGibWithout : kPerGibWithMemory;
    return to_send + kForImage + per_gib * (static_cast<double>(memory_bytes_) / kGib);
}

pre_copy::seconds pre_copy::rest()
{
    return time_for(look_ahead().left);
}

/** The rank would run at the other host too late, if it did not leave now, with @left to send. */
bool pre_copy::is_late(std::uint64_t left) const
{
    if (!until_)
        return false;
    const bool knows_link = read_ >= memory_bytes_ / kPartToKnow; /* which begins slowly */
    return clock::now() + (knows_link ? time_for(left) : seconds{0}) >= *until_;
}

/** No more rounds, whatever is written. */
bool pre_copy::is_given_up() const
{
    return ended_ == ended::OUTRUN || ended_ == ended::NO_TIME;
}

void pre_copy::look()
{
    const std::uint64_t sent = stored_ - mark_.sent;
    const bool judges = rounds_ == 1 && sent >= std::max(kLeastPart, memory_bytes_ / kParts);
    look_at_ = clock::now() + kLook;
    if (!judges && !until_)
        return;
    const auto [left, unread_changed] = look_ahead();
    look_at_ = clock::now() + kLook; /* something is sent between, however long one takes */
    if (is_late(left))
        ended_ = ended::NO_TIME;
    else if (judges && mark_.left < left + sent / 4 && unread_changed > kOutrun)
        ended_ = ended::OUTRUN;
    if (judges)
        mark_ = {stored_, left};
    if (is_given_up())
        state_ = state::SETTLING;
}

pre_copy::ended pre_copy::end_of_round()
{
    if (!has_room(0))
        return ended::NO_ROOM;
    if (round_ < kLittle)
        return ended::LITTLE_LEFT;
    if (rounds_ > 1 && 4 * round_ > 3 * last_round_)
        return ended::NO_LESS;
    if (rounds_ == kMostRounds)
        return ended::MOST_ROUNDS;
    const std::uint64_t left = look_ahead().left;
    return is_late(left) ? ended::NO_TIME : 4 * left > 3 * round_ ? ended::NO_LESS : ended::NOT_YET;
}

void pre_copy::end_round()
{
    if (rounds_ == 1)
        first_ended_ = clock::now();
    if (ended_ == ended::NOT_YET)
        ended_ = end_of_round();
    if (ended_ == ended::NOT_YET)
        return next_round();
    state_ = waits_ ? state::RESTING : state::DONE;
    rest_until_ = clock::now() + rest_;
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
    look_at_ = clock::time_point::max(); /* it costs nothing */
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
    if (has_room(0) && !is_given_up() && !(until_ && is_late(look_ahead().left)))
        next_round();
    else
        state_ = state::DONE;
}

} // namespace zc::holder
