/* SPDX-License-Identifier: BSD-3-Clause */
#include "job_control.h"

#include <algorithm>
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

constexpr double kProbe = 10; /* seconds at most for the launcher to answer for a host */

} // namespace

job_control::job_control(const settings &settings, std::string program, std::function<void()> ring)
    : settings_(settings), program_(std::move(program)), ring_(std::move(ring))
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

/**
 * The socket's thread, while the ranks compute: can the hosts run the program? In MPICH
 * MPI_Comm_spawn never returns if they cannot.
 */
void job_control::examine(const request &wanted)
{
    asked_ = seconds();
    std::set<std::string> hosts;
    for (const request::target &one : wanted.moves)
        if (hosts.insert(one.host).second)
            probe_host(settings_.probe, one.host,
                       program_ + (settings_.fault_injected(fault::no_program) ? ".missing" : ""),
                       std::min(settings_.timeout_s, kProbe));
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
    asked_ = seconds();
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

void job_control::answer_deferred(const std::string &outcome)
{
    if (server_)
        server_->finish(outcome);
}

} // namespace zc::migrate
