/* SPDX-License-Identifier: BSD-3-Clause */
#include "move.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <unistd.h>

#include "disk_writer.h"
#include "error.h"
#include "watchdog.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

double ms_since(double begin)
{
    return (seconds() - begin) * 1e3;
}

MPI_Comm spawn(const command &command, const place &host)
{
    /* Through env(1): not every launcher hands our environment on. */
    std::vector<std::string> words = inherited_environment();
    std::erase_if(words,
                  [](const std::string &w) { return w.starts_with("ZC_MIGRATE_SUCCESSOR="); });
    words.emplace_back("ZC_MIGRATE_SUCCESSOR=1");
    words.push_back(command.program);
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);

    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", host.name.c_str());
#ifdef OPEN_MPI
    /* To add one that it knows would end its daemon there; one that it does not has to be. */
    if (host.is_new)
        MPI_Info_set(info, "add-host", host.name.c_str());
#endif
    MPI_Info_set(info, "wdir", command.directory.c_str());
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm between = MPI_COMM_NULL;
    int failed = MPI_SUCCESS;
    const int code = MPI_Comm_spawn("/usr/bin/env", arguments.data(), 1, info, 0, MPI_COMM_SELF,
                                    &between, &failed);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, before);
    MPI_Errhandler_free(&before);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS || failed != MPI_SUCCESS || between == MPI_COMM_NULL) {
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code != MPI_SUCCESS ? code : failed, text, &length);
        throw error(EIO, "cannot start a successor on " + host.name + ": " +
                             std::string(text, static_cast<std::size_t>(length)));
    }
    return between;
}

/* The whole state as a file: the way of moving that ours is compared with. */
void write_state(const registry &data, const image_header &header, const std::string &file,
                 effort &effort)
{
    const double begin = seconds();
    std::vector<array> arrays;
    for (const auto &[name, a] : data.all())
        arrays.push_back(a);
    image_memory memory;
    memory.reserve(image_bound(arrays));
    image_writer writer(memory, header);
    for (const array &a : arrays)
        writer.write(a);
    const std::span<const std::byte> image = writer.finish();
    effort.zero_bytes = writer.zero_bytes();
    effort.image_bytes = image.size();
    effort.build_ms = ms_since(begin);
    const double built = seconds();
    std::error_code ignored; /* what is wrong shows when the file is written */
    std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
    write_durably(file, image);
    effort.transfer_ms = ms_since(built);
}

} // namespace

/* ---- the leaver ---- */

departure::departure(const settings &settings, const command &command, const place &host,
                     const greeting &greeting)
    : settings_(settings)
{
    const double begin = seconds();
    {
        /* MPI_Comm_spawn of MPICH never returns if the child ends before MPI_Init. */
        const watchdog guard(settings.timeout_s,
                             "no successor on " + host.name + " after " +
                                 std::to_string(static_cast<int>(settings.timeout_s)) +
                                 " s: " + command.program + " ended before MPI_Init there?");
        line_ = std::make_unique<lifeline>(spawn(command, host), false, settings.timeout_s);
    }
    transfer_ = std::make_unique<transfer>(*line_);
    line_->send(word::hello, greeting.to_json());
    spawn_ms_ = ms_since(begin);
}

void departure::await()
{
    const message said = line_->receive();
    if (said.what != word::here)
        throw error(EPIPE, "the successor speaks out of turn");
}

bool departure::damages(const array &source) const
{
    return settings_.fault_injected(fault::corrupt) ||
           settings_.fault_injected(fault::corrupt_early) ||
           (settings_.fault_injected(fault::corrupt_large) && transfer::segments(source) > 1);
}

void departure::answer(const std::string &question, const registry &data,
                       const image_header &header, const std::string &file)
{
    const json asked = json::parse(question);
    const std::string name = asked.at("name");
    const std::string type = asked.at("type");
    const std::uint64_t count = asked.at("count");
    const array *source = data.find(name);
    auto refuse = [&](int code, const std::string &text) {
        line_->send(word::answer, json{{"code", code}, {"error", text}}.dump());
    };
    if (!source) {
        refuse(ENOENT, "nothing saved as '" + name + "'");
    } else if (type != name_of(source->type)) {
        refuse(EBADMSG, "type of '" + name + "' is " + type + " in the successor, " +
                            name_of(source->type) + " before");
    } else if (count != source->count) {
        refuse(EBADMSG, "'" + name + "' has " + std::to_string(count) +
                            " elements in the successor, " + std::to_string(source->count) +
                            " before");
    } else {
        asked_.insert(name);
        if (!file.empty()) {
            line_->send(word::answer, json{{"file", file}}.dump());
        } else {
            line_->send(word::answer, json{{"segments", transfer::segments(*source)}}.dump());
            transfer_->send(*source, header, effort_, damages(*source));
        }
    }
}

void departure::serve(const registry &data, const image_header &header, const std::string &file)
{
    if (!file.empty())
        write_state(data, header, file, effort_);
    for (;;) {
        const message said = line_->receive();
        switch (said.what) {
        case word::ask:
            answer(said.text, data, header, file);
            break;
        case word::ready:
            for (const auto &[name, a] : data.all())
                if (!asked_.contains(name))
                    throw error(ENOENT, "the successor has not registered '" + name + "'");
            effort_.restore_ms = json::parse(said.text).at("restore_ms");
            return;
        case word::failed:
            throw error(EPIPE, said.text);
        default:
            throw error(EPIPE, "the successor speaks out of turn");
        }
    }
}

void departure::abandon()
{
    bool silent = false;
    try {
        line_->send(word::abandon);
        transfer_->finish();
        line_->drain(word::left, kFarewell);
        silent = true;
    } catch (const error &) {
        /* It has ended already, or does not listen. */
    }
    line_->forget(silent);
}

/* ---- the job ---- */

/* Probe, spawn, link up, hand the data over; then decide, together; then rebuild. */
void job::move(const request &wanted)
{
    const double begin = seconds();
    const std::int64_t n = safe_points_.load();
    greeting greeting;
    greeting.moved = true;
    greeting.rank = now_.rank;
    greeting.safe_points = n;
    greeting.requests = agreement_.requests();
    greeting.job = name_;
    greeting.identity = identity_;
    greeting.line = line_;
    greeting.moves = moves_ + 1;
    greeting.age_s = seconds() - begun_;
    greeting.hosts = hosts_;
    place host;
    for (const request::target &one : wanted.moves) {
        if (one.rank == now_.rank) {
            greeting.index = static_cast<int>(greeting.leavers.size());
            host = {one.host, !hosts_.contains(one.host)};
        }
        greeting.leavers.push_back(one.rank);
    }

    std::unique_ptr<departure> mine;
    std::string complaint;
    auto attempt = [&](auto &&step) {
        try {
            step();
        } catch (const error &problem) {
            complaint = "rank " + std::to_string(now_.rank) + ": " + problem.what();
        } catch (const std::exception &problem) {
            complaint = "rank " + std::to_string(now_.rank) + ": " + problem.what();
        }
    };
    if (!host.name.empty())
        attempt([&] {
            join_writer();
            data.check_mapped();
            mine = std::make_unique<departure>(settings_, command_, host, greeting);
            mine->await();
        });
    std::string verdict = agree(now_.ours, complaint);
    if (!verdict.empty()) {
        if (mine)
            mine->abandon();
        outcome(refusal(EIO, verdict));
        return;
    }

    const double linking = seconds();
    growth how;
    how.old = &now_;
    how.leavers = greeting.leavers;
    how.rank = now_.rank;
    world next = link_up(how, mine.get());
    const double link_ms = ms_since(linking);

    const std::string file = wanted.via_disk ? settings_.checkpoint_directory + "/moving-" +
                                                   digits_of(identity_) + "-rank-" +
                                                   std::to_string(now_.rank) + ".h5"
                                             : "";
    if (mine)
        attempt([&] {
            if (settings_.fault_injected(fault::corrupt_early) && greeting.index > 0)
                for (const double late = seconds() + kFarewell + 2; seconds() < late;)
                    make_progress();
            mine->serve(data, header(), file);
        });
    const effort spent = mine ? mine->spent() : effort{};
    const std::vector<double> most =
        greatest(now_.ours, {mine ? mine->spawn_ms() : 0.0, spent.build_ms, spent.transfer_ms,
                             spent.restore_ms, link_ms});
    const std::vector<double> sum = total(
        now_.ours, {static_cast<double>(spent.image_bytes), static_cast<double>(spent.zero_bytes),
                    mine ? static_cast<double>(data.bytes()) : 0.0});
    verdict = agree(now_.ours, complaint);
    if (!verdict.empty()) {
        if (mine)
            mine->abandon();
        if (mine && !file.empty())
            unlink(file.c_str());
        next.forget();
        outcome(refusal(EIO, verdict));
        return;
    }

    /* All successors have all: from here on they are the ranks. */
    if (mine && settings_.fault_injected(fault::leaver_dies))
        raise(SIGKILL);
    /* Nobody can do without another until the old world is gone. */
    std::optional<watchdog> guard;
    if (mine)
        lock_.reset(); /* of rank 0: its successor takes it when it saves */
    guard.emplace(settings_.timeout_s,
                  "the move was agreed on, but a process died before it was done");
    if (mine) {
        try {
            mine->go();
        } catch (const error &problem) {
            end_job(now_.rank, std::string("state handed over, but ") + problem.what());
        }
    }
    const double committed = seconds();
    if (mine)
        profiler::instance().close();
    if (release)
        release(now_.user, argument);
    agreement_.close();
    const bool leader = now_.rank == 0;
    now_.disconnect();

    json report = {{"ok", true},
                   {"command", "move"},
                   {"via", wanted.via_disk ? "disk" : "memory"},
                   {"safe_point", n},
                   {"epoch", epoch() + 1},
                   {"bytes", {{"data", sum[2]}, {"image", sum[0]}, {"zero", sum[1]}}}};
    for (const request::target &one : wanted.moves)
        report["moved"].push_back({{"rank", one.rank}, {"host", one.host}});
    auto complete = [&](const std::vector<double> &rebuilt) {
        const double now = seconds();
        report["phases_ms"] = {{"negotiation", (begin - arrived_.load()) * 1e3},
                               {"spawn", most[0]},
                               {"checkpoint", most[1]},
                               {"transfer", most[2]},
                               {"restore", most[3]},
                               {"rebuild", most[4] + rebuilt[0]}};
        report["stall_ms"] = rebuilt[1];
        report["response_ms"] = (now - arrived_.load()) * 1e3;
        return report.dump();
    };

    if (mine) {
        guard.reset();
        try {
            if (leader) {
                /* The new rank 0 has a socket by now; whoever asked is still ours to answer. */
                const json done = json::parse(mine->line().receive(kNoLimit).text);
                if (control_) /* who has found this socket would be told that the job has ended */
                    control_->close_door("rank 0 has moved: ask again");
                outcome(complete(done.at("rebuilt")));
                control_.reset();
            }
            mine->line().disconnect();
        } catch (const std::exception &problem) {
            complain(now_.rank, std::string("moved away, and then: ") + problem.what());
        }
        if (!file.empty())
            unlink(file.c_str());
        end_progress();
        MPI_Finalize();
        leave_process(leaving::moved);
    }
    now_ = next;
    moves_++;
    profiler::instance().link(now_.user);
    agreement_.open(now_.ours, greeting.requests);
    settle();
    guard.reset();
    const std::vector<double> rebuilt = rebuild_world(committed);
    if (leader)
        outcome(complete(rebuilt));
}

/**
 * Now the successors take part in collectives: none of these, and none of us, can be called back
 * from there, so one that dies meanwhile is the end of the job.
 */
world job::link_up(growth &how, departure *mine)
{
    const watchdog guard(settings_.timeout_s + static_cast<double>(how.leavers.size()),
                         "not linked up with the successors in time: a process died meanwhile");
    if (mine) {
        try {
            mine->proceed();
        } catch (const error &problem) {
            end_job(now_.rank,
                    std::string("a process died before it was linked up: ") + problem.what());
        }
        how.line = mine->line().comm();
    }
    return grow(how);
}

/** Collective over the new world: what it took, and how long those who stayed were held. */
std::vector<double> job::rebuild_world(double begin)
{
    if (rebuild)
        rebuild(now_.user, argument);
    refresh_status();
    return greatest(now_.ours, {ms_since(begin), waiting_to_take_over_ ? 0.0 : ms_since(met_)});
}

/** A successor's first safe point: its state is complete, its predecessor may go. */
void job::take_over()
{
    auto &from = dynamic_cast<from_predecessor &>(*inheritance_);
    lifeline &line = from.line();
    std::string missing;
    try {
        if (settings_.fault_injected(fault::successor_exits))
            leave_process(leaving::fault_injected);
        if (settings_.fault_injected(fault::successor_killed))
            raise(SIGKILL);
        line.send(word::ready, json{{"restore_ms", from.spent().restore_ms}}.dump());
        /* The other leavers may take longer; a dead predecessor shows when it is pinged. */
        const message said = line.receive(kNoLimit);
        if (said.what != word::go) {
            from.leave("");
            leave_process(leaving::called_off);
        }
    } catch (const error &problem) {
        end_job(now_.rank, std::string("state received, but ") + problem.what());
    }
    const double committed = seconds();
    become_rank(now_.rank);
    agreement_.open(now_.ours, greeted_requests_);
    open_control();
    open_profile();
    const std::vector<double> rebuilt = rebuild_world(committed);
    waiting_to_take_over_ = false;
    if (now_.rank == 0)
        line.send(word::done, json{{"rebuilt", rebuilt}}.dump());
    line.disconnect();
    inheritance_.reset();
}

} // namespace zc::migrate
