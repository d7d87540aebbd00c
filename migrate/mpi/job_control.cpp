/* SPDX-License-Identifier: BSD-3-Clause */
#include "job_control.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "clock.h"
#include "error.h"
#include "job_sockets.h"
#include "probe.h"
#include "process.h"
#include "spawn.h"
#include "test_wait.h"
#include "world.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr double kProbe = 20; /* seconds at most for a host to answer, the preflight included */

} // namespace

job_control::job_control(const settings &settings, const command &command,
                         const allowed_hosts &allowed, std::function<void()> ring)
    : settings_(settings), command_(command), allowed_(allowed), ring_(std::move(ring)),
      needed_(preflight::of_this_process())
{
}

preflight job_control::own_now() const
{
    preflight own = needed_;
    own.libraries = loaded_libraries::of_this_process();
    return own;
}

void job_control::open(const std::string &job, int ranks, std::uint64_t epoch,
                       const std::atomic<std::int64_t> &safe_points, wire *launcher)
{
    launcher_ = launcher;
    /* What there was where the job began need not be where rank 0 is now. */
    std::set<std::string> tried;
    for (const std::string &directory :
         {settings_.socket_directory, control::last_socket_directory()}) {
        if (!tried.insert(directory).second)
            continue;
        try {
            server_ = std::make_unique<control_server>(
                directory, job, ranks, settings_.patience_s, epoch, safe_points,
                [this](const request &wanted) { return examine(wanted); }, ring_);
            if (tried.size() > 1)
                complain(0, "can be asked to move in " + directory + " instead");
            return;
        } catch (const error &problem) {
            complain(0, std::string("cannot be asked to move: ") + problem.what());
        }
    }
}

std::string job_control::why_not_open() const
{
    const std::string first = control_server::why_not_in(settings_.socket_directory);
    if (first.empty() || control_server::why_not_in(control::last_socket_directory()).empty())
        return "";
    return first;
}

/** A thread of the socket's, while the ranks compute: can the hosts run the program? */
std::shared_ptr<standby> job_control::examine(const request &wanted)
{
    asked_ = seconds();
    std::map<std::string, leavers> hosts;
    for (const request::target &one : wanted.moves) {
        allowed_.check(one.host);
        hosts[one.host].push_back(one.rank);
    }
    /* An image is made before its successor is started, as the paper that does so has it. */
    const bool starts =
        launcher_ && wanted.kind == request::what::move && wanted.via != request::way::image;
    /* All at once: each may take its time. One needs no thread, whose start takes time as well. */
    const auto how = hosts.size() > 1 ? std::launch::async : std::launch::deferred;
    std::map<std::string, std::future<std::unique_ptr<wire>>> answers;
    for (const auto &[host, from] : hosts)
        answers[host] = std::async(
            how, [this, &host = host, &from = from, starts] { return reach(host, from, starts); });
    for (auto &[host, answer] : answers)
        answer.wait();
    launchers there;
    for (auto &[host, answer] : answers)
        there[host] = answer.get();
    std::shared_ptr<standby> successors;
    if (starts)
        successors = have_successors(wanted, std::move(there));
    examined_ = seconds();
    return successors;
}

/** Does @host answer, and is the program there? A launcher that answers shows the first at once,
 * and says itself if it cannot start the program; what the user wants asked is asked in any case.
 */
std::unique_ptr<wire> job_control::reach(const std::string &host, const leavers &from,
                                         bool is_to_start)
{
    const bool is_users = settings_.probe != "auto";
    if (is_users)
        examine_host(host, from, !launcher_);
    std::unique_ptr<wire> line;
    std::string problem;
    if (is_to_start && !settings_.fault_injected(fault::no_program) &&
        !settings_.fault_injected(fault::no_library))
        line = neighbours_.call_on(host, problem);
    if (!problem.empty())
        complain(0, problem);
    if (!line && !is_users)
        examine_host(host, from, !launcher_);
    return line;
}

/** They are the best preflight. One that does not come up is asked why by the other. */
std::shared_ptr<standby> job_control::have_successors(const request &wanted, launchers there)
{
    auto successors = std::make_shared<standby>(wanted.moves);
    room_.clear();
    std::set<std::string> with_neighbour;
    for (const auto &[host, line] : there)
        if (line)
            with_neighbour.insert(host);
    launch_by_launcher by_own(*launcher_);
    launch_by_neighbour by(std::move(there), by_own);
    start_order order = order_of(command_);
    if (settings_.fault_injected(fault::no_library))
        order.environment.push_back("LD_LIBRARY_PATH=" + settings_.checkpoint_directory);
    try {
        pause pause;
        successors->start(order, by, settings_.start_s, [&] {
            if (closing_)
                throw error(ESHUTDOWN, "the job is finishing");
            pause.rest();
        });
    } catch (const error &) {
        const std::string host = successors->failed_on();
        if (!closing_ && !host.empty()) {
            leavers from;
            for (const request::target &one : wanted.moves)
                if (one.host == host)
                    from.push_back(one.rank);
            ask_why(host, from, with_neighbour.contains(host));
        }
        throw;
    }
    for (const standby::report &one : successors->reports()) {
        const std::uint64_t memory = examine_facts(one.host, {one.rank}, one.facts).memory;
        std::uint64_t &least = room_.emplace(one.host, memory).first->second;
        least = std::min(least, memory);
    }
    if (settings_.fault_injected(fault::waits_in_stand_by) && !has_waited_for_test_) {
        has_waited_for_test_ = true;
        wait_for_test(settings_.checkpoint_directory, [this] {
            if (closing_)
                throw error(ESHUTDOWN, "the job is finishing");
        });
    }
    return successors;
}

/** A successor has not come up on @host. Throws what the host is found to lack; that it cannot be
 * reached is not why, if a launcher has answered there: what asks goes another way. */
void job_control::ask_why(const std::string &host, const leavers &from, bool has_answered) const
{
    try {
        examine_host(host, from, true);
    } catch (const error &found) {
        if (!has_answered || (found.code() != EHOSTUNREACH && found.code() != ETIMEDOUT))
            throw;
    }
}

/** @runs: the program is run there, too. */
void job_control::examine_host(const std::string &host, const leavers &from, bool runs) const
{
    probe what;
    what.how = settings_.probe;
    what.program =
        command_.program + (settings_.fault_injected(fault::no_program) ? ".missing" : "");
    what.timeout_s = std::min(settings_.timeout_s, kProbe);
    runs = runs && settings_.checks.run;
    if (runs) {
        what.run = "env ZC_PREFLIGHT=1";
        for (const std::string &one : loading_environment())
            what.run += " " + shell_word(one);
        if (settings_.fault_injected(fault::no_library))
            what.run += " LD_LIBRARY_PATH=" + shell_word(settings_.checkpoint_directory);
        what.run += " " + shell_word(what.program);
    }
    const std::string said = probe_host(what, host);
    if (said.empty())
        return; /* nothing was run */
    if (what.how == "auto") {
        if (runs)
            examine_facts(host, from, said);
        return;
    }
    try {
        preflight::find_in(said);
    } catch (const error &) {
        return; /* the user's command has found the host good, and has not run the program */
    }
    examine_facts(host, from, said);
}

preflight job_control::examine_facts(const std::string &host, const leavers &from,
                                     const std::string &said) const
{
    preflight needed = needed_;
    needed.features = features_;
    preflight found;
    try {
        found = preflight::find_in(said);
    } catch (const error &problem) {
        throw error(ENOEXEC, "host " + host + ": preflight of " + command_.program + ": " +
                                 problem.what() + ": " + beginning_of(said));
    }
    if (settings_.fault_injected(fault::other_build))
        found.program = "another";
    if (settings_.fault_injected(fault::other_processor))
        found.features = 0;
    if (settings_.fault_injected(fault::no_memory_told))
        found.memory = 1 << 20;
    const std::string why = why_not(needed, found, host, settings_.checks);
    if (!why.empty())
        throw error(ENOEXEC, why);
    if (settings_.checks.build)
        examine_libraries(host, from, found.libraries);
    return found;
}

void job_control::examine_libraries(const std::string &host, const leavers &from,
                                    const loaded_libraries &found) const
{
    const auto all = libraries();
    for (const int rank : from) {
        const auto at = static_cast<std::size_t>(rank);
        const auto needed = at < all->size() ? (*all)[at] : nullptr;
        const std::string why = needed ? why_other_libraries(*needed, found, host) : "";
        if (why.empty())
            continue;
        if (settings_.other_libraries == settings::libraries::refuse)
            throw error(ENOEXEC, why);
        say_once(why + ": ranks move there all the same");
    }
}

std::shared_ptr<const job_control::libraries_by_rank> job_control::libraries() const
{
    const std::lock_guard lock(libraries_guard_);
    return libraries_;
}

void job_control::say_once(const std::string &text) const
{
    const std::lock_guard lock(said_guard_);
    if (said_.insert(text).second)
        complain(0, text);
}

void job_control::set_libraries(const std::vector<whereabouts> &ranks,
                                const std::vector<std::string> &texts)
{
    if (!server_)
        return;
    std::map<std::uint64_t, std::shared_ptr<const loaded_libraries>> told;
    auto all = std::make_shared<libraries_by_rank>();
    for (std::size_t rank = 0; rank < ranks.size(); rank++) {
        auto &of = told[ranks[rank].libraries];
        if (!of && ranks[rank].libraries)
            of = std::make_shared<const loaded_libraries>(
                loaded_libraries::from_text(texts.at(rank)));
        all->push_back(of);
    }
    const std::lock_guard lock(libraries_guard_);
    libraries_ = std::move(all);
}

void job_control::set_status(const std::string &job, std::int64_t moves, std::uint64_t epoch,
                             const std::vector<whereabouts> &ranks)
{
    if (!server_)
        return;
    std::vector<neighbour> told;
    for (const whereabouts &one : ranks)
        if (auto launcher = calling_card::if_any(one.launcher))
            told.push_back({one.host, std::move(*launcher)});
    neighbours_.set(std::move(told));
    json status = {{"ok", true}, {"job", job}, {"moves", moves}, {"epoch", epoch}};
    for (std::size_t rank = 0; rank < ranks.size(); rank++)
        status["ranks"].push_back(
            {{"rank", rank}, {"host", ranks[rank].host}, {"pid", ranks[rank].pid}});
    server_->set_status(status.dump(), epoch);
}

void job_control::close_door(const std::string &why)
{
    closing_ = true;
    if (server_)
        server_->close_door(why);
}

void job_control::close()
{
    closing_ = true;
    server_.reset();
}

bool job_control::submit(const request &wanted)
{
    if (!server_->submit(wanted))
        return false;
    asked_ = examined_ = seconds();
    ring_();
    return true;
}

bool job_control::take()
{
    taken_ = server_ ? server_->take() : std::nullopt;
    return taken_.has_value();
}

bool job_control::weighs() const
{
    return settings_.checks.memory && taken_ && taken_->successors;
}

std::string job_control::too_heavy(const std::vector<std::int64_t> &bytes) const
{
    std::map<std::string, std::uint64_t> sums;
    for (const request::target &one : taken_->wanted.moves)
        sums[one.host] += static_cast<std::uint64_t>(bytes.at(static_cast<std::size_t>(one.rank)));
    for (const auto &[host, sum] : sums)
        if (const std::string why = why_no_room(sum, room_.at(host), host); !why.empty())
            return why;
    return "";
}

bool job_control::hold()
{
    return !server_ || server_->hold();
}

void job_control::release()
{
    if (server_)
        server_->release();
}

void job_control::finish(const std::string &outcome)
{
    if (!taken_ || !server_)
        return;
    taken_.reset();
    server_->finish(outcome);
}

bool job_control::defer()
{
    const bool deferred = taken_.has_value();
    taken_.reset();
    return deferred;
}

void job_control::answer_early(const std::string &outcome)
{
    if (server_)
        server_->answer_early(outcome);
}

void job_control::set_late_functions(std::int64_t count)
{
    if (server_)
        server_->set_late_functions(count);
}

void job_control::answer_deferred(const std::string &outcome)
{
    if (server_)
        server_->finish(outcome);
}

} // namespace zc::migrate
