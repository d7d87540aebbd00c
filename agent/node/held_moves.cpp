/* SPDX-License-Identifier: BSD-3-Clause */
#include "held_moves.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <poll.h>
#include <set>
#include <utility>

#include "error.h"
#include "host_name.h"
#include "leaves_together.h"
#include "moves_together.h"
#include "zch/held_ranks.h"
#include "zch/ports.h"

namespace zc::agent {
namespace {

constexpr std::chrono::seconds kAnswers{3}; /* one that listens */
constexpr double kPartForOthers = 0.5;      /* of the time for all, that one waits for others */

bool is_readable(int fd)
{
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, 0) > 0;
}

double until_s(double timeout_s)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
               .count() +
           timeout_s;
}

/** A rank that can be asked, which of those that are wanted it is, and what became of it. */
struct asked_rank {
    std::size_t nth = 0;
    holder::held_rank which;
    holder::held_move said;
    bool is_asked = false, is_silent = false; /* it was; no answer came: its move may go on */
};

/** By several threads at once: each asks for a rank of its own. Ranks of other jobs, and those of
 * this one that others move, may be in the way, which ends. */
class held_group final : public control::rank_mover {
  public:
    held_group(holder::held_ranks &ranks, std::vector<asked_rank> &all, std::string to,
               double end_s, double wait_s, int stop)
        : ranks_(ranks), all_(all), to_(std::move(to)), end_s_(end_s), wait_s_(wait_s), stop_(stop)
    {
    }
    control::attempt move(std::size_t nth, control::departure &leaving) override
    {
        asked_rank &one = all_[nth];
        one.said = {};
        if (is_readable(stop_)) /* those that have begun go on by themselves */
            return {false, false, "the agent is ending"};
        one.is_asked = true;
        control::leaves_together others(leaving, others_of(one), wait_s_);
        const auto left = std::chrono::duration<double>(end_s_ - now_s());
        try {
            one.said = ranks_.move(
                one.which, to_, std::chrono::ceil<std::chrono::milliseconds>(left),
                [this] { return is_readable(stop_); }, leaving.has_others() ? &others : nullptr);
        } catch (const error &problem) {
            one.is_silent = problem.code() == ETIMEDOUT;
            throw;
        }
        /* Where others were promised the memory another host may have some: its agent decides. */
        const bool again = one.said.again && !one.said.other_host && !is_readable(stop_);
        return {one.said.ok, again, one.said.why};
    }
    /** Not longer than the agent lives. */
    void wait(double seconds) override
    {
        pollfd one{stop_, POLLIN, 0};
        poll(&one, 1, static_cast<int>(seconds * 1000));
    }

  private:
    std::vector<int> others_of(const asked_rank &rank) const
    {
        std::vector<int> others;
        for (const asked_rank &each : all_) {
            if (each.nth != rank.nth)
                others.push_back(each.which.rank);
        }
        return others;
    }

    holder::held_ranks &ranks_;
    std::vector<asked_rank> &all_;
    std::string to_;
    double end_s_, wait_s_;
    int stop_;
};

/** Where something has to listen: @target, and where ranks were started. */
std::set<std::string> places_of(const std::string &target, const std::vector<held_errand> &errands)
{
    std::set<std::string> places{target};
    for (const held_errand &each : errands) {
        if (each.why_not.empty() && !each.origin_place.empty())
            places.insert(holder::listener_at(each.origin_place));
    }
    return places;
}

/** Sets what became of ranks that cannot be asked. Returns the others. @listen: where something
 * does. */
std::vector<asked_rank> that_can_be_asked(const std::set<std::string> &listen,
                                          const std::vector<held_errand> &errands,
                                          std::vector<msg::rank_result> &each)
{
    std::vector<asked_rank> all;
    for (std::size_t nth = 0; nth < errands.size(); nth++) {
        const held_errand &what = errands[nth];
        each[nth].reason = what.why_not;
        if (!what.why_not.empty())
            continue;
        asked_rank one;
        one.nth = nth;
        one.which.rank = static_cast<int>(each[nth].rank);
        one.which.pid = what.origin.pid;
        one.which.home = what.origin.home;
        one.which.host = host_name(); /* of the ranks of its own node an agent decides */
        if (!what.origin_place.empty()) {
            one.which.asked_at = holder::listener_at(what.origin_place);
            if (!listen.contains(one.which.asked_at)) {
                each[nth].reason = "no zc-hold --listen answers at " + one.which.asked_at +
                                   ", where its zc-hold is, or it has another key";
                continue;
            }
        }
        all.push_back(std::move(one));
    }
    return all;
}

msg::verdict verdict_of(const control::rank_outcome &became, const asked_rank &one)
{
    return became.moved          ? msg::verdict::moved
           : !one.is_asked       ? msg::verdict::unknown
           : one.is_silent       ? msg::verdict::timed_out
           : one.said.other_host ? msg::verdict::failed
                                 : msg::verdict::refused;
}

} // namespace

void tell(const holder::held_move &said, bool at_once, msg::outcome &o)
{
    o.bytes += said.copied + said.bytes;
    const double phases[kPhases] = {said.leave_ms,   said.dump_ms, 0, said.copy_ms + said.send_ms,
                                    said.restore_ms, said.bind_ms};
    for (std::size_t i = 0; i < kPhases; i++)
        o.phase_ms[i] = at_once ? std::max(o.phase_ms[i], static_cast<float>(phases[i]))
                                : o.phase_ms[i] + static_cast<float>(phases[i]);
}

void conclude(const std::vector<holder::held_move> &said, bool at_once, msg::outcome &o)
{
    o.reason = o.each.front().reason;
    /* What is to be known first of several: whether any may be there. */
    for (const msg::verdict what : {msg::verdict::moved, msg::verdict::timed_out,
                                    msg::verdict::failed, msg::verdict::refused}) {
        const auto one = std::ranges::find(o.each, what, &msg::rank_result::what);
        if (one == o.each.end())
            continue;
        o.what = what;
        o.reason = one->reason;
        break;
    }
    for (std::size_t i = 0; i < said.size(); i++) {
        if (o.what != msg::verdict::moved || o.each[i].what == msg::verdict::moved)
            tell(said[i], at_once, o);
    }
}

held_moves::held_moves(std::string key_file, double timeout_s)
    : key_file_(std::move(key_file)), timeout_s_(timeout_s)
{
}

held_moves::~held_moves()
{
    end();
}

void held_moves::ask(const msg::ask &wanted, const std::vector<held_errand> &errands)
{
    begin(wanted, [this, wanted, errands] { return carry_out(wanted, errands); });
}

msg::outcome held_moves::carry_out(const msg::ask &wanted, const std::vector<held_errand> &errands)
{
    msg::outcome o{wanted.txn, wanted.job, msg::verdict::failed, wanted.epoch, 0, {}, ""};
    try {
        const std::string target = holder::listener_at(errands.at(0).target_place);
        const double end_s = until_s(timeout_s_);
        holder::held_ranks ranks(key_file_);
        const std::set<std::string> listen =
            ranks.that_listen(places_of(target, errands), kAnswers);
        if (!listen.contains(target)) {
            o.reason =
                printable("no zc-hold --listen answers at " + target + ", or it has another key");
            return o;
        }
        for (rank_id rank : wanted.ranks)
            o.each.push_back({rank, msg::verdict::refused, ""});
        std::vector<asked_rank> asked = that_can_be_asked(listen, errands, o.each);
        const double left_s = end_s - until_s(0);
        const control::move_limits limits{
            .timeout_s = left_s,
            .at_once = asked.size(), /* no more than that are asked for (decision.cpp) */
            .wait_s = std::min(control::move_limits{}.wait_s, kPartForOthers * left_s)};
        held_group by(ranks, asked, target, end_s, limits.wait_s, stop_fd());
        const auto became = control::move_together(by, asked.size(), limits);
        std::vector<holder::held_move> said(o.each.size());
        bool at_once = true;
        for (std::size_t i = 0; i < asked.size(); i++) {
            o.each[asked[i].nth].what = verdict_of(became[i], asked[i]);
            o.each[asked[i].nth].reason = became[i].why;
            said[asked[i].nth] = asked[i].said;
            at_once = at_once && became[i].attempts <= 1;
        }
        for (msg::rank_result &one : o.each)
            one.reason = printable(one.reason);
        conclude(said, at_once, o);
    } catch (const std::exception &problem) { /* before any was asked */
        o.what = o.each.empty() ? msg::verdict::failed : msg::verdict::refused;
        o.each.clear();
        o.reason = printable(problem.what());
    }
    return o;
}

} // namespace zc::agent
