/* SPDX-License-Identifier: BSD-3-Clause */
#include "rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "clock.h"
#include "request.h"

namespace zc::migrate {

namespace {

constexpr double kAnswerAtOnce = 20e-3; /* seconds that rank 0 waits in a safe point for answers */
constexpr double kLastCall = 1;         /* it waits at a meeting for so long, late as it may be */

std::string no_safe_point(int rank, double patience_s)
{
    char text[160];
    std::snprintf(text, sizeof text,
                  "%s%s did not come to a safe point in time (%g s); the job goes on as it was",
                  rank < 0 ? "a rank" : "rank ", rank < 0 ? "" : std::to_string(rank).c_str(),
                  patience_s);
    return text;
}

std::string no_return(const std::string &function, int rank, double limit_s)
{
    char text[192];
    std::snprintf(text, sizeof text,
                  "%s has not returned in %s%s within %g s (ZC_MIGRATE_CALLBACK); the job goes on "
                  "as it was",
                  function.c_str(), rank < 0 ? "a rank" : "rank ",
                  rank < 0 ? "" : std::to_string(rank).c_str(), limit_s);
    return text;
}

} // namespace

rendezvous::rendezvous(negotiation &agreement, request_source &requests, double patience_s,
                       std::function<void()> before_settling, std::function<void()> before_arriving)
    : agreement_(agreement), requests_(requests), patience_s_(patience_s),
      before_settling_(std::move(before_settling)), before_arriving_(std::move(before_arriving))
{
}

rendezvous::next rendezvous::step(std::int64_t n, double now)
{
    if (stage_ == stage::gathering)
        return gather(now);
    if (stage_ != stage::agreed) {
        const next found = leads() ? choose_place(n, now) : find_place(n, now);
        if (found == next::wait || found == next::again) {
            if (!waits_since_)
                waits_since_ = now;
            return found;
        }
        waits_since_.reset();
        if (stage_ != stage::agreed)
            return found;
    }
    if (n != target_)
        return next::go_on;
    if (before_arriving_)
        before_arriving_();
    return arrive(now);
}

/** Rank 0. In agreed it is known, and what is returned means nothing. */
rendezvous::next rendezvous::choose_place(std::int64_t n, double now)
{
    if (stage_ == stage::calm) {
        agreement_.hear();
        if (!requests_.take()) { /* withdrawn meanwhile */
            settle();
            return next::go_on;
        }
        deadline_ = requests_.examined() + patience_s_;
        agreement_.begin(requests_.weighs());
        stage_ = stage::searching;
    }
    const negotiation::progress progress = agreement_.advance(n);
    switch (progress) {
    case negotiation::progress::weighed: {
        const std::string why = requests_.too_heavy(agreement_.weights());
        if (why.empty())
            return next::again;
        agreement_.call_off();
        outcome(control::refusal(ENOMEM, why));
        return next::go_on;
    }
    case negotiation::progress::found:
        target_ = agreement_.place();
        stage_ = stage::agreed;
        return next::go_on;
    case negotiation::progress::finishing:
        agreement_.call_off();
        outcome(control::refusal(ESHUTDOWN, "the job is finishing"));
        return next::go_on;
    case negotiation::progress::silence:
    case negotiation::progress::searching:
        break;
    }
    if (now > deadline_)
        return refuse(agreement_.missing());
    if (agreement_.is_ahead_of(n) && now - waits_since_.value_or(now) > kAnswerAtOnce)
        return next::go_on;
    return progress == negotiation::progress::silence ? next::wait : next::again;
}

/** The others; as choose_place(). */
rendezvous::next rendezvous::find_place(std::int64_t n, double now)
{
    switch (agreement_.look(n)) {
    case negotiation::verdict::meet:
        target_ = n;
        stage_ = stage::agreed;
        return next::go_on;
    case negotiation::verdict::wait:
        /* Rank 0 may be far away; it will find that this one has passed. */
        return now - waits_since_.value_or(now) > patience_s_ ? next::go_on : next::wait;
    case negotiation::verdict::cancelled:
        settle();
        break;
    case negotiation::verdict::ahead:
    case negotiation::verdict::missed: /* the proposal will be raised */
        break;
    }
    return next::go_on;
}

rendezvous::next rendezvous::arrive(double now)
{
    met_ = now;
    /* Rank 0 may be the late one; the others may be here. */
    leaves_ = leads() ? std::max(deadline_, met_ + kLastCall) : met_ + patience_s_;
    const bool in_time = !leads() || requests_.hold();
    agreement_.arrive(meetings_++);
    if (!in_time) { /* it has been answered: it took too long */
        agreement_.call_off();
        outcome(control::refusal(ETIMEDOUT, ""));
        return next::go_on;
    }
    stage_ = stage::gathering;
    return gather(now);
}

rendezvous::next rendezvous::meet_again(const std::string &function, double limit_s,
                                        double deadline, double now)
{
    function_ = function;
    function_s_ = limit_s;
    /* Rank 0 is the one that says which rank is missing. */
    leaves_ = leads() ? deadline : deadline + kLastCall;
    agreement_.arrive(meetings_++);
    if (leads() && now > deadline)
        return refuse(0);
    stage_ = stage::gathering;
    return gather(now);
}

/** Are all here? If not, the request is over and all go on. */
rendezvous::next rendezvous::gather(double now)
{
    const auto state = agreement_.gather();
    if (state == negotiation::gathering::all) {
        stage_ = stage::agreed;
        function_.clear();
        return next::met;
    }
    const bool late = now > leaves_;
    if (state == negotiation::gathering::off || (late && leads()))
        return refuse(agreement_.missing());
    if (late) {
        if (agreement_.give_up()) {
            settle();
            return next::go_on;
        }
        leaves_ = kNoLimit; /* rank 0 has counted this one in, so it is there, and will say */
    }
    return next::wait;
}

rendezvous::next rendezvous::refuse(int missing)
{
    if (leads())
        agreement_.call_off();
    outcome(control::refusal(ETIMEDOUT, function_.empty()
                                            ? no_safe_point(missing, patience_s_)
                                            : no_return(function_, missing, function_s_)));
    return next::go_on;
}

void rendezvous::put_off() noexcept
{
    attempts_++;
    target_++;
}

void rendezvous::settle()
{
    if (before_settling_)
        before_settling_();
    agreement_.settle();
    stage_ = stage::calm;
    attempts_ = meetings_ = 0;
    function_.clear();
}

void rendezvous::outcome(const std::string &text)
{
    settle();
    requests_.finish(text);
}

std::vector<double> rendezvous::state(double now) const
{
    /* How long ago it was; what is too long ago is all the same. */
    const auto age = [&](double then) {
        return std::clamp(now - then, -kNoLimit, patience_s_ + 1);
    };
    const bool gathers = stage_ == stage::gathering;
    return {static_cast<double>(stage_),
            stage_ >= stage::agreed ? static_cast<double>(target_) : 0,
            static_cast<double>(attempts_),
            static_cast<double>(meetings_),
            waits_since_ ? age(*waits_since_) : -1,
            leads() && stage_ != stage::calm ? age(deadline_) : 0,
            gathers ? age(leaves_) : 0};
}

} // namespace zc::migrate
