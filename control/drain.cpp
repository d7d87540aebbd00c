/* SPDX-License-Identifier: BSD-3-Clause */
#include "drain.h"

#include <cerrno>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "control_client.h"
#include "departures.h"
#include "error.h"
#include "moves_together.h"
#include "request.h"

namespace zc::control {
namespace {

using nlohmann::json;
using steady = std::chrono::steady_clock;

constexpr double kStatusSeconds = 10;

/** A job of libzcm that has ranks on the host. */
struct leaving_job {
    std::string directory, name;
    std::vector<request::target> moves;
};

/** The moves of each job, all or none of them: each job has a socket of its own. */
class job_mover final : public rank_mover {
  public:
    job_mover(const std::vector<leaving_job> &jobs, double timeout_s)
        : jobs_(jobs), timeout_s_(timeout_s)
    {
    }
    attempt move(std::size_t nth, departure &) override
    {
        request wanted;
        wanted.kind = request::what::move;
        wanted.moves = jobs_[nth].moves;
        try {
            const json said = json::parse(
                ask_job(jobs_[nth].directory, jobs_[nth].name, wanted.to_json(), timeout_s_));
            return {said.value("ok", false), said.value("code", 0) == EBUSY,
                    said.value("error", "")};
        } catch (const std::exception &problem) {
            return {false, false, problem.what()};
        }
    }

  private:
    const std::vector<leaving_job> &jobs_;
    double timeout_s_;
};

/** The hosts of the ranks of a job; empty if it does not answer. */
std::vector<std::string> hosts_of(const std::string &directory, const std::string &name)
{
    std::vector<std::string> hosts;
    try {
        const json said =
            json::parse(ask_job(directory, name, request{}.to_json(), kStatusSeconds));
        for (const json &rank : said.at("ranks"))
            hosts.push_back(rank.at("host"));
    } catch (const std::exception &) {
        return {}; /* it has ended, or was killed and has left its socket */
    }
    return hosts;
}

void drain_jobs(const transparent_options &how, const std::string &host,
                const std::vector<std::string> &to, const std::vector<std::string> &directories,
                json &report)
{
    std::vector<leaving_job> jobs;
    for (const std::string &directory : directories) {
        for (const std::string &name : jobs_in(directory)) {
            const std::vector<std::string> host_of = hosts_of(directory, name);
            if ((!how.job.empty() && name != how.job) || std::ranges::count(host_of, host) == 0)
                continue;
            report["known"] = true;
            jobs.push_back({directory, name, departures(host_of, host, to)});
            if (!jobs.back().moves.empty())
                continue;
            jobs.pop_back();
            for (std::size_t rank = 0; rank < host_of.size(); rank++)
                report["stayed"].push_back({{"job", name},
                                            {"rank", rank},
                                            {"way", "zcm"},
                                            {"host", host},
                                            {"why", "the job has no other host (--to names one)"}});
        }
    }
    job_mover mover(jobs, how.limits.timeout_s);
    const std::vector<rank_outcome> outcomes = move_together(mover, jobs.size(), how.limits);
    for (std::size_t i = 0; i < jobs.size(); i++) {
        for (const request::target &move : jobs[i].moves) {
            json one = {{"job", jobs[i].name}, {"rank", move.rank}, {"way", "zcm"}};
            if (outcomes[i].moved)
                one.update({{"from", host}, {"host", move.host}});
            else
                one.update({{"host", host}, {"why", outcomes[i].why}});
            report[outcomes[i].moved ? "moved" : "stayed"].push_back(std::move(one));
        }
    }
}

void print(const json &report)
{
    const auto text = [](const json &one, const char *name) {
        return one.at(name).get<std::string>();
    };
    for (const json &one : report.at("moved"))
        fmt::print("rank {} of job {} is on {} now ({})\n", one.at("rank").get<int>(),
                   text(one, "job"), text(one, "host"), text(one, "way"));
    if (report.at("moved").empty() && report.at("stayed").empty())
        fmt::print("no rank is on {}\n", text(report, "host"));
}

void print_problems(const json &report)
{
    for (const json &one : report.at("stayed"))
        fmt::print(stderr, "zcctl: rank {} of job {} is on {} still: {}\n",
                   one.at("rank").get<int>(), one.at("job").get<std::string>(),
                   one.at("host").get<std::string>(), one.at("why").get<std::string>());
    for (const json &one : report.at("silent"))
        fmt::print(stderr,
                   "zcctl: no zc-hold --listen answers at {}: ranks that were started there are "
                   "not known\n",
                   one.get<std::string>());
    if (report.contains("error"))
        fmt::print(stderr, "zcctl: {}\n", report.at("error").get<std::string>());
}

} // namespace

int drain(const transparent_options &how, const std::string &host,
          const std::vector<std::string> &to, const std::vector<std::string> &directories)
{
    const auto begin = steady::now();
    json report = {{"command", "drain"},      {"host", host},
                   {"known", false},          {"moved", json::array()},
                   {"stayed", json::array()}, {"silent", json::array()}};
    drain_jobs(how, host, to, directories, report);
    try {
        drain_transparently(how, host, to, report);
    } catch (const std::exception &problem) {
        report["error"] = problem.what();
    }
    report["ms"] = std::chrono::duration<double, std::milli>(steady::now() - begin).count();
    int status = report.at("stayed").empty() && !report.contains("error") ? kDone : kRefused;
    if (!report.at("known").get<bool>() && status == kDone) {
        report["error"] = "no job here has a rank on " + host +
                          ", and no zc-hold --listen answers that it is " + host;
        status = kNoJob;
    }
    report.erase("known");
    report["ok"] = status == kDone;
    if (how.as_json)
        fmt::print("{}\n", report.dump(-1, ' ', false, json::error_handler_t::replace));
    else
        print(report);
    print_problems(report);
    return status;
}

} // namespace zc::control
