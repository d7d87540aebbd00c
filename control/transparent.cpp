/* SPDX-License-Identifier: BSD-3-Clause */
#include "transparent.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent_client.h"
#include "error.h"
#include "held_job.h"
#include "keys.h"
#include "leaves_together.h"
#include "moves_together.h"
#include "next_host.h"
#include "placement.h"
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
            if (node.at("state") == "alive")
                hosts.push_back(node.at("host"));
        }
    } catch (const std::exception &) {
        return {};
    }
    return hosts;
}

/** A rank, and to which of some hosts it is to go. */
struct errand {
    held_rank rank;
    std::vector<listening_host> hosts;
};

/** By several threads at once: each asks for a rank of its own, over a connection of its own. */
class held_mover final : public rank_mover {
  public:
    /** @where: all ranks of each job. */
    held_mover(holder::held_ranks &ranks, const std::vector<errand> &errands,
               const transparent_options &how, placement &where)
        : ranks_(ranks), errands_(errands), began_(clock::now()),
          until_(began_ + seconds(how.limits.timeout_s)), wait_s_(how.limits.wait_s),
          within_(how.within_s), where_(where), last_(errands.size()), went_(errands.size())
    {
    }
    attempt move(std::size_t nth, departure &leaving) override
    {
        const auto &[rank, hosts] = errands_[nth];
        last_[nth] =
            move_to_one_of(hosts, rank.job, where_, leaving, [&](const listening_host &host) {
                went_[nth] = host.name;
                return move_to(errands_[nth].rank, host, leaving);
            });
        return {last_[nth].ok, last_[nth].again, last_[nth].why};
    }

    /** The ranks of a job, which wait for each other. */
    std::string group_of(std::size_t nth) override { return errands_[nth].rank.job; }

    /** What was said of it, the last time. */
    const holder::held_move &last(std::size_t nth) const { return last_[nth]; }
    const std::string &went(std::size_t nth) const { return went_[nth]; }

  private:
    using clock = std::chrono::steady_clock;
    using seconds = std::chrono::duration<double>;
    std::vector<int> others_of(const held_rank &rank) const
    {
        std::vector<int> others;
        for (const errand &each : errands_) {
            if (each.rank.job == rank.job && each.rank.rank != rank.rank)
                others.push_back(each.rank.rank);
        }
        return others;
    }
    holder::held_move move_to(const held_rank &rank, const listening_host &host, departure &leaving)
    {
        using std::chrono::milliseconds;
        leaves_together others(leaving, others_of(rank), wait_s_);
        const auto now = clock::now();
        const auto left = std::chrono::duration_cast<milliseconds>(until_ - now);
        /* Of all: what came before, as other attempts and other ranks, counts. */
        const auto within = std::chrono::duration_cast<milliseconds>(began_ + within_ - now);
        const bool is_limited = within_.count() > 0;
        holder::held_move said =
            ranks_.move(rank, host.endpoint, std::max(left, milliseconds(1000)), {},
                        leaving.has_others() ? &others : nullptr,
                        is_limited ? std::max(within, milliseconds(1)) : milliseconds(0));
        if (is_limited) /* it began late already */
            said.late_ms += std::max(0.0, -static_cast<double>(within.count()));
        return said;
    }
    holder::held_ranks &ranks_;
    const std::vector<errand> &errands_;
    clock::time_point began_;
    std::chrono::time_point<clock, seconds> until_;
    double wait_s_;
    seconds within_;
    placement &where_;
    std::vector<holder::held_move> last_; /* each by the thread of its rank */
    std::vector<std::string> went_;
};

json to_json(const held_rank &rank, const rank_outcome &outcome, const held_mover &by,
             std::size_t nth)
{
    const holder::held_move &said = by.last(nth);
    json one = {{"job", rank.job}, {"rank", rank.rank}, {"way", "transparent"}};
    if (!outcome.moved) {
        one["host"] = rank.host;
        one["why"] = outcome.why;
        return one;
    }
    one.update({{"from", rank.host},
                {"host", by.went(nth)},
                {"attempts", outcome.attempts},
                {"ms", said.ms},
                {"bytes", said.bytes},
                {"bytes_copied", said.copied},
                {"bytes_there", said.bytes_there},
                {"rounds", said.rounds},
                {"copy_ended", said.copy_ended},
                {"late_ms", said.late_ms},
                {"phases_ms",
                 {{"copy", said.copy_ms},
                  {"wait", said.wait_ms},
                  {"leave", said.leave_ms},
                  {"dump", said.dump_ms},
                  {"send", said.send_ms},
                  {"restore", said.restore_ms},
                  {"bind", said.bind_ms}}}});
    return one;
}

/** How much of the time of a move its rank ran, if it did. */
std::string ran_for(double ms)
{
    return ms > 0 ? fmt::format(", {:.0f} of which it ran", ms) : "";
}

/** How much longer than --within it took, if it did. */
std::string late_by(double ms)
{
    return ms > 0 ? fmt::format(", {:.0f} more than --within", ms) : "";
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
        fmt::print("rank {} is on {} now, after {:.0f} ms{}{}\n", one.at("rank").get<int>(),
                   one.at("host").get<std::string>(), one.at("ms").get<double>(),
                   ran_for(one.at("phases_ms").at("copy").get<double>() +
                           one.at("phases_ms").at("wait").get<double>()),
                   late_by(one.at("late_ms")));
    if (report.at("moved").size() > 1)
        fmt::print("  in all {:.0f} ms\n", report.at("ms").get<double>());
}

std::string key_file_of(const transparent_options &how)
{
    return how.key_file.empty() ? default_key_file() : how.key_file;
}

/** Carries @errands out. Return: the exit status; "moved" and "stayed" are added to @report. */
int carry_out(const transparent_options &how, const std::vector<errand> &errands, placement &where,
              json &report)
{
    holder::held_ranks holders(key_file_of(how));
    held_mover mover(holders, errands, how, where);
    const std::vector<rank_outcome> outcomes = move_together(mover, errands.size(), how.limits);
    int status = kDone;
    for (std::size_t i = 0; i < errands.size(); i++) {
        report[outcomes[i].moved ? "moved" : "stayed"].push_back(
            to_json(errands[i].rank, outcomes[i], mover, i));
        if (!outcomes[i].moved && status != kRefused)
            status = outcomes[i].busy ? kBusy : kRefused;
    }
    return status;
}

/** Where zc-hold is asked. */
std::vector<std::string> asked_places(const transparent_options &how)
{
    return how.hosts.empty() ? hosts_of_agents() : how.hosts;
}

/** Asks the usual hosts and @more, if they can be asked. */
holder::held_survey look(const transparent_options &how, const std::vector<std::string> &more)
{
    const std::string key_file = key_file_of(how);
    std::vector<std::string> places = asked_places(how);
    places.insert(places.end(), more.begin(), more.end());
    /* Where there is no key pair, there is no zc-hold of other hosts either. */
    if (how.hosts.empty() && how.key_file.empty() && access(key_file.c_str(), F_OK) != 0)
        places.clear();
    return holder::held_ranks(key_file).look(places, kLook);
}

/** Where a rank that is on @host can go: to those of @to, or to the other hosts of the job, those
 * included on which ranks are that it has spawned, or that have spawned it; if zc-hold listens
 * there. @first: the job, or that which has spawned it. */
std::vector<listening_host> hosts_for(const holder::held_survey &found, const std::string &first,
                                      const std::string &host, const std::vector<std::string> &to)
{
    std::vector<listening_host> hosts;
    std::set<std::string> names, endpoints;
    for (const held_rank &each : found.ranks) {
        if (each.first == first)
            names.insert({each.host, each.home});
    }
    for (const std::string &place : to)
        endpoints.insert(holder::listener_at(place));
    for (const auto &[endpoint, name] : found.hosts) {
        const bool wanted = to.empty() ? names.erase(name) > 0 : endpoints.contains(endpoint);
        if (wanted && name != host)
            hosts.push_back({name, endpoint});
    }
    return hosts;
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

bool has_held_job(const transparent_options &how)
{
    try {
        const holder::held_survey found = look(how, {});
        return std::ranges::any_of(found.ranks, [&](const held_rank &each) {
            return how.job.empty() || each.job == how.job;
        });
    } catch (const std::exception &) {
        return false;
    }
}

int print_held_status(const transparent_options &how)
{
    return with_reasons(how, [&] {
        const holder::held_survey found = look(how, {});
        const std::string job = the_held_job(found, how.job);
        json report = {{"ok", true}, {"command", "status"}, {"job", job}, {"size", 0}};
        for (const held_rank &each : found.ranks) {
            if (each.job != job)
                continue;
            report["size"] = each.size;
            report["ranks"].push_back({{"rank", each.rank},
                                       {"host", each.host},
                                       {"home", each.home},
                                       {"holder", each.pid},
                                       {"moving", each.moving},
                                       {"way", "transparent"}});
        }
        if (how.as_json) {
            fmt::print("{}\n", report.dump(-1, ' ', false, json::error_handler_t::replace));
            return static_cast<int>(kDone);
        }
        fmt::print("job {}, {} of {} ranks found below zc-hold\n", job, report.at("ranks").size(),
                   report.at("size").get<int>());
        for (const held_rank &each : found.ranks) {
            if (each.job == job)
                fmt::print("  rank {:<4} {} (zc-hold {} of {}) transparent{}\n", each.rank,
                           each.host, each.pid, each.home, each.moving ? ", moving" : "");
        }
        return static_cast<int>(kDone);
    });
}

int move_transparently(const transparent_options &how, const std::vector<int> &ranks,
                       const std::string &to)
{
    return with_reasons(how, [&] {
        const holder::held_survey found = look(how, {to});
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
                errands.push_back({each, {{host->second, target}}});
        }
        const auto begin = std::chrono::steady_clock::now();
        placement all_there;
        const int status = carry_out(how, errands, all_there, report);
        report["ms"] =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
                .count();
        report["ok"] = status == kDone;
        print(report, how.as_json);
        return status;
    });
}

void drain_transparently(const transparent_options &how, const std::string &host,
                         const std::vector<std::string> &to, json &report)
{
    std::vector<std::string> more = to;
    more.push_back(host);
    const holder::held_survey found = look(how, more);
    const auto listener = found.hosts.find(holder::listener_at(host));
    const std::string name = listener == found.hosts.end() ? host : listener->second;
    placement where;
    std::vector<errand> errands;
    bool known = report.at("known").get<bool>() || listener != found.hosts.end();
    for (const held_rank &each : found.ranks) {
        where.add(each.job, each.host);
        known = known || each.host == name || each.home == name;
        if (each.host != name || (!how.job.empty() && each.job != how.job))
            continue;
        errand one{each, hosts_for(found, each.first, name, to)};
        if (one.hosts.empty())
            report["stayed"].push_back(
                {{"job", each.job},
                 {"rank", each.rank},
                 {"way", "transparent"},
                 {"host", name},
                 {"why",
                  "no zc-hold --listen answers on another host of the job (--to names one)"}});
        else
            errands.push_back(std::move(one));
    }
    report["known"] = known;
    if (!how.hosts.empty() || !found.ranks.empty())
        report["silent"] = found.silent;
    carry_out(how, errands, where, report);
}

} // namespace zc::control
