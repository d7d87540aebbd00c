/* SPDX-License-Identifier: BSD-3-Clause */
#include "transparent.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent_client.h"
#include "error.h"
#include "held_job.h"
#include "keys.h"
#include "moves_in_turn.h"
#include "zch/held_ranks.h"
#include "zch/ports.h"

namespace zc::control {
namespace {

using holder::held_rank;
using nlohmann::json;

constexpr std::chrono::milliseconds kLook{3000};

/** The hosts whose agents the agent of this node knows; none, if there is no agent. */
std::vector<std::string> hosts_of_agents()
{
    std::vector<std::string> hosts;
    try {
        for (const json &node : json::parse(get(default_socket(), "/nodes")).at("nodes")) {
            if (node.at("state") == "alive" && !node.at("self").get<bool>())
                hosts.push_back(node.at("host"));
        }
    } catch (const std::exception &) {
        return {};
    }
    return hosts;
}

/** A rank, and where it is to go. */
struct errand {
    held_rank rank;
    std::string host, to; /* its name, its endpoint */
};

class held_mover final : public rank_mover {
  public:
    held_mover(holder::held_ranks &ranks, const std::vector<errand> &errands, double timeout_s)
        : ranks_(ranks), errands_(errands), until_(clock::now() + seconds(timeout_s)),
          last(errands.size())
    {
    }
    attempt move(std::size_t nth) override
    {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until_ - clock::now());
        try {
            last[nth] = ranks_.move(errands_[nth].rank, errands_[nth].to,
                                    std::max(left, std::chrono::milliseconds(1000)));
        } catch (const error &problem) {
            last[nth] = {};
            last[nth].why = problem.what();
        }
        return {last[nth].ok, last[nth].again, last[nth].why};
    }
    double now_s() override { return seconds(clock::now().time_since_epoch()).count(); }
    void wait(double for_s) override { std::this_thread::sleep_for(seconds(for_s)); }

  private:
    using clock = std::chrono::steady_clock;
    using seconds = std::chrono::duration<double>;
    holder::held_ranks &ranks_;
    const std::vector<errand> &errands_;
    std::chrono::time_point<clock, seconds> until_;

  public:
    std::vector<holder::held_move> last; /* what was said of each, the last time */
};

json to_json(const errand &what, const rank_outcome &outcome, const holder::held_move &said)
{
    json one = {{"job", what.rank.job}, {"rank", what.rank.rank}, {"way", "transparent"}};
    if (!outcome.moved) {
        one["host"] = what.rank.host;
        one["why"] = outcome.why;
        return one;
    }
    one.update({{"from", what.rank.host},
                {"host", what.host},
                {"attempts", outcome.attempts},
                {"ms", said.ms},
                {"bytes", said.bytes},
                {"phases_ms",
                 {{"leave", said.leave_ms},
                  {"dump", said.dump_ms},
                  {"send", said.send_ms},
                  {"restore", said.restore_ms},
                  {"bind", said.bind_ms}}}});
    return one;
}

/** @report has "already", "moved" and "stayed"; why ranks have stayed is an error in any case. */
void print(const json &report, bool as_json)
{
    for (const json &one : report.at("stayed"))
        fmt::print(stderr, "zcctl: rank {} is on {} still: {}\n", one.at("rank").get<int>(),
                   one.at("host").get<std::string>(), one.at("why").get<std::string>());
    if (as_json) {
        fmt::print("{}\n", report.dump(-1, ' ', false, json::error_handler_t::replace));
        return;
    }
    for (const json &one : report.at("already"))
        fmt::print("rank {} is on {} already\n", one.get<int>(),
                   report.at("to").get<std::string>());
    for (const json &one : report.at("moved"))
        fmt::print("rank {} is on {} now, after {:.0f} ms\n", one.at("rank").get<int>(),
                   one.at("host").get<std::string>(), one.at("ms").get<double>());
    if (report.at("moved").size() > 1)
        fmt::print("  in all {:.0f} ms, one rank after the other\n", report.at("ms").get<double>());
}

/** Carries @errands out. Return: the exit status; "moved" and "stayed" are added to @report. */
int carry_out(holder::held_ranks &ranks, const std::vector<errand> &errands, double timeout_s,
              bool stops, json &report)
{
    const auto begin = std::chrono::steady_clock::now();
    held_mover mover(ranks, errands, timeout_s);
    const std::vector<rank_outcome> outcomes =
        move_in_turn(mover, errands.size(), timeout_s, stops);
    int status = kDone;
    for (std::size_t i = 0; i < errands.size(); i++) {
        report[outcomes[i].moved ? "moved" : "stayed"].push_back(
            to_json(errands[i], outcomes[i], mover.last[i]));
        if (!outcomes[i].moved && status == kDone)
            status = outcomes[i].busy ? kBusy : kRefused;
    }
    report["ms"] =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    report["ok"] = status == kDone;
    return status;
}

/** Of what is found before any rank is asked to move. */
int refused(const transparent_options &how, int status, int code, const std::string &why)
{
    if (how.as_json)
        fmt::print("{}\n", json{{"ok", false}, {"code", code}, {"error", why}}.dump(
                               -1, ' ', false, json::error_handler_t::replace));
    fmt::print(stderr, "zcctl: {}\n", why);
    return status;
}

template <class F>
int with_reasons(const transparent_options &how, F act)
{
    try {
        return act();
    } catch (const error &problem) {
        return refused(how, problem.code() == ENOENT ? kNoJob : kRefused, problem.code(),
                       problem.what());
    } catch (const std::exception &problem) {
        return refused(how, kRefused, EIO, problem.what());
    }
}

} // namespace

bool transparent_is_built()
{
    return true;
}

int move_transparently(const transparent_options &how, const std::vector<int> &ranks,
                       const std::string &to)
{
    return with_reasons(how, [&] {
        holder::held_ranks holders(how.key_file.empty() ? default_key_file() : how.key_file);
        std::vector<std::string> places = how.hosts.empty() ? hosts_of_agents() : how.hosts;
        places.push_back(to);
        const holder::held_survey found = holders.look(places, kLook);
        const std::string job = the_held_job(found, how.job);
        const std::vector<held_rank> chosen = the_held_ranks(found, job, ranks);
        const std::string target = holder::listener_at(to);
        const auto host = found.hosts.find(target);
        if (host == found.hosts.end())
            throw error(ENOENT, "no zc-hold --listen answers at " + target +
                                    ", or it has another key: is it running there?");
        json report = {
            {"command", "move"},       {"way", "transparent"},   {"job", job},
            {"to", host->second},      {"moved", json::array()}, {"stayed", json::array()},
            {"already", json::array()}};
        std::vector<errand> errands;
        for (const held_rank &each : chosen) {
            if (each.host == host->second)
                report["already"].push_back(each.rank);
            else
                errands.push_back({each, host->second, target});
        }
        const int status = carry_out(holders, errands, how.timeout_s, true, report);
        print(report, how.as_json);
        return status;
    });
}

} // namespace zc::control
