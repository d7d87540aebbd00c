/* SPDX-License-Identifier: BSD-3-Clause */

/* zcctl: ask a running job to move ranks or to save its state, or the agent of this node what
 * it knows and does. See zcctl(1). */
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent_client.h"
#include "control_client.h"
#include "drain.h"
#include "error.h"
#include "job_sockets.h"
#include "request.h"
#include "soft_limits.h"
#include "transparent.h"
#include "verbs.h"

using namespace zc::control;
using nlohmann::json;
using zc::error;

namespace {

constexpr double kLongestWait = 86400, kShortestTimeout = 1e-3, /* seconds */
    kLongestTimeout = 365 * kLongestWait;

/** Seconds that end, as CLI::Range does not see to: "nan" is neither below nor above. */
CLI::Validator seconds_from(double least, double most)
{
    return {[least, most](std::string &text) {
                double seconds = 0;
                const bool right =
                    CLI::detail::lexical_cast(text, seconds) && seconds >= least && seconds <= most;
                return right ? "" : fmt::format("{} is not from {:g} to {:.0f}", text, least, most);
            },
            "SECONDS"};
}

struct found_job {
    std::string directory, name;
};

found_job the_job(const std::vector<std::string> &directories, const std::string &wanted)
{
    std::vector<found_job> jobs;
    std::string places, names;
    for (const std::string &directory : directories) {
        places += (places.empty() ? "" : " and ") + directory;
        for (const std::string &name : jobs_in(directory)) {
            if (name == wanted)
                return {directory, name};
            jobs.push_back({directory, name});
            names += " " + name;
        }
    }
    if (!wanted.empty())
        return {directories[0], wanted};
    if (jobs.empty())
        throw error(ENOENT, "no job here: nothing in " + places +
                                " (ZC_MIGRATE=1 mpiexec ..., on the host of rank 0)");
    if (jobs.size() > 1)
        throw error(ENOENT, "several jobs, choose one with --job:" + names);
    return jobs[0];
}

void print_status(const json &status)
{
    fmt::print("job {}, {} ranks, {} safe points passed, {} moves\n", std::string(status["job"]),
               status["ranks"].size(), std::int64_t(status["safe_points"]), int(status["moves"]));
    if (const int late = status.value("late_functions", 0); late > 0)
        fmt::print("  {} requests were given up as functions of the program did not return\n",
                   late);
    for (const json &rank : status["ranks"])
        fmt::print("  rank {:<4} {} (process {}) zcm\n", int(rank["rank"]),
                   std::string(rank["host"]), int(rank["pid"]));
}

void print_report(const json &report)
{
    if (report.contains("moved"))
        for (const json &one : report["moved"])
            fmt::print("rank {} is on {} now\n", int(one["rank"]), std::string(one["host"]));
    else
        fmt::print("saved in {}\n", std::string(report["directory"]));
    fmt::print(
        "  safe point {}, {:.0f} bytes of data in images of {:.0f} ({:.0f} zero bytes left out)\n",
        std::int64_t(report["safe_point"]), double(report["bytes"]["data"]),
        double(report["bytes"]["image"]), double(report["bytes"]["zero"]));
    if (const int streamed = report.value("streamed", 0); streamed > 0)
        fmt::print("  {} ranks have waited for the disk\n", streamed);
    for (const char *phase :
         {"negotiation", "start", "checkpoint", "spawn", "transfer", "restore", "rebuild"})
        if (report["phases_ms"].contains(phase))
            fmt::print("  {:<12} {:>9.1f} ms\n", phase, double(report["phases_ms"][phase]));
    fmt::print("  {:<12} {:>9.1f} ms\n  {:<12} {:>9.1f} ms (ranks that did not move)\n", "in all",
               double(report["response_ms"]), "stall", double(report["stall_ms"]));
}

/** Sends @wanted to the job and prints its answer. Return: the exit status. */
int ask(const request &wanted, const std::string &directory, const std::string &job_name,
        double timeout_s, bool as_json)
{
    try {
        const found_job job = the_job(
            directory.empty() ? all_socket_directories() : std::vector{directory}, job_name);
        const std::string answer = ask_job(job.directory, job.name, wanted.to_json(), timeout_s);
        json reply = json::parse(answer);
        if (wanted.kind == request::what::status && reply.contains("ranks")) {
            for (json &rank : reply["ranks"])
                rank["way"] = "zcm";
        }
        if (as_json)
            fmt::print("{}\n", reply.dump());
        if (!reply.value("ok", false)) {
            fmt::print(stderr, "zcctl: {}\n", reply.value("error", "refused"));
            return reply.value("code", 0) == EBUSY ? kBusy : kRefused;
        }
        if (!as_json) {
            if (wanted.kind == request::what::status)
                print_status(reply);
            else
                print_report(reply);
        }
        return kDone;
    } catch (const error &problem) {
        fmt::print(stderr, "zcctl: {}\n", problem.what());
        const int code = problem.code();
        return code == ENOENT || code == ECONNREFUSED || code == EACCES ? kNoJob : kRefused;
    } catch (const std::exception &problem) {
        fmt::print(stderr, "zcctl: {}\n", problem.what());
        return kRefused;
    }
}

/** Whether the job that is meant moves by safe points of its program: else, perhaps, below zc-hold.
 */
bool is_job_of_libzcm(const std::vector<std::string> &directories, const std::string &wanted)
{
    for (const std::string &directory : directories) {
        for (const std::string &name : jobs_in(directory)) {
            if (wanted.empty() || name == wanted)
                return true;
        }
    }
    return false;
}

/** Where zc-hold is, and with what key. */
void add_holder_options(CLI::App &verb, transparent_options &how)
{
    verb.add_option("--hosts", how.hosts,
                    "where zc-hold listens: HOST or HOST:PORT, ... (default: where agents are)")
        ->envname("ZC_HOLD_HOSTS")
        ->delimiter(',');
    verb.add_option("--key", how.key_file,
                    "key pair of zcmd and zc-hold (default: ~/.config/zc/zcmd.key)");
}

} // namespace

int main(int argc, char **argv)
{
    zc::raise_limits({RLIMIT_NOFILE}); /* each rank on its way takes some */
    CLI::App app("Move ranks of running jobs, save their state; ask the agent of this node",
                 "zcctl");
    app.require_subcommand(1);
    app.fallthrough();
    app.set_version_flag("--version", ZC_VERSION);
    app.footer("exit status: 0 done; 1 refused or failed; 2 usage; 3 no such job, rank below "
               "zc-hold or host, or no agent; 4 job busy");

    std::string directory, job_name, host, via = "memory";
    if (const char *given = std::getenv("ZC_MIGRATE_SOCKETS"); given && *given)
        directory = given;
    std::vector<int> ranks;
    double timeout_s = 600;
    bool as_json = false, transparent = false;
    transparent_options how;
    app.add_option("--job", job_name, "which job, if there are several");
    app.add_option("--sockets", directory,
                   "directory of the jobs' sockets (default: $ZC_MIGRATE_SOCKETS, else " +
                       default_socket_directory() + ")");
    app.add_option("--timeout", timeout_s, "seconds to wait for the end of a request")
        ->check(seconds_from(kShortestTimeout, kLongestTimeout))
        ->capture_default_str();
    app.add_flag("--json", as_json, "print the job's answer as one JSON object");
    CLI::App *status = app.add_subcommand("status", "ranks, their hosts, and which way they move");
    CLI::App *move = app.add_subcommand("move", "move ranks to another host");
    move->add_option("--rank", ranks, "these ranks, as 3,7")->delimiter(',')->required();
    move->add_option("--to", host, "host, as the launcher knows it")->required();
    std::string drained;
    std::vector<std::string> targets;
    CLI::App *drain_verb = add_drain_verb(app, drained);
    drain_verb->add_option("HOST", drained, "move all ranks of this host to others, and wait");
    drain_verb
        ->add_option("--to", targets, "with HOST: to these hosts (default: others of each job)")
        ->delimiter(',');
    for (CLI::App *verb : {move, drain_verb})
        verb->add_option("--at-once", how.limits.at_once, "so many moves at a time, at most")
            ->check(CLI::PositiveNumber)
            ->capture_default_str();
    if (transparent_is_built()) {
        move->add_flag("--transparent", transparent,
                       "ranks below zc-hold, without help of their program");
        for (CLI::App *verb : {move, drain_verb, status})
            add_holder_options(*verb, how);
        for (CLI::App *verb : {move, drain_verb})
            verb->add_option("--wait", how.limits.wait_s,
                             "so many seconds at most a rank below zc-hold that could leave waits "
                             "for the others; 0: for none")
                ->check(seconds_from(0, kLongestWait))
                ->capture_default_str();
        for (CLI::App *verb : {move, drain_verb})
            verb->add_option("--within", how.within_s,
                             "let the moves of ranks below zc-hold take no longer than these "
                             "seconds, if it can be")
                ->check(seconds_from(kShortestTimeout, kLongestWait));
    }
    const CLI::Option *const by_way =
        move->add_option("--via", via, "memory, or image or disk for comparison")
            ->check(CLI::IsMember({"memory", "image", "disk"}))
            ->capture_default_str();
    CLI::App *save = app.add_subcommand("checkpoint", "save the state of all ranks to disk");

    zc::control::add_agent_verbs(app);

    try {
        app.parse(argc, argv); /* what agents are asked is asked in here */
    } catch (const CLI::ParseError &problem) {
        return app.exit(problem) == 0 ? kDone : kUsage;
    } catch (const zc::control::no_agent &problem) {
        fmt::print(stderr, "zcctl: {}\n", problem.what());
        return kNoJob;
    } catch (const std::exception &problem) {
        fmt::print(stderr, "zcctl: {}\n", problem.what());
        return kRefused;
    }
    how.job = job_name;
    how.limits.timeout_s = timeout_s;
    how.as_json = as_json;
    const std::vector<std::string> directories =
        directory.empty() ? all_socket_directories() : std::vector{directory};
    if (!drained.empty())
        return drain(how, drained, targets, directories);
    if (!*status && !*move && !*save)
        return kDone;
    /* What the program offers decides: its own safe points come first. */
    if (!transparent && !*save && by_way->count() == 0)
        transparent = !is_job_of_libzcm(directories, job_name) && has_held_job(how);
    if (transparent)
        return *move ? move_transparently(how, ranks, host) : print_held_status(how);
    if (how.within_s > 0) {
        fmt::print(stderr, "zcctl: --within is for ranks below zc-hold\n");
        return kUsage;
    }
    request wanted;
    if (*move) {
        wanted.kind = request::what::move;
        wanted.via = zc::control::way_of(via);
        for (int rank : ranks)
            wanted.moves.push_back({rank, host});
    } else if (*save) {
        wanted.kind = request::what::checkpoint;
    }
    return ask(wanted, directory, job_name, timeout_s, as_json);
}
