/* SPDX-License-Identifier: BSD-3-Clause */
#include "negotiation.h"

#include <algorithm>

#include "world.h"

namespace zc::migrate {

namespace {

constexpr int kStampShift = 40;   /* number of the request above, safe point below */
constexpr int kAttemptShift = 20; /* number of the request above, attempt to meet below */
constexpr int kFlagShift = 4;     /* meeting above, kTaken and kGone below */

} // namespace

void negotiation::open(MPI_Comm comm, std::int64_t requests)
{
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    requests_ = requests;
    step_ = step::idle;
    MPI_Win_create(memory_.data(), sizeof memory_, sizeof(word), MPI_INFO_NULL, comm, &window_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
}

void negotiation::close()
{
    if (window_ == MPI_WIN_NULL)
        return;
    for (round &one : rounds_) /* all ranks are here, so all answer */
        for (MPI_Request &request : one.requests)
            wait_gently(request);
    rounds_.clear();
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
}

std::int64_t negotiation::stamp(std::int64_t safe_point) const noexcept
{
    return (requests_ << kStampShift) | safe_point;
}

std::int64_t negotiation::meeting() const noexcept
{
    return (requests_ << kAttemptShift) | attempt_;
}

/* ---- one-sided operations ---- */

/* Accumulates, as only these are atomic for each element; fetching ones, as these are done
 * at the target when they are done here. */
void negotiation::start(MPI_Aint place, MPI_Op op, std::int64_t value)
{
    rounds_.remove_if([this](round &old) { return is_done(old); });
    round &one = rounds_.emplace_back();
    const auto others = static_cast<std::size_t>(size_ - 1);
    one.sent.assign(others, value);
    one.got.assign(others, 0);
    one.requests.assign(others, MPI_REQUEST_NULL);
    for (int rank = 1; rank < size_; rank++) {
        const auto i = static_cast<std::size_t>(rank - 1);
        MPI_Rget_accumulate(&one.sent[i], 1, MPI_INT64_T, &one.got[i], 1, MPI_INT64_T, rank, place,
                            1, MPI_INT64_T, op, window_, &one.requests[i]);
    }
}

bool negotiation::is_done(round &one)
{
    bool all = true;
    for (MPI_Request &request : one.requests) {
        int done = 1;
        if (request != MPI_REQUEST_NULL)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        all = all && done;
    }
    return all;
}

int negotiation::missing() const
{
    if (rounds_.empty())
        return -1;
    const round &last = rounds_.back();
    for (std::size_t i = 0; i < last.requests.size(); i++)
        if (last.requests[i] != MPI_REQUEST_NULL ||
            (step_ == step::gathering && last.got[i] >> kFlagShift != meeting()))
            return static_cast<int>(i) + 1;
    return -1;
}

/* ---- the place ---- */

void negotiation::begin()
{
    requests_++;
    raise_ = 1;
    attempt_ = 0;
    proposed_ = kNever;
    start(kCounter, MPI_NO_OP, 0);
    step_ = step::reading;
}

void negotiation::propose(std::int64_t farthest)
{
    proposed_ = std::min(farthest + raise_, kNever - 1);
    raise_ *= 2;
    start(kProposal, MPI_REPLACE, stamp(proposed_));
    step_ = step::telling;
}

negotiation::progress negotiation::advance(std::int64_t n, double patience_s, double deadline)
{
    const double begin = seconds();
    pause pause;
    for (;;) {
        if (!is_done()) {
            const double now = seconds();
            if ((n < proposed_ && now - begin > patience_s) || now > deadline)
                return progress::searching;
            pause.rest();
            continue;
        }
        pause.reset();
        std::int64_t most = 0; /* of the others: we are here */
        if (step_ == step::reading || step_ == step::checking)
            for (std::int64_t counted : rounds_.back().got)
                most = std::max(most, counted);
        if (most >= kNever)
            return progress::finishing;
        switch (step_) {
        case step::reading:
            propose(std::max(most, n));
            break;
        case step::telling:
            /* A round trip later: who is below now has not been there before the word was. */
            start(kCounter, MPI_NO_OP, 0);
            step_ = step::checking;
            break;
        case step::checking:
            if (most >= proposed_) {
                propose(std::max(most, n));
                break;
            }
            start(kConfirmation, MPI_REPLACE, stamp(proposed_));
            step_ = step::confirming;
            break;
        default:
            return progress::found;
        }
    }
}

void negotiation::call_off()
{
    if (rank_ == 0) {
        start(kConfirmation, MPI_REPLACE, stamp(kNever));
        start(kVerdict, MPI_REPLACE, meeting() * 2);
    }
    step_ = step::over;
}

negotiation::verdict negotiation::look(std::int64_t n) noexcept
{
    const std::int64_t proposed = seen_ = proposal().load(),
                       confirmed = memory_[kConfirmation].load();
    const std::int64_t request = proposed >> kStampShift, place = proposed & kNever;
    if (confirmed == ((request << kStampShift) | kNever))
        return verdict::cancelled;
    if (n != place)
        return n < place ? verdict::ahead : verdict::missed;
    return confirmed == proposed ? verdict::meet : verdict::wait;
}

/* ---- the meeting ---- */

void negotiation::arrive(int attempt) noexcept
{
    if (rank_ != 0 && attempt == 0)
        requests_ = seen_ >> kStampShift;
    attempt_ = attempt;
    memory_[kArrival].store(meeting() << kFlagShift);
    if (rank_ != 0)
        return;
    start(kArrival, MPI_NO_OP, 0);
    step_ = step::gathering;
}

negotiation::gathering negotiation::gather()
{
    if (rank_ != 0) {
        const std::int64_t said = memory_[kVerdict].load();
        if (said >> 1 < meeting())
            return gathering::waiting;
        /* One of a later request: this one was called off, and we have not seen it. */
        return said == meeting() * 2 + 1 ? gathering::all : gathering::off;
    }
    if (!is_done())
        return gathering::waiting;
    const std::int64_t there = meeting() << kFlagShift;
    if (step_ == step::gathering) {
        bool all = true;
        for (std::int64_t said : rounds_.back().got) {
            if (said == there + kGone)
                return gathering::off;
            all = all && said == there;
        }
        start(kArrival, all ? MPI_SUM : MPI_NO_OP, all ? kTaken : 0);
        step_ = all ? step::taking : step::gathering;
        return gathering::waiting;
    }
    for (std::int64_t said : rounds_.back().got)
        if (said != there)
            return gathering::off;
    start(kVerdict, MPI_REPLACE, meeting() * 2 + 1);
    step_ = step::over;
    return gathering::all;
}

bool negotiation::give_up() noexcept
{
    /* By MPI, as rank 0 adds by MPI: an accumulate and the processor's own are not atomic to each
     * other, and where MPI has a thread of its own they can meet. */
    const std::int64_t gone = kGone;
    std::int64_t was = 0;
    MPI_Fetch_and_op(&gone, &was, MPI_INT64_T, rank_, kArrival, MPI_SUM, window_);
    MPI_Win_flush(rank_, window_);
    return !(was & kTaken);
}

} // namespace zc::migrate
