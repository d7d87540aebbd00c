/* SPDX-License-Identifier: BSD-3-Clause */
#include "job_control.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "error.h"
#include "job_sockets.h"
#include "probe.h"
#include "process.h"
#include "world.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr double kProbe = 20; /* seconds at most for a host to answer, the preflight included */

} // namespace

job_control::job_control(const settings &settings, std::string program,
                         const allowed_hosts &allowed, std::function<void()> ring)
    : settings_(settings), program_(std::move(program)), allowed_(allowed), ring_(std::move(ring)),
      needed_(preflight::of_this_process())
{
}

void job_control::open(const std::string &job, int ranks, std::uint64_t epoch,
                       const std::atomic<std::int64_t> &safe_points)
{
    /* What there was where the job began need not be where rank 0 is now. */
    std::set<std::string> tried;
    for (const std::string &directory :
         {settings_.socket_directory, control::last_socket_directory()}) {
        if (!tried.insert(directory).second)
            continue;
        try {
            server_ = std::make_unique<control_server>(
                directory, job, ranks, settings_.patience_s, epoch, safe_points,
                [this](const request &wanted) { examine(wanted); }, ring_);
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
void job_control::examine(const request &wanted)
{
    asked_ = seconds();
    std::set<std::string> hosts;
    for (const request::target &one : wanted.moves) {
        allowed_.check(one.host);
        hosts.insert(one.host);
    }
    /* All at once: each may take its time. */
    std::vector<std::future<void>> answers;
    for (const std::string &host : hosts)
        answers.push_back(std::async(std::launch::async, [this, host] { examine_host(host); }));
    for (std::future<void> &answer : answers)
        answer.wait();
    for (std::future<void> &answer : answers)
        answer.get();
    examined_ = seconds();
}

void job_control::examine_host(const std::string &host) const
{
    probe what;
    what.how = settings_.probe;
    what.program = program_ + (settings_.fault_injected(fault::no_program) ? ".missing" : "");
    what.timeout_s = std::min(settings_.timeout_s, kProbe);
    if (settings_.checks.run) {
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
    preflight needed = needed_;
    needed.features = features_;
    preflight found;
    try {
        found = preflight::find_in(said);
    } catch (const error &problem) {
        if (what.how != "auto" || !settings_.checks.run)
            return; /* a command of the user's has found the host good */
        throw error(ENOEXEC, "host " + host + ": preflight of " + program_ + ": " + problem.what() +
                                 ": " + said);
    }
    if (settings_.fault_injected(fault::other_build))
        found.program = "another";
    if (settings_.fault_injected(fault::other_processor))
        found.features = 0;
    const std::string why = why_not(needed, found, host, settings_.checks);
    if (!why.empty())
        throw error(ENOEXEC, why);
}

void job_control::set_status(const std::string &job, std::int64_t moves, std::uint64_t epoch,
                             const std::vector<whereabouts> &ranks)
{
    if (!server_)
        return;
    json status = {{"ok", true}, {"job", job}, {"moves", moves}, {"epoch", epoch}};
    for (std::size_t rank = 0; rank < ranks.size(); rank++)
        status["ranks"].push_back(
            {{"rank", rank}, {"host", ranks[rank].host}, {"pid", ranks[rank].pid}});
    server_->set_status(status.dump(), epoch);
}

void job_control::close_door(const std::string &why)
{
    if (server_)
        server_->close_door(why);
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
