/* SPDX-License-Identifier: BSD-3-Clause */

/* What a successor does, from its start to its first safe point. */
#include "job.h"

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>

#include "error.h"
#include "memory_room.h"
#include "mpi_connection.h"
#include "recorder.h"
#include "requests.h"
#include "spawn.h"
#include "traffic.h"

namespace zc::migrate {

using nlohmann::json;

/** Another build would go on with the state of this one; and there must be room for that. */
std::string job::why_not_here(const greeting &said) const
{
    preflight needed;
    needed.program = said.program;
    needed.library = said.library;
    needed.features = said.features;
    std::string why = why_not(needed, control_.own(), host_name(), settings_.checks);
    if (why.empty() && said.moved && said.rank == 0)
        if (const std::string no_socket = control_.why_not_open(); !no_socket.empty())
            why = "host " + host_name() + " has no place for the job's socket: " + no_socket;
    if (!why.empty() || !said.moved || !settings_.checks.memory)
        return why;
    const std::uint64_t there =
        settings_.fault_injected(fault::no_memory) ? 1 << 20 : memory_room();
    return why_no_room(said.bytes, there, host_name());
}

/** What is wrong with it; "" if nothing. */
std::string job::inherit_layer(const std::string &told)
{
    try {
        inherited_ = bequest::from_text(told);
        return "";
    } catch (const error &problem) {
        return problem.what();
    }
}

/** Until the leaver lets this process go on; it ends if it is not to. */
greeting job::be_greeted(lifeline &line)
{
    try {
        const greeting said = greeting::from_json(line.receive().text);
        now_.rank = said.rank;
        if (said.moved && settings_.fault_injected(fault::successor_killed_early))
            raise(SIGKILL);
        std::string why = why_not_here(said);
        if (said.moved && why.empty())
            why = inherit_layer(said.layer);
        line.send(why.empty() ? word::here : word::failed, why);
        if (line.receive(kNoLimit).what == word::proceed)
            return said;
        line.send_until_taken(word::left);
    } catch (const std::exception &problem) {
        complain(now_.rank, std::string("successor: ") + problem.what());
        leave_process(leaving::not_started);
    }
    leave_process(leaving::called_off);
}

void job::start_as_successor()
{
    std::unique_ptr<lifeline> line;
    try {
        meeting_of_leaver met =
            meet_leaver(launcher_.get(), control_.own_now().to_line(), settings_.start_s);
        launcher_card_ = std::move(met.launcher);
        line = std::make_unique<lifeline>(std::make_unique<mpi_connection>(met.between, true), true,
                                          settings_.timeout_s);
    } catch (const error &problem) {
        complain(-1, std::string("successor: ") + problem.what());
        leave_process(leaving::not_started);
    }
    const greeting greeting = be_greeted(*line);
    name_ = greeting.job;
    identity_ = greeting.identity;
    line_ = greeting.line;
    moves_ = greeting.moves;
    late_functions_ = greeting.late_functions;
    begun_ = seconds() - greeting.age_s;
    hosts_ = greeting.hosts;
    allowed_ = greeting.allowed;
    control_.need_features(greeting.features);
    growth_ = {nullptr, greeting.leavers, greeting.index, greeting.rank, greeting.ranks};
    greeted_requests_ = greeting.requests;
    if (greeting.moved) {
        resumed_ = waiting_to_take_over_ = true;
        safe_points_ =
            greeting.safe_points - 1; /* its first safe point is the predecessor's last */
        now_.size = greeting.ranks;
        const image_header expected{greeting.rank, now_.size, greeting.safe_points, identity_};
        open_layer();
        if (greeting.others_run)
            become_rank_before_data(greeting, *line);
        inheritance_ = std::make_unique<from_predecessor>(std::move(line), expected, settings_);
        answer_from_record(greeting);
        return;
    }
    hear_go(launcher_.get(), growth_.rank);
    now_ = link_up(growth_, line.get());
    open_layer();
    layer::instance().link(now_.user);
    recorder::instance().record(settings_.record_bytes);
    line->disconnect();
    if (!greeting.resume.empty())
        resume_from_disk(greeting.resume);
    become_rank_of_job();
    refresh_status();
}

/** A successor's initialisation does not communicate: others wait in their safe point. */
void job::answer_from_record(const greeting &told)
{
    std::vector<std::byte> record(told.record);
    if (!record.empty())
        restored({kRecordName, record.data(), record.size(), element::byte});
    recorder::instance().answer(std::move(record),
                                [this](const std::string &why) { give_up_rank(why); });
}

void job::require_persistent()
{
    if (const std::size_t missing = requests::instance().missing(inherited_.persistent))
        give_up_rank("its initialisation has not made " + std::to_string(missing) +
                     (missing == 1 ? " persistent request" : " persistent requests") +
                     " that its predecessor has: zcm_on_rebuild() has to make "
                     "what is made later");
}

/** Returns when this process is the rank; where the move is called off it does not return. */
void job::await_go(from_predecessor &from)
{
    lifeline &line = from.line();
    require_persistent();
    try {
        if (settings_.fault_injected(fault::successor_exits))
            leave_process(leaving::fault_injected);
        if (settings_.fault_injected(fault::successor_killed))
            raise(SIGKILL);
        line.send(word::ready, json{{"restore_ms", from.spent().restore_ms}}.dump());
        if (settings_.fault_injected(fault::successor_killed_ready))
            raise(SIGKILL);
        /* The other leavers may take longer; a dead predecessor shows when it is pinged. */
        const message said = line.receive(kNoLimit);
        if (said.what != word::go) {
            from.leave("");
            leave_process(leaving::called_off);
        }
    } catch (const error &problem) {
        end_job(now_.rank, std::string("state received, but ") + problem.what());
    }
    if (growth_.index == 0 && settings_.fault_injected(fault::successor_killed_late))
        raise(SIGKILL);
}

/** Where the others run: the leaver says go at once, and this process is the rank. */
void job::become_rank_before_data(const greeting &told, lifeline &line)
{
    if (line.receive(kNoLimit).what != word::go) {
        line.send_until_taken(word::left);
        leave_process(leaving::called_off);
    }
    hear_go(launcher_.get(), growth_.rank);
    is_rank_before_data_ = true;
    try {
        const double committed = seconds();
        now_ = link_up(growth_, &line);
        {
            const watchdog guard = limit_entry(true);
            made_ = inherited_.make(now_.ours);
            homes_.resize(static_cast<std::size_t>(told.ranks));
            become_rank_of_job();
            ask_who_rebuilds();
        }
        rebuilt_ = rebuild_world(committed, true);
        profiler::instance().busy(true);
    } catch (const std::exception &problem) {
        give_up_rank(reason_of(problem));
    }
}

/** The first safe point of such a successor: it has its data. */
void job::take_data_over()
{
    auto &from = dynamic_cast<from_predecessor &>(*inheritance_);
    require_persistent();
    try {
        lifeline &line = from.line();
        if (settings_.fault_injected(fault::successor_exits))
            leave_process(leaving::fault_injected);
        line.send(word::ready, json{{"restore_ms", from.spent().restore_ms}}.dump());
        layer::instance().link(now_.user);
        inherited_.take_over(made_);
        waiting_to_take_over_ = false;
        functions.call(program_functions::kind::rebuild, now_.rank, kAllWait);
        if (now_.rank == 0)
            line.send(word::done, json{{"rebuilt", rebuilt_}}.dump());
        line.disconnect();
    } catch (const std::exception &problem) {
        give_up_rank(reason_of(problem));
    }
    profiler::instance().busy(false);
    inheritance_.reset();
}

/** A successor's first safe point: its state is complete, its predecessor may go. */
void job::take_over()
{
    if (is_rank_before_data_) {
        take_data_over();
        return;
    }
    auto &from = dynamic_cast<from_predecessor &>(*inheritance_);
    lifeline &line = from.line();
    await_go(from);
    hear_go(launcher_.get(), growth_.rank);
    /* Others wait for this rank in MPI now: it cannot report an error and go on. */
    try {
        const double committed = seconds();
        now_ = link_up(growth_, &line);
        {
            const watchdog guard = limit_entry(true);
            layer::instance().link(now_.user);
            inherited_.take_over(inherited_.make(now_.ours));
            homes_.resize(static_cast<std::size_t>(now_.size));
            become_rank_of_job();
            ask_who_rebuilds();
        }
        const std::vector<double> rebuilt = rebuild_world(committed, false);
        waiting_to_take_over_ = false;
        if (now_.rank == 0)
            line.send(word::done, json{{"rebuilt", rebuilt}}.dump());
        line.disconnect();
    } catch (const std::exception &problem) {
        end_job(now_.rank, "took the rank over, but " + reason_of(problem));
    }
    inheritance_.reset();
}

/* ---- what a resumed process goes on with ---- */

/** A successor that cannot go on: the predecessor does. */
void job::give_up_rank(const std::string &why)
{
    if (is_rank_before_data_)
        end_job(now_.rank, "took the rank over while the others run, but " + why);
    complain(now_.rank, "successor: " + why);
    dynamic_cast<from_predecessor &>(*inheritance_).leave(why);
    leave_process(leaving::not_restored);
}

/** @action with it. Does not return if a successor cannot be given what it asks for. */
template <typename Action>
auto job::inherit(Action action)
{
    auto *from = dynamic_cast<from_predecessor *>(inheritance_.get());
    if (!from)
        return action(*inheritance_);
    try {
        return action(*inheritance_);
    } catch (const std::exception &problem) {
        give_up_rank(reason_of(problem));
    }
}

const array &job::restored(const array &target)
{
    if (inheritance_)
        inherit([&](inheritance &from) { from.restore(target); });
    return target;
}

std::optional<std::uint64_t> job::saved_count(const std::string &name)
{
    if (!inheritance_ || name.starts_with(kOwnNames))
        return std::nullopt;
    return inherit([&](inheritance &from) { return from.count(name); });
}

const char *job::saved_name(std::size_t index)
{
    if (!inheritance_)
        return nullptr;
    const std::vector<std::string> &names =
        inherit([](inheritance &from) { return std::cref(from.names()); });
    for (const std::string &name : names)
        if (!name.starts_with(kOwnNames) && index-- == 0)
            return name.c_str();
    return nullptr;
}

} // namespace zc::migrate
