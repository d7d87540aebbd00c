/* SPDX-License-Identifier: BSD-3-Clause */
#include "roll_call.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <new>

#include "clock.h"
#include "process.h"
#include "returned_errors.h"

namespace zc::migrate {

namespace {

constexpr double kRounds = 4; /* in the time limit */
#ifdef OPEN_MPI
constexpr bool kCallsMayBlock = true; /* until the other one is in MPI (osc/ucx) */
#else
constexpr bool kCallsMayBlock = false;
#endif
constexpr const char *kGone = " is gone, as MPI has found";

} // namespace

roll_call::roll_call(MPI_Win over, int rank, double limit_s, double patience_s,
                     const std::vector<std::string> &homes)
    : over_(over), rank_(rank), limit_s_(limit_s), patience_s_(patience_s), homes_(homes)
{
}

roll_call::~roll_call()
{
    active = nullptr;
    for (MPI_Request &request : last_.requests)
        if (request != MPI_REQUEST_NULL)
            PMPI_Wait(&request, MPI_STATUS_IGNORE);
    /* A rank that was called may compute still, or have died, and this process may be at its end.
     * MPI writes the answer when it comes. */
    for (calls &all : called_again_)
        if (std::ranges::count(all.requests, MPI_REQUEST_NULL) < std::ssize(all.requests))
            (void)all.answers.release();
}

roll_call::scope::scope(roll_call &own) noexcept
{
    own.asked_ = seconds();
    active = &own;
}

void roll_call::ask(double now)
{
    last_ = calls(none());
    asked_ = now;
    end_if_gone(begin(last_, none()));
}

/** Calls the first @ranks, up to one that is gone, which it returns. */
std::size_t roll_call::begin(calls &all, std::size_t ranks) const
{
    const returned_errors_of_window returned(over_);
    for (std::size_t i = 0; i < ranks; i++) {
        if (i == static_cast<std::size_t>(rank_))
            continue;
        const int code = PMPI_Rget_accumulate(nullptr, 0, MPI_INT64_T, &all.answers[i], 1,
                                              MPI_INT64_T, static_cast<int>(i), 0, 1, MPI_INT64_T,
                                              MPI_NO_OP, over_, &all.requests[i]);
        int what = MPI_SUCCESS;
        if (code != MPI_SUCCESS)
            PMPI_Error_class(code, &what);
        if (what != MPI_SUCCESS && what != MPI_ERR_NO_MEM) /* else it has not been called */
            return i;
    }
    return none();
}

roll_call::findings roll_call::look_at(calls &all) const
{
    const returned_errors_of_communicator returned(MPI_COMM_WORLD);
    findings found{none(), none()};
    for (std::size_t i = all.requests.size(); i-- > 0;) {
        int done = 1;
        if (all.requests[i] != MPI_REQUEST_NULL &&
            PMPI_Test(&all.requests[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            found.gone = i;
        if (!done)
            found.missing = i;
    }
    return found;
}

std::size_t roll_call::unanswered_of(calls &all) const
{
    const findings found = look_at(all);
    end_if_gone(found.gone);
    return found.missing;
}

void roll_call::look_now()
{
    const std::size_t missing = unanswered();
    const double now = seconds();
    if (missing == none()) {
        if (now - asked_ > limit_s_ / kRounds)
            ask(now);
    } else if (now - asked_ > limit_s_) {
        end_for(missing, how_silent());
    }
}

void roll_call::look_for_gone(double since)
{
    if (kCallsMayBlock)
        return;
    const double now = seconds();
    if (called_ < since) { /* by an earlier wait */
        called_ = since;
        gap_s_ = std::min(limit_s_, patience_s_) / kRounds;
    }
    if (now - called_ < gap_s_)
        return;
    called_ = now;
    gap_s_ *= 2;
    std::erase_if(called_again_, [this](calls &all) { return unanswered_of(all) == none(); });
    try {
        end_if_gone(begin(called_again_.emplace_back(none()), rank_ == 0 ? none() : 1));
    } catch (const std::bad_alloc &) {
        return; /* this rank can wait without looking */
    }
}

std::string roll_call::who_is_gone(double limit_s)
{
    if (kCallsMayBlock)
        return "";
    calls &all = called_again_.emplace_back(none());
    std::size_t gone = begin(all, none());
    const double late = seconds() + limit_s;
    for (pause pause; gone == none() && seconds() < late; pause.rest()) {
        const findings found = look_at(all);
        gone = found.gone;
        if (found.missing == none())
            break;
    }
    return gone == none() ? "" : name_of(gone) + kGone;
}

void roll_call::find_lost(const std::string &problem)
{
    if (active)
        active->find_lost_now(problem);
    end_job(-1, problem);
}

/** By a round that is begun now, or the one under way. */
void roll_call::find_lost_now(const std::string &problem)
{
    if (unanswered() == none())
        ask(seconds());
    for (pause pause; unanswered() < none(); pause.rest())
        look_now();
    end_job(rank_, "all ranks answer, but MPI says, in a move or a checkpoint: " + problem);
}

std::string roll_call::how_silent() const
{
    char text[80];
    std::snprintf(text, sizeof text, " has not answered for %g s (ZC_MIGRATE_SILENCE)", limit_s_);
    return text;
}

std::string roll_call::name_of(std::size_t missing) const
{
    const std::string &home = homes_[missing]; /* a successor does not know it yet */
    return "rank " + std::to_string(missing) + (home.empty() ? "" : " on " + home);
}

void roll_call::end_for(std::size_t missing, const std::string &how) const
{
    end_job(rank_, name_of(missing) + how +
                       ", while all ranks are in a move or a checkpoint, or come to one: the job "
                       "cannot go on");
}

void roll_call::end_if_gone(std::size_t rank) const
{
    if (rank != none())
        end_for(rank, kGone);
}

} // namespace zc::migrate
