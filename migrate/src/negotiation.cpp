/* SPDX-License-Identifier: BSD-3-Clause */
#include "negotiation.h"

#include <algorithm>

namespace zc::migrate {

namespace {

using operation = window::operation;

constexpr int kStampShift = 40;   /* number of the request above, safe point below */
constexpr int kAttemptShift = 22; /* number of the request above, attempt to meet below */
constexpr int kFlagShift = 4;     /* meeting above, kTaken and kGone below */

} // namespace

void negotiation::open(std::unique_ptr<window> over, std::int64_t requests)
{
    window_ = std::move(over);
    rank_ = window_->rank();
    requests_ = requests;
    step_ = step::idle;
}

void negotiation::close()
{
    if (!window_)
        return;
    for (auto &one : rounds_) /* all ranks are here, so all answer */
        one->wait();
    if (weights_)
        weights_->wait();
    rounds_.clear();
    weights_.reset();
    window_->close();
    window_.reset();
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

void negotiation::start(window::place where, window::operation what, std::int64_t value)
{
    rounds_.remove_if([](auto &old) { return old->is_done(); });
    rounds_.push_back(window_->start(where, what, value));
}

int negotiation::missing() const
{
    if (rounds_.empty())
        return -1;
    const window::round &last = *rounds_.back();
    for (std::size_t i = 0; i < last.got.size(); i++)
        if (!last.has_answered(i))
            return static_cast<int>(i) + 1;
    /* What the others have answered is as old as the round is: while one of them is silent, they
     * may have arrived since. */
    for (std::size_t i = 0; step_ == step::gathering && i < last.got.size(); i++)
        if (last.got[i] >> kFlagShift != meeting())
            return static_cast<int>(i) + 1;
    return -1;
}

/* ---- the place ---- */

void negotiation::begin(bool weighs)
{
    requests_++;
    raise_ = 1;
    attempt_ = 0;
    proposed_ = kNever;
    if (weighs) {
        if (weights_) /* of a request that was given up */
            rounds_.push_front(std::move(weights_));
        weights_ = window_->start(window::kBytes, operation::read, 0);
    }
    start(window::kCounter, operation::read, 0);
    step_ = weighs ? step::weighing : step::reading;
}

std::vector<std::int64_t> negotiation::weights() const
{
    std::vector<std::int64_t> all{memory_[window::kBytes]};
    all.insert(all.end(), weights_->got.begin(), weights_->got.end());
    return all;
}

void negotiation::propose(std::int64_t farthest)
{
    proposed_ = std::min(farthest + raise_, kNever - 1);
    raise_ *= 2;
    start(window::kProposal, operation::replace, stamp(proposed_));
    step_ = step::telling;
}

negotiation::progress negotiation::advance(std::int64_t n)
{
    for (progress known = progress::silence;; known = progress::searching) {
        if (!is_done())
            return known;
        std::int64_t most = 0; /* of the others: we are here */
        if (step_ == step::reading || step_ == step::checking)
            for (std::int64_t counted : rounds_.back()->got)
                most = std::max(most, counted);
        if (most >= kNever)
            return progress::finishing;
        switch (step_) {
        case step::weighing:
            step_ = step::reading;
            return progress::weighed;
        case step::reading:
            propose(std::max(most, n));
            break;
        case step::telling:
            /* A round trip later: who is below now has not been there before the word was. */
            start(window::kCounter, operation::read, 0);
            step_ = step::checking;
            break;
        case step::checking:
            if (most >= proposed_) {
                propose(std::max(most, n));
                break;
            }
            start(window::kConfirmation, operation::replace, stamp(proposed_));
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
        start(window::kConfirmation, operation::replace, stamp(kNever));
        start(window::kVerdict, operation::replace, meeting() * 2);
    }
    step_ = step::over;
}

negotiation::verdict negotiation::look(std::int64_t n) noexcept
{
    const std::int64_t proposed = seen_ = window_->load(window::kProposal),
                       confirmed = window_->load(window::kConfirmation);
    const std::int64_t request = proposed >> kStampShift, place = proposed & kNever;
    /* Or a later one is, for which nothing was proposed. */
    if (confirmed >= ((request << kStampShift) | kNever))
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
    window_->store(window::kArrival, meeting() << kFlagShift);
    if (rank_ != 0)
        return;
    start(window::kArrival, operation::read, 0);
    step_ = step::gathering;
}

negotiation::gathering negotiation::gather()
{
    if (rank_ != 0) {
        const std::int64_t said = window_->load(window::kVerdict);
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
        for (std::int64_t said : rounds_.back()->got) {
            if (said == there + kGone)
                return gathering::off;
            all = all && said == there;
        }
        start(window::kArrival, all ? operation::add : operation::read, all ? kTaken : 0);
        step_ = all ? step::taking : step::gathering;
        return gathering::waiting;
    }
    for (std::int64_t said : rounds_.back()->got)
        if (said != there)
            return gathering::off;
    start(window::kVerdict, operation::replace, meeting() * 2 + 1);
    step_ = step::over;
    return gathering::all;
}

bool negotiation::give_up() noexcept
{
    return !(window_->add(window::kArrival, kGone) & kTaken);
}

std::vector<std::int64_t> negotiation::state() const
{
    std::vector<std::int64_t> all = {quiet_,    seen_,  requests_, static_cast<std::int64_t>(step_),
                                     proposed_, raise_, attempt_};
    all.insert(all.end(), memory_.begin(), memory_.end());
    if (!rounds_.empty())
        all.insert(all.end(), rounds_.back()->got.begin(), rounds_.back()->got.end());
    if (step_ == step::weighing)
        all.insert(all.end(), weights_->got.begin(), weights_->got.end());
    return all;
}

} // namespace zc::migrate
