/* SPDX-License-Identifier: BSD-3-Clause */

/* What a rank does at a safe point where all have met. */
#include <algorithm>
#include <nlohmann/json.hpp>

#include "error.h"
#include "job.h"
#include "job_in_move.h"
#include "layer.h"
#include "move_transaction.h"
#include "open_things.h"
#include "profiler.h"
#include "requests.h"
#include "test_wait.h"
#include "traffic.h"

namespace zc::migrate {

using nlohmann::json;

/** Why the state cannot be taken here, "" if it can. What the program has released counts if
 *  @released. Collective, but each rank has its own. */
std::string job::obstacle(bool released) const
{
    const std::string in_flight = traffic::in_flight(now_.ours);
    if (!in_flight.empty())
        return "messages in flight: " + in_flight;
    const std::string live = released ? requests::instance().live() : "";
    return live.empty() ? "" : "rank " + std::to_string(now_.rank) + " has " + live;
}

/** What a rank has set of @one that its successor would not have, "" if there is nothing. What is
 *  cached on MPI_COMM_SELF is this process's own, such as a function to be called at its end. */
std::string job::late_attributes(const communicator &one) const
{
    const auto count = one.handle == MPI_COMM_SELF
                           ? 0
                           : std::ranges::count(one.attributes, true, &attribute::late);
    if (count == 0)
        return "";
    return "rank " + std::to_string(now_.rank) + " has set " + std::to_string(count) +
           (count == 1 ? " attribute of " : " attributes of ") +
           (one.handle == MPI_COMM_WORLD ? "MPI_COMM_WORLD" : "a communicator") +
           " after its first safe point, and its successor would not have " +
           (count == 1 ? "it" : "them") +
           ": the functions of zcm_on_rebuild() have to delete and set what is cached there";
}

/** What no later safe point will change, most likely. @leaves: this rank is to move. */
std::string job::lasting_obstacle(bool leaves) const
{
    std::string mine = open_things::text();
    if (!mine.empty())
        mine = "rank " + std::to_string(now_.rank) + " has " + mine +
               " open: zcm_on_rebuild() has to close what cannot move";
    layer::instance().each([&](const communicator &one) {
        if (mine.empty() && one.has_strangers())
            mine = "rank " + std::to_string(now_.rank) +
                   " has a communicator with processes that are not of the job";
        if (mine.empty() && leaves)
            mine = late_attributes(one);
    });
    return mine;
}

/** This rank is to move. */
bool job::leaves(const request &wanted) const
{
    return std::ranges::count(wanted.moves, now_.rank, &request::target::rank) > 0;
}

/** Collective. Ranks wait for each other twice, whatever is found: for what has been sent, and for
 *  what each has found; once more if there is an obstacle, for its text. */
job::findings job::survey(const request &wanted, bool released)
{
    using kind = program_functions::kind;
    const bool moves = wanted.kind == request::what::move;
    const std::string passing = obstacle(released),
                      lasting = moves ? lasting_obstacle(leaves(wanted)) : "";
    const bool saves = functions.has(kind::save) && (!moves || leaves(wanted));
    const auto claim = [this](bool is_mine) { return is_mine ? now_.rank : now_.size; };
    const std::vector<int> first =
        least(now_.ours, {claim(!passing.empty()), claim(!lasting.empty()),
                          claim(moves && functions.has(kind::release)), claim(saves)});
    return {told_by(first[0], passing), told_by(first[1], lasting), first[2] < now_.size,
            first[3] < now_.size};
}

/** Collective: the @text of rank @teller, "" if that is none. */
std::string job::told_by(int teller, std::string text)
{
    if (teller == now_.size)
        return "";
    share(now_.ours, teller, text);
    return text;
}

/** The request is refused, or put off if it may be carried out later. */
void job::give_up(const std::string &why, bool lasts)
{
    if (!lasts && meeting_.attempts() + 1 < settings_.attempts) {
        meeting_.put_off();
        control_.release();
        return;
    }
    meeting_.outcome(lasts ? refusal(ENOTSUP, why)
                           : refusal(EAGAIN, "at " + std::to_string(meeting_.attempts() + 1) +
                                                 " safe points: " + why));
}

void job::meet()
{
    const roll_call::scope guard(*roll_);
    std::string text;
    if (const auto &taken = control_.taken())
        text = json{{"request", taken->wanted.to_json()},
                    {"stand_by", taken->successors != nullptr},
                    {"others_run", settings_.others_run}}
                   .dump();
    share(now_.ours, 0, text);
    const json told = json::parse(text);
    const request wanted = request::from_json(told.at("request"));
    const bool moves = wanted.kind == request::what::move;
    const findings found =
        survey(wanted, !moves || !functions.has(program_functions::kind::release));
    if (!found.passing.empty())
        give_up(found.passing, false);
    else if (moves)
        make_move(wanted, {told.at("stand_by"), told.at("others_run")}, found);
    else if (!found.someone_saves || call_together(program_functions::kind::save, true))
        checkpoint();
}

/** Collective: or the ranks are where they were, and the request has been dealt with. */
void job::make_move(const request &wanted, const move_plan &how, findings found)
{
    const auto rebuild = [this] {
        functions.call(program_functions::kind::rebuild, now_.rank,
                       "the move was not made; the others go on");
    };
    if (found.someone_releases) {
        if (!call_together(program_functions::kind::release, true)) {
            rebuild();
            return;
        }
        found = survey(wanted, true);
    }
    const bool lasts = found.passing.empty();
    if (const std::string &why = lasts ? found.lasting : found.passing; !why.empty()) {
        rebuild();
        give_up(why, lasts);
        return;
    }
    bool moved = false;
    if (!found.someone_saves || call_together(program_functions::kind::save, leaves(wanted))) {
        profiler::instance().busy(true);
        job_in_move self(*this, wanted, how);
        moved = move_transaction(self, settings_, wanted, self.hello()).run();
        profiler::instance().busy(false);
    }
    if (!moved)
        rebuild();
}

/**
 * Collective: the ranks that are @here call their function, if they have one, and all meet again.
 * False: one has not returned in time, so the request is refused and all but that rank go on; that
 * rank finds out when its function returns.
 */
bool job::call_together(program_functions::kind what, bool here)
{
    here = here && functions.has(what);
    const double deadline = seconds() + functions.limit_s();
    const std::string name = program_functions::name_of(what);
    if (here)
        call_save([&] {
            return functions.call(what, now_.rank, "the request is refused, the others go on", [&] {
                if (now_.rank == 0)
                    control_.answer_early(refusal(
                        ETIMEDOUT, name + " has not returned in rank 0 (ZC_MIGRATE_CALLBACK)"));
            });
        });
    const bool all = wait_for_meeting(
        meeting_.meet_again(name, functions.limit_s(), deadline, seconds()), safe_points_.load());
    if (!all)
        control_.set_late_functions(++late_functions_);
    return all;
}

/** What is wrong is kept for require_current(). */
void job::call_save(const std::function<int()> &call)
{
    save_problem_.clear();
    try {
        if (const int code = call(); code != 0)
            save_problem_ =
                "the program's function of zcm_on_save() has returned " + std::to_string(code);
    } catch (const std::exception &problem) { /* the program's */
        save_problem_ = problem.what();
    }
}

void job::require_current()
{
    if (!save_problem_.empty())
        throw error(ECANCELED, save_problem_);
    data.check_mapped();
}

/** Before this rank is done with a request. */
void job::settle_late() const
{
    if (settings_.fault_injected(fault::settles_late) && now_.rank != 0)
        for (const double begin = seconds(); seconds() - begin < 1;)
            make_progress(); /* rank 0 may be at the next request by then */
}

/** Before this rank says that it is where all meet. */
void job::arrive_late() const
{
    if (settings_.fault_injected(fault::waits_in_negotiation) && moves_ == 0 &&
        meeting_.attempts() == 0 && now_.rank == now_.size - 1)
        wait_for_test(settings_.checkpoint_directory, [] { make_progress(); });
}

} // namespace zc::migrate
